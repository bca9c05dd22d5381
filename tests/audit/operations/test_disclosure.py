"""Opening private values: by role, for a purpose, and on the record first."""

from __future__ import annotations

import dataclasses

import pytest

from carag.audit import Disclosure, Outcome, Verdict, disclose, verify_receipt
from carag.errors import AuditUnavailable, InvalidArgument, Refused

OPENER = {"role": "privacy_officer", "actor": "dora", "why": "COMPLAINT-3"}


@pytest.mark.parametrize("role", ["auditor", "privacy_officer"])
def test_values_open_to_a_role_and_the_record_says_so(tmp_path, build, role):
    """Who, which record, which fields, for what; the actor only as a commitment."""
    with build.open_log(tmp_path) as log:
        build.ask(log)
        opened = disclose(log, 0, **{**OPENER, "role": role}, fields=["query"])
        assert {name: o.value for name, o in opened.items()} == {"query": build.SECRETS["query"]}
        record = log.record(1)
        assert record.event == Disclosure(
            record=0, fields=("query",), role=role, outcome=Outcome.ANSWER, why="COMPLAINT-3"
        )
        assert log.private.openings(1)["actor"].value == "dora"
        assert b"dora" not in record.to_bytes()
        assert set(disclose(log, 0, **OPENER)) == set(build.SECRETS)


def test_a_receipt_made_again_opens_nothing_and_reads_nothing_private(tmp_path, build, monkeypatch):
    """Making a receipt again does not reveal what was asked; no role was named, and nothing recorded."""
    texts = [(passage.chunk, passage.text) for passage in build.passages()]
    with build.open_log(tmp_path) as log:
        first = build.ask(log)
        monkeypatch.setattr(log.private, "openings", lambda _: pytest.fail("read what is private"))
        again = log.receipt(0, texts)
        assert (again.openings, again.proofs, again.passages, again.record) == (
            {},
            (),
            first.passages,
            first.record,
        )
        checked = verify_receipt(again.to_bytes(), log.vkey)
        assert (checked.verdict, checked.values) == (Verdict.VERIFIED, {})
        assert checked.withheld == tuple(sorted(build.SECRETS))
        assert checked.unproved == tuple(chunk for chunk, _ in texts)
        told = again.to_bytes().decode()
        assert not any(opening.value in told for opening in first.openings.values())
        assert log.size == 1


def test_a_receipt_made_again_is_opened_by_role_and_on_record(tmp_path, build):
    """With what a disclosure gave it shows what the first one showed, and the log says who opened it."""
    texts = [(passage.chunk, passage.text) for passage in build.passages()]
    with build.open_log(tmp_path) as log:
        first = build.ask(log)
        whole = dataclasses.replace(log.receipt(0, texts), openings=disclose(log, 0, **OPENER))
        assert whole.openings == first.openings
        checked = verify_receipt(whole.to_bytes(), log.vkey)
        assert (checked.verdict, checked.values) == (Verdict.VERIFIED, build.SECRETS)
        event = log.record(1).event
        assert (event.record, event.role, event.outcome) == (0, "privacy_officer", Outcome.ANSWER)


@pytest.mark.parametrize("role", ["asker", "operator", "", None, "Auditor"])
def test_another_role_gets_nothing_and_the_attempt_is_recorded(tmp_path, build, role):
    """What was typed as a role is not written down."""
    with build.open_log(tmp_path) as log:
        build.ask(log)
        with pytest.raises(Refused) as refused:
            disclose(log, 0, **{**OPENER, "role": role})
        assert refused.value.code == "ROLE_MAY_NOT_OPEN"
        event = log.record(1).event
        assert (event.outcome, event.role, event.record) == (Outcome.REFUSE, None, 0)


def test_nothing_is_opened_before_its_record_is_durable(tmp_path, build, monkeypatch):
    """If it cannot be recorded, it does not happen."""
    with build.open_log(tmp_path) as log:
        build.ask(log)
        monkeypatch.setattr(log, "append", lambda *_, **__: (_ for _ in ()).throw(AuditUnavailable("full")))
        with pytest.raises(AuditUnavailable):
            disclose(log, 0, **OPENER)


@pytest.mark.parametrize(
    "changes",
    [{"seq": 5}, {"fields": ["colour"]}, {"actor": " "}, {"why": "because I like to"}],
    ids=str,
)
def test_a_malformed_request_changes_nothing(tmp_path, build, changes):
    """It is refused and leaves no record."""
    with build.open_log(tmp_path) as log:
        build.ask(log)
        with pytest.raises(InvalidArgument):
            disclose(log, **{"seq": 0, **OPENER, **changes})
        assert log.size == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"role": None},
        {"role": "asker"},
        {"outcome": Outcome.REFUSE},
        {"outcome": "decline", "role": None},
        {"record": -1},
    ],
    ids=str,
)
def test_a_disclosure_that_contradicts_itself_is_refused(changes):
    """Opened without a role, or refused to a role that may."""
    values = {"record": 0, "fields": ("query",), "role": "auditor", "outcome": Outcome.ANSWER, "why": "X"}
    assert Disclosure.from_json(Disclosure(**values).to_json()) == Disclosure(**values)
    with pytest.raises(InvalidArgument):
        Disclosure(**{**values, **changes})
