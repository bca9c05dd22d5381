"""Erase documents from a store's tables, leaving what proofs and replays need: words, instants, hashes under a key.

An erased document keeps its rows, so that labels stay numbered without a gap and an earlier index state can still be
computed. The rows hold no text, name, metadata or vector any more. Of each passage stays the digest by which records
name it, of each label its place and its leaf in the index state.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from carag.errors import CaragError
from carag.labelling.acts import unread
from carag.labelling.canonical_json import canonical_json
from carag.limits import ERASED
from carag.policy import EVERYBODY, NO_ENTITY
from carag.policy.audience import Audience, one_spelling
from carag.store import _rows as rows
from carag.store._audiences import JOINED, STATE_LABEL
from carag.store._entity_sets import FIRST_SET
from carag.store._label_history import begin_change

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from carag.store.values import Reading

ERASURE_TABLES: Final = (
    # One row for each version of a document that was erased; its row of filings holds nothing about it.
    """
    CREATE TABLE erased (
        filing INTEGER PRIMARY KEY REFERENCES filings,
        id_hash BLOB NOT NULL,              -- salted: the record of the erasure commits to id and salt
        record INTEGER NOT NULL,
        basis TEXT NOT NULL,
        erased_at INTEGER NOT NULL REFERENCES changes
    ) STRICT""",
    # What the index state holds of a label whose passage was erased.
    """
    CREATE TABLE erased_labels (
        label INTEGER PRIMARY KEY REFERENCES labels,
        place BLOB NOT NULL,
        leaf BLOB NOT NULL
    ) STRICT""",
)
UNFINISHED: Final = "erasing"
"""The note of how many records the log had before an erasure that is not finished; empty without one."""
_NAMED: Final = "SELECT CAST(value AS TEXT) FROM json_each(:ids)"
_FILINGS: Final = "SELECT value FROM json_each(:filings)"
_KEYS: Final = f"SELECT key FROM chunks WHERE filing IN ({_FILINGS})"  # noqa: S608 - constants
_STATEMENTS: Final = (
    f"DELETE FROM embedded WHERE key IN ({_KEYS})",  # noqa: S608 - constants, here and below
    f"DELETE FROM vectors WHERE key IN ({_KEYS})",  # noqa: S608
    f"DELETE FROM label_audiences WHERE label IN (SELECT label FROM labels WHERE key IN ({_KEYS}))",  # noqa: S608
    f"DELETE FROM document_audiences WHERE filing IN ({_FILINGS})",  # noqa: S608
    f"DELETE FROM filing_ciks WHERE filing IN ({_FILINGS})",  # noqa: S608
    f"UPDATE labels SET entity = {NO_ENTITY}, causes = '[]' WHERE key IN ({_KEYS})",  # noqa: S608
    f"UPDATE filings SET accession_number = '{ERASED}' || filing, version = 0, form = '', company = '', filed = '', "  # noqa: S608
    "content_hash = '', facts = '{}', causes = '{}', public_at_source = '', quarantine_code = NULL, "
    f"quarantine_text = NULL, history = '' WHERE filing IN ({_FILINGS})",
)
_KEEP_FACTS: Final = "UPDATE filings SET facts = ? WHERE filing = ? AND superseded_by_version IS NULL"
_ERASE_CHUNK: Final = (
    f"UPDATE chunks SET chunk_id = '{ERASED}' || key, document = '', start_offset = 0, end_offset = 0, "  # noqa: S608
    f"entity = {NO_ENTITY}, text_sha256 = ?, text = '' WHERE key = ?"
)
_UNUSED_AUDIENCES: Final = """
    SELECT number, stated FROM audiences WHERE number NOT IN (SELECT audience FROM label_audiences)
    AND number NOT IN (SELECT audience FROM document_audiences)"""
_UNUSED_SETS: Final = """
    SELECT number FROM entity_sets WHERE number NOT IN (SELECT entity FROM labels)
    AND number NOT IN (SELECT entity FROM chunks)"""
_MENTIONING: Final = (
    "SELECT filing, facts, history FROM filings WHERE facts LIKE ? OR facts LIKE ? OR history LIKE ?"
)
_MENTIONS: Final = ('%"supersedes":"%', '%"acts":[[%', '%"%')
"""What stands in facts and history where they name another document. Few do, and under the lock all others would be
parsed."""
_SOURCE: Final = "source_%"
"""Names of the notes of which folder gave which document."""


class Remnant(NamedTuple):
    """What stays of a document's facts, so that what it did to other documents is not undone."""

    id_hash: bytes
    """The salted hash of its id."""
    made: Callable[[str], tuple[Mapping[str, Any], Sequence[int]]]
    """Makes the facts, given the name that the document has from now on, and the numbers that connect it with documents
    that it had an effect on."""


class ErasedPassage(NamedTuple):
    """A passage that is about to be erased, and what stays of it."""

    key: int
    digest: bytes
    """20 bytes: the digest by which records name it as a hit."""


class ErasedLabel(NamedTuple):
    """A label of such a passage, and what the index state holds of it."""

    label: int
    place: bytes
    leaf: bytes


class ErasedDocument(NamedTuple):
    """What a store knows about a document that was erased."""

    id_hash: bytes
    record: int
    """Sequence number of the record of the erasure."""
    basis: str
    erased_at: int
    """Microseconds since 1970."""


class Erasures:
    """The erased documents of a :class:`~carag.store.store.CorpusStore`.

    ``erasing`` lends a connection that may delete, in a transaction; ``clock`` returns microseconds since 1970.
    """

    def __init__(
        self, reading: Reading, erasing: Callable[[], AbstractContextManager[Any]], clock: Callable[[], int]
    ) -> None:
        self._reading = reading
        self._erasing = erasing
        self._clock = clock

    def keys(self) -> list[int]:
        """Return the numbers of all erased passages."""
        with self._reading() as sql:
            return [
                key for (key,) in sql.execute("SELECT key FROM chunks JOIN erased USING (filing)").fetchall()
            ]

    def last(self) -> int:
        """Return the number of the last record whose erasure was carried out here; -1 before the first."""
        with self._reading() as sql:
            return int(sql.execute("SELECT coalesce(max(record), -1) FROM erased").fetchone()[0])

    def digests(self, record: int) -> set[bytes]:
        """Return the digests of the passages that a record's erasure took, by which other records name them."""
        query = "SELECT text_sha256 FROM chunks JOIN erased USING (filing) WHERE record = ?"
        with self._reading() as sql:
            return {digest for (digest,) in sql.execute(query, (record,)).fetchall()}

    def passages(self, ids: Collection[str]) -> list[tuple[int, str, bytes]]:
        """Return key, id and text hash of every passage of some documents, those of earlier versions included."""
        query = (
            "SELECT key, chunk_id, text_sha256 FROM chunks JOIN filings USING (filing) "  # noqa: S608 - a constant
            f"WHERE accession_number IN ({_NAMED}) ORDER BY key"
        )
        with self._reading() as sql:
            return [(key, id_, digest) for key, id_, digest in sql.execute(query, _ids(ids)).fetchall()]

    def labels(self, ids: Collection[str]) -> list[tuple[int, tuple[str, bytes, int, int, int, str]]]:
        """Return every label of some documents: its key, and what the index state is made of for it."""
        query = (
            f"SELECT label, {STATE_LABEL} "  # noqa: S608 - constants
            f"FROM labels JOIN chunks USING (key) JOIN filings USING (filing) {JOINED} "
            f"WHERE accession_number IN ({_NAMED}) ORDER BY label"
        )
        with self._reading() as sql:
            return [(row[0], tuple(row[1:])) for row in sql.execute(query, _ids(ids)).fetchall()]

    def of_digests(self, digests: Iterable[bytes]) -> dict[bytes, ErasedDocument]:
        """Return, by the digest of a hit, the document that an erased passage belonged to."""
        query = (
            "SELECT id_hash, record, basis, erased_at FROM chunks JOIN erased USING (filing) "
            "WHERE text_sha256 = ? AND chunk_id = ? || key"
        )
        with self._reading() as sql:
            found = {one: sql.execute(query, (one, ERASED)).fetchone() for one in digests}
        return {one: ErasedDocument(*row) for one, row in found.items() if row is not None}

    def are_gone(self, chunk_ids: Collection[str]) -> bool:
        """Tell whether any of some passages that were in the store is there no longer."""
        query = f"SELECT count(*) FROM chunks WHERE chunk_id IN ({_NAMED})"  # noqa: S608 - a constant
        with self._reading() as sql:
            found = sql.execute(query, _ids(chunk_ids)).fetchone()[0]
        return bool(found < len({*chunk_ids}))

    def erase(
        self,
        remnants: Mapping[str, Remnant],
        passages: Iterable[ErasedPassage],
        labels: Iterable[ErasedLabel],
        *,
        record: int,
        basis: str,
    ) -> int:
        """Erase documents, all of which were removed before, in one transaction; return when, in microseconds.

        Parameters
        ----------
        remnants : mapping of str to Remnant
            By the id of each document.
        passages, labels : iterable
            What :meth:`passages` and :meth:`labels` returned, and what stays of each.
        record : int
            The record that states the erasure.
        """
        with self._erasing() as sql:
            return _erase(sql, remnants, passages, labels, record=record, basis=basis, now=self._clock())


def _ids(ids: Collection[str]) -> dict[str, str]:
    return {"ids": json.dumps([*ids])}


def _erase(
    sql: sqlite3.Connection,
    remnants: Mapping[str, Remnant],
    passages: Iterable[ErasedPassage],
    labels: Iterable[ErasedLabel],
    *,
    record: int,
    basis: str,
    now: int,
) -> int:
    query = f"SELECT filing, accession_number FROM filings WHERE accession_number IN ({_NAMED})"  # noqa: S608
    filings = dict(sql.execute(query, _ids(remnants)).fetchall())
    query = f"SELECT count(*) FROM labels WHERE known_to IS NULL AND key IN ({_KEYS})"  # noqa: S608
    if sql.execute(query, _rows_of(filings)).fetchone()[0]:
        raise CaragError("a document was added again while it was being erased; erase it again")
    at = begin_change(sql, min(filings), now)  # by which other processes notice that something changed
    sql.executemany("INSERT INTO erased_labels (label, place, leaf) VALUES (?, ?, ?)", [*labels])
    for statement in _STATEMENTS:
        sql.execute(statement, _rows_of(filings))
    sql.executemany(_ERASE_CHUNK, [(one.digest, one.key) for one in passages])
    for filing, id_ in filings.items():
        facts, ciks = remnants[id_].made(f"{ERASED}{filing}")
        sql.execute(_KEEP_FACTS, (canonical_json(dict(facts), "facts that stay"), filing))
        links = [(cik, filing) for cik in ciks]
        sql.executemany("INSERT INTO filing_ciks (cik, filing) VALUES (?, ?)", links)
    sql.executemany(
        "INSERT INTO erased (filing, id_hash, record, basis, erased_at) VALUES (?, ?, ?, ?, ?)",
        [(filing, remnants[id_].id_hash, record, basis, at) for filing, id_ in filings.items()],
    )
    _erase_mentions(sql, {id_: f"{ERASED}{filing}" for filing, id_ in filings.items()})
    _erase_places(sql, remnants)
    _erase_unused(sql)
    rows.raise_epoch(sql)
    return at


def _rows_of(filings: Iterable[int]) -> dict[str, str]:
    return {"filings": json.dumps([*filings])}


def _erase_mentions(sql: sqlite3.Connection, names: Mapping[str, str]) -> None:
    """Replace ids in what other documents state about them, and in what their labels were caused by."""

    def caused(causes: list[list[str]]) -> list[list[str]]:
        return [[bit, names.get(by, by)] for bit, by in causes]

    names = {**names, **{unread(id_): name for id_, name in names.items()}}
    changed = []
    for filing, facts, history in sql.execute(_MENTIONING, _MENTIONS).fetchall():
        new = _renamed_facts(json.loads(facts), names), history
        if history:
            spans = [[since, bits, caused(causes)] for since, bits, causes in json.loads(history)]
            new = new[0], canonical_json(spans, "history of a filing")
        if new != (facts, history):
            changed.append((*new, filing))
    sql.executemany("UPDATE filings SET facts = ?, history = ? WHERE filing = ?", changed)
    for (text,) in sql.execute("SELECT DISTINCT causes FROM labels").fetchall():
        if (new_text := canonical_json(caused(json.loads(text)), "causes")) != text:
            sql.execute("UPDATE labels SET causes = ? WHERE causes = ?", (new_text, text))


def _renamed_facts(facts: dict[str, Any], names: Mapping[str, str]) -> str:
    if facts.get("supersedes") in names:
        facts["supersedes"] = names[facts["supersedes"]]
    if "acts" in facts:
        facts["acts"] = [[kind, names.get(name, name), since] for kind, name, since in facts["acts"]]
    return canonical_json(facts, "facts of a document")


def _erase_places(sql: sqlite3.Connection, ids: Collection[str]) -> None:
    """Forget which files of a folder the documents were in."""
    for name, value in sql.execute("SELECT name, value FROM meta WHERE name LIKE ?", (_SOURCE,)).fetchall():
        places = json.loads(value)
        if left := {id_: file for id_, file in places.items() if id_ in ids}:
            kept = {id_: file for id_, file in places.items() if id_ not in left}
            text = canonical_json(kept, "what a folder gave")
            sql.execute("UPDATE meta SET value = ? WHERE name = ?", (text, name))


def _erase_unused(sql: sqlite3.Connection) -> None:
    """Erase audiences, names of principals and sets of entities that no other document has."""
    gone = [row for row in sql.execute(_UNUSED_AUDIENCES).fetchall() if row[0] != EVERYBODY]
    closed = [(Audience(allow=[f"{ERASED}{number}"]).text, number) for number, _ in gone]
    sql.executemany("UPDATE audiences SET stated = ? WHERE number = ?", closed)
    named = {one for _, stated in gone for one in Audience.read(stated).named}
    left = {
        one
        for (stated,) in sql.execute("SELECT stated FROM audiences").fetchall()
        for one in Audience.read(stated).named
    }
    spellings = [(one_spelling(one),) for one in named - left if not one.startswith(ERASED)]
    sql.executemany("DELETE FROM principals WHERE spelling = ?", spellings)
    for (number,) in sql.execute(_UNUSED_SETS).fetchall():
        metadata = canonical_json({"erased": number - FIRST_SET}, "metadata of a passage")
        sql.execute("UPDATE entity_sets SET ciks = '[]', metadata = ? WHERE number = ?", (metadata, number))
