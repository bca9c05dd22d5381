"""A commitment is HMAC-SHA256, binds field, value and salt, and shows none of them."""

from __future__ import annotations

import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.audit import Opening
from carag.audit.records.commitment import commit, hmac_sha256
from carag.errors import InvalidArgument


@given(key=st.binary(min_size=32, max_size=32), message=st.binary(max_size=300))
def test_the_hash_of_commitments_is_hmac_sha256(key, message):
    assert hmac_sha256(key, message) == hmac.digest(key, message, "sha256")


def test_a_commitment_binds_field_value_and_salt():
    """Another field, value or salt is another commitment."""
    salt = b"s" * 32
    mine = commit("query", "margin", salt)
    others = [
        ("answer", "margin", salt),
        ("query", "margins", salt),
        ("query", "margi", salt),
        ("query", "margin", b"t" * 32),
    ]
    assert mine not in [commit(*other) for other in others]
    assert Opening(salt, "margin").opens("query", mine)
    assert not Opening(salt, "margin").opens("answer", mine)


@pytest.mark.parametrize(
    ("value", "salt"), [("v", b"s" * 31), ("v", b""), ("\ud800", b"s" * 32), (5, b"s" * 32)]
)
def test_a_commitment_needs_text_and_a_full_salt(value, salt):
    """A short salt would let a dictionary open the commitment."""
    with pytest.raises(InvalidArgument):
        commit("query", value, salt)


def test_an_opening_does_not_show_its_value():
    """A repr that reaches a log file gives nothing away."""
    assert repr(Opening(b"s" * 32, "ana")) == "Opening()"
