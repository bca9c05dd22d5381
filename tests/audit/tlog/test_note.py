"""Signed notes, keys and checkpoints: one spelling each, and no second signature by a key."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.audit.tlog.checkpoint import Checkpoint
from carag.audit.tlog.encoding import b64
from carag.audit.tlog.keys import SigningKey, VerifierKey
from carag.audit.tlog.note import Note, NoteSignature
from carag.errors import CorruptFile, InvalidArgument

KEY = SigningKey("log.example/7", bytes(range(32)))
CHECKPOINT = Checkpoint("log.example/7", 12, b"r" * 32)
SIGNED = KEY.sign(CHECKPOINT.to_text()).to_text()

TEXTS = st.text(st.characters(exclude_categories=["Cs"], min_codepoint=32) | st.just("\n")).map(
    lambda t: f"{t}x\n"
)


@given(TEXTS, st.binary(min_size=32, max_size=32))
def test_sign_then_verify(text, seed):
    """A signed note comes back from its text and verifies."""
    key = SigningKey("log.example/é", seed)
    note = Note.parse(key.sign(text).to_text())
    assert note.text == text
    assert key.verifier.verifies(note)


@given(st.binary(min_size=32, max_size=32))
def test_keys_round_trip(seed):
    """Both keys come back from their text forms."""
    key = SigningKey("log.example/7", seed)
    assert SigningKey.parse(key.to_skey()).to_skey() == key.to_skey()
    assert VerifierKey.parse(str(key.verifier)) == key.verifier


@given(st.integers(0, 2**63 - 1), st.binary(min_size=32, max_size=32))
def test_checkpoints_round_trip(size, root):
    """A checkpoint comes back from its text."""
    checkpoint = Checkpoint("log.example/7", size, root)
    assert Checkpoint.parse(checkpoint.to_text()) == checkpoint


def test_the_formats_are_the_specified_ones():
    """The key id is the first four bytes of SHA-256(name, newline, 0x01, key); the dash is U+2014."""
    public = KEY.verifier.public
    key_id = hashlib.sha256(b"log.example/7\n\x01" + public).digest()[:4]
    assert str(KEY.verifier) == "log.example/7+" + key_id.hex() + "+" + b64(b"\x01" + public)
    body = f"log.example/7\n12\n{b64(b'r' * 32)}\n"
    signature = Note.parse(SIGNED).signatures[0].signature
    assert SIGNED == f"{body}\n\u2014 log.example/7 {b64(key_id + signature)}\n"
    assert len(signature) == 64


def test_the_signing_key_is_not_shown():
    """Neither repr nor an error message gives the private key away."""
    skey = KEY.to_skey()
    assert skey[-20:] not in repr(KEY)
    with pytest.raises(InvalidArgument) as caught:
        SigningKey.parse(skey.replace("log.example/7", "log.example/8"))
    assert skey[-20:] not in str(caught.value)


def alter_last(text, what):
    """Change the last base64 letter of a line's value by its unused bits only."""
    return text.replace(what, what[:-2] + chr(ord(what[-2]) + 1) + "=")


B64_SIGNATURE = SIGNED.rsplit(" ", 1)[1].strip()
B64_ROOT = b64(b"r" * 32)

MALFORMED_NOTES = {
    "CRLF": SIGNED.replace("\n", "\r\n"),
    "a tab": SIGNED.replace("12", "1\t2"),
    "no final newline": SIGNED[:-1],
    "an extra final newline": SIGNED + "\n",
    "no blank line": SIGNED.replace("\n\n", "\n"),
    "a trailing space on a signature": SIGNED[:-1] + " \n",
    "a hyphen for the dash": SIGNED.replace("\u2014", "-"),
    "two spaces before the name": SIGNED.replace("\u2014 ", "\u2014  "),
    "a signature without a name": SIGNED.replace("\u2014 log.example/7 ", "\u2014 "),
    "a plus in the name": SIGNED.replace("\u2014 log.example/7", "\u2014 log+example/7"),
    "two signatures by the same key": SIGNED + SIGNED.rsplit("\n\n", 1)[1],
    "unused base64 bits": alter_last(SIGNED, B64_SIGNATURE),
    "a signature of four bytes": SIGNED.replace(B64_SIGNATURE, b64(b"1234")),
    "no signature": SIGNED.rsplit("\n\n", 1)[0] + "\n\n",
    "a hundred and one signatures": SIGNED
    + "".join(NoteSignature(f"w{n}", b"1234", b"s").to_line() + "\n" for n in range(100)),
    "nothing": "",
}


@pytest.mark.parametrize("text", MALFORMED_NOTES.values(), ids=MALFORMED_NOTES)
def test_a_malformed_note_is_refused(text):
    """A note has one spelling."""
    with pytest.raises(CorruptFile):
        Note.parse(text)


def test_a_second_key_may_sign():
    """Witnesses and rotated keys add lines; the first key's signature still verifies."""
    other = SigningKey("witness.example", b"w" * 32)
    line = other.sign(CHECKPOINT.to_text()).signatures[0].to_line()
    note = Note.parse(f"{SIGNED}{line}\n")
    assert KEY.verifier.verifies(note)
    assert other.verifier.verifies(note)


FOREIGN = {
    "altered text": SIGNED.replace("\n12\n", "\n13\n"),
    "altered signature": SIGNED.replace(B64_SIGNATURE, B64_SIGNATURE[:20] + "AAAA" + B64_SIGNATURE[24:]),
    "wrong key id": SIGNED.replace(B64_SIGNATURE, "AAAA" + B64_SIGNATURE[4:]),
    "wrong key name": SIGNED.replace("\u2014 log.example/7", "\u2014 log.example/8"),
    "another key": SigningKey("log.example/7", b"o" * 32).sign(CHECKPOINT.to_text()).to_text(),
}


@pytest.mark.parametrize("text", FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_note_does_not_verify(text):
    """Only an unaltered text signed by the very key verifies."""
    assert KEY.verifier.verifies(Note.parse(SIGNED))
    assert not KEY.verifier.verifies(Note.parse(text))


VKEY = str(KEY.verifier)
MALFORMED_VKEYS = {
    "another key id": VKEY.replace(KEY.verifier.key_id.hex(), "00000000"),
    "another name": VKEY.replace("log.example/7", "log.example/8"),
    "upper-case key id": VKEY.replace(KEY.verifier.key_id.hex(), KEY.verifier.key_id.hex().upper()),
    "another algorithm": "log.example/7+00000000+" + b64(b"\x06" + KEY.verifier.public),
    "a short key": "log.example/7+00000000+" + b64(b"\x01" + KEY.verifier.public[:31]),
    "a space in the name": VKEY.replace("log.", "log "),
    "no parts": "log.example",
    "nothing": "",
}


@pytest.mark.parametrize("vkey", MALFORMED_VKEYS.values(), ids=MALFORMED_VKEYS)
def test_a_malformed_vkey_is_refused(vkey):
    """A vkey matches its own key id, or it is not one."""
    with pytest.raises(InvalidArgument):
        VerifierKey.parse(vkey)


@pytest.mark.parametrize("skey", ["", "PRIVATE+KEY+x", KEY.to_skey()[8:], KEY.to_skey().replace("/7", "/8")])
def test_a_malformed_signing_key_is_refused(skey):
    """A signing key matches its own key id, or it is not one."""
    with pytest.raises(InvalidArgument):
        SigningKey.parse(skey)


@pytest.mark.parametrize("name", ["", "a b", "a+b", "a\u2003b", "a\nb", "x" * 201])
def test_a_key_name_has_no_space_or_plus(name):
    """Names that the format cannot carry are refused when the key is made."""
    with pytest.raises(InvalidArgument):
        SigningKey.generate(name)


def test_a_text_to_sign_ends_in_a_newline():
    """A text without its newline could not be read back."""
    with pytest.raises(InvalidArgument):
        KEY.sign("no newline")


BODY = CHECKPOINT.to_text()
MALFORMED_CHECKPOINTS = {
    "CRLF": BODY.replace("\n", "\r\n"),
    "a trailing space on the origin": BODY.replace("/7\n", "/7 \n"),
    "an empty origin": BODY.replace("log.example/7", ""),
    "a leading zero": BODY.replace("\n12\n", "\n012\n"),
    "a plus sign": BODY.replace("\n12\n", "\n+12\n"),
    "an underscore": BODY.replace("\n12\n", "\n1_2\n"),
    "Arabic digits": BODY.replace("\n12\n", "\n١٢\n"),
    "a negative size": BODY.replace("\n12\n", "\n-1\n"),
    "a size of 2**63": BODY.replace("\n12\n", f"\n{2**63}\n"),
    "a size that is not a number": BODY.replace("\n12\n", "\ntwelve\n"),
    "an extension line": BODY + "extension\n",
    "an extra blank line": BODY + "\n",
    "a missing newline": BODY[:-1],
    "a missing line": BODY.replace("12\n", ""),
    "a 31-byte root": BODY.replace(B64_ROOT, b64(b"r" * 31)),
    "a 33-byte root": BODY.replace(B64_ROOT, b64(b"r" * 33)),
    "unused base64 bits": alter_last(BODY, B64_ROOT),
    "an unpadded root": BODY.replace(B64_ROOT, B64_ROOT[:-1]),
}


@pytest.mark.parametrize("text", MALFORMED_CHECKPOINTS.values(), ids=MALFORMED_CHECKPOINTS)
def test_a_malformed_checkpoint_is_refused(text):
    """A checkpoint is three lines in one spelling."""
    assert text != BODY
    with pytest.raises(CorruptFile):
        Checkpoint.parse(text)
