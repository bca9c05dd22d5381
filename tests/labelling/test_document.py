"""A document is checked when it is made: it can be stored and recorded, and nothing changes it later."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag import Document, PolicyBit
from carag.errors import InvalidArgument
from carag.limits import MAX_ID
from carag.policy import MAX_LISTED, bits_of

NOON = datetime(2025, 5, 1, 12, tzinfo=UTC)


def made(**changes: Any) -> Document:
    return Document(**{"id": "circular/7", "text": "Branches report monthly.", "bits": (), **changes})


NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,20}", fullmatch=True)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
)
DOCUMENTS = st.builds(
    made,
    text=TEXTS,
    bits=st.integers(0, 2**27 - 1) | st.lists(st.sampled_from(sorted(PolicyBit.__members__)), max_size=4),
    metadata=st.dictionaries(NAMES, SCALARS, max_size=6),
    entities=st.lists(st.integers(0, MAX_LISTED), max_size=4),
    public_at=st.none() | st.just(NOON) | st.just(NOON.date()),
    expires_at=st.none() | st.just(NOON + timedelta(days=3)),
    retain_until=st.none() | st.just(NOON.date()),
    erase_after=st.none() | st.just(NOON + timedelta(days=3)),
    language=st.sampled_from([None, "en", "de-CH"]),
)


# --- laws ---


@given(DOCUMENTS)
def test_copies_are_equal_and_as_frozen(document: Document) -> None:
    """So a reader in another process sends the same document."""
    for other in (pickle.loads(pickle.dumps(document)), copy.deepcopy(document), replace(document)):  # noqa: S301
        assert other == document
        assert hash(other) == hash(document)
        with pytest.raises(TypeError):
            other.metadata["late"] = 1
        with pytest.raises(FrozenInstanceError):
            other.text = "another"


@given(st.dictionaries(NAMES, SCALARS | st.lists(SCALARS, max_size=3), max_size=5))
def test_facts_are_taken_instead_of_bits(facts: dict[str, Any]) -> None:
    document = made(bits=None, facts=facts)
    assert document.facts is not None
    assert facts == {
        name: list(one) if isinstance(one, tuple) else one for name, one in document.facts.items()
    }


def test_what_the_caller_changes_afterwards_does_not_change_it() -> None:
    metadata, listed, entities = {"title": "Old"}, [1, 2], [9, 3, 9]
    document = made(bits=None, facts={"kinds": listed}, metadata=metadata, entities=entities)
    metadata["title"], entities[0] = "New", 1
    listed.append(3)
    assert {"title": "Old"} == document.metadata
    assert {"kinds": (1, 2)} == document.facts
    assert (3, 9) == document.entities


def test_its_repr_shows_no_text_and_no_person() -> None:
    """A repr may end up in logs and tracebacks."""
    shown = repr(made(text="secret text", metadata={"author": "secret person"}, entities=[123456]))
    assert not any(word in shown for word in ("secret", "123456"))
    assert "circular/7" in shown


@pytest.mark.parametrize(
    "bits",
    [
        (),
        0,
        "PD_COMP",
        ["PD_COMP", PolicyBit.J_US],
        {PolicyBit.J_US},
        PolicyBit.J_US | PolicyBit.J_EU,
        (1 << 27) - 1,
    ],
    ids=repr,
)
def test_bits_are_written_as_the_policy_room_reads_them(bits: Any) -> None:
    assert bits_of(made(bits=bits).bits) == bits_of(bits)  # type: ignore[arg-type]


def test_names_of_another_vocabulary_wait_for_the_store() -> None:
    """Only a store knows its vocabulary."""
    assert ("CONSENT_WITHDRAWN",) == made(bits="CONSENT_WITHDRAWN").bits


# --- malformed documents ---

WRONG = {
    "no id": {"id": ""},
    "long id": {"id": "a" * (MAX_ID + 1)},
    "id with a control character": {"id": "a\nb"},
    "id that is not text": {"id": 7},
    "id that ends in a version": {"id": "a.v2"},
    "text that is bytes": {"text": b"text"},
    "text with NUL": {"text": "a\0b"},
    "half a surrogate pair": {"text": "a\ud800"},
    "neither bits nor facts": {"bits": None},
    "both bits and facts": {"facts": {}},
    "a control bit": {"bits": 1 << 30},
    "a negative vector": {"bits": -1},
    "bits that are a boolean": {"bits": True},
    "bits that are a fraction": {"bits": 0.5},
    "numbers in a list": {"bits": [1, 2]},
    "bits in a mapping": {"bits": {"PD_COMP": True}},
    "facts that are a list": {"bits": None, "facts": ["a"]},
    "a fact that is an object": {"bits": None, "facts": {"a": object()}},
    "a fact that is nested": {"bits": None, "facts": {"a": [[1]]}},
    "a fact without a name": {"bits": None, "facts": {"": 1}},
    "too many facts": {"bits": None, "facts": {f"a{n}": n for n in range(257)}},
    "too long a list": {"bits": None, "facts": {"a": [0] * 1001}},
    "metadata that is a list": {"metadata": [("a", 1)]},
    "a field in capitals": {"metadata": {"Title": "x"}},
    "a field that starts with a digit": {"metadata": {"1a": "x"}},
    "a field with a foreign letter": {"metadata": {"größe": 1}},
    "a field that is not text": {"metadata": {1: "x"}},
    "too many fields": {"metadata": {f"a{n}": n for n in range(65)}},
    "a long value": {"metadata": {"a": "x" * 1001}},
    "a list in metadata": {"metadata": {"a": ["x"]}},
    "not a number": {"metadata": {"a": float("nan")}},
    "an infinite number": {"metadata": {"a": float("inf")}},
    "an integer of 65 bits": {"metadata": {"a": 1 << 63}},
    "a member of an enum": {"metadata": {"a": PolicyBit.J_US}},
    "entities in one text": {"entities": "12"},
    "a negative entity": {"entities": [-1]},
    "too great an entity": {"entities": [MAX_LISTED + 1]},
    "a time without a zone": {"public_at": NOON.replace(tzinfo=None)},
    "a time that is text": {"public_at": "2025-05-01"},
    "a time before 1970": {"public_at": date(1969, 1, 1)},
    "an end that is a number": {"expires_at": 17},
    "an end before the beginning": {"public_at": NOON, "expires_at": NOON - timedelta(minutes=1)},
    "an end at the beginning": {"public_at": NOON, "expires_at": NOON},
    "erasing without a zone": {"erase_after": NOON.replace(tzinfo=None)},
    "keeping for a number of days": {"retain_until": 90},
    "erasing what must be kept": {"retain_until": NOON, "erase_after": NOON - timedelta(minutes=1)},
    "superseding itself": {"supersedes": "circular/7"},
    "supersedes with a control character": {"supersedes": "a\tb"},
    "supersedes several": {"supersedes": ["a", "b"]},
    "a language in words": {"language": "plain English"},
    "pages that descend": {"pages": [5, 3]},
    "a page past the end": {"pages": [0, 999]},
    "a negative page": {"pages": [-1]},
    "pages in one text": {"pages": "0"},
    "a page that is a fraction": {"pages": [0.0]},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_what_cannot_be_stored_is_refused_when_it_is_made(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument) as said:
        made(**wrong)
    assert str(said.value).isprintable()
    assert len(str(said.value)) < 500


def test_an_error_names_the_field_and_the_document() -> None:
    with pytest.raises(InvalidArgument, match="expires_at of document 'circular/7'"):
        made(expires_at=NOON.replace(tzinfo=None))


def test_ids_are_not_given_by_position() -> None:
    """Otherwise an id in the place of a text would be stored as text."""
    with pytest.raises(TypeError):
        Document("circular/7", "text", ())  # type: ignore[misc]


def test_the_longest_values_are_taken() -> None:
    text = "a\fb\fc"
    document = made(
        id="é" * MAX_ID,
        text=text,
        metadata={f"a{n}": "x" * 1000 for n in range(64)},
        pages=[0, 0, 2, len(text)],
    )
    assert (0, 0, 2, 5) == document.pages  # the first page is blank
