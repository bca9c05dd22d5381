"""A report on a person finds every place that was planted and nothing else, on record, for the roles that may."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag import Engine, Session
from carag.audit import Disclosure, Outcome
from carag.engine.erasing.mentions import Mentions, mentioning, whole_texts
from carag.errors import InvalidArgument, Refused
from carag.labelling.stated import _cut
from carag.policy import Vocabulary
from carag.policy.groups.statements import ALWAYS, GroupImport, GroupStatement
from tests.engine.documents import Counting
from tests.engine.erasing.test_holds import memo

if TYPE_CHECKING:
    from pathlib import Path

    from carag.engine.erasing.subject import SubjectReport

NAMES = ["Ana Ruiz", "user:ana"]
LONG = "x" * 1490


def report(engine: Engine, role: str = "auditor", names: list[str] = NAMES) -> SubjectReport:
    return engine.erasures.report(names, role=role, actor="eve", why="REQUEST-3")


def filled(engine: Engine) -> tuple[int, int]:
    """Plant the person in each kind of place, beside look-alikes; return the records of her question and an answer."""
    engine.add(
        [
            memo("text", text="Seen by ana  RUIZ, on Monday."),
            memo("wide", text="Seen by \uff21\uff4e\uff41 Ruiz."),
            memo("cut", text=f"{LONG}\n\nAna\nRuiz, {LONG}"),
            memo("title", metadata={"title": "Request of Ana Ruiz"}),
            memo("earlier", text="By Ana Ruiz."),
            memo("gone", text="By Ana Ruiz."),
            memo("allowed", allow=["user:ana", "user:bo"]),
            memo("denied", deny=["user:ana"]),
            memo("banana", text="Banana Ruiz and Ana Ruizinho, and user:anabel.", allow=["user:anabel"]),
            memo("other", text="Bo Ruiz asked, and Ana Diaz answered."),
        ]
    )
    engine.add([memo("earlier", text="By nobody.")])
    engine.remove(["memo/gone"])
    for members in (["user:ana", "user:bo"], ["user:bo"]):
        desk = GroupStatement("group:desk", dict.fromkeys(members, ALWAYS))
        engine.contents.import_groups(GroupImport([desk]))
    session = Session(role="employee", purpose="work", subject="user:bo")
    hers = engine.retrieve("What is due?", Session(role="employee", purpose="work", subject="user:ana"))
    about = engine.ask("What did Ana Ruiz ask?", session)
    engine.ask("What did Bo ask?", Session(role="public", purpose="read"))
    return hers.receipt.seq, about.receipt.seq


def test_every_planted_place_is_found_and_nothing_else(tmp_path: Path) -> None:
    with Engine.open(tmp_path, profile="generic", embedder=Counting()) as engine:
        hers, about = filled(engine)
        found = report(engine)
        assert {one.id: one.where for one in found.documents} == {
            "memo/text": ("text",),
            "memo/wide": ("text",),
            "memo/cut": ("text",),
            "memo/title": ("facts",),
            "memo/earlier": ("text",),
            "memo/gone": ("text",),
        }
        assert [tuple(one) for one in found.lists] == [
            ("memo/allowed", "allow", "user:ana"),
            ("memo/denied", "deny", "user:ana"),
        ]
        assert [tuple(one) for one in found.groups] == [("group:desk", "user:ana", False)]
        records = {one.record: one.fields for one in found.records}
        assert "subject" in records.pop(hers)
        assert "query" in records.pop(about)
        assert all("answer" in one for one in records.values())
        assert report(engine, names=["ANA"]).lists == found.lists
        assert report(engine, names=["Zoe"])[2:] == ((), (), (), ())


def test_the_report_is_on_record_before_anything_is_read(tmp_path: Path) -> None:
    """It commits to the names and the person who asks; a page and JSON say the same."""
    with Engine.open(tmp_path, profile="generic", embedder=Counting()) as engine:
        filled(engine)
        found = report(engine)
        event = engine.log.record(found.record).event
        assert event == Disclosure(
            record=None, fields=(), role="auditor", outcome=Outcome.ANSWER, why="REQUEST-3"
        )
        opened = engine.log.private.openings(found.record)
        assert {name: one.value for name, one in opened.items()} == {
            "actor": "eve",
            "targets": '["Ana Ruiz", "user:ana"]',
        }
        page = found.page()
        for one in found.documents:
            assert f"- `{one.id}`: " in page
        assert "- `memo/allowed`: allow `user:ana`" in page
        assert "- `group:desk`: `user:ana`, in the past" in page
        assert found.to_json()["documents"][0] == {"id": "memo/cut", "where": ("text",)}


@pytest.mark.parametrize("role", ["compliance", "public", "", "Auditor"])
def test_another_role_is_refused_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    """On record; whatever the store holds about the person."""
    with Engine.open(tmp_path, profile="generic", embedder=Counting()) as engine:
        filled(engine)
        size = engine.log.size

        def read(*_: object) -> None:
            raise AssertionError("something was read")

        for place in (
            "documents.StoredDocuments.texts",
            "documents.StoredDocuments.stated",
            "groups.Groups.memberships",
        ):
            monkeypatch.setattr(f"carag.store.{place}", read)
        with pytest.raises(Refused, match="may open values") as refused:
            report(engine, role)
        assert refused.value.code == "ROLE_MAY_NOT_OPEN"
        events = [engine.log.record(seq).event for seq in range(size, engine.log.size)]
        assert [(one.outcome, one.role) for one in events if isinstance(one, Disclosure)] == [
            (Outcome.REFUSE, None)
        ]
        assert len(events) == 1


@pytest.mark.parametrize("names", [[], [""], ["Ana", " . "], "Ana"])
def test_without_a_name_nothing_is_reported(tmp_path: Path, names: list[str]) -> None:
    with Engine.open(tmp_path, profile="generic", embedder=Counting()) as engine:
        size = engine.log.size
        with pytest.raises(InvalidArgument, match="name"):
            report(engine, names=names)
        assert engine.log.size == size


WORD = st.text("aAbB\u00e9\u00c9", min_size=1, max_size=2)
TEXT = st.lists(WORD | st.sampled_from([" ", "\n", ".", ",", "-"]), max_size=12).map("".join)


@given(st.lists(WORD, min_size=1, max_size=2), TEXT)
def test_a_name_stands_where_its_words_follow_each_other(name: list[str], text: str) -> None:
    """Against a list of words: what is not a letter separates, and only white space stands inside a name."""
    words: list[tuple[str, str]] = []
    gap = word = ""
    for char in f"{text} ":
        if char.isalpha():
            word += char.casefold()
        else:
            if word:
                words.append((gap, word))
                gap = word = ""
            gap += char
    wanted = [one.casefold() for one in name]
    follows = any(
        [one for _, one in words[at : at + len(wanted)]] == wanted
        and all(gap.isspace() for gap, _ in words[at + 1 : at + len(wanted)])
        for at in range(len(words))
    )
    assert Mentions([" ".join(name)]).stand_in(text) is follows


@given(
    st.lists(st.sampled_from(["a", "Ana Ruiz", "x" * 70, "1.", "(a)", "\n", "\n\n", ". "]), max_size=90),
    st.sampled_from(["generic", "circulars"]),
)
def test_a_text_is_put_together_again_from_its_passages(pieces: list[str], name: str) -> None:
    """But for white space, whether passages follow each other, overlap or end inside a word."""
    text = "".join(f"{one} " if one == "Ana Ruiz" else one for one in pieces) * 3
    given: Any = SimpleNamespace(text=text, vectors=None)
    cut = [piece for piece, _ in _cut(given, Vocabulary.shipped(name))]
    rows = [(1, "memo/1", one.start, one.end, one.text) for one in cut]
    store = SimpleNamespace(documents=SimpleNamespace(texts=lambda: iter(rows)))
    whole = "".join(one for _, one in whole_texts(store))  # type: ignore[arg-type]
    assert "".join(whole.split()) == "".join(text.split())
    assert Mentions(["Ana Ruiz"]).stand_in(whole) is Mentions(["Ana Ruiz"]).stand_in(text)


def test_sealed_values_are_read_as_they_are_written() -> None:
    """As JSON, in which a line begins with letters, or as a text that only looks like it."""
    ana = Mentions(["Ana Ruiz"])
    assert ana.stand_in_sealed('{"names": ["Asked\\nAna Ruiz"]}')
    assert ana.stand_in_sealed("[1] Ana Ruiz asked.")
    assert not ana.stand_in_sealed('["Banana Ruiz"]')


@given(st.integers(0, 60), st.sampled_from(["generic", "circulars"]))
def test_a_name_is_found_wherever_a_text_is_cut(
    tmp_path_factory: pytest.TempPathFactory, before: int, profile: str
) -> None:
    """Between passages and between clauses."""
    text = " ".join(["filler"] * (200 + before)) + " Ana Ruiz " + " ".join(["filler"] * 200)
    facts = {"classification": "public"} if profile == "generic" else {"checks": "passed", "status": "final"}
    with Engine.open(tmp_path_factory.mktemp("s"), profile=profile, embedder=Counting()) as engine:
        engine.add([memo(1, text=text, facts=facts)])
        assert mentioning(engine._collection.store, Mentions(["Ana Ruiz"])) == {"memo/1": {"text"}}
