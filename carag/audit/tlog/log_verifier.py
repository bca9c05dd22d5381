"""Verify checkpoints with several keys of one log, as a verifier holds them after the log's key was rotated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from carag.audit.tlog.keys import MlDsaKey, VerifierKey, signature_type
from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.audit.tlog.note import Note, NoteKey, NoteSignature


@dataclass(frozen=True, slots=True)
class LogVerifier:
    """Several keys of one log, the newest first, usable in place of one key: any of them may have signed a note."""

    keys: tuple[NoteKey, ...]

    @classmethod
    def parse(cls, text: str) -> LogVerifier:
        """Read a ``vkey`` file: one vkey per line."""
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
        """Write the vkeys, one per line, without the last newline."""
        return "\n".join(map(str, self.keys))

    def signature_on(self, note: Note) -> NoteSignature | None:
        """Find the first signature by any of the keys, verified or not."""
        return next((found for key in self.keys if (found := key.signature_on(note))), None)

    def verifies(self, note: Note) -> bool:
        """Tell whether any of the keys signed the note, and all signatures by these keys are valid."""
        return signed_by_known(note, self.keys)


def parse_vkeys(text: str) -> tuple[NoteKey, ...]:
    """Read the keys of one log, the newest first, one vkey per line; blank lines are allowed.

    Raises InvalidArgument if a line is not an Ed25519 or ML-DSA-44 vkey, a key is listed twice, the names differ, or no
    key is Ed25519.
    """
    lines = [line for line in text.split("\n") if line.strip()] or [""]
    keys: list[NoteKey] = [
        MlDsaKey.parse(line) if signature_type(line) == MlDsaKey.TYPE else VerifierKey.parse(line)
        for line in lines
    ]
    if len({key.name for key in keys}) > 1:
        names = ", ".join(sorted({key.name for key in keys}))
        raise InvalidArgument(f"these keys belong to different logs: {names}; give the keys of one log")
    if len({key.key_id for key in keys}) < len(keys):
        raise InvalidArgument(f"a key of {keys[0].name} is listed twice; list each once")
    if not any(isinstance(key, VerifierKey) for key in keys):
        raise InvalidArgument(f"no Ed25519 vkey of {keys[0].name} among the keys; a log always has one")
    return tuple(keys)


def signed_by_known(note: Note, keys: Sequence[NoteKey]) -> bool:
    """Tell whether a given key signed a note, and all signatures by given keys are valid.

    As ``c2sp.org/signed-note`` requires, lines of unknown keys are ignored, and a false line of a known key makes the
    note invalid.
    """
    known = [key for key in keys if key.signature_on(note) is not None]
    return bool(known) and all(key.verifies(note) for key in known)


def signed_by_others(note: Note, key: NoteKey) -> str:
    """Explain who signed a note that no given key signed, so that there can be no verdict, and say what to do."""
    keys = key.keys if isinstance(key, LogVerifier) else (key,)
    signers = ", ".join(f"{one.name}+{one.key_id.hex()}" for one in note.signatures)
    given = ", ".join(f"{one.name}+{one.key_id.hex()}" for one in keys)
    said = f"the checkpoint is signed by {signers}, not by {given}"
    if {one.name for one in note.signatures}.isdisjoint(one.name for one in keys):
        return f"{said}; give the key of that log"
    return (
        f"{said}: another key has the same name, which is a later (or earlier) key of the log if it was "
        "rotated, and a forgery if not; give all vkeys of the log, one a line, from a source you trust, or the one "
        "that the receipt of the rotation leads to (carag.audit.operations.rotation.successor)"
    )
