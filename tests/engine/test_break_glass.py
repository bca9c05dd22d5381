"""A cell that opens by breaking the glass: for a time, a reason and a person, on record, and in no other way."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from carag import Document, Engine, Session
from carag.audit import Outcome, RecordKind, Verdict, verify_receipt
from carag.audit.auditor.find import find
from carag.audit.auditor.reader import LogReader
from carag.errors import AuditUnavailable, InvalidArgument, Refused
from carag.policy.shipped import shipped_text
from carag.retrieval import ConfidenceGate
from tests.engine.documents import QUESTION, Clock, Counting

if TYPE_CHECKING:
    from pathlib import Path

    from carag.engine.break_glass import Broken

NURSE = Session(role="employee", purpose="work", subject="ana")
CELL = """
[[cell]]
role = "employee"
purpose = "emergency"
regulation = "GDPR Art. 9(2)(c)"
may_know_existence = false
past = "none"
break_glass = {terms}
masks = [{{}}]
"""


def with_glass(folder: Path, terms: str = "true") -> Path:
    """Write a profile with a cell that opens by breaking the glass; return its folder."""
    folder.mkdir(exist_ok=True)
    for name in ("profile.toml", "roles.toml"):
        text = shipped_text("generic", name)
        if name == "roles.toml":
            text = text.replace('"work", ', '"work", "emergency", ', 1) + CELL.format(terms=terms)
        (folder / name).write_text(text, "utf-8")
    return folder


def opened(store: Path, terms: str = "true", **settings: Any) -> Engine:
    folder = with_glass(store.parent / "profile", terms)
    engine = Engine.open(
        store, profile=folder, embedder=Counting(), gate=ConfidenceGate(-1), **{"clock": Clock(), **settings}
    )
    engine.add(
        [
            Document(id="rules", text="Branches report.", bits=()),
            Document(id="patient", text="Branches report on patients.", bits=["PERSONAL"]),
        ]
    )
    return engine


def found(engine: Engine, session: Session) -> set[str]:
    return {one.document_id for one in engine.retrieve(QUESTION, session).passages}


def refusal(engine: Engine, session: Session) -> str:
    retrieval = engine.retrieve(QUESTION, session)
    assert (retrieval.outcome, retrieval.passages) == (Outcome.REFUSE, ())
    return retrieval.why


def test_the_cell_opens_for_its_time_and_no_longer(tmp_path: Path) -> None:
    clock = Clock()
    with opened(tmp_path / "store", "{ minutes = 30 }", clock=clock) as engine:
        assert found(engine, NURSE) == {"rules"}
        assert refusal(engine, replace(NURSE, purpose="emergency")) == "BREAK_GLASS_REQUIRED"
        wide = engine.break_glass(NURSE, purpose="emergency", reason="cardiac arrest in ward 3")
        assert found(engine, wide) == {"rules", "patient"}
        assert found(engine, wide.narrow(conversation="c")) == {"rules", "patient"}
        clock.pass_(minutes=31)
        assert refusal(engine, wide) == "BREAK_GLASS_ENDED"
        assert found(engine, NURSE) == {"rules"}


def test_no_follow_up_leans_across_the_glass(tmp_path: Path) -> None:
    """Neither an ordinary session on what was asked under the glass, nor a second glass on what was asked before it."""
    with opened(tmp_path / "store") as engine:
        usual = replace(NURSE, conversation="c")

        def broken() -> Session:
            wide = engine.break_glass(NURSE, purpose="emergency", reason="cardiac arrest")
            return wide.narrow(conversation="c")

        def leans(session: Session) -> bool:
            return "taken over" in engine.ask("And the year before?", session).understood

        first = broken()
        engine.ask("How many branches did Acme Corp have in 2020?", first)
        assert not leans(usual)
        assert not leans(broken())
        assert leans(first)
        assert found(engine, usual) == {"rules"}


def test_a_changed_copy_has_lost_it(tmp_path: Path) -> None:
    """Nobody else, and no other cell, is under the glass that one person broke."""
    with opened(tmp_path / "store") as engine:
        wide = engine.break_glass(NURSE, purpose="emergency", reason="cardiac arrest")
        assert refusal(engine, replace(wide, subject="bo")) == "BREAK_GLASS_REQUIRED"
        assert refusal(engine, replace(NURSE, purpose="emergency")) == "BREAK_GLASS_REQUIRED"


def test_a_change_of_the_cell_shuts_it(tmp_path: Path) -> None:
    """What was opened under other terms is opened again under those of now; other cells may change."""
    with opened(tmp_path / "store") as engine:
        wide = engine.break_glass(NURSE, purpose="emergency", reason="cardiac arrest")
    roles = tmp_path / "profile" / "roles.toml"
    text = roles.read_text("utf-8")
    for changed, outcome in (
        (text.replace("GDPR Art. 9(2)(c)", "GDPR Art. 9(2)(i)"), "BREAK_GLASS_CHANGED"),
        (text.replace("GDPR Art. 6(1)(c), (f)", "GDPR Art. 6(1)(f)"), "ANSWERED"),
    ):
        assert changed != text
        roles.write_text(changed, "utf-8")
        settings: dict[str, Any] = {"embedder": Counting(), "gate": ConfidenceGate(-1), "clock": Clock()}
        with Engine.open(tmp_path / "store", profile=roles.parent, accept={"policy"}, **settings) as engine:
            assert engine.ask(QUESTION, wide).why == outcome
            assert found(engine, NURSE) == {"rules"}


def test_it_opens_for_fewer_minutes_than_the_cell_says_and_never_for_more(tmp_path: Path) -> None:
    clock = Clock()
    with opened(tmp_path / "store", "{ minutes = 30 }", clock=clock) as engine:
        for minutes in (0, 31, True, 5.0):
            with pytest.raises(InvalidArgument, match="want 1 to 30"):
                engine.break_glass(NURSE, purpose="emergency", reason="r", minutes=minutes)
        wide = engine.break_glass(NURSE, purpose="emergency", reason="r", minutes=5)
        clock.pass_(minutes=6)
        assert refusal(engine, wide) == "BREAK_GLASS_ENDED"


def test_each_request_under_it_names_the_record_that_says_why(tmp_path: Path) -> None:
    told: list[Broken] = []
    with opened(tmp_path / "store", on_break_glass=told.append) as engine:
        before = engine.retrieve(QUESTION, NURSE).receipt.seq
        wide = engine.break_glass(NURSE, purpose="emergency", reason="cardiac arrest")
        receipt = engine.retrieve(QUESTION, wide).receipt
        broken, asked = engine.log.record(before + 1), engine.log.record(receipt.seq)
        assert (broken.kind, asked.event.glass) == (RecordKind.GLASS, before + 1)
        assert engine.log.record(before).event.glass is None
        assert verify_receipt(receipt.to_bytes(), engine.vkey).verdict is Verdict.VERIFIED
        assert b"cardiac" not in broken.to_bytes() + receipt.to_bytes()
        assert engine.log.private.openings(before + 1)["reason"].value == "cardiac arrest"
        vkey = engine.vkey
    assert [(one.subject, one.reason, one.record) for one in told] == [("ana", "cardiac arrest", before + 1)]
    with LogReader(tmp_path / "store", vkey=vkey) as reader:
        assert [seq for seq, _ in find(reader, under_glass=True)] == [receipt.seq, before + 1]


def test_two_persons_are_two(tmp_path: Path) -> None:
    with opened(tmp_path / "store", "{ two_persons = true }") as engine:
        for approver in (None, "ana", Session(role="compliance", purpose="review", subject="ana")):
            with pytest.raises(Refused) as refused:
                engine.break_glass(NURSE, purpose="emergency", reason="r", approver=approver)
            assert refused.value.code == "APPROVER_REQUIRED"
        wide = engine.break_glass(NURSE, purpose="emergency", reason="r", approver="bo")
        assert engine.log.private.openings(wide.glass.record)["approver"].value == "bo"


class Trusting:
    """Takes the name of a person for their token."""

    def verify(self, token: str) -> dict[str, str]:
        return {"sub": token, "role": "employee", "purpose": "work"}


@pytest.mark.parametrize(
    ("approver", "opens"),
    [
        ("bo", False),
        (Session(role="employee", purpose="work", subject="bo"), False),
        (Session.from_token("ana", Trusting()), False),
        (Session.from_token("bo", Trusting()), True),
    ],
)
def test_who_has_a_token_needs_the_token_of_another(tmp_path: Path, approver: Any, opens: bool) -> None:
    with opened(tmp_path / "store", "{ two_persons = true }") as engine:
        session = Session.from_token("ana", Trusting())
        if opens:
            wide = engine.break_glass(session, purpose="emergency", reason="r", approver=approver)
            assert (wide.source, wide.subject) == (session.source, "ana")
            assert found(engine, wide) == {"rules", "patient"}
            return
        with pytest.raises(Refused, match="second person"):
            engine.break_glass(session, purpose="emergency", reason="r", approver=approver)


def test_what_is_missing_opens_nothing_and_leaves_no_record(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as engine:
        size = engine.log.size
        for session, purpose, reason, said in (
            (replace(NURSE, subject=None), "emergency", "r", "no subject"),
            (NURSE, "emergency", "  ", "reason is empty"),
            (NURSE, "emergency", "r" * 1001, "reason"),
            (NURSE, "work", "r", "cannot break the glass"),
            (NURSE, "review", "r", "cannot break the glass"),
            (replace(NURSE, role="public"), "emergency", "r", "cannot break the glass"),
        ):
            with pytest.raises((InvalidArgument, Refused), match=said):
                engine.break_glass(session, purpose=purpose, reason=reason)
        assert engine.log.size == size


def test_without_a_record_nothing_opens_and_a_hook_that_fails_hides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError("the pager is down")

    with opened(tmp_path / "store", on_break_glass=fails) as engine:
        wide = engine.break_glass(NURSE, purpose="emergency", reason="r")
        assert found(engine, wide) == {"rules", "patient"}

        def unwritable(*_: object, **__: object) -> None:
            raise AuditUnavailable("no space")

        monkeypatch.setattr(engine.log, "append", unwritable)
        with pytest.raises(AuditUnavailable):
            engine.break_glass(NURSE, purpose="emergency", reason="r")
