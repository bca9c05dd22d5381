"""Looking into a store: what a session may use, page by page, on record, as if nothing else were in the store."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carag import Document, Engine, Session
from carag.audit import Outcome, Verdict, verify_receipt
from carag.errors import InvalidArgument
from carag.retrieval import ConfidenceGate
from tests.engine.documents import Clock, Counting
from tests.sizes import SIZE, examples

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

READER = Session(role="public", purpose="read")
REVIEW = Session(role="compliance", purpose="review")
PAGES = {"quick": 40, "release": 1000}.get(SIZE, 1000)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with opened(tmp_path / "store") as one:
        yield one


def opened(store: Path, profile: str = "generic") -> Engine:
    return Engine.open(store, profile=profile, embedder=Counting(), clock=Clock(), gate=ConfidenceGate(-1))


def memo(number: int | str, **changes: Any) -> Document:
    given_: dict[str, Any] = {"id": f"memo/{number}", "text": f"Branches report on day {number}.", "bits": ()}
    return Document(**{**given_, **changes})


def pages(engine: Engine, session: Session, limit: int, **more: Any) -> Iterator[Any]:
    after = None
    while True:
        page = engine.documents(session, after=after, limit=limit, **more)
        yield page
        if page.after is None:
            return
        after = page.after


def record(engine: Engine, page: Any) -> dict[str, Any]:
    """What the receipt shows, without what no two records share."""
    found: dict[str, Any] = json.loads(page.receipt.record)
    shape = {name: found[name] for name in ("kind", "why", "outcome", "where", "policy") if name in found}
    return {**shape, "hits": len(found.get("hits", ())), "keys": sorted(found)}


# --- laws ---


@settings(max_examples=examples(20))
@given(
    st.lists(st.booleans(), max_size=7),
    st.integers(1, 4),
    st.sampled_from([None, {"id": {"not": "memo/1"}}, {"title": "even"}]),
)
def test_twins_list_alike_page_by_page(
    tmp_path_factory: pytest.TempPathFactory, hidden: list[bool], limit: int, where: dict[str, Any] | None
) -> None:
    """With hidden documents and without: the same pages, documents, passages, errors, and shapes of records."""
    documents = [
        memo(number, bits=["SECRET"] if is_hidden else (), metadata={} if number % 2 else {"title": "even"})
        for number, is_hidden in enumerate(hidden)
    ]
    seen = []
    for held in (documents, [one for one in documents if not one.bits]):
        with opened(tmp_path_factory.mktemp("twin")) as engine:
            engine.add(held)
            found = [*pages(engine, READER, limit, where=where)]
            each = [engine.document(f"memo/{number}", READER) for number in range(len(hidden) + 1)]
            texts = [engine.passages(f"memo/{number}", READER, limit=1) for number in range(len(hidden) + 1)]
            everything = (*found, *each, *texts, engine.quarantine(READER))
            seen.append(
                [
                    (
                        one.outcome,
                        one.why,
                        one.after,
                        one.documents,
                        getattr(one, "passages", ()),
                        record(engine, one),
                    )
                    for one in everything
                ]
            )
    assert seen[0] == seen[1]


@pytest.mark.parametrize("limit", [1, 2, 3, 400])
def test_pages_are_the_plain_set_in_order(engine: Engine, limit: int) -> None:
    """And every page but the last is full."""
    engine.add([memo(number, bits=["SECRET"] if number % 3 == 0 else ()) for number in range(12)])
    found = [[one.id for one in page.documents] for page in pages(engine, READER, limit)]
    assert sum(found, []) == sorted(f"memo/{number}" for number in range(12) if number % 3)
    assert all(len(one) == limit for one in found[:-1])


def test_a_moving_store_gives_nothing_twice_and_leaves_out_nothing_that_was_there_throughout(
    engine: Engine,
) -> None:
    """Between two pages one document comes and another goes."""
    stay = {f"memo/{number:04d}" for number in range(0, 2 * PAGES, 2)}
    engine.add([memo(one[5:]) for one in sorted(stay)] + [memo(f"{PAGES:04d}x")])
    seen: list[str] = []
    coming: str | None = None
    for number, page in enumerate(pages(engine, READER, 1)):
        seen += [one.id for one in page.documents]
        if number % 4 == 0:
            gone, coming = coming, f"{(number * 37) % (2 * PAGES) | 1:04d}b"
            if gone is not None:
                engine.remove([f"memo/{gone}"])
            engine.add([memo(coming)])
    assert len(seen) == len({*seen})
    assert stay <= {*seen}


# --- traps ---


def test_what_is_shown_is_on_record_with_proofs(engine: Engine) -> None:
    engine.add([memo(1, metadata={"title": "Rates"}, language="en"), memo(2)])
    page = engine.documents(READER)
    assert [(one.id, one.version, one.stated.get("title")) for one in page.documents] == [
        ("memo/1", 1, "Rates"),
        ("memo/2", 1, None),
    ]
    checked = verify_receipt(page.receipt.to_bytes(), engine.vkey)
    assert (checked.verdict, page.why) == (Verdict.VERIFIED, "LISTED")
    [passage] = engine.passages("memo/1", READER).passages
    assert passage.text == "Branches report on day 1."
    assert "Rates" not in repr(page.documents)


def test_passages_have_pages_too(engine: Engine) -> None:
    text = "\n\n".join(f"Paragraph {number}. " + "Branches report by the fifth. " * 30 for number in range(6))
    engine.add([memo(1, text=text)])
    whole = engine.passages("memo/1", READER)
    assert len(whole.passages) > 2
    seen, after = [], None
    while True:
        page = engine.passages("memo/1", READER, after=after, limit=2)
        seen += page.passages
        if (after := page.after) is None:
            break
    assert tuple(seen) == whole.passages


def test_quarantine_is_for_those_who_may_know_and_says_what_to_mend(tmp_path: Path) -> None:
    """Others are refused whether or not there is anything in quarantine."""
    with opened(tmp_path / "store") as engine:
        engine.add([memo(1, bits=None, facts={"classification": "sekret"}), memo(2)])
        assert engine.quarantine(READER).why == "EXISTENCE_NOT_GRANTED"
        assert engine.quarantine(READER).outcome is Outcome.REFUSE
        page = engine.quarantine(REVIEW)
        [one] = page.quarantined
        assert (one.id, one.code) == ("memo/1", "UNKNOWN_VALUE")
        assert "ingest the document again" in one.mend
        assert "sekret" in one.why
        assert "sekret" not in repr(page)
        assert [one.id for one in engine.documents(REVIEW).documents] == ["memo/2"]


@pytest.mark.parametrize(
    "wrong", [{"limit": 0}, {"limit": 401}, {"limit": True}, {"after": ""}, {"after": 7}, {"where": {"x": 1}}]
)
def test_a_page_that_is_not_valid_is_refused(engine: Engine, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        engine.documents(READER, **wrong)
