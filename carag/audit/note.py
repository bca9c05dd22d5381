"""Signed notes and the keys that make them (``c2sp.org/signed-note``).

A note is a text, a blank line, and one signature line for each key. Keys have a text form too, the one of
Go's ``sumdb/note``: a *vkey* to verify with, which may be shown to anyone, and an *skey* to sign with. The
readers are stricter than the specification asks: one spelling of every byte, and no key may sign twice.

The keys of this file are Ed25519 (signature type 0x01), which every log has. Witnesses (0x04) and ML-DSA-44
(0x06) have files of their own; :class:`NoteKey` is what all of them can do. Signatures by keys nobody gave are
ignored, as the specification demands: that is how keys are rotated and checkpoints witnessed.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from carag.audit.canonical import b64, unb64
from carag.errors import CorruptFile, InvalidArgument
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "Note",
    "NoteKey",
    "NoteSignature",
    "PublicKey",
    "SigningKey",
    "VerifierKey",
    "check_key_name",
    "parse_vkeys",
]

MAX_SIGNATURES: Final = 100
_ED25519: Final = b"\x01"
_KEY_ID_SIZE: Final = 4
_MAX_NAME: Final = 200
_DASH: Final = "\u2014 "


def check_key_name(name: str) -> None:
    """Raise InvalidArgument unless ``name`` can name a key and be the origin of a log."""
    plain = name.isprintable() and not any(character.isspace() or character == "+" for character in name)
    if not (0 < len(name) <= _MAX_NAME and plain):
        raise InvalidArgument(
            f"a key name has 1 to {_MAX_NAME} printable characters without space or '+', got {quoted(name)}"
        )


@dataclass(frozen=True, slots=True)
class NoteSignature:
    """One signature line: which key, and its signature of the text."""

    name: str
    key_id: bytes
    signature: bytes

    def to_line(self) -> str:
        """Write the line without its newline."""
        return f"{_DASH}{self.name} {b64(self.key_id + self.signature)}"

    @classmethod
    def parse(cls, line: str) -> NoteSignature:
        """Read a line without its newline; CorruptFile if it is not one."""
        name, space, encoded = line.removeprefix(_DASH).partition(" ")
        if not (line.startswith(_DASH) and space):
            raise CorruptFile(f"not a signature line: {quoted(line)}")
        data = unb64(encoded)
        if len(data) <= _KEY_ID_SIZE:
            raise CorruptFile(f"a signature of {len(data)} bytes is too short")
        try:
            check_key_name(name)
        except InvalidArgument as error:
            raise CorruptFile(str(error)) from error
        return cls(name, data[:_KEY_ID_SIZE], data[_KEY_ID_SIZE:])


@dataclass(frozen=True, slots=True)
class Note:
    """A text with its signatures. Parsing checks the form only; :meth:`VerifierKey.verifies` the rest.

    Parameters
    ----------
    text : str
        Ends in a newline.
    signatures : tuple of NoteSignature
    """

    text: str
    signatures: tuple[NoteSignature, ...]

    def signed_also(self, signatures: Iterable[NoteSignature]) -> Note:
        """Return the note with further signature lines; one that a key here already made is left out."""
        here = {(signature.name, signature.key_id) for signature in self.signatures}
        new = [s for s in signatures if (s.name, s.key_id) not in here]
        return Note(self.text, (*self.signatures, *new))

    def to_text(self) -> str:
        """Write the note."""
        lines = "".join(f"{signature.to_line()}\n" for signature in self.signatures)
        return f"{self.text}\n{lines}"

    @classmethod
    def parse(cls, text: str) -> Note:
        """Read a note.

        Raises
        ------
        CorruptFile
            If it is malformed, or signed twice by one key.
        """
        if any(character < " " and character != "\n" for character in text):
            raise CorruptFile("a note has no control characters but newlines")
        body, blank, lines = text.rpartition("\n\n")
        if not (body and blank and lines.endswith("\n")):
            raise CorruptFile("a note is a text, a blank line and signature lines, each ending in a newline")
        signature_lines = lines[:-1].split("\n")
        if len(signature_lines) > MAX_SIGNATURES:
            raise CorruptFile(f"a note has at most {MAX_SIGNATURES} signatures")
        note = cls(body + "\n", tuple(NoteSignature.parse(line) for line in signature_lines))
        if len({(signature.name, signature.key_id) for signature in note.signatures}) < len(signature_lines):
            raise CorruptFile("a note is signed twice by the same key")
        if note.to_text() != text:
            raise CorruptFile("a note is not in its canonical spelling")
        return note


class NoteKey(Protocol):
    """A public key that may have signed a note: the log's, a witness's, of whatever signature type."""

    @property
    def name(self) -> str:
        """The name in the key's signature lines."""

    @property
    def key_id(self) -> bytes:
        """Four bytes that tell the key from others of its name."""

    def signature_on(self, note: Note) -> NoteSignature | None:
        """Find this key's signature on a note, verified or not."""

    def verifies(self, note: Note) -> bool:
        """Say whether the note carries a valid signature by this key."""


class PublicKey:
    """What public keys of every signature type have in common: a name, an id, and how they are written."""

    __slots__ = ()

    name: str
    public: bytes

    ALGORITHM: ClassVar[bytes]
    """The signature type, one byte."""

    @property
    def key_id(self) -> bytes:
        r"""First four bytes of ``SHA-256(name "\n" type public)``: an identifier, not a security."""
        named = self.name.encode() + b"\n" + self.ALGORITHM + self.public
        return hashlib.sha256(named).digest()[:_KEY_ID_SIZE]

    def __str__(self) -> str:
        """Write the vkey: ``name+keyid+base64``."""
        return f"{self.name}+{self.key_id.hex()}+{b64(self.ALGORITHM + self.public)}"

    def signature_on(self, note: Note) -> NoteSignature | None:
        """Find this key's signature on a note, verified or not."""
        ours = (self.name, self.key_id)
        return next((s for s in note.signatures if (s.name, s.key_id) == ours), None)

    def check_id(self, vkey: str) -> Self:
        """Return the key if it is the whole of a vkey, its id included; InvalidArgument otherwise."""
        if str(self) != vkey.strip():
            raise InvalidArgument(
                f"the vkey of {self.name} does not match its own key id {self.key_id.hex()}"
            )
        return self


@dataclass(frozen=True, slots=True)
class VerifierKey(PublicKey):
    """A named Ed25519 public key.

    Parameters
    ----------
    name : str
    public : bytes
        32 bytes.
    """

    name: str
    public: bytes

    ALGORITHM: ClassVar = _ED25519

    @classmethod
    def parse(cls, vkey: str) -> VerifierKey:
        """Read a vkey; surrounding white space is a copy's, not the key's.

        Raises
        ------
        InvalidArgument
            If it is not an Ed25519 vkey or its key id is not its own.
        """
        name, data = split_key(vkey)
        _insist_on_ed25519(data, "vkey")
        public = data[1:]
        key = cls(name, public)
        try:
            Ed25519PublicKey.from_public_bytes(public)
        except ValueError as error:
            raise InvalidArgument(f"the vkey of {name} holds no Ed25519 public key") from error
        return key.check_id(vkey)

    def verifies(self, note: Note) -> bool:
        """Say whether the note carries a valid signature by this key."""
        signature = self.signature_on(note)
        if signature is None:
            return False
        try:
            key = Ed25519PublicKey.from_public_bytes(self.public)
            key.verify(signature.signature, note.text.encode("utf-8"))
        except InvalidSignature:
            return False
        return True


class SigningKey:
    """A named Ed25519 private key. Nothing prints it but :meth:`to_skey`.

    Parameters
    ----------
    name : str
    seed : bytes
        32 bytes (RFC 8032 section 5.1.5).
    """

    __slots__ = ("_private", "name", "verifier")

    def __init__(self, name: str, seed: bytes) -> None:
        check_key_name(name)
        self.name = name
        self._private = Ed25519PrivateKey.from_private_bytes(seed)
        self.verifier = VerifierKey(name, self._private.public_key().public_bytes_raw())

    @classmethod
    def generate(cls, name: str) -> SigningKey:
        """Make a new key from the operating system's randomness."""
        return cls(name, Ed25519PrivateKey.generate().private_bytes_raw())

    def sign(self, text: str) -> Note:
        """Sign a text that ends in a newline."""
        if not text.endswith("\n"):
            raise InvalidArgument("the text of a note ends in a newline")
        signature = self._private.sign(text.encode("utf-8"))
        return Note(text, (NoteSignature(self.name, self.verifier.key_id, signature),))

    def to_skey(self) -> str:
        """Write the private key as Go's ``note.NewSigner`` reads it. Keep it secret."""
        seed = self._private.private_bytes_raw()
        return f"PRIVATE+KEY+{self.name}+{self.verifier.key_id.hex()}+{b64(_ED25519 + seed)}"

    @classmethod
    def parse(cls, skey: str) -> SigningKey:
        """Read an skey; InvalidArgument if it is not one. The message never quotes it."""
        text = skey.strip()
        if not text.startswith("PRIVATE+KEY+"):
            raise InvalidArgument("a signing key starts with PRIVATE+KEY+")
        name, data = split_key(text.removeprefix("PRIVATE+KEY+"))
        _insist_on_ed25519(data, "signing key")
        key = cls(name, data[1:])
        if key.to_skey() != text:
            raise InvalidArgument(f"the signing key of {key.name} does not match its own key id")
        return key


def parse_vkeys(text: str) -> tuple[NoteKey, ...]:
    r"""Read the keys of one log, one vkey a line; blank lines are allowed.

    A log whose key was rotated has several, the newest first; the ``vkey`` file in its directory lists them.

    Raises
    ------
    InvalidArgument
        If a line is no Ed25519 or ML-DSA-44 vkey, a key is listed twice, the names differ, or no key is Ed25519.

    Examples
    --------
    >>> keys = [SigningKey("log.example/1", bytes([n]) * 32).verifier for n in range(2)]
    >>> parse_vkeys(f"{keys[0]}\n{keys[1]}\n") == tuple(keys)
    True
    """
    from carag.audit.mldsa import MlDsaKey

    lines = [line for line in text.split("\n") if line.strip()]
    keys: list[NoteKey] = []
    for line in lines or [""]:
        _, data = split_key(line)
        keys.append(MlDsaKey.parse(line) if data[:1] == MlDsaKey.ALGORITHM else VerifierKey.parse(line))
    if len({key.name for key in keys}) > 1:
        names = ", ".join(sorted({key.name for key in keys}))
        raise InvalidArgument(f"these keys belong to different logs: {names}; give those of one")
    if len({key.key_id for key in keys}) < len(keys):
        raise InvalidArgument(f"a key of {keys[0].name} is listed twice; list each once")
    if not any(isinstance(key, VerifierKey) for key in keys):
        raise InvalidArgument(f"no Ed25519 vkey of {keys[0].name} among the keys; a log always has one")
    return tuple(keys)


def split_key(text: str) -> tuple[str, bytes]:
    """Take ``name+keyid+base64`` apart into the name and the type byte with the key, believing nothing yet."""
    name, _, rest = text.strip().partition("+")
    _, _, encoded = rest.partition("+")
    try:
        data = unb64(encoded)
    except CorruptFile:
        data = b""
    if not data:
        raise InvalidArgument("want a key as name+keyid+base64 (c2sp.org/signed-note)")
    check_key_name(name)
    return name, data


def _insist_on_ed25519(data: bytes, what: str) -> None:
    if data[:1] != _ED25519 or len(data) != 33:
        raise InvalidArgument(f"want an Ed25519 {what}, name+keyid+base64 (c2sp.org/signed-note)")
