"""Keep the keys of one log: the current key, keys being introduced or retired, and the public keys of all.

``audit.key`` (0600) has a line for each private key, ``vkey`` (public) one for each key that ever signed::

    PRIVATE+KEY+...                         the current key
    next PRIVATE+KEY+...                    signs already, takes over once the log records it (rotation.py)
    until <microseconds> PRIVATE+KEY+...    the previous key, which also signs until then
    also PRIVATE+KEY+...                    ML-DSA-44, on anchored checkpoints

An expired private key is dropped when the ring is next read or written; its vkey stays listed, so that old receipts
verify. At every moment of a rotation, and after a crash, every note has a valid line by the current key: a log is
always opened with its current key.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from carag.audit._clock import Clock, system_clock
from carag.audit._files import write_atomically
from carag.audit.tlog.checkpoint import Checkpoint
from carag.audit.tlog.keys import MlDsaSigningKey, SigningKey, VerifierKey
from carag.audit.tlog.log_verifier import LogVerifier, parse_vkeys
from carag.errors import CorruptFile, InvalidArgument

if TYPE_CHECKING:
    from pathlib import Path

    from carag.audit.tlog.note import Note, NoteKey


_NEXT: Final = "next "
_UNTIL: Final = "until "
_ALSO: Final = "also "


@dataclass(frozen=True, slots=True)
class _Keys:
    """The keys of a ring at one moment; immutable, so that other threads cannot change it during a signature."""

    current: SigningKey
    next: SigningKey | None = None
    old: tuple[tuple[int, SigningKey], ...] = ()
    also: MlDsaSigningKey | None = None

    def to_text(self) -> str:
        lines = [self.current.to_skey()]
        lines += [] if self.next is None else [f"{_NEXT}{self.next.to_skey()}"]
        lines += [f"{_UNTIL}{until} {key.to_skey()}" for until, key in self.old]
        lines += [] if self.also is None else [f"{_ALSO}{self.also.to_skey()}"]
        return "".join(f"{line}\n" for line in lines)

    @classmethod
    def parse(cls, text: str) -> _Keys:
        first, *rest = text.rstrip("\n").split("\n")
        keys = cls(SigningKey.parse(first))
        for line in rest:
            if line.startswith(_NEXT) and keys.next is None:
                keys = replace(keys, next=SigningKey.parse(line.removeprefix(_NEXT)))
            elif line.startswith(_UNTIL):
                until, _, skey = line.removeprefix(_UNTIL).partition(" ")
                keys = replace(keys, old=(*keys.old, (int(until), SigningKey.parse(skey))))
            elif line.startswith(_ALSO) and keys.also is None:
                keys = replace(keys, also=MlDsaSigningKey.parse(line.removeprefix(_ALSO)))
            else:
                raise InvalidArgument("a line must be 'next', 'until' or 'also' with a signing key")
        names = {keys.current.name, *(key.name for key in keys.signing())}
        if keys.also is not None:
            names.add(keys.also.name)
        if len(names) > 1:
            raise InvalidArgument(f"the keys have different names: {', '.join(sorted(names))}")
        return keys

    def signing(self) -> tuple[SigningKey, ...]:
        return (*(key for _, key in self.old), self.current, *(() if self.next is None else (self.next,)))


class KeyRing:
    """Signs for a log with every key that is in use. Safe to share between threads.

    ``private`` and ``public`` are the files of the private keys and the vkeys; ``keys`` is a new log's key, or the
    content of ``private``.
    """

    def __init__(
        self, private: Path, public: Path, keys: SigningKey | str, clock: Clock = system_clock
    ) -> None:
        self._private, self._public, self._clock = private, public, clock
        self._mutex = threading.Lock()
        self._keys = _Keys.parse(keys) if isinstance(keys, str) else _Keys(keys)
        self._listed: tuple[NoteKey, ...] = ()

    @property
    def name(self) -> str:
        """The log's name: first line of its checkpoints and name of all its keys."""
        return self._keys.current.name

    @property
    def verifier(self) -> VerifierKey:
        """The current public key. Every note of this ring carries a signature by it."""
        return self._keys.current.verifier

    @property
    def listed(self) -> tuple[NoteKey, ...]:
        """Every key that ever signed for this log, the current one first."""
        return self._listed

    @property
    def trusted(self) -> LogVerifier:
        """All keys as one verifier, for earlier checkpoints, which an older key may have signed."""
        return LogVerifier(self._listed)

    def now(self) -> int:
        """Return the ring's time in microseconds since 1970 UTC."""
        return self._clock()

    def sign(self, text: str) -> Note:
        """Sign a text with every Ed25519 key that is in use."""
        keys = self._keys
        note = keys.current.sign(text)
        also = [*self._still(keys.old), *([keys.next] if keys.next else [])]
        return note.signed_also(signature for key in also for signature in key.sign(text).signatures)

    def cosign(self, note: Note) -> Note:
        """Add the ML-DSA-44 line to a checkpoint, if the log has such a key."""
        key = self._keys.also
        return note if key is None else note.signed_also([key.sign(Checkpoint.parse(note.text))])

    def stage(self) -> VerifierKey:
        """Make the next key sign as well; generate it on the first call, later return the same one."""
        with self._mutex:
            fresh = self._keys.next or SigningKey.generate(self.name)
            self._change(replace(self._keys, next=fresh))
            return fresh.verifier

    def promote(self, *, until: int) -> None:
        """Make the next key the current one; the previous one also signs until ``until``."""
        with self._mutex:
            keys = self._keys
            if keys.next is None:
                raise InvalidArgument(f"{self.name} has no next key; stage one first")
            old = (*keys.old, (until, keys.current))
            self._change(replace(keys, current=keys.next, next=None, old=old))

    def add(self, key: MlDsaSigningKey) -> None:
        """Make an ML-DSA-44 key sign the checkpoints that are anchored."""
        if key.name != self.name:
            raise InvalidArgument(f"the key is named {key.name}; want {self.name}, the log's name")
        with self._mutex:
            if self._keys.also is not None:
                raise InvalidArgument(f"{self.name} has an ML-DSA-44 key already")
            self._change(replace(self._keys, also=key))

    def save(self) -> None:
        """Write both files, the private one first, so that every key listed can be used or has expired."""
        with self._mutex:
            self._change(self._keys)

    def check_listed(self) -> None:
        """Check that the vkey file lists the current key and only keys of this log; complete it if necessary.

        Raises CorruptFile if one of the two files belongs to another log.
        """
        try:
            text = self._public.read_text("utf-8")
            self._listed = parse_vkeys(text)
        except (UnicodeDecodeError, InvalidArgument) as error:
            raise CorruptFile(f"{self._public}: {error}; restore it from a backup") from error
        if self.verifier not in self._listed or self._vkeys() != text:
            if self.verifier not in self._listed or self._listed[0].name != self.name:
                raise CorruptFile(
                    f"{self._public} and {self._private} belong to different keys; restore the right pair"
                )
            self.save()

    def _change(self, keys: _Keys) -> None:
        still = self._still(keys.old)
        keys = replace(keys, old=tuple(old for old in keys.old if old[1] in still))
        write_atomically(self._private, keys.to_text().encode())
        self._keys = keys
        text = self._vkeys()
        write_atomically(self._public, text.encode(), mode=0o644)
        self._listed = parse_vkeys(text)

    def _still(self, old: tuple[tuple[int, SigningKey], ...]) -> list[SigningKey]:
        now = self._clock() if old else 0
        return [key for until, key in old if now < until]

    def _vkeys(self) -> str:
        keys = self._keys
        ours = [keys.current, *([keys.next] if keys.next else []), *(key for _, key in reversed(keys.old))]
        lines = [str(key.verifier) for key in ours]
        lines += [str(key) for key in self._listed]
        lines += [] if keys.also is None else [str(keys.also.verifier)]
        return "".join(f"{line}\n" for line in dict.fromkeys(lines))
