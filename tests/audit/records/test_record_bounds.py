"""What a record takes reaches to its bounds, and what it refuses is said with what there may be."""

from __future__ import annotations

import dataclasses
import hashlib

import numpy as np
import pytest

from carag.audit import MAX_RECORD_BYTES, Passage, PolicyApplied, Record, Recovery
from carag.audit.records import _fields
from carag.errors import CorruptFile, InvalidArgument


def test_a_version_unknown_here_is_named_beside_the_one_that_is_known(build):
    """So that a reader knows which of the two is too old."""
    body = build.record().to_bytes().replace(b'"v":1', b'"v":2')
    with pytest.raises(CorruptFile, match=r"^record version 2; this reader knows 1$"):
        Record.parse(body)


@pytest.mark.parametrize("kind", [int, np.int64, np.uint8])
def test_an_integer_is_a_plain_one_or_numpys_from_the_least_to_the_greatest(kind):
    """Neither a truth nor a fraction nor a text is one."""
    for value in (3, 9):
        _fields.integer("n", kind(value), 3, 9)
    for wrong in (kind(2), kind(10), True, np.True_, 4.0, "4", None):
        with pytest.raises(InvalidArgument, match=r"want an integer in 3\.\.9"):
            _fields.integer("n", wrong, 3, 9)


@pytest.mark.parametrize("pair", [(1 << 27, 0), (0, 1 << 27), (-1, 0), (0, -1), (1, 1)])
def test_a_pair_is_of_policy_bits_alone_and_of_none_twice(pair):
    """Version, quarantine and tombstone can be neither required nor forbidden."""
    for masks in ({"masks": (pair,)}, {"masks": (), "reopened": (pair,)}):
        with pytest.raises(InvalidArgument, match=r"bits|an entry of"):
            PolicyApplied(b"T" * 32, **masks)


def test_a_word_of_another_list_is_refused_with_those_of_its_own(build):
    """Kind, source, outcome: each is one of a few."""
    with pytest.raises(
        InvalidArgument, match="'else' is not a valid Outcome; want one of answer, decline, refuse, error"
    ):
        build.access(outcome="else")


def test_a_long_record_is_refused(build):
    """The cap holds, and the message says what to do."""
    hits = tuple(dataclasses.replace(build.passages()[0].hit, digest=n.to_bytes(20)) for n in range(1_400))
    with pytest.raises(InvalidArgument, match="ask for fewer passages"):
        build.record(hits=hits).to_bytes()
    assert len(build.record(hits=hits[:900]).to_bytes()) < MAX_RECORD_BYTES


def test_a_record_may_be_as_long_as_the_limit(build, monkeypatch):
    """And not a byte longer."""
    size = len(build.record().to_bytes())
    monkeypatch.setattr("carag.audit.records.record.MAX_RECORD_BYTES", size)
    assert size == len(build.record().to_bytes())
    monkeypatch.setattr("carag.audit.records.record.MAX_RECORD_BYTES", size - 1)
    with pytest.raises(InvalidArgument, match=f"has {size} bytes"):
        build.record().to_bytes()


@pytest.mark.parametrize(
    ("event", "allowed"),
    [
        (
            None,
            "query records commit to answer, authority, conversation, entities, principals, query, reading, subject, "
            "where",
        ),
        (Recovery("DRILL"), "commit to nothing"),
    ],
)
def test_a_commitment_to_something_else_is_refused_with_what_there_may_be(build, event, allowed):
    """By kind of record."""
    event = event or build.access()
    with pytest.raises(InvalidArgument, match=f"{allowed}; got 'targets'"):
        build.record(event=event, hits=(), commitments={"targets": b"t" * 32})


@pytest.mark.parametrize(
    "body", [b"[]", b'{"log":"a","seq":1}', b'{"log":"a","seq":"1","tc":2}', b'{"log":"a","seq":1,"tc":"2"}']
)
def test_what_does_not_say_where_it_stands_has_no_place(body):
    """Log, number and time, of which two are integers."""
    with pytest.raises(CorruptFile):
        Record.place(body)


def test_a_hash_known_already_makes_the_same_hit():
    """Hit and digest follow from the hash alone, and only a whole SHA-256 is one."""
    known = hashlib.sha256(b"text").digest()
    assert Passage("c", "text", 0.5, 0).hit == Passage("c", "text", 0.5, 0, text_sha256=known).hit
    assert Passage("c", "text", 0.5, 0).hit != Passage("c", "text", 0.5, 0, text_sha256=bytes(32)).hit
    for other in (b"", known[:31], known.hex()):
        with pytest.raises(InvalidArgument):
            _ = Passage("c", "text", 0.5, 0, text_sha256=other).hit
