"""Read passages and labels by the keys of labels, which are also the keys of an index's rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from carag.errors import InvalidArgument
from carag.store import _rows as rows
from carag.store._audiences import JOINED, STATED
from carag.store.values import EVER

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Container, Iterable, Sequence
    from pathlib import Path

    from carag.store.values import StoredChunk, StoredLabel

_SELECT_LABELS_BESIDE: Final = f"""
    SELECT label, chunk_id, NULL, NULL, NULL, NULL, NULL, NULL, labels.word, valid_to, labels.entity,
           entity_sets.ciks, entity_sets.metadata, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
           {STATED}, valid_from, known_to
    FROM labels JOIN chunks USING (key)
         LEFT JOIN entity_sets ON labels.entity = entity_sets.number
         {JOINED}"""  # noqa: S608 - constants
"""Labels in the columns of :data:`SELECT_CHUNK`, without any text: the columns of the passage are NULL."""
_TEXT: Final = 7
"""Position of the text among these columns."""


def chunks(
    sql: sqlite3.Connection, keys: Sequence[int], path: Path, *, known_at: int | None
) -> dict[int, StoredChunk]:
    found: dict[int, StoredChunk] = {}
    for start in range(0, len(keys), rows.AT_ONCE):
        some = keys[start : start + rows.AT_ONCE]
        for row in sql.execute(f"{rows.SELECT_CHUNK} WHERE label IN ({_marks(some)})", some):
            found[row[0]] = rows.stored_chunk(row, path, known_at=known_at)
    check_found(keys, found, path)
    return found


def labels_as_of(
    sql: sqlite3.Connection, keys: Sequence[int], as_of: int, path: Path, *, known_at: int | None
) -> dict[int, StoredLabel]:
    """Read, for each of some labels, the label of the same passage that holds at a minute."""
    found = sql.execute(f"{rows.SELECT_LABEL} {_beside(keys)}", (*keys, _until(known_at))).fetchall()
    return _held(found, keys, as_of, path, known_at=known_at)


def chunks_and_labels(
    sql: sqlite3.Connection,
    keys: Sequence[int],
    beside: Sequence[int],
    as_of: int,
    path: Path,
    *,
    closed_by: int | None,
    known_at: int | None,
) -> tuple[dict[int, StoredChunk], dict[int, StoredLabel]]:
    """Read passages as :func:`chunks` does, and other labels as :func:`labels_as_of` does, in one statement."""
    first, more = keys[: rows.AT_ONCE], keys[rows.AT_ONCE :]
    query = f"{rows.SELECT_CHUNK} WHERE label IN ({_marks(first)}) UNION ALL {_SELECT_LABELS_BESIDE} {_beside(beside)}"
    found: dict[int, StoredChunk] = {}
    labels = []
    for row in sql.execute(query, (*first, *beside, _until(known_at))):
        if row[_TEXT] is None:
            labels.append((*row[:2], *row[_TEXT + 1 : 13], *row[-3:]))
        else:
            found[row[0]] = rows.stored_chunk(row, path, known_at=closed_by)
    check_found(first, found, path)
    found.update(chunks(sql, more, path, known_at=closed_by))
    return found, _held(labels, beside, as_of, path, known_at=known_at)


def _marks(keys: Sequence[int]) -> str:
    return ", ".join("?" * len(keys)) or "NULL"


def _beside(keys: Sequence[int]) -> str:
    wanted = f"SELECT key FROM labels WHERE label IN ({_marks(keys)})"  # noqa: S608 - marks
    return f"WHERE key IN ({wanted}) AND known_from <= ?"


def _until(known_at: int | None) -> int:
    return EVER if known_at is None else known_at


def _held(
    found: Iterable[tuple[Any, ...]], keys: Sequence[int], as_of: int, path: Path, *, known_at: int | None
) -> dict[int, StoredLabel]:
    passage_of: dict[int, str] = {}
    of: dict[str, list[tuple[Any, ...]]] = {}
    for row in sorted(found, key=lambda row: row[-2]):
        passage_of[row[0]] = row[1]
        of.setdefault(row[1], []).append(row)
    check_found(keys, passage_of, path)
    held = {key: rows.holding(of[passage_of[key]], as_of, _until(known_at)) for key in keys}
    return {key: rows.stored_label(row, path, known_at=known_at) for key, row in held.items()}


def check_found(keys: Iterable[int], found: Container[int], path: Path) -> None:
    if missing := [key for key in keys if key not in found]:
        raise InvalidArgument(f"no label has key {missing[0]} in {path}; rebuild the index")
