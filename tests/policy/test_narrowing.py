"""Whatever a request passes to ``narrow()``, everything admissible afterwards was admissible before."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from carag.errors import Refused
from carag.labelling.chunking import chunk
from carag.policy import (
    NEVER,
    QUARANTINE,
    DealWindow,
    Intent,
    LawfulBasis,
    LegalBasis,
    PolicyTable,
    Session,
    WallCrossing,
    as_of_minutes,
    infer,
)
from carag.profiles.edgar.reading.readers import read_filings
from carag.profiles.edgar.rules.labeller import chunk_word, label
from carag.profiles.edgar.rules.metadata_only import learn, quarantine_of, states
from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from carag.labelling.labelled import Facts

TABLE = PolicyTable.shipped()
ADVICE = [cell for cell in TABLE.cells if cell.purpose in {"invest", "publish"}]
"""Cells to which deals and a cooling time apply."""
NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
MINUTES = as_of_minutes(NOW)
PLACES = ["J_US", "J_EU", "J_UK", "J_CA", "J_OTHER"]


class Passage(NamedTuple):
    """The fields of a passage that a decision tests."""

    word: int
    about: tuple[int, ...]
    public_at: int
    expires_at: int


@cache
def passages(path: Path) -> list[Passage]:
    """Label real filings and their passages, with the bits that later filings set."""
    known: dict[str, Facts] = {}
    read = []
    for outcome in read_filings(path):
        if outcome.metadata is not None:
            learn(known, outcome.metadata, metadata_only=True)
        elif outcome.filing is not None:
            learn(known, outcome.filing, metadata_only=False)
            read.append(outcome.filing)
    state_of = states(known.values())
    found = set()
    for filing in read:
        said, state = label(filing), state_of[filing.accession_number].bits
        state |= QUARANTINE if quarantine_of(known[filing.accession_number]) else 0
        for document in filing.documents:
            for piece in chunk(document.text):
                word = chunk_word(said, filing, document, piece.text, piece.start) | state
                found.add(Passage(word, filing.subjects, said.public_at, NEVER))
    return sorted(found)


def draw_passage(rng: random.Random, real: list[Passage]) -> Passage:
    """Take a real label, sometimes with other entities, a recent publication, or an expiry."""
    one = rng.choice(real)
    if rng.random() < 0.5:
        one = one._replace(public_at=MINUTES - rng.choice([-1, 0, 1, 60, 600, 30_000]))
    if rng.random() < 0.2:
        one = one._replace(expires_at=one.public_at + rng.choice([1, 60, 600, 100_000]))
    if rng.random() < 0.2:
        one = one._replace(about=rng.choice([(), one.about[:1], (*one.about, 7)]))
    return one


def draw_session(rng: random.Random, about: tuple[int, ...]) -> Session:
    """Draw anything that a host's session or a token can hold, with lists near the passage's entities."""
    cell = rng.choice(TABLE.cells if rng.random() < 0.5 else ADVICE)
    whom = _listed(rng, about)
    values: dict[str, Callable[[], Any]] = {
        "as_of": lambda: NOW - timedelta(minutes=rng.choice([0, 1, 500, 40_000, 1_500_000])),
        "allow_entities": lambda: {*whom(), *about} if rng.random() < 0.7 else whom(),
        "restricted": whom,
        "watched": whom,
        "deals": lambda: [
            DealWindow(one, NOW - timedelta(days=rng.randrange(60)), NOW + timedelta(days=rng.randrange(9)))
            for one in whom()
        ],
        "wall_crossings": lambda: [WallCrossing(one, rng.choice(["draft", "surveil"])) for one in whom()],
        "audit_clients": lambda: {*whom(), *about},
        "residency": lambda: rng.sample(PLACES, rng.randrange(3)),
        "eu_transfer_basis": lambda: rng.choice([True, False]),
        "legal_basis": lambda: LegalBasis(
            rng.choice([LawfulBasis.LEGAL_OBLIGATION, LawfulBasis.LEGITIMATE_INTERESTS]),
            objections=frozenset(whom()),
            restrictions=frozenset(whom()),
        ),
        "cooling": lambda: timedelta(minutes=rng.choice([1, 30, 600, 40_000])),
        "intents": lambda: rng.sample(list(Intent), rng.randrange(3)),
    }
    if "known_at" in cell.past:
        values["known_at"] = lambda: NOW - timedelta(minutes=rng.choice([0, 1, 500_000]))
    often = {"cooling": 0.5, "deals": 0.5, "allow_entities": 0.6 if cell.allow_list == "mandatory" else 0.15}
    drawn = {name: draw() for name, draw in values.items() if rng.random() < often.get(name, 0.15)}
    return Session(role=cell.role, purpose=cell.purpose, **drawn)


def draw_request(rng: random.Random, about: tuple[int, ...]) -> dict[str, Any]:
    """Draw arguments of ``narrow()``."""
    whom = _listed(rng, about)
    values: dict[str, Callable[[], Any]] = {
        "allow_entities": lambda: {*whom(), *about} if rng.random() < 0.7 else whom(),
        "restricted": whom,
        "watched": whom,
        "residency": lambda: rng.sample(PLACES, rng.randrange(3)),
        "cooling": lambda: timedelta(minutes=rng.choice([1, 30, 600, 40_000])),
        "intents": lambda: rng.sample(list(Intent), rng.randrange(3)),
    }
    return {name: draw() for name, draw in values.items() if rng.random() < 0.4}


def _listed(rng: random.Random, about: tuple[int, ...]) -> Callable[[], set[int]]:
    known = [1, 7, *about]
    return lambda: set(rng.sample(known, rng.randrange(len(known))))


def is_admissible(passage: Passage, session: Session) -> bool:
    """Tell whether a session may use a passage; a refused session may use none."""
    try:
        decision = infer(session, TABLE, now=NOW)
    except Refused:
        return False
    return not decision.reasons(
        passage.word, passage.public_at, entity=passage.about, expires_at=passage.expires_at
    )


def histories(
    cases: int, real: list[Passage], narrow: Callable[..., Session] = Session.narrow
) -> Iterator[list[bool]]:
    """Yield whether random passages are admissible before and after each of one to three requests on a session."""
    rng = random.Random(20_261_123)  # noqa: S311 # a seed, not a secret
    for _ in range(cases):
        passage = draw_passage(rng, real)
        session = draw_session(rng, passage.about)
        steps = [is_admissible(passage, session)]
        for _ in range(rng.randint(1, 3)):
            session = narrow(session, **draw_request(rng, passage.about))
            steps.append(is_admissible(passage, session))
        yield steps


def widens(steps: list[bool]) -> bool:
    """Compare each request with the state before it, not with the grant alone."""
    return any(now and not was for was, now in pairwise(steps))


@pytest.mark.parametrize("cases", [examples(2_000), pytest.param(100_000, marks=pytest.mark.full)])
def test_nothing_is_admissible_after_that_was_not_before(cases: int, small_corpus: Path) -> None:
    """For random sessions, requests and real labels, enough of them admissible to be meaningful."""
    found = list(histories(cases, passages(small_corpus)))
    assert not any(map(widens, found))
    before, after = (sum(steps[at] for steps in found) for at in (0, -1))
    assert before > cases // 5
    assert cases // 20 < after < before


@pytest.mark.parametrize("cases", [2_000, pytest.param(100_000, marks=pytest.mark.full)])
def test_nothing_of_real_filings_is_admissible_after_that_was_not_before(
    cases: int, shared_data: Path
) -> None:
    """The same holds for 794 real filings and their passages."""
    found = list(histories(cases, passages(shared_data / "edgar" / "filings-04.jsonl.gz")))
    assert not any(map(widens, found))
    before, after = (sum(steps[at] for steps in found) for at in (0, -1))
    assert cases // 20 < after < before


def _taken(name: str) -> Callable[..., Session]:
    """Replace what was granted by what a request says."""

    def narrow(session: Session, **asked: Any) -> Session:
        return replace(session, **{name: asked[name]}) if name in asked else session

    return narrow


@pytest.mark.parametrize(
    "name", ["allow_entities", "restricted", "watched", "residency", "cooling", "intents"]
)
def test_a_request_that_is_taken_at_its_word_is_found_out(name: str, small_corpus: Path) -> None:
    """Each argument alone, in place of the grant, widens some of the same cases, so the test can fail."""
    assert any(map(widens, histories(6_000, passages(small_corpus), _taken(name))))


def test_a_list_that_a_cell_demands_comes_with_the_session_and_never_with_a_request() -> None:
    """Whatever a request narrows, a session that was not granted the list stays refused for lacking it."""
    for cell in TABLE.cells:
        if cell.allow_list == "mandatory":
            bare = Session(role=cell.role, purpose=cell.purpose)
            for session in (bare, bare.narrow(allow_entities={7}), bare.narrow(allow_entities={7}).narrow()):
                with pytest.raises(Refused) as refusal:
                    infer(session, TABLE, now=NOW)
                assert refusal.value.code == "ALLOW_LIST_REQUIRED"


def test_what_was_granted_and_what_was_asked_must_both_hold() -> None:
    """Also after several requests, and after later changes to the session."""
    granted = Session(role="dpo", purpose="dsar", allow_entities={1, 2, 3}).narrow(allow_entities={2, 3, 4})
    for session, expected in (
        (granted, (2, 3)),
        (granted.narrow(allow_entities={1, 3, 5}), (3,)),
        (granted.narrow(allow_entities={9}), ()),
        (replace(granted, subject="ana"), (2, 3)),
    ):
        assert infer(session, TABLE, now=NOW).policy.allow_entities == expected
