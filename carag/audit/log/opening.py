"""Check a log before it is opened for writing.

The newest checkpoint must be signed by the log's own key, and the backend must end where the checkpoint does. The
stored peaks must lead to the signed root, and so must the newest records, hashed again. The log must extend every
checkpoint kept from before, whether in the directory or given by the caller; this detects a rollback if that checkpoint
was out of the attacker's reach.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from carag.audit.log.backend import Tip
from carag.audit.log.rehash import Rehash
from carag.audit.receipts.receipt import checkpoint_in
from carag.audit.tlog.checkpoint import Checkpoint
from carag.audit.tlog.merkle import (
    EMPTY_ROOT,
    Frontier,
    consistency_proof,
    peak_positions,
    verify_consistency,
)
from carag.audit.tlog.note import Note
from carag.errors import MALFORMED, CaragError, CorruptFile, InvalidArgument, type_and_place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.audit.log.backend import Backend
    from carag.audit.tlog.note import NoteKey


REHASHED_AT_OPENING: Final = 256
"""Number of newest records hashed again at opening, which must be fast; verify() hashes the whole log."""


def read_checkpoint(backend: Backend, key: NoteKey) -> Note:
    """Read the newest checkpoint and check that the log's key signed it."""
    note = Note.parse(backend.newest())
    if not key.verifies(note):
        raise CorruptFile(f"{backend.where}: the newest checkpoint is not signed by the log's own key")
    if Checkpoint.parse(note.text).origin != key.name:
        raise CorruptFile(f"{backend.where}: the newest checkpoint belongs to another log")
    return note


def read_tip(backend: Backend, key: NoteKey) -> Tip:
    """Find where a log ends, and check that its newest records lead to the signed root; CorruptFile if they do not."""
    with restorable(backend.where), backend.paused():
        return _read_tip(backend, key)


@contextmanager
def restorable(where: str) -> Iterator[None]:
    """Turn an error in what ``where`` holds, rows of any type included, into one that names it and says what to do."""
    try:
        yield
    except (CorruptFile, *MALFORMED) as error:
        what = str(error) if isinstance(error, CaragError) else f"it is damaged: {type_and_place(error)}"
        if "restore" in what or isinstance(error, InvalidArgument):
            raise
        what = what if what.startswith(where) else f"{where}: {what}"
        raise CorruptFile(f"{what}; restore it from a backup") from error


def _read_tip(backend: Backend, key: NoteKey) -> Tip:
    note = read_checkpoint(backend, key)
    checkpoint, size = Checkpoint.parse(note.text), backend.size()
    if size != checkpoint.size:
        raise CorruptFile(
            f"{backend.where}: there are {size} records, but the signed checkpoint covers {checkpoint.size}"
        )
    frontier = Frontier(size, [backend.node(level, n) for level, n in peak_positions(size)])
    if frontier.root() != checkpoint.root:
        raise CorruptFile(f"{backend.where}: the tree's root is not that of the signed checkpoint")
    newest = Rehash(backend, key.name, max(0, size - REHASHED_AT_OPENING))
    for _ in newest.advance(size):
        pass
    newest.expect(size, checkpoint.root)
    return Tip(frontier, note, newest.committed, frozenset(backend.unended()))


def kept_note(text: str) -> Note:
    """Read the checkpoint in a kept checkpoint file, proof or receipt; InvalidArgument for any other text."""
    try:
        return checkpoint_in(text.encode("utf-8", "surrogatepass"))
    except CaragError as error:
        raise InvalidArgument(f"want a checkpoint, an inclusion proof or a receipt: {error}") from error


def check_extends(backend: Backend, tip: Tip, key: NoteKey, kept: Note, where: str) -> None:
    """Check that a log extends a checkpoint that was kept.

    Raises InvalidArgument if the checkpoint belongs to another log; CorruptFile if the log is shorter than the
    checkpoint, or begins differently: it was rolled back or rewritten.
    """
    earlier = Checkpoint.parse(kept.text)
    if earlier.origin != key.name or not key.verifies(kept):
        raise InvalidArgument(
            f"the checkpoint of {where} is not signed by {key.name}; give a checkpoint of this log, or restore that "
            "file from a backup"
        )
    now = Checkpoint.parse(tip.note.text)
    if earlier.size > now.size:
        raise CorruptFile(
            f"{backend.where}: rollback: there are {now.size} records, but the checkpoint of {where} covers "
            f"{earlier.size}; restore the newest backup"
        )
    if earlier.size == 0:
        consistent = earlier.root == EMPTY_ROOT
    else:
        proof = consistency_proof(backend.node, earlier.size, now.size)
        consistent = verify_consistency(earlier.size, now.size, proof, earlier.root, now.root)
    if not consistent:
        raise CorruptFile(
            f"{backend.where}: rollback: the first {earlier.size} records are not those that the checkpoint of "
            f"{where} covers; restore the newest backup"
        )
