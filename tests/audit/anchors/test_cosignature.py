"""Cosignatures of both types: round trips, the published example, and nothing else accepted."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.audit.tlog.checkpoint import Checkpoint
from carag.audit.tlog.cosignature import ml_dsa_message
from carag.audit.tlog.encoding import b64
from carag.audit.tlog.keys import (
    MlDsaKey,
    MlDsaSigningKey,
    SigningKey,
    VerifierKey,
    WitnessKey,
    WitnessSigningKey,
    parse_witness_key,
)
from carag.audit.tlog.log_verifier import parse_vkeys
from carag.audit.tlog.note import Note, NoteSignature
from carag.errors import InvalidArgument, MissingExtra

CHECKPOINT = Checkpoint("log.example/7", 12, b"r" * 32)
LOG = SigningKey("log.example/7", b"k" * 32)
NOTE = LOG.sign(CHECKPOINT.to_text())


def has_mldsa():
    try:
        MlDsaSigningKey("a.example", b"m" * 32)
    except MissingExtra:
        return False
    return True


needs_mldsa = pytest.mark.skipif(not has_mldsa(), reason="the installed cryptography has no ML-DSA")


@given(st.integers(0, 2**63 - 1), st.binary(min_size=32, max_size=32))
def test_cosign_then_verify(at, seed):
    """A cosignature verifies and gives its time back, beside the log's own signature."""
    key = WitnessSigningKey("witness.example/é", seed)
    note = Note.parse(NOTE.signed_also([key.cosign(NOTE, at)]).to_text())
    assert at == key.verifier.signed_at(note)
    assert LOG.verifier.verifies(note)
    assert WitnessKey.parse(str(key.verifier)) == parse_witness_key(str(key.verifier)) == key.verifier
    assert WitnessSigningKey.parse(key.to_skey()).to_skey() == key.to_skey()


def test_the_message_is_the_specified_one():
    """Two lines and the checkpoint's text; key id over type 4 (c2sp.org/tlog-cosignature)."""
    key = WitnessSigningKey("w.example/1", b"w" * 32)
    line = key.cosign(NOTE, 1679315147)
    public = key.verifier.public
    assert line.key_id == hashlib.sha256(b"w.example/1\n\x04" + public).digest()[:4]
    assert line.signature[:8] == (1679315147).to_bytes(8, "big")
    plain = SigningKey("w.example/1", b"w" * 32).sign(f"cosignature/v1\ntime 1679315147\n{NOTE.text}")
    assert line.signature[8:] == plain.signatures[0].signature


def lines_that_prove_nothing():
    key = WitnessSigningKey("w.example/1", b"w" * 32)
    good = key.cosign(NOTE, 99)
    other = LOG.sign(Checkpoint("log.example/7", 13, b"r" * 32).to_text())
    longer = NoteSignature(good.name, good.key_id, good.signature + b"x")
    return {
        "another key": WitnessSigningKey("w.example/1", b"o" * 32).cosign(NOTE, 99),
        "another key under this key's id": NoteSignature(
            good.name, good.key_id, WitnessSigningKey("w.example/1", b"o" * 32).cosign(NOTE, 99).signature
        ),
        "replayed from another checkpoint": key.cosign(other, 99),
        "the time altered": NoteSignature(good.name, good.key_id, bytes(8) + good.signature[8:]),
        "a byte more": longer,
        "a byte less": NoteSignature(good.name, good.key_id, good.signature[:-1]),
        "a plain signature": NoteSignature(
            good.name,
            good.key_id,
            SigningKey("w.example/1", b"w" * 32).sign(NOTE.text).signatures[0].signature,
        ),
        "a time past 2**63": key.cosign(NOTE, 2**63),
    }


@pytest.mark.parametrize("name", lines_that_prove_nothing())
def test_no_other_line_verifies(name):
    """Whatever is altered, the cosignature does not verify."""
    key = WitnessKey("w.example/1", WitnessSigningKey("w.example/1", b"w" * 32).verifier.public)
    assert not key.verifies(NOTE)
    assert not key.verifies(NOTE.signed_also([lines_that_prove_nothing()[name]]))


@pytest.mark.parametrize(
    "vkey",
    ["", "a", "a+00000000+BAAA", str(LOG.verifier), f"a.example+00000000+{b64(bytes([4]) + b'p' * 32)}"],
)
def test_a_key_of_another_type_is_no_witness(vkey):
    """A log's key (type 1) must not cosign: its message is not set apart."""
    with pytest.raises(InvalidArgument):
        parse_witness_key(vkey)


@needs_mldsa
def test_an_mldsa_line_beside_ed25519():
    """Both verify; a reader of Ed25519 alone ignores the other line."""
    key = MlDsaSigningKey("log.example/7", b"m" * 32)
    note = Note.parse(NOTE.signed_also([key.sign(CHECKPOINT)]).to_text())
    assert key.verifier.verifies(note)
    assert LOG.verifier.verifies(note)
    assert len(note.signatures[1].signature) == 8 + 2420
    assert MlDsaKey.parse(str(key.verifier)) == key.verifier
    assert parse_vkeys(f"{LOG.verifier}\n{key.verifier}\n") == (LOG.verifier, key.verifier)
    assert MlDsaSigningKey.parse(key.to_skey()).to_skey() == key.to_skey()
    assert key.to_skey()[-20:] not in repr(key)


@needs_mldsa
def test_an_mldsa_signature_covers_name_time_origin_size_and_root():
    """Each of the five facts is in the signed structure, laid out as specified."""
    assert ml_dsa_message("w", 7, CHECKPOINT) == (
        b"subtree/v1\n\0" + b"\1w" + bytes(7) + b"\7" + b"\x0dlog.example/7" + bytes(15) + b"\x0c" + b"r" * 32
    )
    key = MlDsaSigningKey("w.example/1", b"m" * 32)
    signature = key.sign(CHECKPOINT, 7)
    good = NOTE.signed_also([signature])
    assert key.verifier.signed_at(good) == 7
    changed = {
        "size": Note(Checkpoint("log.example/7", 13, b"r" * 32).to_text(), good.signatures),
        "root": Note(Checkpoint("log.example/7", 12, b"s" * 32).to_text(), good.signatures),
        "origin": Note(Checkpoint("log.example/8", 12, b"r" * 32).to_text(), good.signatures),
        "text": Note("no checkpoint\n", good.signatures),
        "time": NOTE.signed_also(
            [NoteSignature(signature.name, signature.key_id, bytes(8) + signature.signature[8:])]
        ),
        "length": NOTE.signed_also(
            [NoteSignature(signature.name, signature.key_id, signature.signature[:-1])]
        ),
    }
    changed["time past 2**63"] = NOTE.signed_also([key.sign(CHECKPOINT, 2**63)])
    for what, note in changed.items():
        assert key.verifier.signed_at(note) is None, what
    renamed = MlDsaKey("w.example/2", key.verifier.public)
    moved = NoteSignature(renamed.name, renamed.key_id, signature.signature)
    assert not renamed.verifies(NOTE.signed_also([moved]))


def test_without_mldsa_the_error_says_what_to_install(monkeypatch):
    """An old cryptography is named, not worked around."""
    import importlib

    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(MissingExtra, match="cryptography>=50"):
        MlDsaSigningKey("log.example/7", b"m" * 32)


MIXED = {
    "two logs": f"{LOG.verifier}\n{SigningKey('log.example/8', b'k' * 32).verifier}",
    "twice": f"{LOG.verifier}\n{LOG.verifier}",
    "a witness": f"{LOG.verifier}\n{WitnessSigningKey('log.example/7', b'w' * 32).verifier}",
    "ML-DSA alone": str(MlDsaKey("log.example/7", bytes(1312))),
    "nothing": "\n\n",
}


@pytest.mark.parametrize("text", MIXED.values(), ids=MIXED)
def test_a_list_of_keys_is_of_one_log(text):
    """One name, each key once, at least one Ed25519."""
    with pytest.raises(InvalidArgument):
        parse_vkeys(text)


def test_vkeys_of_one_log_come_back_in_order():
    """Newest first, blank lines ignored."""
    keys = [SigningKey("log.example/7", bytes([n]) * 32).verifier for n in range(3)]
    text = "\n\n".join(map(str, keys)) + "\n"
    assert parse_vkeys(text) == tuple(keys)
    assert all(isinstance(key, VerifierKey) for key in parse_vkeys(text))
