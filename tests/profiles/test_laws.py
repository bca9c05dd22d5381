"""The same laws hold over every profile: drawn ones, and those that ship.

A case is one question of one session to a real store, with its documents, its index and its audit log. Of each case:
an unknown role, purpose or cell is refused; what is found is admissible by another opinion (``drawn.admissible``) and
as many as there are or were asked for; what the record says replays under the profile. Of every fifth case: a session
that is narrowed finds nothing that it did not find before. Of every tenth: the receipt verifies. Of each store: after
private values are erased, receipts verify and the log examines.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from carag import Document, Engine, Outcome, Session
from carag.audit import Record, Verdict, Verification, verify_receipt
from carag.audit.auditor.examine import examine_log
from carag.audit.operations.erasure import erase
from carag.engine import recorder
from carag.engine.what_if.replay import ReplayVerdict, replay
from carag.errors import CorruptFile, InvalidArgument
from carag.labelling import stated
from carag.policy import Mask, Policy, Profile
from carag.policy.shipped import SHIPPED, shipped_text
from tests.engine.documents import Counting
from tests.profiles.drawn import NOW, Asked, Drawn, admissible, ask, papers, profile
from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Iterable

    from carag.engine import Retrieval
    from carag.engine.recorder import Request, Searched
    from carag.engine.state import StoreState
    from carag.retrieval.evidence import Evidence

SHIPPED_TEXTS = [
    Drawn((shipped_text(name, "profile.toml"), shipped_text(name, "roles.toml"))) for name in SHIPPED
]


def session_of(asked: Asked, opened: Profile) -> Session:
    flags = opened.vocabulary.flags
    return Session(
        role=asked.role,
        purpose=asked.purpose,
        subject="ana",
        as_of=asked.as_of,
        restricted=asked.restricted,
        allow_entities=asked.allowed,
        residency=frozenset(flags[name] for name in asked.barred),
        eu_transfer_basis=False if asked.has_no_transfer_basis else None,
    )


def found_by(retrieval: Retrieval) -> list[str]:
    return [passage.accession_number for passage in retrieval.passages]


def check_store(seed: int, questions: int, drawn: Drawn | None = None) -> None:
    """Draw a profile and its documents, and check every law for a number of questions."""
    rng = Random(seed)  # noqa: S311
    drawn = drawn or profile(rng)
    kept = papers(rng, drawn, rng.randint(20, 40))
    removed = set(rng.sample([one.id for one in kept], 3))
    with TemporaryDirectory() as home:
        for name, text in zip(("profile.toml", "roles.toml"), drawn.texts, strict=True):
            Path(home, name).write_text(text, "utf-8")
        opened = Profile.open(Path(home))
        store = Path(home, "store")
        with Engine.open(store, profile=opened, embedder=Counting(), clock=lambda: NOW) as engine:
            engine.add(Document(id=one.id, text=f"Paper {one.id}.", **one.given) for one in kept)
            engine.remove(removed)
            receipts = []
            for number in range(questions):
                asked = ask(rng, drawn)
                where = f"seed {seed}, question {number}: {asked}"
                session = session_of(asked, opened)
                retrieval = engine.retrieve(asked.question, session, asked.k)
                names = found_by(retrieval)
                wanted = admissible(drawn, kept, removed, asked)
                assert (retrieval.outcome is Outcome.REFUSE) == (wanted is None), (where, retrieval.why)
                assert set(names) <= (wanted or set()), where
                assert len(names) == len(set(names)) == min(asked.k, len(wanted or ())), where
                record = Record.parse(retrieval.receipt.record)
                replayed = replay(record, opened.table)
                assert replayed.verdict in (ReplayVerdict.MATCHES, ReplayVerdict.UNDECIDED), (where, replayed)
                assert replayed.verdict is ReplayVerdict.MATCHES or wanted is None, (where, replayed)
                if number % 5 == 0:
                    tighter = session.narrow(restricted={rng.randint(1, 4)}, allow_entities={1, 2, 3})
                    narrowed = engine.retrieve(asked.question, tighter, 400)
                    assert set(found_by(narrowed)) <= (wanted or set()), where
                if number % 10 == 0:
                    receipts.append((record, retrieval.receipt.to_bytes()))
            vkey = engine.vkey
            wanted_gone = [record.seq for record, _ in receipts]
            erase(engine._log, actor="bo", approver="cy", basis="GDPR_17_1_D", records=wanted_gone)
            with pytest.raises(InvalidArgument):  # nothing is left to erase
                erase(engine._log, actor="bo", approver="cy", basis="GDPR_17_1_D", records=wanted_gone)
            for record, receipt in receipts:
                assert verify_receipt(receipt, vkey).verdict is Verdict.VERIFIED, seed
                assert engine._log.record(record.seq) == record, seed
        examined = examine_log(store, vkey=vkey)
        assert examined.verdict is Verdict.VERIFIED, (seed, examined.reason)


def check_stores(seeds: Iterable[int], questions: int) -> None:
    for seed in seeds:
        check_store(seed, questions)


def test_the_laws_hold_over_drawn_profiles() -> None:
    """80 cases over 2 profiles by default, 4,000 over 100 in full."""
    check_stores(range(examples(10, least=2)), 40)


@pytest.mark.parametrize("drawn", SHIPPED_TEXTS, ids=SHIPPED)
def test_the_laws_hold_over_the_profiles_that_ship(drawn: Drawn) -> None:
    """EDGAR's with documents that state their bits, the others with facts and their own rules."""
    check_store(7, examples(100), drawn)


@pytest.mark.full
def test_the_laws_hold_over_a_hundred_thousand_cases() -> None:
    """10^5 cases over 500 profiles, of which every hundredth ships: no violation."""
    for seed in range(10_000, 10_500):
        check_store(seed, 200, SHIPPED_TEXTS[seed // 100 % len(SHIPPED)] if seed % 100 == 0 else None)


# -- mutations: a law must be able to fail


def tightened_by_nothing(policy: Policy, *_: object, **__: object) -> Policy:
    return policy


def unsigned(*_: object) -> Verification:
    return Verification(Verdict.FAILED, "it is not signed", ())


def without_the_first(state: StoreState, request: Request, evidence: Evidence) -> Searched:
    return PROVEN(state, request, replace(evidence, passages=evidence.passages[1:]))


MINUTE, PROVEN = stated._minute, recorder.proven
FAULTS: dict[str, tuple[str, object]] = {
    "forbidden bits are ignored": (
        "carag.policy.table.Mask", lambda required, _, *, flags: Mask(required, 0, flags=flags)
    ),
    "an intent adds nothing": ("carag.policy.intent.Intents.found", lambda *_: ()),
    "any session has a cell": ("carag.policy.inference._cell", lambda _, table: table.cells[0]),
    "no cell needs a list": ("carag.policy.inference._listing", tightened_by_nothing),
    "transfers need no basis": ("carag.policy.inference._without_transfer", tightened_by_nothing),
    "quarantine is forgotten": ("carag.labelling.declared.QUARANTINE", 0),
    "nothing expires": (
        "carag.labelling.stated._minute", lambda value, absent, zone: absent or MINUTE(value, absent, zone)
    ),
    "all days end in Kiritimati": (
        "carag.labelling.stated._minute", lambda value, absent, _: MINUTE(value, absent, ZoneInfo("Pacific/Kiritimati"))
    ),
    "what is superseded goes on": ("carag.labelling.acts._ended", lambda spans, _: spans),
    "no rule is read": ("carag.labelling.declared._holds", lambda *_: False),
    "a passage is kept back": ("carag.engine.requests.proven", without_the_first),
    "no receipt verifies": (f"{__name__}.verify_receipt", unsigned),
}  # fmt: skip
"""Where a fault is planted, and what stands there instead."""


FOUND_AT = {"forbidden bits are ignored": 3, "an intent adds nothing": 1, "all days end in Kiritimati": 3}
"""The first seed whose store shows a fault, where it is not 0."""


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_breaks_a_law(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within six stores, whose profiles are read again; or the engine's own second test stops it."""
    place, fault = FAULTS[name]
    monkeypatch.setattr(place, fault)
    with pytest.raises((AssertionError, CorruptFile)):
        check_stores(range(FOUND_AT.get(name, 0), 6), 40)
