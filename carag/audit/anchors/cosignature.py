"""Cosignatures: a witness's statement that it saw a log grow and nothing else (``c2sp.org/tlog-cosignature``).

A cosignature is a signature line on a checkpoint by a witness's key, Ed25519 (type 0x04) here or ML-DSA-44
(type 0x06, ``carag/audit/mldsa.py``). An Ed25519 one covers two lines and the checkpoint's text::

    cosignature/v1
    time <seconds since 1970>
    <origin>
    <size>
    <root>

and its line holds ``key id || uint64 time || 64 bytes``. It says: as of that time this is the largest
consistent tree the witness has seen of this log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from carag.audit.canonical import b64
from carag.audit.mldsa import MAX_TIME, MlDsaKey
from carag.audit.note import Note, NoteSignature, PublicKey, check_key_name, split_key
from carag.errors import InvalidArgument

__all__ = ["WitnessKey", "WitnessSigningKey", "WitnessVerifier", "parse_witness_key"]

_TIME_SIZE: Final = 8
_SIGNATURE_SIZE: Final = 64
_KEY_SIZE: Final = 32


@dataclass(frozen=True, slots=True)
class WitnessKey(PublicKey):
    r"""A witness's Ed25519 public key.

    Parameters
    ----------
    name : str
    public : bytes
        32 bytes.

    Examples
    --------
    >>> key = WitnessSigningKey("witness.example/w1", bytes(32))
    >>> note = Note("log.example/1\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n", ())
    >>> key.verifier.signed_at(note.signed_also([key.cosign(note, 1763755557)]))
    1763755557
    """

    name: str
    public: bytes

    ALGORITHM: ClassVar = b"\x04"

    @classmethod
    def parse(cls, vkey: str) -> WitnessKey:
        """Read a vkey; InvalidArgument if it is not an Ed25519 witness's."""
        name, data = split_key(vkey)
        if data[:1] != cls.ALGORITHM or len(data) != 1 + _KEY_SIZE:
            raise InvalidArgument(
                "want a witness's vkey, name+keyid+base64 with signature type 4 (c2sp.org/tlog-cosignature)"
            )
        key = cls(name, data[1:])
        return key.check_id(vkey)

    def verifies(self, note: Note) -> bool:
        """Say whether the note carries a valid cosignature of this witness."""
        return self.signed_at(note) is not None

    def signed_at(self, note: Note) -> int | None:
        """Return the cosignature's time in seconds since 1970, or None if it is missing or not valid."""
        signature = self.signature_on(note)
        if signature is None or len(signature.signature) != _TIME_SIZE + _SIGNATURE_SIZE:
            return None
        timestamp = int.from_bytes(signature.signature[:_TIME_SIZE], "big")
        if timestamp > MAX_TIME:
            return None
        try:
            public = Ed25519PublicKey.from_public_bytes(self.public)
            public.verify(signature.signature[_TIME_SIZE:], _message(note.text, timestamp))
        except (InvalidSignature, ValueError):
            return None
        return timestamp


WitnessVerifier: TypeAlias = WitnessKey | MlDsaKey
"""A witness's public key, of either signature type."""


def parse_witness_key(vkey: str) -> WitnessVerifier:
    """Read a witness's vkey of either signature type; InvalidArgument if it is neither."""
    _, data = split_key(vkey)
    return MlDsaKey.parse(vkey) if data[:1] == MlDsaKey.ALGORITHM else WitnessKey.parse(vkey)


class WitnessSigningKey:
    """A witness's Ed25519 private key. Never one that signs anything else: the message does not name its signer.

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
        self.verifier = WitnessKey(name, self._private.public_key().public_bytes_raw())

    @classmethod
    def generate(cls, name: str) -> WitnessSigningKey:
        """Make a new key from the operating system's randomness."""
        return cls(name, Ed25519PrivateKey.generate().private_bytes_raw())

    def cosign(self, note: Note, timestamp: int) -> NoteSignature:
        """Cosign a checkpoint at a time, in seconds since 1970."""
        signature = self._private.sign(_message(note.text, timestamp))
        return NoteSignature(
            self.name, self.verifier.key_id, timestamp.to_bytes(_TIME_SIZE, "big") + signature
        )

    def to_skey(self) -> str:
        """Write the private key. Keep it secret."""
        data = WitnessKey.ALGORITHM + self._private.private_bytes_raw()
        return f"PRIVATE+KEY+{self.name}+{self.verifier.key_id.hex()}+{b64(data)}"

    @classmethod
    def parse(cls, skey: str) -> WitnessSigningKey:
        """Read an skey; InvalidArgument if it is not a witness's. The message never quotes it."""
        text = skey.strip()
        name, data = split_key(text.removeprefix("PRIVATE+KEY+"))
        if not text.startswith("PRIVATE+KEY+") or data[:1] != WitnessKey.ALGORITHM or len(data) != 33:
            raise InvalidArgument("want a witness's signing key, PRIVATE+KEY+name+keyid+base64")
        key = cls(name, data[1:])
        if key.to_skey() != text:
            raise InvalidArgument(f"the signing key of {name} does not match its own key id")
        return key


def _message(text: str, timestamp: int) -> bytes:
    return f"cosignature/v1\ntime {timestamp}\n{text}".encode()
