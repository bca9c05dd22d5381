"""Number the audiences of documents, and find those that a session belongs to.

A row of the index has room for one 32-bit number; 0 is everybody. What a number stands for never changes, so that a
change of a document's audience is a change of its labels, with a history like any other.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from carag.errors import CaragError, CorruptFile, InvalidArgument
from carag.limits import quoted
from carag.policy import EVERYBODY, NO_LISTS, Audience
from carag.policy.audience import MAX_AUDIENCE, is_group, one_spelling
from carag.policy.entities import NOBODY as NONE
from carag.policy.entities import EntityList, entity_list

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from carag.policy import Identity

AUDIENCE_TABLES: Final = (
    # No row of these tables is ever changed or deleted.
    """
    CREATE TABLE audiences (
        number INTEGER PRIMARY KEY CHECK (number BETWEEN 1 AND 0xFFFFFFFE),
        stated TEXT NOT NULL UNIQUE         -- JSON: the lists allow and deny
    ) STRICT""",
    """
    CREATE TABLE principals (
        spelling TEXT PRIMARY KEY,          -- the form in which two spellings of one name are equal
        name TEXT NOT NULL
    ) STRICT, WITHOUT ROWID""",
    # Of documents, and of labels, that are not for everybody.
    """
    CREATE TABLE document_audiences (
        filing INTEGER PRIMARY KEY REFERENCES filings,
        audience INTEGER NOT NULL REFERENCES audiences
    ) STRICT""",
    """
    CREATE TABLE label_audiences (
        label INTEGER PRIMARY KEY REFERENCES labels,
        audience INTEGER NOT NULL REFERENCES audiences
    ) STRICT""",
)
JOINED: Final = "LEFT JOIN label_audiences USING (label) LEFT JOIN audiences ON audience = audiences.number"
"""Adds to labels who may see them."""
STATED: Final = "CASE WHEN audience IS NULL THEN NULL ELSE coalesce(stated, '') END"
"""With :data:`JOINED`, what :func:`audience_of` reads: NULL is everybody, and a lost audience is not."""
STATE_LABEL: Final = "chunk_id, text_sha256, labels.word, valid_from, valid_to, coalesce(stated, '')"
"""With :data:`JOINED`, the columns of which the index state makes a label."""
_KEPT: Final = 256
"""Greatest number of sessions whose audiences are kept."""
_SPELLED: Final = """
    SELECT spelling, name FROM principals WHERE spelling IN (SELECT CAST(value AS TEXT) FROM json_each(:some))
    UNION SELECT spelling, name FROM groups WHERE spelling IN (SELECT CAST(value AS TEXT) FROM json_each(:some))"""


def number_of(sql: sqlite3.Connection, audience: Audience) -> int:
    """Return the number of an audience, a new one for a new audience.

    Raises InvalidArgument if the store knows one of its principals by another spelling.
    """
    if not audience:
        return EVERYBODY
    found = sql.execute("SELECT number FROM audiences WHERE stated = ?", (audience.text,)).fetchone()
    if found is None:
        note_spellings(sql, audience.named)
        found = sql.execute("SELECT coalesce(max(number) + 1, 1) FROM audiences").fetchone()
        if found[0] > MAX_AUDIENCE:
            raise CaragError("the store has no numbers left for audiences; ingest into a second store")
        sql.execute("INSERT INTO audiences (number, stated) VALUES (?, ?)", (found[0], audience.text))
    return int(found[0])


@lru_cache(maxsize=4096)
def audience_of(stated: str | None) -> Audience:
    """Return the audience that is stated, None for everybody; ValueError if it is lost or altered."""
    if stated is None:
        return NO_LISTS
    if not (found := Audience.read(stated)):
        raise ValueError("who may see it is lost")
    return found


def put_audiences(sql: sqlite3.Connection, of: Iterable[tuple[int, Audience]]) -> None:
    """Store the audience of each document that is not for everybody, by its row."""
    stated = [(filing, number_of(sql, audience)) for filing, audience in of if audience]
    sql.executemany("INSERT INTO document_audiences (filing, audience) VALUES (?, ?)", stated)


def spelled(sql: sqlite3.Connection, principals: Iterable[str]) -> dict[str, str]:
    """Return the spellings that the store knows of some principals, by the form in which spellings are equal."""
    some = json.dumps([one_spelling(one) for one in principals])
    return dict(sql.execute(_SPELLED, {"some": some}).fetchall())


def other_spelling(principals: Iterable[str], known: Mapping[str, str]) -> str | None:
    """Say which of some principals is known by another spelling; None if all are known as stated."""
    for name in principals:
        if (other := known.get(one_spelling(name), name)) != name:
            return f"the principal {quoted(name)} is known by another spelling, {quoted(other)}; use that one"
    return None


def note_spellings(sql: sqlite3.Connection, principals: Iterable[str]) -> None:
    """Keep the first spelling of each principal; InvalidArgument for a second one."""
    named = {*principals}
    if wrong := other_spelling(named, spelled(sql, named)):
        raise InvalidArgument(wrong)
    sql.executemany(
        "INSERT INTO principals (spelling, name) VALUES (?, ?) ON CONFLICT DO NOTHING",
        [(one_spelling(one), one) for one in named],
    )


class Audiences:
    """The audiences of a store, in memory; new ones are read when needed. ``path`` is the store, for messages."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._for_all = np.zeros(1, dtype=bool)
        """By number: whether there is no allow list."""
        self._allowing: dict[str, list[int]] = defaultdict(list)
        self._denying: dict[str, list[int]] = defaultdict(list)
        self._denying_groups: list[str] = []
        self._columns: dict[tuple[bool, str], NDArray[np.int64]] = {}
        self._kept: dict[Identity, EntityList] = {}
        self._lock = threading.Lock()
        """Threads that read a shared store have a connection each."""

    def of(self, sql: sqlite3.Connection, number: int) -> Audience:
        """Return the audience of a number; CorruptFile if the store does not have it."""
        found = sql.execute("SELECT stated FROM audiences WHERE number = ?", (number,)).fetchone()
        try:
            return audience_of(None if number == EVERYBODY else "" if found is None else found[0])
        except (ValueError, TypeError) as error:
            raise CorruptFile(f"{self._path}: audience {number} is lost; restore a backup") from error

    def admitted(self, sql: sqlite3.Connection, identity: Identity) -> EntityList:
        """Return the numbers of the audiences that a session belongs to, without that of everybody."""
        if not identity.denied:
            return NONE
        with self._lock:
            self._read_on(sql)
            if (found := self._kept.get(identity)) is None:
                if len(self._kept) >= _KEPT:
                    self._kept.clear()
                found = self._kept[identity] = entity_list("audiences", self._numbers(identity))
            return found

    def _numbers(self, identity: Identity) -> NDArray[np.int64]:
        is_in = self._for_all.copy()
        for one in identity.allowed:
            is_in[self._column(one, denies=False)] = True
        for one in identity.barred:
            is_in[self._column(one, denies=True)] = False
        for one in self._denying_groups:
            if one not in identity.groups:
                is_in[self._column(one, denies=True)] = False
        return np.flatnonzero(is_in)

    def _column(self, principal: str, *, denies: bool) -> NDArray[np.int64]:
        """Return the numbers of the audiences that name a principal on one list."""
        key = denies, principal
        if key not in self._columns:
            lists = self._denying if denies else self._allowing
            self._columns[key] = np.array(lists.get(principal, ()), np.int64)
        return self._columns[key]

    def _read_on(self, sql: sqlite3.Connection) -> None:
        query = "SELECT number, stated FROM audiences WHERE number > ? ORDER BY number"
        found = sql.execute(query, (len(self._for_all) - 1,)).fetchall()
        if not found:
            return
        if found[-1][0] - len(self._for_all) + 1 != len(found):
            raise CorruptFile(
                f"{self._path}: audiences before number {found[-1][0]} are lost; restore a backup"
            )
        self._columns.clear()
        self._kept.clear()
        is_for_all = np.zeros(found[-1][0] + 1, dtype=bool)
        is_for_all[: len(self._for_all)] = self._for_all
        for number, stated in found:
            try:
                one = audience_of(stated)
            except (ValueError, TypeError) as error:
                raise CorruptFile(
                    f"{self._path}: audience {number} is not valid; restore a backup"
                ) from error
            is_for_all[number] = one.allow is None
            for principal in one.allow or ():
                self._allowing[principal].append(number)
            for principal in one.deny:
                self._denying[principal].append(number)
        self._for_all = is_for_all
        self._denying_groups = [one for one in self._denying if is_group(one)]
