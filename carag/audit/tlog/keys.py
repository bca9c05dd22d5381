"""Read, write and use the keys of notes: Ed25519 for a log or a witness, ML-DSA-44 for either.

Keys have the text form of Go's ``sumdb/note``: a *vkey* ``name+keyid+base64`` to verify with, which may be shown to
anyone, and an *skey* ``PRIVATE+KEY+name+keyid+base64`` to sign with. One byte before the key is its signature type:
0x01 Ed25519 (``c2sp.org/signed-note``), which every log has; 0x04 Ed25519 of a witness and 0x06 ML-DSA-44
(``c2sp.org/tlog-cosignature``).

A quantum computer could break Ed25519; no such attack on ML-DSA-44 (FIPS 204) is known. A log with such a key adds a
line of 3.2 kB to the checkpoints it anchors, not to each receipt; readers without the key ignore it. ML-DSA-44 needs
``cryptography`` 50 or later; otherwise MissingExtra is raised.
"""

from __future__ import annotations

import hashlib
import importlib
from dataclasses import dataclass, field
from secrets import token_bytes
from typing import Any, ClassVar, Final, Generic, Self, TypeAlias, TypeVar

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from carag.audit.tlog.checkpoint import Checkpoint
from carag.audit.tlog.cosignature import ed25519_message, ml_dsa_message, timed, untimed
from carag.audit.tlog.encoding import b64, unb64
from carag.audit.tlog.note import KEY_ID_SIZE, Note, NoteSignature, check_key_name
from carag.errors import CorruptFile, InvalidArgument, MissingExtra

_PRIVATE: Final = "PRIVATE+KEY+"
"""Prefix of an skey."""
_SEED_SIZE: Final = 32
"""Bytes of every private key here (RFC 8032 section 5.1.5, FIPS 204 section 5.1)."""


# -- to verify with


class _PublicKey:
    """Base of the public keys of every signature type: name, key id and text form."""

    __slots__ = ()

    name: str
    public: bytes

    TYPE: ClassVar[bytes]
    """The signature type, one byte."""
    SIZE: ClassVar[int]
    """Bytes of the public key."""
    WHAT: ClassVar[str]
    """Name of the kind of key in messages."""

    @property
    def key_id(self) -> bytes:
        r"""First four bytes of ``SHA-256(name "\n" type public)``: an identifier that gives no security."""
        named = self.name.encode() + b"\n" + self.TYPE + self.public
        return hashlib.sha256(named).digest()[:KEY_ID_SIZE]

    def __str__(self) -> str:
        """Write the vkey: ``name+keyid+base64``."""
        return _written(self, self.public)

    @classmethod
    def parse(cls, vkey: str) -> Self:
        """Read a vkey; surrounding white space is ignored.

        Raises InvalidArgument if it is not a vkey of this signature type or its key id is wrong.
        """
        name, data = _split(vkey)
        if data[:1] != cls.TYPE or len(data) != 1 + cls.SIZE:
            raise InvalidArgument(
                f"want the vkey of {cls.WHAT}, name+keyid+base64 with signature type {cls.TYPE[0]}"
            )
        key = cls(name, data[1:])  # type: ignore[call-arg]  # subclasses are dataclasses of these two fields
        if str(key) != vkey.strip():
            raise InvalidArgument(f"the vkey of {name} does not match its own key id {key.key_id.hex()}")
        return key

    def signature_on(self, note: Note) -> NoteSignature | None:
        """Find this key's signature on a note, verified or not."""
        ours = (self.name, self.key_id)
        return next((s for s in note.signatures if (s.name, s.key_id) == ours), None)


@dataclass(frozen=True, slots=True)
class VerifierKey(_PublicKey):
    """A log's Ed25519 public key, 32 bytes."""

    name: str
    public: bytes

    TYPE: ClassVar = b"\x01"
    SIZE: ClassVar = 32
    WHAT: ClassVar = "an Ed25519 key"

    def verifies(self, note: Note) -> bool:
        """Tell whether the note carries a valid signature by this key."""
        signature = self.signature_on(note)
        return signature is not None and _ed25519_holds(self.public, signature.signature, note.text.encode())


class _CosignerKey(_PublicKey):
    """Base of public keys whose signatures include a time."""

    __slots__ = ()

    SIGNATURE_SIZE: ClassVar[int]

    def verifies(self, note: Note) -> bool:
        """Tell whether the note is a checkpoint with a valid signature by this key."""
        return self.signed_at(note) is not None

    def signed_at(self, note: Note) -> int | None:
        """Return the signature's time in seconds since 1970 (0 if none is stated), or None if it is not valid."""
        signature = self.signature_on(note)
        parts = None if signature is None else untimed(signature.signature, self.SIGNATURE_SIZE)
        if parts is None:
            return None
        time, bare = parts
        return time if self._holds(note.text, time, bare) else None

    def _holds(self, text: str, time: int, signature: bytes) -> bool:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class WitnessKey(_CosignerKey):
    """A witness's Ed25519 public key, 32 bytes."""

    name: str
    public: bytes

    TYPE: ClassVar = b"\x04"
    SIZE: ClassVar = 32
    WHAT: ClassVar = "a witness's Ed25519 key"
    SIGNATURE_SIZE: ClassVar = 64

    def _holds(self, text: str, time: int, signature: bytes) -> bool:
        return _ed25519_holds(self.public, signature, ed25519_message(text, time))


@dataclass(frozen=True, slots=True)
class MlDsaKey(_CosignerKey):
    """An ML-DSA-44 public key, 1,312 bytes, of a log or a witness. Verifying raises MissingExtra without ML-DSA."""

    name: str
    public: bytes = field(repr=False)

    TYPE: ClassVar = b"\x06"
    SIZE: ClassVar = 1312
    WHAT: ClassVar = "an ML-DSA-44 key"
    SIGNATURE_SIZE: ClassVar = 2420

    def _holds(self, text: str, time: int, signature: bytes) -> bool:
        try:
            message = ml_dsa_message(self.name, time, Checkpoint.parse(text))
        except CorruptFile:
            return False
        try:
            _ml_dsa().MLDSA44PublicKey.from_public_bytes(self.public).verify(signature, message)
        except InvalidSignature:
            return False
        return True


WitnessVerifier: TypeAlias = WitnessKey | MlDsaKey
"""A witness's public key, of either signature type."""


def parse_witness_key(vkey: str) -> WitnessVerifier:
    """Read a witness's vkey of either signature type; InvalidArgument if it is neither."""
    return MlDsaKey.parse(vkey) if signature_type(vkey) == MlDsaKey.TYPE else WitnessKey.parse(vkey)


def signature_type(vkey: str) -> bytes:
    """Return the signature type of an unparsed vkey; InvalidArgument if it is malformed."""
    return _split(vkey)[1][:1]


# -- to sign with

_Verifier = TypeVar("_Verifier", VerifierKey, WitnessKey, MlDsaKey)


class _SigningKey(Generic[_Verifier]):
    """Base of private keys, with a seed of 32 bytes. Only :meth:`to_skey` shows the key."""

    __slots__ = ("_private", "name", "verifier")

    VERIFIER: ClassVar[type[Any]]
    """Class of the public key."""

    def __init__(self, name: str, seed: bytes) -> None:
        check_key_name(name)
        if len(seed) != _SEED_SIZE:
            raise InvalidArgument(f"the seed of a private key has {_SEED_SIZE} bytes, got {len(seed)}")
        self.name = name
        self._private = self._load(seed)
        self.verifier: _Verifier = self.VERIFIER(name, self._private.public_key().public_bytes_raw())

    @classmethod
    def generate(cls, name: str) -> Self:
        """Generate a key from the operating system's randomness."""
        return cls(name, token_bytes(_SEED_SIZE))

    def to_skey(self) -> str:
        """Write the private key as Go's ``note.NewSigner`` reads it. Keep it secret."""
        return _PRIVATE + _written(self.verifier, self._private.private_bytes_raw())

    @classmethod
    def parse(cls, skey: str) -> Self:
        """Read an skey; InvalidArgument if it is not one. The message never quotes it."""
        text = skey.strip()
        if not text.startswith(_PRIVATE):
            raise InvalidArgument(f"a signing key starts with {_PRIVATE}")
        name, data = _split(text.removeprefix(_PRIVATE))
        if data[:1] != cls.VERIFIER.TYPE:
            raise InvalidArgument(f"want {cls.VERIFIER.WHAT} to sign with, got signature type {data[0]}")
        key = cls(name, data[1:])
        if key.to_skey() != text:
            raise InvalidArgument(f"the signing key of {name} does not match its own key id")
        return key

    @staticmethod
    def _load(seed: bytes) -> Any:
        return Ed25519PrivateKey.from_private_bytes(seed)


class SigningKey(_SigningKey[VerifierKey]):
    """A log's Ed25519 private key."""

    __slots__ = ()
    VERIFIER = VerifierKey

    def sign(self, text: str) -> Note:
        """Sign a text that ends in a newline."""
        if not text.endswith("\n"):
            raise InvalidArgument("the text of a note ends in a newline")
        signature = self._private.sign(text.encode("utf-8"))
        return Note(text, (NoteSignature(self.name, self.verifier.key_id, signature),))


class WitnessSigningKey(_SigningKey[WitnessKey]):
    """A witness's Ed25519 private key. Use it for nothing else: the signed message does not name its signer."""

    __slots__ = ()
    VERIFIER = WitnessKey

    def cosign(self, note: Note, time: int) -> NoteSignature:
        """Cosign a checkpoint at a time, in seconds since 1970."""
        signature = self._private.sign(ed25519_message(note.text, time))
        return NoteSignature(self.name, self.verifier.key_id, timed(time, signature))


class MlDsaSigningKey(_SigningKey[MlDsaKey]):
    """An ML-DSA-44 private key. Creating one raises MissingExtra without ML-DSA."""

    __slots__ = ()
    VERIFIER = MlDsaKey

    def sign(self, checkpoint: Checkpoint, time: int = 0) -> NoteSignature:
        """Sign a checkpoint; ``time`` is in seconds since 1970, 0 for none."""
        signature = self._private.sign(ml_dsa_message(self.name, time, checkpoint))
        return NoteSignature(self.name, self.verifier.key_id, timed(time, signature))

    @staticmethod
    def _load(seed: bytes) -> Any:
        try:
            return _ml_dsa().MLDSA44PrivateKey.from_seed_bytes(seed)
        except UnsupportedAlgorithm as error:
            raise _no_ml_dsa() from error


def _written(key: _PublicKey, secret_or_public: bytes) -> str:
    return f"{key.name}+{key.key_id.hex()}+{b64(key.TYPE + secret_or_public)}"


def _split(text: str) -> tuple[str, bytes]:
    """Split ``name+keyid+base64`` into the name and the type byte with the key; the key id is not verified."""
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


def _ed25519_holds(public: bytes, signature: bytes, message: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _ml_dsa() -> Any:
    try:
        return importlib.import_module("cryptography.hazmat.primitives.asymmetric.mldsa")
    except ImportError as absent:
        raise _no_ml_dsa() from absent


def _no_ml_dsa() -> MissingExtra:
    return MissingExtra(
        "ML-DSA-44 needs a newer cryptography (50 has it); run: pip install -U 'cryptography>=50'"
    )
