"""Find records by time and by their members, newest first; each is proved under the signed checkpoint."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

from carag.audit.records.record import Record
from carag.audit.tlog import encoding
from carag.errors import CorruptFile, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from carag.audit.auditor.reader import LogReader


def find(
    reader: LogReader,
    *,
    since: int | None = None,
    until: int | None = None,
    wanted: Mapping[str, str | None] | None = None,
    among: Collection[int] | None = None,
    under_glass: bool = False,
) -> Iterator[tuple[int, Record | None]]:
    """Yield the matching records, newest first; None in place of a record of an unknown version.

    - ``since``, ``until``: commit time in microseconds since 1970, ``since <= time < until``.
    - ``wanted``: the required text of members, such as ``"role"``; None matches everything.
    - ``among``: only these records.
    - ``under_glass``: only records of a broken glass, and of requests in a cell that it opened.

    Raises CorruptFile if a record that is yielded or that cannot be read is not the one that the log signed.

    Examples
    --------
    >>> import tempfile
    >>> from carag.audit import AuditLog, Recovery, place_hold
    >>> from carag.audit.auditor.reader import LogReader
    >>> with tempfile.TemporaryDirectory() as directory, AuditLog.open(directory) as log:
    ...     seqs = [log.append(Recovery("DRILL")).seq, place_hold(log, "MATTER-7", actor="counsel").seq]
    ...     with LogReader(directory, vkey=log.vkey) as reader:
    ...         [seq for seq, _ in find(reader, wanted={"kind": "recovery"})] == seqs[:1]
    True
    """
    every = range(reader.size)  # commit times never run backwards
    first = 0 if since is None else bisect_left(every, since, key=lambda seq: _members(reader, seq)["tc"])
    last = (
        len(every)
        if until is None
        else bisect_left(every, until, key=lambda seq: _members(reader, seq)["tc"])
    )
    span = every[first:last]
    for seq in reversed(span if among is None else sorted(set(among).intersection(span))):
        said = _members(reader, seq)
        if under_glass and said.get("kind") != "glass" and "glass" not in said:
            continue
        if all(value is None or said.get(name) == value for name, value in (wanted or {}).items()):
            yield seq, proved(reader, seq)


def proved(reader: LogReader, seq: int) -> Record | None:
    """Return a record after proving it under the signed checkpoint; None if its version is unknown here.

    Raises InvalidArgument if there is no such record; CorruptFile if it is not the one that the log signed.
    """
    reader.prove(seq)
    try:
        return Record.parse(reader.body(seq))
    except CorruptFile:  # its place in the tree is proved, so it was not altered
        return None


def _members(reader: LogReader, seq: int) -> dict[str, Any]:
    """Read a record without proof, only to select it; an altered one fails its proof later."""
    try:
        return {"tc": 0, **encoding.load(reader.body(seq))}
    except (CorruptFile, TypeError) as error:
        reader.prove(seq)
        raise InvalidArgument(f"record {seq} of the log cannot be decoded: {error}") from error
