"""What one record must not say at once: each law is broken by a record, and found by name."""

from __future__ import annotations

import dataclasses

import pytest

from carag.audit import (
    Begin,
    EntityRule,
    HeadRows,
    IndexState,
    ListKind,
    Outcome,
    PolicyApplied,
    PolicyChange,
    RecordKind,
)
from carag.policy import SCHEMA_VERSION, mask


def test_a_record_in_order_contradicts_nothing(build):
    """The builder's record is consistent, so each contradiction below is the mutation's doing."""
    assert list(build.record().contradictions()) == []
    assert list(build.record(**headed(build, (1, 2, 0, 9))).contradictions()) == []
    refused = build.record(event=build.refusal(), hits=(), **without(build.record(), "answer"))
    assert list(refused.contradictions()) == []


def test_of_what_nobody_asked_only_a_begin_owes_a_question(build):
    """Asked or begun, a record that commits to no question says so, once; any other owes none."""
    asked = build.record(**without(build.record(), "query"))
    shared = ("started", "role", "purpose", "source", "as_of", "policy", "models")
    begun = Begin(**{name: getattr(asked.event, name) for name in shared})
    table = PolicyChange(at=1, table=b"T" * 32, before=None, why="FIRST_TABLE")
    for record, expected in (
        (asked, ["it commits to no question"]),
        (build.record(event=begun, hits=(), commitments={}), ["it commits to no question"]),
        (build.record(event=begun, hits=(), commitments={"query": b"q" * 32}), []),
        (build.record(event=table, hits=(), commitments={}), []),
    ):
        assert expected == list(record.contradictions())


def word(record, word):
    return {"hits": (dataclasses.replace(record.hits[0], word=word),)}


def without(record, name):
    return {"commitments": {key: value for key, value in record.commitments.items() if key != name}}


LISTED = PolicyApplied(b"T" * 32, ((0x20, 0x10000), (0x01, 0x10000)), EntityRule(ListKind.ALLOW, 1))


def narrowed(build, record, *fields):
    """Name fields that narrowed the search, and commit to what for."""
    return {
        "event": build.access(where=fields),
        "commitments": {**record.commitments, "where": b"c" * 32},
    }


def headed(build, *rows):
    """Say that hits were read with the heads of others."""
    return {"event": build.access(heads=tuple(HeadRows(*one) for one in rows))}


CONTRADICTIONS = {
    "a word without a required bit": lambda b, r: word(r, 1 << 27),
    "a word with a forbidden bit": lambda b, r: word(r, b.WORD | 0x10000),
    "an unlabelled word": lambda b, r: word(r, 0x21),
    "a word of version 2": lambda b, r: word(r, 2 << 27 | 0x21),
    "a quarantined word": lambda b, r: word(r, b.WORD | 1 << 30),
    "a deleted word": lambda b, r: word(r, b.WORD | 1 << 31),
    "hits under no mask": lambda b, r: {"event": b.access(policy=PolicyApplied(b"T" * 32))},
    "a chunk twice": lambda b, r: {"hits": (r.hits[0], r.hits[0])},
    "more hits than rows": lambda b, r: {"event": b.access(index=IndexState(b"S" * 32, 1, "exact"))},
    "a hit without a search": lambda b, r: {"event": b.access(index=None), "hits": r.hits[:1]},
    "a begin that is itself": lambda b, r: {"event": b.access(begun=r.seq)},
    "a refusal with hits": lambda b, r: {
        "event": b.access(outcome=Outcome.REFUSE, index=None),
        **without(r, "answer"),
    },
    "a refusal that searched": lambda b, r: {
        "event": b.access(outcome=Outcome.REFUSE),
        "hits": (),
        **without(r, "answer"),
    },
    "a decline that cites": lambda b, r: {
        "event": b.access(outcome=Outcome.DECLINE),
        **without(r, "answer"),
    },
    "a decline with an answer": lambda b, r: {"event": b.access(outcome=Outcome.DECLINE), "hits": ()},
    "an error with an answer": lambda b, r: {"event": b.access(outcome=Outcome.ERROR), "hits": ()},
    "an answer to a retrieval": lambda b, r: {"event": b.access(kind=RecordKind.RETRIEVE)},
    "an answer without passages": lambda b, r: {"hits": ()},
    "an answer that is not committed to": lambda b, r: without(r, "answer"),
    "no question": lambda b, r: without(r, "query"),
    "a list without a commitment": lambda b, r: {"event": b.access(policy=LISTED)},
    "a commitment to no list": lambda b, r: {"commitments": {**r.commitments, "entities": b"c" * 32}},
    "a narrowing without a commitment": lambda b, r: {"event": b.access(where=("year",))},
    "a commitment to no narrowing": lambda b, r: {"commitments": {**r.commitments, "where": b"c" * 32}},
    "a field twice": lambda b, r: narrowed(b, r, "year", "year"),
    "fields out of order": lambda b, r: narrowed(b, r, "year", "team"),
    "heads of a hit that does not exist": lambda b, r: headed(b, (3, 1, 0, 9)),
    "heads from a hit that does not exist": lambda b, r: headed(b, (1, 3, 0, 9)),
    "heads of its own": lambda b, r: headed(b, (1, 1, 0, 9)),
    "heads twice": lambda b, r: headed(b, (1, 2, 0, 9), (1, 2, 3, 9)),
    "heads out of order": lambda b, r: headed(b, (2, 1, 0, 9), (1, 2, 0, 9)),
    "heads that end before they begin": lambda b, r: headed(b, (1, 2, 9, 9)),
    "heads without a search": lambda b, r: {**headed(b, (1, 2, 0, 9)), "hits": ()},
    "an intent twice": lambda b, r: {"event": b.access(intents=("LATEST", "LATEST"))},
}


@pytest.mark.parametrize("mutation", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_contradiction_is_found(build, mutation):
    """Each law of a record catches the record that breaks it."""
    assert list(build.record(**mutation(build, build.record())).contradictions())


def test_the_words_are_those_of_the_policy_room():
    """The room imports no other, so that its copy of the word test is the same test is checked here."""
    policy = mask.Policy(mask.Mask(0x20, 0x10000), mask.Mask(0x01, 0))
    applied = PolicyApplied(b"T" * 32, tuple((m.required, m.forbidden) for m in policy.masks))
    edges = [0, 0x20, 0x01, 0x10020, 0x10001, 0x21]
    words = [bits | control << 27 for bits in edges for control in range(32)]
    assert [applied.admits(word) for word in words] == [policy.admits(word) for word in words]
    assert SCHEMA_VERSION == 1
