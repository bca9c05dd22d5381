"""Filings about several companies: deny lists reach co-registrants, and owners their Form 4 on request."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from carag import Engine, Outcome, Session
from carag.audit import ListKind, Record, Verdict, verify_receipt

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PARENT, SUBSIDIARY, ISSUER, OWNER, OTHER = 9_000_001, 9_000_002, 9_000_003, 9_000_004, 9_000_005
FORM_4, JOINT, EXCHANGE = "0009999999-24-000001", "0009999999-24-000002", "0009999999-24-000003"


def submission(number: str, form: str, text: str, **parties: int) -> str:
    blocks = "".join(
        f"{role.replace('_', ' ').rstrip('0123456789')}:\n\n\tCOMPANY DATA:\n"
        f"\t\tCOMPANY CONFORMED NAME:\tPARTY {cik}\n\t\tCENTRAL INDEX KEY:\t{cik:010}\n"
        "\n\tBUSINESS ADDRESS:\n\t\tSTATE:\tCA\n\n"
        for role, cik in parties.items()
    )
    return (
        f"<SEC-DOCUMENT>{number}.txt : 20240502\n<SEC-HEADER>{number}.hdr.sgml : 20240502\n"
        f"<ACCEPTANCE-DATETIME>20240502163105\nACCESSION NUMBER:\t\t{number}\n"
        f"CONFORMED SUBMISSION TYPE:\t{form}\nPUBLIC DOCUMENT COUNT:\t1\n"
        f"CONFORMED PERIOD OF REPORT:\t20240501\nFILED AS OF DATE:\t20240502\n\n{blocks}</SEC-HEADER>\n"
        f"<DOCUMENT>\n<TYPE>{form}\n<SEQUENCE>1\n<TEXT>\n{text}\n</TEXT>\n</DOCUMENT>\n</SEC-DOCUMENT>\n"
    )


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    home = tmp_path_factory.mktemp("entities")
    filings = home / "filings"
    filings.mkdir()
    for number, form, text, parties in (
        (FORM_4, "4", "The director sold 900 common shares.", {"ISSUER": ISSUER, "REPORTING_OWNER": OWNER}),
        (JOINT, "10-Q", "Revenue of parent and subsidiary.", {"FILER": PARENT, "FILER2": SUBSIDIARY}),
        (EXCHANGE, "25-NSE", "Removal from listing.", {"SUBJECT_COMPANY": ISSUER, "FILED_BY": OTHER}),
    ):
        (filings / f"{number}.txt").write_text(submission(number, form, text, **parties))
    with Engine.open(home / "store", embedder="wordllama") as opened:
        report = opened.ingest(filings)
        assert (report.added, report.newly_quarantined, report.problems) == (3, 0, [])
        yield opened


def accessions(engine: Engine, session: Session) -> set[str]:
    return {passage.accession_number for passage in engine.retrieve("shares", session, 100).passages}


def surveil(**lists: frozenset[int]) -> Session:
    return Session(role="compliance", purpose="surveil", **lists)  # type: ignore[arg-type]


@pytest.mark.parametrize("role", ["dpo", "counsel"])
def test_an_access_request_finds_what_was_filed_about_an_owner(engine: Engine, role: str) -> None:
    """Issuer and owner are both named in the header of a Form 4, and each may ask for it, but no one else may."""
    for who, wanted in ((OWNER, {FORM_4}), (ISSUER, {FORM_4}), (OTHER, set())):
        session = Session(role=role, purpose="dsar", allow_entities=frozenset({who}))
        assert accessions(engine, session) == wanted


@pytest.mark.parametrize("who", [PARENT, SUBSIDIARY])
def test_a_list_reaches_a_co_registrant(engine: Engine, who: int) -> None:
    """First in the header or not: a joint filing is hidden, and its receipt verifies without naming anyone."""
    everything = accessions(engine, surveil())
    assert JOINT in everything
    for name in ("restricted", "watched"):
        assert accessions(engine, surveil(**{name: frozenset({who})})) == everything - {JOINT}
    found = engine.retrieve("shares", surveil(restricted=frozenset({who})), 100)
    rule = Record.parse(found.receipt.record).event.policy.entities  # type: ignore[union-attr]
    assert (rule.kind, rule.count) == (ListKind.DENY, 2)  # the CIKs listed, not the numbers of sets
    assert verify_receipt(found.receipt.to_bytes(), engine.vkey).verdict is Verdict.VERIFIED
    opening = engine._log._private.openings(found.receipt.seq)["entities"]
    assert json.loads(opening.value) == [{"deny": [0, who]}]


def test_behind_a_wall_both_must_be_clients(engine: Engine) -> None:
    """An auditor of the parent alone does not read the subsidiary's pages."""
    for clients, is_open in (({PARENT}, False), ({SUBSIDIARY}, False), ({PARENT, SUBSIDIARY}, True)):
        session = Session(role="auditor", purpose="assure", audit_clients=frozenset(clients))
        assert (JOINT in accessions(engine, session)) == is_open


def test_an_exchange_is_not_what_its_delisting_is_about(engine: Engine) -> None:
    """A session that may not read about the exchange may read about the company that left it."""
    everything = accessions(engine, surveil())
    assert EXCHANGE in everything
    assert accessions(engine, surveil(restricted=frozenset({OTHER}))) == everything
    assert EXCHANGE not in accessions(engine, surveil(restricted=frozenset({ISSUER})))


def test_a_request_under_restrictions_commits_to_both_lists(engine: Engine) -> None:
    """One on the allow list is enough, so a deny list stands beside it; both are what the record commits to."""
    session = Session(
        role="dpo", purpose="dsar", allow_entities=frozenset({OWNER}), restricted=frozenset({ISSUER})
    )
    found = engine.retrieve("shares", session, 100)
    assert (found.outcome, found.passages) == (Outcome.DECLINE, ())
    opening = engine._log._private.openings(found.receipt.seq)["entities"]
    assert json.loads(opening.value) == [{"allow": [OWNER], "deny": [0, ISSUER]}]


def test_explain_names_who_was_listed_to_whom_it_may(engine: Engine) -> None:
    """The list's CIK that is in the filing, not the other; a role that may not know hears nothing of either."""
    chunk = f"{JOINT}:00000"
    told = engine.explain(chunk, surveil(restricted=frozenset({SUBSIDIARY, OTHER})))
    (reason,) = told.reasons
    assert (reason.reason.code, reason.basis) == ("ENTITY_DENIED", ("RESTRICTED_LIST",))
    assert str(SUBSIDIARY) in reason.reason.text
    assert not any(str(who) in reason.reason.text for who in (PARENT, OTHER))
    blind = Session(role="buy_side", purpose="invest", restricted=frozenset({SUBSIDIARY}))
    assert engine.explain(chunk, blind).to_json()["reasons"] == []
    assert str(SUBSIDIARY) not in json.dumps(engine.explain(chunk, blind).to_json())


def test_a_filing_that_names_more_comes_as_a_new_version(tmp_path: Path) -> None:
    """The text is the same but the parties differ: the passages are stored again, and the lists reach them."""
    file = tmp_path / "filing.txt"
    session = surveil(restricted=frozenset({OTHER}))
    with Engine.open(tmp_path / "store", embedder="wordllama") as engine:
        file.write_text(submission(JOINT, "SC 13D", "Shares.", SUBJECT_COMPANY=PARENT))
        engine.ingest(file)
        assert accessions(engine, session) == accessions(engine, surveil()) == {JOINT}
        file.write_text(submission(JOINT, "SC 13D", "Shares.", SUBJECT_COMPANY=PARENT, FILED_BY=OTHER))
        assert engine.ingest(file).changed == 1
        assert (accessions(engine, session), accessions(engine, surveil())) == (set(), {JOINT})
