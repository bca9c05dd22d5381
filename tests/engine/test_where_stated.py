"""A search narrowed by what documents state: a plain set of documents, under any profile, whatever is hidden."""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carag import Document, Engine, Session
from carag.errors import InvalidArgument
from carag.policy import Profile
from carag.retrieval import ConfidenceGate
from tests.engine.documents import QUESTION, Clock, Counting
from tests.sizes import examples

GENERIC = Profile.open("generic")
READER = Session(role="public", purpose="read")
REVIEW = Session(role="compliance", purpose="review")


def opened(store: str, profile: str = "generic") -> Engine:
    return Engine.open(store, profile=profile, embedder=Counting(), clock=Clock(), gate=ConfidenceGate(-1))


STATED = st.fixed_dictionaries(
    {},
    optional={
        "title": st.sampled_from(["Rates", "limits"]),
        "source": st.sampled_from(["bank", "Court"]),
        "issued": st.sampled_from(["2025-01-31", "2025-05-01", "in May"]),
        "language": st.sampled_from(["en", "de-CH"]),
    },
)
VALUES = {
    "id": ["memo 0", "memo 1", "memo 2", "memo 9"],
    "title": ["rates", "limits", "fees"],
    "source": ["bank", "court"],
    "language": ["en", "de-ch"],
}


@st.composite
def narrowings(draw: st.DrawFn) -> dict[str, Any]:
    where: dict[str, Any] = {}
    for field, values in VALUES.items():
        if draw(st.booleans()):
            some = draw(st.lists(st.sampled_from(values), min_size=1, max_size=2))
            where[field] = draw(st.sampled_from([some, some[0], {"not": some}, {"not": some[0]}]))
    if draw(st.booleans()):
        where["issued"] = draw(st.sampled_from([{"gte": "2025-02-01"}, "2025-01-31", {"not": "2025-01-31"}]))
    return where


def expected(where: dict[str, Any], said: dict[str, str]) -> bool:
    """Read a narrowing plainly; days in words are not days, and what is absent meets nothing."""
    for field, wanted in where.items():
        value = said.get(field, "").casefold()
        if not value or value == "in may":
            return False
        if isinstance(wanted, dict) and "gte" in wanted:
            if value < wanted["gte"]:
                return False
            continue
        negated = isinstance(wanted, dict)
        listed = wanted["not"] if negated else wanted
        if (value in ([listed] if isinstance(listed, str) else listed)) is negated:
            return False
    return True


@settings(max_examples=examples(25))
@given(st.lists(st.tuples(STATED, st.booleans()), min_size=1, max_size=6), narrowings())
def test_found_are_the_admissible_documents_of_a_plain_set(
    given_: list[tuple[dict[str, str], bool]], where: dict[str, Any]
) -> None:
    """The same documents, similarities and counts are found in a store that never held what is hidden or left out."""
    documents, met, admissible = [], [], []
    for number, (said, is_hidden) in enumerate(given_):
        metadata = {name: value for name, value in said.items() if name != "language"}
        one = Document(
            id=f"memo {number}",
            text=f"Branches report on day {number}.",
            bits=["CONFIDENTIAL"] if is_hidden else (),
            metadata=metadata,
            language=said.get("language"),
        )
        documents.append(one)
        if not is_hidden:
            admissible.append(one)
            if expected(where, {**said, "id": one.id}):
                met.append(one)
    with TemporaryDirectory() as whole, TemporaryDirectory() as bare:
        found = []
        for store, held in ((whole, documents), (bare, admissible)):
            with opened(store) as engine:
                engine.add(held)
                one = engine.retrieve(QUESTION, READER, 400, where=where)
                found.append((one.outcome, one.why, one.passages, one.withheld))
                wide = engine.retrieve(QUESTION, REVIEW, 400, where=where)
                assert all(expected(where, _said(documents, p.document_id)) for p in wide.passages)
    assert found[0] == found[1]
    assert {p.document_id for p in found[0][2]} == {one.id for one in met}


def _said(documents: list[Document], id_: str) -> dict[str, str]:
    [one] = [one for one in documents if one.id == id_]
    language = {"language": one.language} if one.language else {}
    return {**{name: str(value) for name, value in one.metadata.items()}, **language, "id": id_}


def test_an_unknown_field_is_refused_with_those_that_are_known_under_a_profile_without_metadata(
    tmp_path: Any,
) -> None:
    with (
        opened(str(tmp_path), "edgar") as engine,
        pytest.raises(InvalidArgument, match=r"one of company, filed, form, id, .*did you mean 'title'"),
    ):
        engine.retrieve(QUESTION, Session(role="compliance", purpose="surveil"), where={"titel": "x"})


def test_values_that_are_left_out_are_on_record_and_a_question_and_an_answer_are_narrowed(
    tmp_path: Any,
) -> None:
    with opened(str(tmp_path)) as engine:
        engine.add([Document(id=one, text=f"Branches report, says {one}.", bits=()) for one in "ab"])
        answer = engine.ask(QUESTION, READER, where={"id": {"not": "a"}})
        assert {one.document_id for one in answer.citations} == {"b"}
        said = engine.log.private.openings(answer.receipt.seq)["where"].value
        assert said == '{"id":{"not":["a"]}}'
