"""Redaction takes away and does nothing else: idempotent, in any order, verified exactly if the whole is."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.audit import SigningKey, Verdict, redact, verify_receipt
from carag.errors import CorruptFile, InvalidArgument

GOLDEN = Path(__file__).parent / "golden"
PLACES = st.sets(st.integers(1, 2))
CHOICES = st.fixed_dictionaries(
    {
        "drop": st.sets(st.sampled_from(["answer", "query", "subject"])),
        "passages": PLACES,
        "proofs": PLACES,
        "until": st.booleans(),
    }
)
RECEIPTS = pytest.mark.parametrize("name", ["receipt-v1.json", "receipt-v2.json"])
VKEY = (GOLDEN / "vkey").read_text().strip()


def both(one, other):
    return {name: one[name] | other[name] for name in one}


def shown(verification):
    """List all that a verification shows of texts and people."""
    passages = enumerate(verification.passages)
    return {*verification.values.items(), *((n, p) for n, p in passages if p is not None)}


@RECEIPTS
@given(one=CHOICES, other=CHOICES)
def test_redacting_twice_is_redacting_once_in_any_order(name, one, other):
    """redact(redact(r, a), b) == redact(redact(r, b), a) == redact(r, a or b), byte for byte."""
    whole = (GOLDEN / name).read_bytes()
    together = redact(whole, **both(one, other))
    assert redact(redact(whole, **one), **other) == together
    assert redact(redact(whole, **other), **one) == together
    assert redact(together, **one) == together


@RECEIPTS
@given(choice=CHOICES)
def test_what_is_left_is_what_was_and_what_is_gone_is_named(name, choice):
    """A redacted receipt verifies with the same record, shows no other value, and says what it leaves out."""
    whole = (GOLDEN / name).read_bytes()
    before, after = verify_receipt(whole, VKEY), verify_receipt(redact(whole, **choice), VKEY)
    assert (after.verdict, after.record) == (Verdict.VERIFIED, before.record)
    assert shown(after) == {
        *((key, value) for key, value in before.values.items() if key not in choice["drop"]),
        *((n, p) for n, p in enumerate(before.passages) if n + 1 not in choice["passages"]),
    }
    sealed = {
        f"until of passage {n}"
        for n in {1, 2} - choice["passages"] - choice["proofs"]
        if choice["until"] and name == "receipt-v2.json"
    }
    gone = {f"passage {n}" for n in choice["passages"]}
    assert set(after.withheld) == choice["drop"] | gone | sealed
    assert after.undisclosed == ()


@given(choice=CHOICES, position=st.integers(0, 1 << 20), bit=st.integers(0, 7))
def test_a_redacted_receipt_verifies_exactly_if_the_whole_does(choice, position, bit):
    """Of a receipt with a flipped bit either nothing is made, or what is made verifies no more than the whole."""
    data = bytearray((GOLDEN / "receipt-v2.json").read_bytes())
    data[position % len(data)] ^= 1 << bit
    whole = bytes(data)
    try:
        less = redact(whole, **choice)
    except CorruptFile:
        return
    assert verify_receipt(less, VKEY).verdict is verify_receipt(whole, VKEY).verdict


def test_a_receipt_of_an_unknown_log_is_redacted_and_stays_unverified(build):
    """Redacting takes no key, and makes no signature true."""
    whole = (GOLDEN / "receipt-v2.json").read_bytes()
    other = str(SigningKey(build.ORIGIN, b"o" * 32).verifier)
    for receipt in (whole, redact(whole, passages={1, 2}, drop={"answer"})):
        assert verify_receipt(receipt, other).verdict is Verdict.UNDECIDED


def test_an_altered_part_is_not_left_out():
    """What does not hold together is refused, for without the altered part it would verify."""
    fields = json.loads((GOLDEN / "receipt-v2.json").read_bytes())
    fields["hits"][1]["text"] = "Sales rose."
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    with pytest.raises(CorruptFile, match="holds together"):
        redact(text.encode() + b"\n", passages={2})
    with pytest.raises(CorruptFile, match="holds together"):
        redact(b"{}\n")


@pytest.mark.parametrize(
    "choice",
    [{"drop": {"colour"}}, {"passages": {0}}, {"passages": {3}}, {"proofs": {-1}}, {"drop": "answer"}],
)
def test_what_is_not_there_cannot_be_left_out(choice):
    """An unknown name or number is the caller's mistake, and says what there is."""
    with pytest.raises(InvalidArgument, match="no"):
        redact((GOLDEN / "receipt-v2.json").read_bytes(), **choice)


def test_nothing_of_what_is_left_out_stays_in_the_file():
    """No word of texts, salts, chunk ids or ends remains in the bytes."""
    whole = (GOLDEN / "receipt-v2.json").read_bytes()
    fields = json.loads(whole)
    secrets = [opening[part] for opening in fields["openings"].values() for part in ("salt", "value")]
    for hit in fields["hits"]:
        until = hit["proof"]["until"]
        secrets += [hit["chunk"], hit["text"], until["salt"], hit["proof"]["path"]]
    choice = {"drop": {"answer", "query", "subject"}, "passages": {1, 2}}
    left = redact(whole, **choice).decode()
    assert [secret for secret in secrets if json.dumps(secret, ensure_ascii=False)[1:-1] in left] == []
    assert '"until"' not in left


def test_the_third_format_is_for_receipts_with_a_passage_left_out():
    """A null in an older format is an alteration; the new format without one is none that anybody wrote."""
    whole = (GOLDEN / "receipt-v2.json").read_bytes()
    less = redact(whole, passages={1})
    assert (json.loads(less)["format"], json.loads(less)["hits"][0]) == ("carag-receipt/v3", None)
    for wrong in (whole.replace(b"receipt/v2", b"receipt/v3"), less.replace(b"receipt/v3", b"receipt/v2")):
        assert verify_receipt(wrong, VKEY).verdict is not Verdict.VERIFIED


def test_a_passage_cannot_be_left_out_by_moving_the_others(build):
    """Places are kept: two passages exchanged beside one left out are found."""
    rng = random.Random(3)  # noqa: S311
    receipt, vkey = build.forge(build.record())
    for place in (1, 2):
        fields = json.loads(redact(receipt.to_bytes(), passages={place}))
        rng.shuffle(fields["hits"])
        fields["hits"].reverse()
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        moved = fields["hits"][place - 1] is not None
        verdict = verify_receipt(text.encode() + b"\n", vkey).verdict
        assert verdict is (Verdict.FAILED if moved else Verdict.VERIFIED)
