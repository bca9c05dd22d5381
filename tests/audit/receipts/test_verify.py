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
    IndexState,
    Opening,
    Outcome,
    RecordKind,
    SigningKey,
    Verdict,
    verify_receipt,
)
from carag.audit.tlog import encoding
from carag.audit.tlog.encoding import b64url
from carag.errors import CorruptFile, InvalidArgument
from tests.audit.receipts.alterations import FAILED, STATE_LIES, UNREADABLE, altered


@pytest.fixture(scope="module")
def issued(tmp_path_factory, build):
    """Issue one real receipt, with siblings in its proof."""
    with build.open_log(tmp_path_factory.mktemp("log")) as log:
        receipts = [build.ask(log) for _ in range(6)]
        return receipts[-1].to_bytes(), log.vkey


def judge(data, vkey):
    verification = verify_receipt(data, vkey)
    return verification.verdict, verification.stopped_at


def test_a_receipt_verifies_with_nothing_but_the_key(issued, build):
    """The verification shows what it proved: record, question, answer, subject and passages."""
    verification = verify_receipt(*issued)
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


def test_a_forged_receipt_in_order_verifies(build):
    """The forger used below makes receipts that verify, so each failure is the lie's doing."""
    receipt, vkey = build.forge(build.record())
    assert judge(receipt.to_bytes(), vkey) == (Verdict.VERIFIED, None)


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
    "bits", [(0, 2, 5), pytest.param(range(8), marks=pytest.mark.full)], ids=["three bits", "every bit"]
)
def test_no_flipped_bit_verifies(issued, bits):
    """Flip any bit: never verified, and failed wherever record, openings or hits stay readable."""
    data, vkey = issued
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
    receipt, vkey = issued
    start = data.draw(st.integers(0, len(receipt)))
    end = data.draw(st.integers(start, min(len(receipt), start + 200)))
    edited = receipt[:start] + data.draw(st.binary(max_size=40)) + receipt[end:]
    if edited != receipt:
        assert verify_receipt(edited, vkey).verdict is not Verdict.VERIFIED


@given(st.binary(max_size=300))
def test_garbage_is_undecided(issued, data):
    """What is no receipt is not called tampered with."""
    assert judge(data, issued[1]) == (Verdict.UNDECIDED, Check.FORMAT)


# -- named mutations


@pytest.mark.parametrize(("change", "check"), FAILED.values(), ids=FAILED)
def test_an_altered_receipt_fails(issued, change, check):
    """Readable but altered: the verdict is FAILED, and it names the check; those in front of it have passed."""
    data, vkey = issued
    found = verify_receipt(altered(data, change), vkey)
    assert (found.verdict, found.stopped_at) == (Verdict.FAILED, check)
    assert (*found.passed, check) == tuple(Check)[: len(found.passed) + 1]


@pytest.mark.parametrize("change", UNREADABLE.values(), ids=UNREADABLE)
def test_an_unreadable_receipt_is_undecided(issued, change):
    """What cannot be read in its one spelling is undecided, never verified."""
    data, vkey = issued
    assert judge(change(data), vkey) == (Verdict.UNDECIDED, Check.FORMAT)


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
    """A key that is none is an argument error, not a verdict."""
    with pytest.raises(InvalidArgument):
        verify_receipt(issued[0], vkey)


# -- what a dishonest log could sign


def test_a_log_that_signs_for_another_fails(build):
    """Origin, key name and the record's log are one name."""
    receipt, vkey = build.forge(build.record(), origin="audit.example/other")
    assert judge(receipt.to_bytes(), vkey) == (Verdict.FAILED, Check.ORIGIN)
    receipt, vkey = build.forge(build.record(log="audit.example/other"))
    assert judge(receipt.to_bytes(), vkey) == (Verdict.FAILED, Check.POSITION)


def test_a_replayed_record_fails(build):
    """A record signed into another place still says where it belongs."""
    receipt, vkey = build.forge(build.record(seq=0))
    assert judge(receipt.to_bytes(), vkey) == (Verdict.FAILED, Check.POSITION)


@pytest.mark.parametrize("body", [b"{}", b'{"v":2}', b'{"a": 1}', "é".encode()])
def test_a_signed_record_of_another_kind_is_undecided(build, body):
    """What the log signed and this reader does not know is not called tampered with."""
    receipt, vkey = build.forge(body=body, openings={}, shown=[])
    assert judge(receipt.to_bytes(), vkey) == (Verdict.UNDECIDED, Check.RECORD)


@pytest.mark.parametrize("word", [0x21, 1 << 27, 1 << 27 | 0x10021, 3 << 27 | 0x21, 1 << 31 | 1 << 27 | 0x21])
def test_a_signed_inadmissible_passage_fails(build, word):
    """A log that recorded a passage outside its own masks convicts itself."""
    record = build.record()
    hits = (dataclasses.replace(record.hits[0], word=word), record.hits[1])
    receipt, vkey = build.forge(dataclasses.replace(record, hits=hits))
    verification = verify_receipt(receipt.to_bytes(), vkey)
    assert (verification.verdict, verification.stopped_at) == (Verdict.FAILED, Check.CONSISTENCY)
    assert "no mask" in verification.reason


def test_a_signed_refusal_with_passages_fails(build):
    """A refusal has no passages."""
    record = build.record()
    refused = dataclasses.replace(record, event=build.access(outcome=Outcome.REFUSE))
    receipt, vkey = build.forge(refused)
    assert judge(receipt.to_bytes(), vkey) == (Verdict.FAILED, Check.CONSISTENCY)


# -- the index state


def test_a_proof_in_order_passes(build):
    """The forger makes states whose proofs verify, so that each failure below is the lie's doing."""
    receipt, vkey = build.forge_over([build.label(passage) for passage in build.passages(5)])
    verification = verify_receipt(receipt.to_bytes(), vkey)
    assert (verification.verdict, verification.unproved) == (Verdict.VERIFIED, ())
    assert Check.STATE in verification.passed


@pytest.mark.parametrize("lie", STATE_LIES.values(), ids=STATE_LIES)
def test_a_state_that_says_otherwise_fails(build, lie):
    """The state the log named holds the passage under another word, or at another time, than the hit says."""
    first, *rest = build.passages(5)
    labels = [build.label(first, **lie), *(build.label(passage) for passage in rest)]
    receipt, vkey = build.forge_over(labels)
    assert judge(receipt.to_bytes(), vkey) == (Verdict.FAILED, Check.STATE)


def test_a_state_with_another_text_fails(build):
    """The same chunk with another text is another leaf."""
    first, *rest = build.passages(5)
    other = dataclasses.replace(first, text="Sales rose.")
    receipt, vkey = build.forge_over([build.label(one) for one in (other, *rest)])
    assert judge(receipt.to_bytes(), vkey) == (Verdict.FAILED, Check.STATE)


def test_a_proof_in_another_state_fails(build):
    """Proofs of one state do not prove a record that names another."""
    swapped, vkey = build.forge(build.record(event=build.access(index=IndexState(b"S" * 32, 417, "exact"))))
    assert judge(swapped.to_bytes(), vkey) == (Verdict.FAILED, Check.STATE)


def test_a_proof_for_a_record_without_a_state_fails(build):
    """An explanation names no state, so nothing can be proved in it."""
    event = build.access(kind=RecordKind.EXPLAIN, index=None)
    receipt, vkey = build.forge(build.record(event=event))
    assert judge(receipt.to_bytes(), vkey) == (Verdict.FAILED, Check.STATE)


def test_a_sealed_end_is_taken_and_not_told(build):
    """Who asked about the past is not told until when; from when is checked all the same."""
    receipt, vkey = build.forge_over([build.label(passage) for passage in build.passages(5)])
    sealed = dataclasses.replace(receipt, proofs=tuple(proof.sealed() for proof in receipt.proofs))
    assert judge(sealed.to_bytes(), vkey) == (Verdict.VERIFIED, None)
    assert b"30000000" not in sealed.to_bytes()
    late = [build.label(passage, since=29_395_926) for passage in build.passages(5)]
    receipt, vkey = build.forge_over(late)
    sealed = dataclasses.replace(receipt, proofs=tuple(proof.sealed() for proof in receipt.proofs))
    assert judge(sealed.to_bytes(), vkey) == (Verdict.FAILED, Check.STATE)


def test_proofs_may_be_missing_and_that_is_said(issued, build):
    """A receipt the log made again has none: verified, but the state is not among what was checked."""
    chunks = tuple(passage.chunk for passage in build.passages())
    for which, unproved in ((slice(0, 1), chunks[:1]), (slice(0, 2), chunks)):
        bare = altered(issued[0], lambda f, which=which: [hit.update(proof=None) for hit in f["hits"][which]])
        verification = verify_receipt(bare, issued[1])
        assert (verification.verdict, verification.unproved) == (Verdict.VERIFIED, unproved)
        assert verification.passed == tuple(check for check in Check if check is not Check.STATE)


def test_a_receipt_has_a_proof_for_each_passage_or_none(build):
    """Half of them could only be a mistake."""
    receipt, _ = build.forge(build.record())
    with pytest.raises(InvalidArgument, match="one each, or none"):
        dataclasses.replace(receipt, proofs=receipt.proofs[:1])


# -- the receipt as it was first written

GOLDEN = Path(__file__).parents[1] / "golden"
VKEY = (GOLDEN / "vkey").read_text().strip()


def test_no_flipped_bit_of_the_kept_receipt_verifies():
    """A bit in every third byte of the file kept here."""
    data = (GOLDEN / "receipt-v1.json").read_bytes()
    for position in range(0, len(data), 3):
        flipped = bytearray(data)
        flipped[position] ^= 1 << position % 7
        assert verify_receipt(bytes(flipped), VKEY).verdict is not Verdict.VERIFIED, position


def test_a_passage_without_the_member_for_its_proof_is_altered():
    """It may be null, and it must be there."""
    data = (GOLDEN / "receipt-v1.json").read_bytes()
    bare = altered(data, lambda f: f["hits"][0].pop("proof"))
    assert judge(bare, VKEY) == (Verdict.FAILED, Check.PASSAGES)


def test_a_receipt_is_written_as_ever(build):
    """Byte for byte as when the format was made."""
    receipt, vkey = build.forge(build.record())
    assert receipt.to_bytes() == (GOLDEN / "receipt-v1.json").read_bytes()
    verification = verify_receipt(receipt.to_bytes(), vkey)
    assert (vkey, verification.verdict, verification.passed) == (VKEY, Verdict.VERIFIED, tuple(Check))


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
    """The room can be lifted out: without numpy, cffi, pydantic and all other rooms it still imports."""
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
assert rooms <= {"audit", "errors", "limits", "visible"}, rooms
"""
    subprocess.run([sys.executable, "-c", code, str(Path(carag.__file__).parent)], check=True)
