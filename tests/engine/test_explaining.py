"""What the store tells a session about a passage: every query is for the session's instant and knowledge."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from carag.audit import Outcome
from carag.engine.follow_ups import _causes as causes
from carag.engine.follow_ups import _is_open as is_open
from carag.engine.follow_ups import explain
from carag.errors import InvalidArgument
from carag.policy import Basis, Decision, Mask, Policy, bit_names, explained
from carag.policy.restrictions import Ground
from carag.store.values import StoredLabel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

WORD = 0x0800_0001
"""Version 1, and the first bit."""
CHUNK = "0009999999-24-000001:00003"
LATER, BARE = "0009999999-24-000002", "0009999999-24-000003"


class Store:
    """A store of one passage and the two filings that set its bits; it answers for minute 100, as known at 7."""

    documents = labels = property(lambda self: self)

    def __init__(self, **changes: Any) -> None:
        self.label = StoredLabel(CHUNK, WORD, 50, 200, (1,))._replace(**changes)
        self.shown = [self.label._replace(word=0), self.label]

    def at_or_after(self, chunk_id: str, *, as_of: int, known_at: int) -> StoredLabel | None:
        assert (100, 7) == (as_of, known_at)
        return self.label if chunk_id <= self.label.chunk_id else None

    def chunk(self, chunk_id: str, *, as_of: int, known_at: int) -> Any:
        assert (100, 7) == (as_of, known_at)
        if chunk_id != self.label.chunk_id:
            raise InvalidArgument("no such passage")
        known = {
            "document_id": CHUNK[:20],
            "version": 2,
            "causes": (("NOT_LATEST", BARE),),
        }
        return SimpleNamespace(**self.label._asdict(), **known)

    def document(self, document_id: str, *, version: int | None = None) -> SimpleNamespace:
        if version is None:
            return SimpleNamespace(version={LATER: 1, BARE: 0}[document_id])
        assert (CHUNK[:20], 2) == (document_id, version)
        bits = [
            (bit_names(WORD)[0], "form", "10-K is an annual report"),
            (bit_names(2)[0], "type", "of another passage"),
        ]
        return SimpleNamespace(causes={"bits": bits}, public_at_source="acceptance")

    def of_document(self, document_id: str, *, known_at: int) -> NDArray[np.int64]:
        assert 7 == known_at
        return np.arange(2) if document_id == LATER else np.arange(0)

    def as_of(self, keys: Sequence[int], as_of: int, *, known_at: int) -> list[StoredLabel]:
        assert (100, 7) == (as_of, known_at)
        return [self.shown[key] for key in keys]


def decided(*, deny: tuple[int, ...] = (), may_know_existence: bool = False) -> Decision:
    """Decide that the first bit is needed, and all companies but some are open."""
    policy = Policy(Mask(1), deny_entities=deny)
    grounds = (Ground(Basis.RESTRICTED_LIST, frozenset(deny)),)
    return Decision(
        "r", "p", policy, 100, 7, may_know_existence, "", regulation="Article 12", grounds=grounds
    )


def passage(*bits: tuple[str, str]) -> Any:
    return SimpleNamespace(document_id=CHUNK[:20], version=2, word=WORD, causes=bits)


def test_a_passage_is_open_by_its_whole_label() -> None:
    """By word, both ends of its time and whom it is about."""
    assert is_open(Store(), CHUNK, decided())  # type: ignore[arg-type]
    assert is_open(Store(public_at=100, expires_at=101), CHUNK, decided(deny=(2,)))  # type: ignore[arg-type]
    for closed in ({"word": 1 << 27}, {"public_at": 101}, {"expires_at": 100}, {"subjects": (2,)}):
        assert not is_open(Store(**closed), CHUNK, decided(deny=(2,)))  # type: ignore[arg-type]


def test_an_id_that_no_passage_has_is_not_open_by_the_next_one() -> None:
    """Nor is what comes after the last."""
    assert not is_open(Store(), CHUNK[:-1], decided())  # type: ignore[arg-type]
    assert not is_open(Store(), CHUNK + "0", decided())  # type: ignore[arg-type]


def test_of_a_filing_s_bits_those_of_the_passage_are_explained() -> None:
    """Which rule earned them, and where the time of publication is from."""
    store, names = Store(), bit_names(WORD)
    said = causes(store, passage(), decided())  # type: ignore[arg-type]
    assert (f"{names[0]}: form: 10-K is an annual report", "public at: acceptance") == said


@pytest.mark.parametrize(
    ("number", "hidden", "may_know", "expected"),
    [
        (LATER, False, False, LATER),
        (LATER, True, False, "a later filing"),
        (LATER, True, True, LATER),
        (BARE, False, False, "a later filing"),
        (BARE, False, True, f"{BARE}, known by its facts alone"),
    ],
)
def test_the_filing_that_set_a_bit_is_named_to_who_sees_a_passage_of_it(
    number: str, hidden: bool, may_know: bool, expected: str
) -> None:
    """Or may know that it exists; where its text is not known, that is said."""
    store = Store()
    if hidden:
        store.shown = [store.label._replace(word=0)] * 2
    said = causes(store, passage(("NOT_LATEST", number)), decided(may_know_existence=may_know))  # type: ignore[arg-type]
    assert f"NOT_LATEST: set by {expected}" == said[1]


@pytest.mark.parametrize("may_know", [False, True])
def test_an_open_passage_is_explained_to_whoever_asks(may_know: bool) -> None:
    """With what earned its bits and the regulation behind the answer, and no reason against it."""
    store, decision = Store(), decided(may_know_existence=may_know)
    found = explain(store, CHUNK, decision)  # type: ignore[arg-type]
    assert (Outcome.ANSWER, "ADMISSIBLE", f"{CHUNK} is admissible for r/p") == (
        found.outcome,
        found.why,
        found.text,
    )
    assert causes(store, store.chunk(CHUNK, as_of=100, known_at=7), decision) == found.causes  # type: ignore[arg-type]
    assert ((), "Article 12") == (found.reasons, found.regulation)


CLOSED: dict[str, dict[str, Any]] = {
    "its word": {"word": 1 << 27},
    "not yet public": {"public_at": 101},
    "no longer": {"expires_at": 100},
    "its subject": {"subjects": (2,)},
}


@pytest.mark.parametrize("closed", CLOSED.values(), ids=CLOSED)
def test_what_hides_a_passage_is_told_to_who_may_know_that_it_exists(closed: dict[str, Any]) -> None:
    """By the reasons of the decision, as a session is told them."""
    store, decision = Store(**closed), decided(deny=(2,), may_know_existence=True)
    label = store.label
    reasons = decision.reasons(
        label.word, label.public_at, entity=label.subjects, expires_at=label.expires_at
    )
    found = explain(store, CHUNK, decision)  # type: ignore[arg-type]
    assert (Outcome.ANSWER, "HIDDEN", f"{CHUNK} is hidden from r/p") == (
        found.outcome,
        found.why,
        found.text,
    )
    assert reasons
    assert tuple(explained(reason, decision, label.subjects) for reason in reasons) == found.reasons
    assert found.causes[-1] == "public at: acceptance"


@pytest.mark.parametrize("closed", [*CLOSED.values(), {}], ids=[*CLOSED, "absent"])
def test_a_hidden_passage_and_an_absent_one_are_declined_alike(closed: dict[str, Any]) -> None:
    """Nothing but the id that was asked for stands in the answer; who may know of it learns that it is absent."""
    asked = CHUNK if closed else CHUNK[:-1]
    found = explain(Store(**closed), asked, decided(deny=(2,)))  # type: ignore[arg-type]
    absent = explain(Store(), CHUNK[:-1], decided(may_know_existence=True))  # type: ignore[arg-type]
    assert (Outcome.DECLINE, "NOTHING_TO_EXPLAIN", True) == (found.outcome, found.why, asked in found.text)
    assert replace(absent, text="") == replace(found, text="")
    assert absent.text.replace(CHUNK[:-1], "") == found.text.replace(asked, "")
