r"""ML-DSA-44 signatures on checkpoints (signature type 0x06 of ``c2sp.org/tlog-cosignature``), a second line.

Ed25519 falls to a quantum computer, ML-DSA-44 (FIPS 204) is not known to. A log that has such a key adds a
line of 3.2 kB to the checkpoints it anchors, not to each receipt; readers without the key ignore it, Ed25519
stays. Its signed message is not the note's text but a structure with the same three facts::

    uint8  label[12] = "subtree/v1\n\0"
    opaque cosigner_name<1..255>      the key's name
    uint64 timestamp                  0 here: when a log signed, its anchors say
    opaque log_origin<1..255>
    uint64 start = 0, end             the tree size
    uint8  hash[32]                   the root

and the signature line holds ``key id || uint64 timestamp || 2,420 bytes``. Needs ``cryptography`` with ML-DSA
(50 has it); without it, the error says so.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

from carag.audit.canonical import b64
from carag.audit.checkpoint import Checkpoint
from carag.audit.note import Note, NoteSignature, PublicKey, check_key_name, split_key
from carag.errors import CorruptFile, InvalidArgument, MissingExtra

__all__ = ["MlDsaKey", "MlDsaSigningKey", "cosigned_message"]

_LABEL: Final = b"subtree/v1\n\0"
_TIME_SIZE: Final = 8
_SIGNATURE_SIZE: Final = 2420
_PUBLIC_SIZE: Final = 1312
_SEED_SIZE: Final = 32
MAX_TIME: Final = (1 << 63) - 1


def cosigned_message(name: str, timestamp: int, checkpoint: Checkpoint) -> bytes:
    """Write what an ML-DSA-44 key signs of a checkpoint."""
    numbers = b"".join(number.to_bytes(8, "big") for number in (0, checkpoint.size))
    return b"".join(
        (
            _LABEL,
            _opaque(name),
            timestamp.to_bytes(_TIME_SIZE, "big"),
            _opaque(checkpoint.origin),
            numbers,
            checkpoint.root,
        )
    )


@dataclass(frozen=True, slots=True)
class MlDsaKey(PublicKey):
    """A named ML-DSA-44 public key, of a log or a witness.

    Parameters
    ----------
    name : str
    public : bytes
        1,312 bytes.
    """

    name: str
    public: bytes = field(repr=False)

    ALGORITHM: ClassVar = b"\x06"

    @classmethod
    def parse(cls, vkey: str) -> MlDsaKey:
        """Read a vkey; InvalidArgument if it is not one of ML-DSA-44."""
        name, data = split_key(vkey)
        if data[:1] != cls.ALGORITHM or len(data) != 1 + _PUBLIC_SIZE:
            raise InvalidArgument("want an ML-DSA-44 vkey, name+keyid+base64 (c2sp.org/tlog-cosignature)")
        key = cls(name, data[1:])
        return key.check_id(vkey)

    def verifies(self, note: Note) -> bool:
        """Say whether the note is a checkpoint with a valid signature by this key.

        Raises
        ------
        MissingExtra
            If the installed ``cryptography`` has no ML-DSA.
        """
        return self.signed_at(note) is not None

    def signed_at(self, note: Note) -> int | None:
        """Return the signature's time in seconds since 1970 (0: none stated), or None if it is not valid."""
        signature = self.signature_on(note)
        if signature is None or len(signature.signature) != _TIME_SIZE + _SIGNATURE_SIZE:
            return None
        timestamp = int.from_bytes(signature.signature[:_TIME_SIZE], "big")
        if timestamp > MAX_TIME:
            return None
        try:
            message = cosigned_message(self.name, timestamp, Checkpoint.parse(note.text))
        except CorruptFile:
            return None
        public = _mldsa().MLDSA44PublicKey.from_public_bytes(self.public)
        try:
            public.verify(signature.signature[_TIME_SIZE:], message)
        except InvalidSignature:
            return None
        return timestamp


class MlDsaSigningKey:
    """A named ML-DSA-44 private key. Nothing prints it but :meth:`to_skey`.

    Parameters
    ----------
    name : str
    seed : bytes
        32 bytes (FIPS 204 section 5.1).

    Raises
    ------
    MissingExtra
        If the installed ``cryptography`` has no ML-DSA.
    """

    __slots__ = ("_private", "name", "verifier")

    def __init__(self, name: str, seed: bytes) -> None:
        check_key_name(name)
        if len(seed) != _SEED_SIZE:
            raise InvalidArgument(f"the seed of an ML-DSA-44 key has {_SEED_SIZE} bytes, got {len(seed)}")
        try:
            self._private = _mldsa().MLDSA44PrivateKey.from_seed_bytes(seed)
        except UnsupportedAlgorithm as error:
            raise _no_mldsa() from error
        self.name = name
        self.verifier = MlDsaKey(name, self._private.public_key().public_bytes_raw())

    @classmethod
    def generate(cls, name: str) -> MlDsaSigningKey:
        """Make a new key from the operating system's randomness."""
        from secrets import token_bytes

        return cls(name, token_bytes(_SEED_SIZE))

    def sign(self, checkpoint: Checkpoint, timestamp: int = 0) -> NoteSignature:
        """Sign a checkpoint; ``timestamp`` is in seconds since 1970, 0 for none."""
        message = cosigned_message(self.name, timestamp, checkpoint)
        signature = timestamp.to_bytes(_TIME_SIZE, "big") + self._private.sign(message)
        return NoteSignature(self.name, self.verifier.key_id, signature)

    def to_skey(self) -> str:
        """Write the private key, as Go's ``note`` writes its own. Keep it secret."""
        data = MlDsaKey.ALGORITHM + self._private.private_bytes_raw()
        return f"PRIVATE+KEY+{self.name}+{self.verifier.key_id.hex()}+{b64(data)}"

    @classmethod
    def parse(cls, skey: str) -> MlDsaSigningKey:
        """Read an skey; InvalidArgument if it is not one. The message never quotes it."""
        text = skey.strip()
        if not text.startswith("PRIVATE+KEY+"):
            raise InvalidArgument("a signing key starts with PRIVATE+KEY+")
        name, data = split_key(text.removeprefix("PRIVATE+KEY+"))
        if data[:1] != MlDsaKey.ALGORITHM:
            raise InvalidArgument("want an ML-DSA-44 signing key, name+keyid+base64")
        key = cls(name, data[1:])
        if key.to_skey() != text:
            raise InvalidArgument(f"the signing key of {name} does not match its own key id")
        return key


def _opaque(text: str) -> bytes:
    data = text.encode("utf-8")
    if not 1 <= len(data) <= 255:
        raise InvalidArgument(f"ML-DSA-44 signatures take names of 1 to 255 bytes, got {len(data)}")
    return bytes([len(data)]) + data


def _mldsa() -> Any:
    try:
        return importlib.import_module("cryptography.hazmat.primitives.asymmetric.mldsa")
    except ImportError as absent:
        raise _no_mldsa() from absent


def _no_mldsa() -> MissingExtra:
    return MissingExtra(
        "ML-DSA-44 needs a newer cryptography (50 has it); run: pip install -U 'cryptography>=50'"
    )
