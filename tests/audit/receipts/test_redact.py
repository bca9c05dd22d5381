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

GOLDEN = Path(__file__).parents[1] / "golden"
PLACES = st.sets(st.integers(1, 2))
CHOICES = st.fixed_dictionaries(
    {
        "drop": st.sets(st.sampled_from(["answer", "query", "subject"])),
        "passages": PLACES,
        "proofs": PLACES,
        "until": st.booleans(),
    }
)
WHOLE = (GOLDEN / "receipt-v1.json").read_bytes()
VKEY = (GOLDEN / "vkey").read_text().strip()


def both(one, other):
    return {name: one[name] | other[name] for name in one}


def shown(verification):
    """List all that a verification shows of texts and people."""
    passages = enumerate(verification.passages)
    return {*verification.values.items(), *((n, p) for n, p in passages if p is not None)}


@given(one=CHOICES, other=CHOICES)
def test_redacting_twice_is_redacting_once_in_any_order(one, other):
    """redact(redact(r, a), b) == redact(redact(r, b), a) == redact(r, a or b), byte for byte."""
    together = redact(WHOLE, **both(one, other))
    assert redact(redact(WHOLE, **one), **other) == together
    assert redact(redact(WHOLE, **other), **one) == together
    assert redact(together, **one) == together


@given(choice=CHOICES)
def test_what_is_left_is_what_was_and_what_is_gone_is_named(choice):
    """A redacted receipt verifies with the same record, shows no other value, and says what it leaves out."""
    before, after = verify_receipt(WHOLE, VKEY), verify_receipt(redact(WHOLE, **choice), VKEY)
    assert (after.verdict, after.record) == (Verdict.VERIFIED, before.record)
    assert shown(after) == {
        *((key, value) for key, value in before.values.items() if key not in choice["drop"]),
        *((n, p) for n, p in enumerate(before.passages) if n + 1 not in choice["passages"]),
    }
    sealed = {
        f"until of passage {n}" for n in {1, 2} - choice["passages"] - choice["proofs"] if choice["until"]
    }
    gone = {f"passage {n}" for n in choice["passages"]}
    assert set(after.withheld) == choice["drop"] | gone | sealed
    assert after.undisclosed == ()


@given(choice=CHOICES, position=st.integers(0, 1 << 20), bit=st.integers(0, 7))
def test_a_redacted_receipt_verifies_exactly_if_the_whole_does(choice, position, bit):
    """Of a receipt with a flipped bit either nothing is made, or what is made verifies no more than the whole."""
    data = bytearray(WHOLE)
    data[position % len(data)] ^= 1 << bit
    whole = bytes(data)
    try:
        less = redact(whole, **choice)
    except CorruptFile:
        return
    assert verify_receipt(less, VKEY).verdict is verify_receipt(whole, VKEY).verdict


def test_a_receipt_of_an_unknown_log_is_redacted_and_stays_unverified(build):
    """Redacting takes no key, and makes no signature true."""
    other = str(SigningKey(build.ORIGIN, b"o" * 32).verifier)
    for receipt in (WHOLE, redact(WHOLE, passages={1, 2}, drop={"answer"})):
        assert verify_receipt(receipt, other).verdict is Verdict.UNDECIDED


def test_an_altered_part_is_not_left_out():
    """What does not hold together is refused, for without the altered part it would verify."""
    fields = json.loads(WHOLE)
    fields["hits"][1]["text"] = "Sales rose."
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    with pytest.raises(CorruptFile, match="verifies"):
        redact(text.encode() + b"\n", passages={2})
    with pytest.raises(CorruptFile, match="verifies"):
        redact(b"{}\n")


@pytest.mark.parametrize(
    "choice",
    [{"drop": {"colour"}}, {"passages": {0}}, {"passages": {3}}, {"proofs": {-1}}, {"drop": "answer"}],
)
def test_what_is_not_there_cannot_be_left_out(choice):
    """An unknown name or number is the caller's mistake, and says what there is."""
    with pytest.raises(InvalidArgument, match="no"):
        redact(WHOLE, **choice)


def test_nothing_of_what_is_left_out_stays_in_the_file():
    """No word of texts, salts, chunk ids or ends remains in the bytes."""
    fields = json.loads(WHOLE)
    secrets = [opening[part] for opening in fields["openings"].values() for part in ("salt", "value")]
    for hit in fields["hits"]:
        until = hit["proof"]["until"]
        secrets += [hit["chunk"], hit["text"], until["salt"], hit["proof"]["path"]]
    choice = {"drop": {"answer", "query", "subject"}, "passages": {1, 2}}
    left = redact(WHOLE, **choice).decode()
    assert [secret for secret in secrets if json.dumps(secret, ensure_ascii=False)[1:-1] in left] == []
    assert '"until"' not in left


def test_a_passage_left_out_is_null_and_all_else_stays():
    """The format is that of the whole, and so is every member but the one passage."""
    fields, less = json.loads(WHOLE), json.loads(redact(WHOLE, passages={1}))
    assert {**fields, "hits": [None, fields["hits"][1]]} == less


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
