"""The keys of one log as one key: what a verifier holds when the log's key was rotated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from carag.audit.note import Note, NoteKey, NoteSignature, parse_vkeys

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LogKeys", "signed_by_known"]


@dataclass(frozen=True, slots=True)
class LogKeys:
    r"""Several keys of one log, usable wherever one key is: a note is signed if any known key did.

    Parameters
    ----------
    keys : tuple of NoteKey
        The newest first.

    Examples
    --------
    >>> from carag.audit.note import SigningKey
    >>> old, new = (SigningKey("log.example/1", bytes([n]) * 32) for n in range(2))
    >>> keys = LogKeys.parse(f"{new.verifier}\n{old.verifier}\n")
    >>> keys.verifies(old.sign("a text\n")), keys.name
    (True, 'log.example/1')
    """

    keys: tuple[NoteKey, ...]

    @classmethod
    def parse(cls, text: str) -> LogKeys:
        """Read a ``vkey`` file: one vkey a line. See :func:`parse_vkeys`."""
        return cls(parse_vkeys(text))

    @property
    def name(self) -> str:
        """The log's name."""
        return self.keys[0].name

    @property
    def key_id(self) -> bytes:
        """The newest key's id."""
        return self.keys[0].key_id

    def __str__(self) -> str:
        """Write the vkeys, one a line, without the last newline."""
        return "\n".join(map(str, self.keys))

    def signature_on(self, note: Note) -> NoteSignature | None:
        """Find the first signature by any of the keys, verified or not."""
        return next((found for key in self.keys if (found := key.signature_on(note))), None)

    def verifies(self, note: Note) -> bool:
        """Say whether any key signed the note, and every one that did really did."""
        return signed_by_known(note, self.keys)


def signed_by_known(note: Note, keys: Sequence[NoteKey]) -> bool:
    """Say whether a given key signed a note, and none of its lines by given keys is false.

    As ``c2sp.org/signed-note`` asks: lines of unknown keys are ignored, a false line of a known one condemns the
    note.
    """
    known = [key for key in keys if key.signature_on(note) is not None]
    return bool(known) and all(key.verifies(note) for key in known)
