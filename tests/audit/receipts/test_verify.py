"""A receipt proves itself or does not: no byte of it is free, and no lie in it passes."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import carag
from carag.audit import (
    Check,
    Opening,
    SigningKey,
    Verdict,
    verify_receipt,
)
from carag.audit.tlog import encoding
from carag.audit.tlog.encoding import b64url
from carag.errors import CorruptFile, InvalidArgument
from tests.audit.receipts.alterations import FAILED, altered
from tests.audit.receipts.page import GOLDEN, VKEY


def judge(data, vkey):
    verification = verify_receipt(data, vkey)
    return verification.verdict, verification.stopped_at


def test_a_receipt_verifies_with_nothing_but_the_key(issued, build):
    """The verification shows what it proved: record, question, answer, subject and passages."""
    verification = verify_receipt(*issued[:2])
    assert verification.verdict is Verdict.VERIFIED
    assert verification.passed == tuple(Check)
    assert (verification.values, verification.undisclosed, verification.withheld) == (build.SECRETS, (), ())
    assert verification.passages == tuple((p.chunk, p.text) for p in build.passages())
    assert (verification.record.seq, verification.record.log) == (5, build.ORIGIN)


def test_the_file_is_written_whole(issued, build, tmp_path):
    """A receipt on disk is the receipt in memory, and only its owner can read it."""
    receipt, _ = build.forge(build.record())
    receipt.write(tmp_path / "receipt.json")
    assert (tmp_path / "receipt.json").read_bytes() == receipt.to_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["receipt.json"]
    with pytest.raises(InvalidArgument, match="choose another place"):
        receipt.write(tmp_path / "missing" / "receipt.json")


# -- every byte


def spans(data):
    """Locate record, openings and hits in a receipt's bytes."""
    hits = data.index(b'"hits":') + 7, data.index(b',"openings":')
    openings = data.index(b',"openings":') + 12, data.index(b',"proof":')
    record = data.index(b',"record":') + 10, len(data) - 2
    return [range(*span) for span in (hits, openings, record)]


def still_canonical(data):
    try:
        encoding.decode(data[:-1])
    except CorruptFile:
        return False
    return data.endswith(b"\n")


@pytest.mark.parametrize(
    "bits",
    [
        (2,),
        pytest.param((0, 5), marks=pytest.mark.release),
        pytest.param(range(8), marks=pytest.mark.full),
    ],
    ids=["one bit", "two bits", "every bit"],
)
def test_no_flipped_bit_verifies(issued, bits):
    """Flip any bit: never verified, and failed wherever record, openings or hits stay readable."""
    data, vkey, *_ = issued
    inside, counts = spans(data), Counter()
    for position in range(len(data)):
        for bit in bits:
            flipped = bytearray(data)
            flipped[position] ^= 1 << bit
            verdict = verify_receipt(bytes(flipped), vkey).verdict
            counts[verdict] += 1
            assert verdict is not Verdict.VERIFIED, (position, bit)
            if any(position in span for span in inside) and still_canonical(bytes(flipped)):
                assert verdict is Verdict.FAILED, (position, bit)
    assert counts[Verdict.FAILED] > counts[Verdict.UNDECIDED] > 0
    assert counts.total() == len(data) * len(bits)


@given(st.data())
def test_no_edit_verifies(issued, data):
    """Delete, repeat or insert any stretch of bytes: never verified."""
    receipt, vkey, *_ = issued
    start = data.draw(st.integers(0, len(receipt)))
    end = data.draw(st.integers(start, min(len(receipt), start + 200)))
    edited = receipt[:start] + data.draw(st.binary(max_size=40)) + receipt[end:]
    if edited != receipt:
        assert verify_receipt(edited, vkey).verdict is not Verdict.VERIFIED


def test_another_logs_key_decides_nothing(issued, build):
    """With the wrong key one cannot tell; the reason says whose key is wanted."""
    verification = verify_receipt(issued[0], str(SigningKey(build.ORIGIN, b"o" * 32).verifier))
    assert (verification.verdict, verification.stopped_at) == (Verdict.UNDECIDED, Check.KEY)
    assert issued[1].split("+")[1] in verification.reason
    renamed = SigningKey("audit.example/other", b"k" * 32)
    assert judge(issued[0], str(renamed.verifier)) == (Verdict.UNDECIDED, Check.KEY)


def test_a_line_by_an_unknown_key_is_ignored(issued):
    """Witnesses and new keys add lines to a checkpoint (c2sp.org/signed-note); a known key's must hold."""
    other = SigningKey("witness.example", b"w" * 32).sign("x\n").signatures[0].to_line()
    data = altered(issued[0], lambda f: f.update(proof=f["proof"] + other + "\n"))
    assert judge(data, issued[1]) == (Verdict.VERIFIED, None)


@pytest.mark.parametrize("vkey", ["", "log.example", "a+00000000+AAAA"])
def test_a_malformed_key_is_the_callers_mistake(issued, vkey):
    """A malformed key is an argument error, not a verdict."""
    with pytest.raises(InvalidArgument):
        verify_receipt(issued[0], vkey)


def test_a_receipt_has_a_proof_for_each_passage_or_none(build):
    """Half of them could only be a mistake."""
    receipt, _ = build.forge(build.record())
    with pytest.raises(InvalidArgument, match="one each, or none"):
        dataclasses.replace(receipt, proofs=receipt.proofs[:1])


# -- the receipt as it was first written


def test_a_receipt_is_written_as_ever(build):
    """Byte for byte as when the format was made."""
    receipt, vkey = build.forge(build.record())
    assert receipt.to_bytes() == (GOLDEN / "receipt-v1.json").read_bytes()
    verification = verify_receipt(receipt.to_bytes(), vkey)
    assert (vkey, verification.verdict, verification.passed) == (VKEY, Verdict.VERIFIED, tuple(Check))


def test_no_flipped_bit_of_the_kept_receipt_verifies():
    """One bit of every third byte of the file kept here."""
    data = (GOLDEN / "receipt-v1.json").read_bytes()
    for position in range(0, len(data), 3):
        flipped = bytearray(data)
        flipped[position] ^= 1 << position % 7
        assert verify_receipt(bytes(flipped), VKEY).verdict is not Verdict.VERIFIED, position


def test_openings_may_be_kept_back_and_that_is_said(build):
    """The holder may leave an opening out; what was kept back is said, and nothing is shown for it."""
    openings = {"query": Opening(b"s" * 32, build.SECRETS["query"])}
    receipt, vkey = build.forge(build.record(), openings=openings)
    verification = verify_receipt(receipt.to_bytes(), vkey)
    assert verification.verdict is Verdict.VERIFIED
    assert (verification.withheld, list(verification.values)) == (("answer", "subject"), ["query"])


def test_a_failed_verification_shows_no_text(issued):
    """Question, answer and passages are handed on only when all of them are proved."""
    data = altered(issued[0], FAILED["passage removed"][0])
    verification = verify_receipt(data, issued[1])
    assert (verification.values, verification.passages) == ({}, ())
    assert verification.record is not None
    assert verify_receipt(altered(issued[0], FAILED["record altered"][0]), issued[1]).record is None


def test_a_salt_is_fresh_every_time(tmp_path, build):
    """The same question asked twice leaves commitments that cannot be linked."""
    with build.open_log(tmp_path) as log:
        first, second = build.ask(log), build.ask(log)
        assert not set(log.record(0).commitments.values()) & set(log.record(1).commitments.values())
        assert first.openings["query"].salt != second.openings["query"].salt
        assert len(b64url(first.openings["query"].salt)) == 43


def test_verifying_needs_no_numpy_no_core_and_no_other_room():
    """The room can be lifted out: without numpy, cffi, pydantic and all rooms but PostgreSQL's it still imports."""
    code = """
import sys, types
for name in ("numpy", "cffi", "pydantic", "pymerkle"):
    sys.modules[name] = None
package = types.ModuleType("carag")
package.__path__ = [sys.argv[1]]
sys.modules["carag"] = package
from carag.audit.receipts.verify import verify_receipt
import carag.audit
rooms = {name.split(".")[1] for name in sys.modules if name.startswith("carag.")}
assert rooms <= {"audit", "errors", "lazy", "limits", "postgres"}, rooms
"""
    subprocess.run([sys.executable, "-c", code, str(Path(carag.__file__).parent)], check=True)
