"""Keep the keys of a log's values in ``private.key``, and encrypt and decrypt values under them (AES-256-GCM).

::

    carag-private-key/v1
    index <base64>    32 bytes: HMAC key that turns a subject into a pseudonym
    wrap <base64>     32 bytes: wraps every other key; a second line while one replaces the other

A sealed box starts with its random 96-bit nonce (NIST SP 800-38D section 8.2.2). The associated data bind the box to
its place, so it cannot be moved to another record or field. Destroying a key destroys the values sealed under it in
every copy, as long as the key file itself is not in that backup: an erasure replaces the wrapping key, so earlier
copies of the values hold the erased keys only under a wrapping key that no longer exists.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from secrets import token_bytes
from typing import TYPE_CHECKING, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from carag.audit._files import overwrite, write_atomically
from carag.audit.records.commitment import SALT_SIZE, Opening
from carag.audit.tlog.encoding import b64, unb64
from carag.errors import AuditUnavailable, CorruptFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


KEY_SIZE: Final = 32
"""Bytes of a key."""
NONCE_SIZE: Final = 12
"""Bytes of a nonce."""
SUCCESSORS: Final = "SELECT old, wrapped FROM successor"
"""The query for what :meth:`PrivateKeys.follow` takes, if several processes have a copy of the keys."""
_SUCCESSOR: Final = "successor"
"""The place for which a wrapping key is sealed, under the wrapping key before it."""
_FORMAT: Final = "carag-private-key/v1"
"""First line of the key file: name and version of its format."""


def wrap(key: AESGCM, secret: bytes, place: str, nonce: bytes | None = None) -> bytes:
    """Seal a key under another key; a given ``nonce`` must be random and used once."""
    nonce = nonce or token_bytes(NONCE_SIZE)
    return nonce + key.encrypt(nonce, secret, place.encode())


def unwrap(key: AESGCM, box: bytes, place: str) -> bytes:
    """Open a key that :func:`wrap` sealed; CorruptFile if it was sealed under another key or for another place."""
    try:
        return key.decrypt(box[:NONCE_SIZE], box[NONCE_SIZE:], place.encode())
    except (InvalidTag, ValueError, TypeError) as error:  # SQLite keeps a value of any type in any column
        raise CorruptFile(
            f"the value sealed for {place} was altered, or sealed under another key; restore audit.db and "
            "private.key from one backup"
        ) from error


def seal(key: AESGCM, opening: Opening, seq: int, field: str, nonce: bytes | None = None) -> bytes:
    """Seal salt and value: with the salt alone, a short value could be guessed from its commitment."""
    return wrap(key, opening.salt + opening.value.encode("utf-8"), f"{seq} {field}", nonce)


def unseal(key: AESGCM, box: bytes, seq: int, field: str) -> Opening:
    """Open a box that :func:`seal` made."""
    plain = unwrap(key, box, f"{seq} {field}")
    return Opening(plain[:SALT_SIZE], plain[SALT_SIZE:].decode("utf-8"))


class PrivateKeys:
    """The key file: one index key and the wrapping key in force.

    A missing file is CorruptFile; with ``new``, new keys take the place of any that are there.
    """

    def __init__(self, path: Path, *, new: bool = False) -> None:
        self._path = path
        if new:
            self.index, self._wraps = token_bytes(KEY_SIZE), [token_bytes(KEY_SIZE)]
            self._write()
        elif not path.exists():
            raise CorruptFile(f"{path} is missing; without it, what records commit to stays closed")
        else:
            self.index, self._wraps = self._read()

    @property
    def newest(self) -> bytes:
        """The id of the newest wrapping key."""
        return _key_id(self._wraps[-1])

    def wrapping(self, key_id: bytes) -> AESGCM:
        """Return the wrapping key with this id; CorruptFile if an erasure has replaced it."""
        for key in self._wraps:
            if _key_id(key) == key_id:
                return AESGCM(key)
        raise CorruptFile(
            f"the values were sealed under a key that {self._path} does not have: they are from before an erasure, "
            "or the key belongs to another log"
        )

    def add(self, key_id: bytes) -> bytes:
        """Add a wrapping key durably beside the one in force, and return its id."""
        self._wraps = [*(key for key in self._wraps if _key_id(key) == key_id), token_bytes(KEY_SIZE)]
        self._write()
        return self.newest

    def sealed(self, key_id: bytes, key: AESGCM) -> bytes:
        """Seal a wrapping key under the one that it replaces, as :meth:`follow` opens it."""
        (secret,) = (one for one in self._wraps if _key_id(one) == key_id)
        return wrap(key, secret, _SUCCESSOR)

    def follow(self, successors: Iterable[tuple[bytes, bytes]]) -> None:
        """Open in turn the keys that replaced those here; ``successors`` are ids, each with the next key."""
        boxes = {bytes(old): bytes(box) for old, box in successors}
        waiting = [*self._wraps]
        while waiting:
            key = waiting.pop()
            if (box := boxes.get(_key_id(key))) is not None:
                waiting.append(unwrap(AESGCM(key), box, _SUCCESSOR))
                self._wraps.append(waiting[-1])

    def keep_only(self, key_id: bytes) -> None:
        """Destroy every wrapping key but this one."""
        if len(self._wraps) > 1:
            self._wraps = [key for key in self._wraps if _key_id(key) == key_id]
            self._write()

    def _read(self) -> tuple[bytes, list[bytes]]:
        try:
            text = self._path.read_text("ascii")
            if self._path.stat().st_mode & 0o077:
                raise AuditUnavailable(f"{self._path} can be read by others; chmod 600 it")
        except (IsADirectoryError, UnicodeDecodeError) as error:
            raise CorruptFile(f"{self._path} is not a private key file") from error
        except OSError as error:
            raise AuditUnavailable(f"{self._path} cannot be read: {error}") from error
        head, *lines = text.splitlines() or [""]
        pairs = [line.split(" ") for line in lines]
        names = [pair[0] for pair in pairs]
        if head != _FORMAT or names not in (["index", "wrap"], ["index", "wrap", "wrap"]):
            raise CorruptFile(f"{self._path} is not a private key file")
        keys = [unb64(pair[1]) if len(pair) == 2 else b"" for pair in pairs]
        if {len(key) for key in keys} != {KEY_SIZE}:
            raise CorruptFile(f"{self._path} holds a key of another length")
        return keys[0], keys[1:]

    def _write(self) -> None:
        lines = [_FORMAT, f"index {b64(self.index)}", *(f"wrap {b64(key)}" for key in self._wraps), ""]
        try:
            with overwriting(self._path):
                write_atomically(self._path, "\n".join(lines).encode("ascii"))
        except OSError as error:
            raise AuditUnavailable(f"{self._path} cannot be written: {error}") from error


@contextlib.contextmanager
def overwriting(path: Path) -> Iterator[None]:
    """Overwrite the old file at ``path`` with zeros, after the block has replaced it.

    A file system that never writes in place (copy on write, most flash) keeps the old blocks until it reuses them;
    there only full-disk encryption helps.
    """
    old = os.open(path, os.O_RDWR) if path.exists() else None
    try:
        yield
        if old is not None:
            overwrite(old, os.fstat(old).st_size)
    finally:
        if old is not None:
            os.close(old)


def _key_id(key: bytes) -> bytes:
    return hashlib.sha256(b"carag/private/key-id\0" + key).digest()[:8]
