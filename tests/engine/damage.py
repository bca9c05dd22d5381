"""Damage stores, each in a way that a seed draws."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from random import Random


def _cut(random: Random, path: Path, _: list[Path]) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: random.randrange(max(1, len(content)))])


def _garbage(random: Random, path: Path, _: list[Path]) -> None:
    path.write_bytes(random.randbytes(random.choice([1, 7, 64, 5000])))


def _text(random: Random, path: Path, _: list[Path]) -> None:
    path.write_text(
        random.choice(["\n", "x", "0", "a b\n" * 9, "+++", "\0", "carag-private-key/v1\n", "\u2028"])
    )


def _empty(_: Random, path: Path, __: list[Path]) -> None:
    path.write_bytes(b"")


def _directory(_: Random, path: Path, __: list[Path]) -> None:
    path.unlink()
    path.mkdir()


def _missing(_: Random, path: Path, __: list[Path]) -> None:
    path.unlink()


def _another(random: Random, path: Path, others: list[Path]) -> None:
    shutil.copyfile(random.choice(others), path)


def _flipped(random: Random, path: Path, _: list[Path]) -> None:
    content = bytearray(path.read_bytes())
    for _n in range(random.choice([1, 1, 1, 4, 64]) if content else 0):
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    path.write_bytes(content)


def _dropped_line(random: Random, path: Path, _: list[Path]) -> None:
    lines = path.read_bytes().splitlines(keepends=True) or [b""]
    del lines[random.randrange(len(lines))]
    path.write_bytes(b"".join(lines))


def _emptied(random: Random, path: Path, _: list[Path]) -> None:
    """Delete the rows of one table, or set one column of it to what it should not hold."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        table = random.choice(tables)
        columns = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]
        value = random.choice(["", "x", "-1", 2**62, -5, 0, b"", b"\xff\xfe", "[]", "{", "é", 1.5])
        few = random.choice(["", f' WHERE rowid = (SELECT min(rowid) FROM "{table}")'])  # noqa: S608 - a table of ours
        try:
            if random.random() < 0.5:
                db.execute(f'UPDATE "{table}" SET "{random.choice(columns)}" = ?{few}', [value])  # noqa: S608 - as above
                return
        except sqlite3.Error:  # what the schema refuses cannot be there
            pass
        db.execute(f'DELETE FROM "{table}"')  # noqa: S608 - as above


_EVERY: Final = (
    _cut,
    _garbage,
    _text,
    _empty,
    _directory,
    _missing,
    _another,
    _flipped,
    _flipped,
    _dropped_line,
)


def damage(random: Random, store: Path, others: list[Path]) -> str:
    """Damage one file of a store, sometimes two, and say what was done.

    Parameters
    ----------
    others : list of Path
        Files of this store and of another, to be put in place of the file.
    """
    done = []
    for _ in range(random.choice([1, 1, 1, 2])):
        files = sorted(path for path in store.rglob("*") if path.is_file())
        path = random.choice(files)
        ways: list[Callable[[Random, Path, list[Path]], None]] = [*_EVERY]
        if path.suffix in (".db", ".state"):
            ways += [_emptied] * 10
        way = random.choice(ways)
        done.append(f"{way.__name__.strip('_')} {path.relative_to(store)}")
        try:
            way(random, path, others)
        except (sqlite3.Error, IndexError):  # an earlier damage left no database
            _empty(random, path, others)
        if path.is_file():
            path.chmod(0o600)
    return ", ".join(done)
