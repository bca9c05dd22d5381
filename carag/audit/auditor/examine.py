"""Examine a whole log: re-hash every record and compare with its signed checkpoints and with those kept elsewhere.

A signed tree alone does not show that its end was truncated, that the directory was rolled back, or that a thief of the
key rewrote the history: the key signed all of these. A checkpoint kept elsewhere does, because the log must extend it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from carag.audit.auditor.reader import LogReader, open_checkpoint
from carag.audit.log.rehash import Rehash
from carag.audit.receipts.receipt import checkpoint_in
from carag.audit.receipts.verify import Verdict, verify_receipt
from carag.audit.tlog import encoding
from carag.audit.tlog.checkpoint import Checkpoint
from carag.errors import AuditUnavailable, CorruptFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from os import PathLike

    from carag.audit.tlog.note import NoteKey


@dataclass(frozen=True, slots=True)
class Kept:
    """A checkpoint of the log, with a verified signature, that was kept out of reach of the log's owner."""

    name: str
    checkpoint: Checkpoint


@dataclass(frozen=True, slots=True)
class Examination:
    """A verdict on a log and the reasons for it.

    - ``size``: records that the newest checkpoint covers; 0 if it could not be read.
    - ``extends``: names of the kept checkpoints that the log extends.
    """

    verdict: Verdict
    reason: str
    size: int = 0
    checkpoint: str = field(default="", repr=False)
    extends: tuple[str, ...] = ()


def kept_checkpoint(text: str, key: NoteKey, name: str = "the checkpoint kept") -> Kept:
    """Read a checkpoint from elsewhere; CorruptFile if it is not a checkpoint of this log."""
    return Kept(name, Checkpoint.parse(open_checkpoint(text, key, name).text))


def kept_receipt(data: bytes, vkey: str, name: str = "the receipt kept") -> Kept:
    """Read the checkpoint in a receipt from elsewhere; CorruptFile if the receipt does not verify."""
    checked = verify_receipt(data, vkey)
    if checked.verdict is not Verdict.VERIFIED:
        raise CorruptFile(f"{name} does not verify: {checked.reason}")
    return Kept(name, Checkpoint.parse(checkpoint_in(data).text))


def examine_log(
    directory: str | PathLike[str], *, vkey: str | None = None, kept: Iterable[Kept] = ()
) -> Examination:
    """Open a log read-only and :func:`examine` it; a log that cannot be opened also gets a verdict."""
    try:
        reader = LogReader(directory, vkey=vkey)
    except CorruptFile as error:
        return Examination(Verdict.FAILED, str(error))
    except AuditUnavailable as error:
        return Examination(Verdict.UNDECIDED, str(error))
    with reader:
        return examine(reader, kept)


def examine(
    reader: LogReader,
    kept: Iterable[Kept] = (),
    *,
    visit: Callable[[int, bytes], None] | None = None,
) -> Examination:
    """Re-hash a log from its records, and compare it with its checkpoints and with those kept elsewhere.

    ``visit`` is called with the number and the bytes of each record that has the stored hash; only afterwards is it
    known whether all of these records lead to the signed root.
    """
    kept = tuple(kept)
    note = reader.checkpoint.to_text()
    try:
        try:
            _examine(reader, kept, visit)
        finally:
            reader.check_unchanged()
    except CorruptFile as error:
        return Examination(Verdict.FAILED, str(error), reader.size, note)
    except AuditUnavailable as error:
        return Examination(Verdict.UNDECIDED, str(error), reader.size, note)
    how = "the key in its directory" if reader.trusts_own_key else "the given key"
    reason = f"{reader.size} records of {reader.tree.origin} are those that {how} signed"
    if kept:
        names = tuple(one.name for one in kept)
        reason += f", and they extend what was kept elsewhere: {', '.join(names)}"
        return Examination(Verdict.VERIFIED, reason, reader.size, note, names)
    return Examination(Verdict.VERIFIED, reason, reader.size, note)


def extends(reader: LogReader, kept: Kept) -> None:
    """Check from the stored tree, without hashing records, that a log extends a checkpoint; CorruptFile if not."""
    _check_length(reader, kept)
    size, root = kept.checkpoint.size, kept.checkpoint.root
    _compare({size: [(f"{reader.where}: {kept.name}", root)]}, size, reader.root(size))


def _check_length(reader: LogReader, kept: Kept) -> None:
    if kept.checkpoint.size > reader.size:
        raise CorruptFile(
            f"{reader.where}: the log has {reader.size} records, but {kept.name} covers "
            f"{kept.checkpoint.size}: it was cut short, or put back to an earlier state"
        )


def _examine(reader: LogReader, kept: Sequence[Kept], visit: Callable[[int, bytes], None] | None) -> None:
    for one in kept:
        _check_length(reader, one)
    signed = _signed_roots(reader, kept)
    identities: set[str] = set()

    def look(seq: int, body: bytes) -> None:
        fields: Any = encoding.load(body)
        identity = fields.get("id")
        if not isinstance(identity, str) or identity in identities:
            raise CorruptFile(
                f"{reader.where}: record {seq} has the id of an earlier record: it was entered twice"
            )
        identities.add(identity)
        if visit is not None:
            visit(seq, body)

    rehash = Rehash(reader, reader.tree.origin, visit=look)
    for size in sorted(signed):
        for _ in rehash.advance(size):
            pass
        _compare(signed, size, rehash.frontier.root())
    rehash.nothing_beyond()


def _signed_roots(reader: LogReader, kept: Sequence[Kept]) -> dict[int, list[tuple[str, bytes]]]:
    signed: dict[int, list[tuple[str, bytes]]] = {}
    for size, text in reader.checkpoints():
        what = f"{reader.where}: the checkpoint of {size} records"
        checkpoint = Checkpoint.parse(open_checkpoint(text, reader.key, what).text)
        if checkpoint.size != size:
            raise CorruptFile(f"{what} covers {checkpoint.size}")
        signed.setdefault(size, []).append((what, checkpoint.root))
    for one in kept:
        signed.setdefault(one.checkpoint.size, []).append(
            (f"{reader.where}: {one.name}", one.checkpoint.root)
        )
    return signed


def _compare(signed: dict[int, list[tuple[str, bytes]]], size: int, root: bytes) -> None:
    for what, value in signed.get(size, ()):
        if value != root:
            raise CorruptFile(f"{what}: the first {size} records are not those that were signed")
