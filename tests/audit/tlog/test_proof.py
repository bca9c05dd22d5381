"""Proof files: written as C2SP has them, read in that one spelling only."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.audit import Checkpoint, ConsistencyProof, InclusionProof, SigningKey
from carag.audit.tlog.encoding import b64
from carag.errors import CorruptFile

NOTE = SigningKey("log.example/7", b"k" * 32).sign(Checkpoint("log.example/7", 12, b"r" * 32).to_text())
HASHES = st.lists(st.binary(min_size=32, max_size=32), max_size=63).map(tuple)
NUMBERS = st.integers(0, 2**63 - 1)


@given(NUMBERS, HASHES)
def test_round_trip(number, hashes):
    """Both proofs come back from their texts."""
    inclusion = InclusionProof(number, hashes, NOTE)
    assert InclusionProof.parse(inclusion.to_text()) == inclusion
    consistency = ConsistencyProof(number, hashes, NOTE)
    assert ConsistencyProof.parse(consistency.to_text()) == consistency


def test_the_formats_are_the_specified_ones():
    """A tlog-proof has a header, the index, the hashes, a blank line and the checkpoint verbatim."""
    hashes = (b"a" * 32, b"b" * 32)
    lines = f"{b64(hashes[0])}\n{b64(hashes[1])}\n\n{NOTE.to_text()}"
    assert InclusionProof(5, hashes, NOTE).to_text() == f"c2sp.org/tlog-proof@v1\nindex 5\n{lines}"
    assert ConsistencyProof(5, hashes, NOTE).to_text() == f"old 5\n{lines}"


TEXT = InclusionProof(5, (b"a" * 32, b"b" * 32), NOTE).to_text()
MALFORMED = {
    "another version": TEXT.replace("@v1", "@v2"),
    "an extra line": TEXT.replace("index", "extra QUJD\nindex"),
    "a leading zero": TEXT.replace("index 5", "index 05"),
    "two spaces": TEXT.replace("index 5", "index  5"),
    "a negative index": TEXT.replace("index 5", "index -5"),
    "a superscript digit": TEXT.replace("index 5", "index ⁵"),
    "an index of 2**63": TEXT.replace("index 5", f"index {2**63}"),
    "no index": TEXT.replace("index 5\n", ""),
    "CRLF": TEXT.replace("\n", "\r\n"),
    "a trailing space": TEXT.replace("index 5\n", "index 5 \n"),
    "sixty-four hashes": InclusionProof(5, (b"a" * 32,) * 64, NOTE).to_text(),
    "an unpadded hash": TEXT.replace(b64(b"a" * 32), b64(b"a" * 32)[:-1]),
    "no checkpoint": TEXT.split("\n\n", 1)[0] + "\n\n",
    "nothing": "",
}


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_proof_is_refused(text):
    """A proof file has one spelling."""
    assert text != TEXT
    with pytest.raises(CorruptFile):
        InclusionProof.parse(text)
