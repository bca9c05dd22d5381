"""Keep what a mirror holds and what is left to request, so that a killed run continues without loss or duplicates.

Next to the folder ``F``, ``F.fetch`` holds ``state.db``, documents that were received and are not yet in the folder,
and ``gone.jsonl``. A document is written there first, then noted, then moved: whenever a run is killed, the next one
either requests it again or moves it. ``metadata.jsonl`` states its facts before the document is in the folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from carag.errors import CorruptFile, InvalidArgument, StoreLocked

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path
    from typing import Self


_SCHEMA: Final = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT",
    "CREATE TABLE pages (url TEXT PRIMARY KEY, file TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, sha256 TEXT NOT NULL,"
    " size INTEGER NOT NULL, fetched TEXT NOT NULL, etag TEXT NOT NULL, modified TEXT NOT NULL,"
    " stated TEXT NOT NULL, links TEXT NOT NULL, depth INTEGER NOT NULL, gone TEXT NOT NULL, since TEXT NOT NULL,"
    " is_staged INTEGER NOT NULL) STRICT",
    "CREATE TABLE queue (number INTEGER PRIMARY KEY, url TEXT NOT NULL UNIQUE, depth INTEGER NOT NULL,"
    " hops INTEGER NOT NULL, is_done INTEGER NOT NULL DEFAULT 0) STRICT",
    "PRAGMA user_version = 1",
)
_SIDECAR: Final = "metadata.jsonl"


class Waiting(NamedTuple):
    """An address to request in this run."""

    number: int
    url: str
    depth: int
    """Links from the start."""
    hops: int
    """Redirects that led here."""


@dataclass(frozen=True, slots=True)
class Page:
    """A document that was received."""

    url: str
    file: str
    kind: str
    """Its content type."""
    sha256: str
    """SHA-256 of the file."""
    size: int
    fetched: str
    """When this content was first received, in ISO 8601."""
    etag: str
    modified: str
    """``Last-Modified`` of the last answer, verbatim, for conditional requests."""
    stated: str
    """``Last-Modified`` of the answer with this content, in ISO 8601; empty if there was none."""
    links: tuple[str, ...]
    depth: int
    gone: str = ""
    """Why the document is no longer on the site; empty if it still is."""
    since: str = ""
    """When it was found to be gone, in ISO 8601."""
    is_staged: bool = False
    """Whether its file is not yet in the folder."""


class State:
    """What a folder's mirror knows; only one process at a time may hold it.

    Raises InvalidArgument if the folder holds anything that was not mirrored, or mirrors a different ``start``;
    StoreLocked if another process mirrors into it.
    """

    def __init__(self, folder: Path, start: str) -> None:
        self.folder = folder = folder.resolve()
        if not folder.name or (folder.exists() and not folder.is_dir()):
            raise InvalidArgument(f"{folder} cannot hold a mirror; want a folder that is empty or new")
        self.home = folder.with_name(folder.name + ".fetch")
        self._staged = self.home / "staged"
        path = self.home / "state.db"
        if not path.exists() and folder.exists() and any(folder.iterdir()):
            raise InvalidArgument(
                f"{folder} holds files that were not fetched; want an empty or a new folder"
            )
        folder.mkdir(parents=True, exist_ok=True)
        self._staged.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(path, timeout=0, isolation_level=None)
        try:
            self._db.create_function("host_of", 1, lambda url: urlsplit(url).hostname, deterministic=True)
            self._open(start)
        except BaseException as error:
            self._db.close()
            if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
                raise StoreLocked(f"another process is fetching into {folder}; wait until it ends") from None
            if isinstance(error, sqlite3.DatabaseError):
                raise CorruptFile(
                    f"{path} is damaged ({error}); remove {self.home} and {folder}, and fetch again"
                ) from None
            raise

    def _open(self, start: str) -> None:
        self._db.execute("PRAGMA locking_mode = EXCLUSIVE")  # the lock is kept until the connection ends
        self._db.execute("PRAGMA synchronous = FULL")
        with self.transaction():
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if version == 0:
                for statement in _SCHEMA:
                    self._db.execute(statement)
            elif version != 1:
                raise CorruptFile(f"{self.home} has version {version}; want 1, which this program writes")
            known = self.get("start")
            if known and known != start:
                raise InvalidArgument(
                    f"{self.folder} mirrors {known}; give that start, or a different folder"
                )
            self.set("start", start)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make all writes within the block durable together, or none of them."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            raise

    def get(self, name: str) -> str:
        """Return a value, or an empty text if it was never set."""
        row = self._db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return row[0] if row else ""

    def set(self, name: str, value: str) -> None:
        """Keep a value."""
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    # --- what is left to ask ---

    def keep_scope(self, scope: str) -> str:
        """Record what is mirrored from now on; return what was mirrored before, if that differs.

        If it differs, each HTML page is requested in full, because only its links within the old scope are known.
        """
        known = self.get("scope")
        if known == scope:
            return ""
        with self.transaction():
            self._db.execute("UPDATE pages SET etag = '', modified = '' WHERE kind LIKE '%html%'")
            self.set("scope", scope)
        return known

    def begin(self, start: str) -> bool:
        """Begin a run with the start and every known page, unless an earlier run is to be continued; tell which."""
        if self.left():
            return False
        with self.transaction():
            self._db.execute("DELETE FROM queue")
            self.add([start], depth=0)
            self._db.execute(
                "INSERT OR IGNORE INTO queue (url, depth, hops) SELECT url, depth, 0 FROM pages ORDER BY depth, rowid"
            )
        return True

    def add(self, urls: list[str], *, depth: int, hops: int = 0, most: int = sys.maxsize) -> int:
        """Record addresses to request, unless they are recorded already; return how many the run has no room for."""
        beyond, room = 0, most - self._count("queue")
        for url in urls:
            if self._db.execute("SELECT 1 FROM queue WHERE url = ?", (url,)).fetchone():
                continue
            if room > 0:
                self._db.execute("INSERT INTO queue (url, depth, hops) VALUES (?, ?, ?)", (url, depth, hops))
                room -= 1
            else:
                beyond += 1
        return beyond

    def next(self, resting: Collection[str] = ()) -> Waiting | None:
        """Return what to request next, nearest to the start first; None if only resting hosts have any left."""
        row = self._db.execute(
            "SELECT number, url, depth, hops FROM queue WHERE NOT is_done"
            " AND host_of(url) NOT IN (SELECT value FROM json_each(?)) ORDER BY depth, number LIMIT 1",
            (json.dumps([*resting]),),
        ).fetchone()
        return Waiting(*row) if row else None

    def done(self, one: Waiting) -> None:
        """Record that an address was dealt with in this run."""
        self._db.execute("UPDATE queue SET is_done = 1 WHERE number = ?", (one.number,))

    def left(self) -> int:
        """Return the number of addresses left to request."""
        return self._count("queue WHERE NOT is_done")

    def _count(self, what: str) -> int:
        return int(self._db.execute(f"SELECT count(*) FROM {what}").fetchone()[0])  # noqa: S608 - ours

    # --- documents ---

    def page(self, url: str) -> Page | None:
        """Return what is known about an address's document."""
        return next(self._pages("WHERE url = ?", url), None)

    def pages(self) -> list[Page]:
        """Return all documents by file name."""
        return [*self._pages("ORDER BY file")]

    def size(self) -> int:
        """Return the total size of all documents in bytes."""
        return int(self._db.execute("SELECT coalesce(sum(size), 0) FROM pages").fetchone()[0])

    def put(self, page: Page) -> None:
        """Keep what is known about a document."""
        row = {name: getattr(page, name) for name in Page.__slots__} | {"links": json.dumps(page.links)}
        marks = ", ".join(f":{name}" for name in row)
        self._db.execute(f"INSERT OR REPLACE INTO pages ({', '.join(row)}) VALUES ({marks})", row)  # noqa: S608

    def stage(self, file: str, content: bytes) -> None:
        """Write a document durably to where :meth:`publish` finds it."""
        _write(self._staged / file, content)

    def content(self, page: Page) -> bytes | None:
        """Return a document's file if it is as it was received; otherwise None, and it must be received again."""
        with suppress(OSError):
            content = ((self._staged if page.is_staged else self.folder) / page.file).read_bytes()
            if hashlib.sha256(content).hexdigest() == page.sha256:
                return content
        return None

    def publish(self) -> None:
        """Move what was received into the folder, after stating its facts there, and list what is gone.

        Being killed loses nothing: the next call moves whatever is still marked as staged.
        """
        pages = self.pages()
        staged = [page for page in pages if page.is_staged]
        if pages:
            self._write_lines(self.folder / _SIDECAR, [_facts(page) for page in pages])
        for page in staged:
            source, target = self._staged / page.file, self.folder / page.file
            with suppress(FileNotFoundError):  # a run was killed after moving it, before recording that
                source.replace(target)
        if staged:
            _sync(self.folder)
            with self.transaction():
                self._db.execute("UPDATE pages SET is_staged = 0")
        gone = [
            {"file": page.file, "url": page.url, "why": page.gone, "since": page.since}
            for page in pages
            if page.gone
        ]
        self._write_lines(self.home / "gone.jsonl", gone)

    def _write_lines(self, path: Path, rows: list[dict[str, str]]) -> None:
        """Replace a JSON Lines file in one step, as the folder may be read meanwhile, unless it has these lines."""
        content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
        with suppress(FileNotFoundError):
            if path.read_bytes() == content:
                return
        scratch = self.home / f"{path.name}.new"
        _write(scratch, content)
        scratch.replace(path)
        _sync(path.parent)

    def _pages(self, where: str, *values: str) -> Iterator[Page]:
        names = Page.__slots__
        for row in self._db.execute(f"SELECT {', '.join(names)} FROM pages {where}", values):  # noqa: S608 - ours
            known = dict(zip(names, row, strict=True))
            known["links"] = tuple(json.loads(known["links"]))
            known["is_staged"] = bool(known["is_staged"])
            yield Page(**known)


def _facts(page: Page) -> dict[str, str]:
    stated = {"last_modified": page.stated} if page.stated else {}
    return {"file": page.file, "url": page.url, "fetched": page.fetched, **stated}


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    _sync(path.parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
