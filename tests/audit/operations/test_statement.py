"""The statement of one erased document is made again from sealed values: by role, and on record first."""

from __future__ import annotations

import pytest

from carag.audit import Disclosure, ErasureStatement, Outcome, erasure_statement
from carag.audit.records.custody import read_salts, salted_id, write_salts
from carag.errors import AuditUnavailable, InvalidArgument, Refused
from tests.audit.records import test_events as events

OPENER = {"role": "privacy_officer", "actor": "dora", "why": "REQ-7"}
FIRST, SECOND = {"a.md": b"a" * 16, "ü.md": b"b" * 16}, {"c.md": b"c" * 16, "a.md": b"d" * 16}


@pytest.fixture
def log(tmp_path, build):
    """A log of two erasures, records 1 and 3, the second of which has a document of the first again."""
    with build.open_log(tmp_path) as log:
        for salts in (FIRST, SECOND):
            build.ask(log)
            ids = tuple(salted_id(id_, salt) for id_, salt in salts.items())
            log.append(
                events.erased(ids=ids, kept=()),
                secrets={"actor": "dora", "approver": "carl", "targets": write_salts(salts)},
            )
        yield log


def opened(log):
    """List what was opened, or refused, since the log was made."""
    found = [log.record(seq).event for seq in range(4, log.size)]
    assert all(isinstance(one, Disclosure) and one.fields == ("targets",) for one in found)
    return [(one.record, one.outcome) for one in found]


@pytest.mark.parametrize(
    ("id_", "said"),
    [
        ("ü.md", ErasureStatement(1, "ü.md", b"b" * 16)),
        ("c.md", ErasureStatement(3, "c.md", b"c" * 16)),
        ("a.md", ErasureStatement(3, "a.md", b"d" * 16)),
    ],
)
def test_the_last_erasure_of_a_document_is_stated_and_that_is_on_record(log, id_, said):
    assert read_salts(write_salts(FIRST)) == FIRST
    assert erasure_statement(log, id_, **OPENER) == said
    assert opened(log) == [(said.record, Outcome.ANSWER)]


def test_a_document_that_was_not_erased_is_known_only_after_a_record(log):
    """Because the answer tells what was in the lists."""
    with pytest.raises(InvalidArgument, match=r"document x\.md is in no list"):
        erasure_statement(log, "x.md", **OPENER)
    assert opened(log) == [(3, Outcome.ANSWER)]


@pytest.mark.parametrize("id_", ["a.md", "ü.md", "x.md"])
def test_another_role_learns_nothing_and_that_is_on_record(log, id_):
    """Neither from the words nor from the record's number, whether the document was erased."""
    with pytest.raises(Refused, match=r"^only auditor or privacy_officer may open values, not 'clerk'$"):
        erasure_statement(log, id_, **{**OPENER, "role": "clerk"})
    assert opened(log) == [(3, Outcome.REFUSE)]


def test_nothing_is_stated_that_is_not_on_record(log, monkeypatch):
    def fail(*_, **__):
        raise AuditUnavailable("the disk is full")

    monkeypatch.setattr(log, "append", fail)
    with pytest.raises(AuditUnavailable):
        erasure_statement(log, "a.md", **OPENER)


def test_without_an_erasure_there_is_nothing_to_open(tmp_path, build):
    with build.open_log(tmp_path) as log:
        build.ask(log)
        with pytest.raises(InvalidArgument, match="no document was erased"):
            erasure_statement(log, "a.md", **OPENER)
        assert log.size == 1
