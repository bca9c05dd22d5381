"""Store the committed values of records, encrypted so that destroying a key erases them (crypto-shredding).

Values are sealed under a key that belongs to their person (or to their record, if it names no person), so that
destroying one small key destroys everything sealed under it, even in copies of the file. The chain of keys::

    key file  ->  shelf (512 holders)  ->  holder (a subject, or a record)  ->  opening (salt and value)

An erasure replaces the keys along the chain above the deleted values and seals the remaining values again; shelves keep
that work small. A subject is found by its pseudonym, HMAC(index key, subject); the file never holds it in clear.

Openings are written in the transaction of their record: no record lacks its values, and no value its record.
"""

from __future__ import annotations

import contextlib
import threading
from secrets import token_bytes
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from carag.audit._sqlite import insert
from carag.audit.private.keys import KEY_SIZE, NONCE_SIZE, PrivateKeys, seal, unseal, unwrap, wrap
from carag.audit.records.commitment import hmac_sha256, random_parts
from carag.audit.records.custody import Target
from carag.errors import CorruptFile, InvalidArgument, Refused

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from carag.audit._sqlite import SqliteLink
    from carag.audit.records.commitment import Opening


HOLDERS_A_SHELF: Final = 512
"""Number of holders per shelf."""
VALUE_TABLES: Final = (
    "CREATE TABLE shelf (id INTEGER PRIMARY KEY, wrapped BLOB NOT NULL)",
    "CREATE TABLE holder (id INTEGER PRIMARY KEY, pseudonym BLOB NOT NULL UNIQUE, wrapped BLOB NOT NULL)",
    # Rows are in order of insertion, because a tree by key would move half of its last leaves at each batch.
    "CREATE TABLE value (seq INTEGER, field TEXT, holder INTEGER NOT NULL, box BLOB NOT NULL, "
    "PRIMARY KEY (seq, field))",
    "CREATE INDEX value_holder ON value (holder) WHERE field = 'subject'",
    "CREATE TABLE erased (seq INTEGER, field TEXT, record INTEGER NOT NULL, "
    "PRIMARY KEY (seq, field)) WITHOUT ROWID",
    "CREATE TABLE planned (seq INTEGER, field TEXT, PRIMARY KEY (seq, field)) WITHOUT ROWID",
    "CREATE TABLE hold (placed INTEGER PRIMARY KEY, holder INTEGER, first INTEGER, last INTEGER)",
    "CREATE TABLE state (id INTEGER PRIMARY KEY CHECK (id = 0), wrapping BLOB NOT NULL, "
    "settled INTEGER NOT NULL)",
)
"""Statements that make the tables. ``planned`` belongs to an erasure that a version up to 0.3 left unfinished.

All values of a record have one holder: its subject's or, without a subject, its own. So the records of a subject's
holder are those whose subject the holder seals, and only these are indexed.
"""
SEALED: Final = ("shelf", "holder", "value", "planned", "hold", "state")
"""Tables that mean nothing without the keys."""
_MAX_CACHED_HOLDERS: Final = 4096
"""Greatest number of holders whose keys are kept in memory."""
_SETTLED_EVERY: Final = 256
"""Number of records after which a batch notes that nothing before the batch is left to carry out."""


class HoldRow(NamedTuple):
    """A legal hold in force: on one holder, on the records ``first..last``, or on everything."""

    placed: int
    holder: int | None
    first: int | None
    last: int | None


class PrivateStore:
    """Sealed openings of commitments, with those that were erased and the legal holds.

    They are in the log's file, and the keys in ``private.key`` beside it. With ``may_lose``, for a log without records
    or if the loss is accepted, values that cannot be opened are given up (:attr:`is_lost`); otherwise CorruptFile names
    the file to restore.
    """

    def __init__(self, link: SqliteLink, *, may_lose: bool) -> None:
        self._link, self._path = link, link.path
        self._db: Any = link
        self._begin()
        self._mutex, link.undone = link.mutex, self._forget
        key, self.is_lost = self._path.with_name("private.key"), False
        try:
            self._unlock(PrivateKeys(key), self._in_force())
        except CorruptFile as error:
            if not may_lose:
                raise CorruptFile(
                    f"{error}; restore both from one backup, or go on without the values, on record, with: carag audit "
                    f"accept --lost-values --store {self._path.parent}"
                ) from error
            self.is_lost = True
            keys = PrivateKeys(key, new=True)
            self._unlock(keys, keys.newest)

    def _begin(self) -> None:
        self._erasing = threading.Lock()
        self._unsettled = True  # until settle() is called
        self._forget()

    def _in_force(self) -> bytes:
        if self._link.lacks_later():
            raise CorruptFile(
                f"{self._path} has records, and their values are nowhere: private.db is missing or empty"
            )
        return bytes(self._one("SELECT wrapping FROM state"))

    def _unlock(self, keys: PrivateKeys, wrapping: bytes) -> None:
        self._keys, self._wrapping_id, self._wrapping = keys, wrapping, keys.wrapping(wrapping)
        self._keys.keep_only(wrapping)  # of two, if an erasure was interrupted

    def start_over(self) -> None:
        """Drop the values that are lost, within the turn that records the loss; what was erased stays known."""
        with self._writing() as db:
            if self._link.lacks_later():
                for statement in VALUE_TABLES:
                    db.execute(statement)
            for table in SEALED:
                db.execute(f"DELETE FROM {table}")  # noqa: S608 - the tables of this file
            db.execute("INSERT INTO state VALUES (0, ?, 0)", (self._wrapping_id,))
        self.is_lost = False

    # -- openings

    def put(self, rows: Mapping[int, Mapping[str, Opening]]) -> None:
        """Store the openings of the records about to be written, all or none, within the turn that writes the records.

        ``rows`` has an entry for each sequence number. Raises AuditUnavailable if they could not be written.
        """
        with self._writing() as db:
            tags = {seq: self._tag_of(seq, openings) for seq, openings in rows.items() if openings}
            holders = self._holders_of(db, tags.values())
            sealed = []
            nonces = iter(random_parts(*[NONCE_SIZE] * sum(map(len, rows.values()))))
            for seq, tag in tags.items():
                holder, key = holders[tag]
                sealed += [
                    (seq, name, holder, seal(key, kept, seq, name, next(nonces)))
                    for name, kept in rows[seq].items()
                ]
            insert(db, "value", sealed)
            self._note_settled(db, range(min(rows), max(rows) + 1))

    def openings(self, seq: int) -> dict[str, Opening]:
        """Return the openings of a record, by field."""
        with self._mutex, self._reading():
            rows = self._db.execute(
                "SELECT field, holder, wrapped, box FROM value JOIN holder ON holder = holder.id "
                "WHERE seq = ? ORDER BY field",
                (seq,),
            ).fetchall()
            return {
                name: unseal(self._holder_key(self._db, holder, wrapped), box, seq, name)
                for name, holder, wrapped, box in rows
            }

    def newest_of(
        self, subject: str, fields: Collection[str], most: int
    ) -> list[tuple[int, dict[str, Opening]]]:
        """Return some fields' openings of a subject's newest records, the newest first.

        They may be used for the subject's own requests alone; to show them to anybody else, use the functions that
        record it.
        """
        query = (
            "SELECT seq, field, holder, wrapped, box FROM value JOIN holder ON holder = holder.id "
            "WHERE seq IN (SELECT named.seq FROM value AS named JOIN holder AS whose ON named.holder = whose.id "
            "WHERE whose.pseudonym = ? AND named.field = 'subject' ORDER BY named.seq DESC LIMIT ?) ORDER BY seq DESC"
        )
        found: dict[int, dict[str, Opening]] = {}
        with self._mutex, self._reading():
            rows = self._db.execute(query, (self._subject_tag(subject), most)).fetchall()
            for seq, name, holder, wrapped, box in rows:
                if name in fields:
                    key = self._holder_key(self._db, holder, wrapped)
                    found.setdefault(seq, {})[name] = unseal(key, box, seq, name)
        return list(found.items())

    def is_empty(self) -> bool:
        """Tell whether there are no values."""
        return not self._one("SELECT EXISTS (SELECT 1 FROM value)")

    def of_subject(self, subject: str) -> list[Target]:
        """Return every opening sealed under a subject's key."""
        return self._targets(
            "SELECT seq, field FROM value WHERE seq IN (SELECT named.seq FROM value AS named JOIN holder "
            "ON named.holder = holder.id WHERE pseudonym = ? AND named.field = 'subject') ORDER BY seq, field",
            self._subject_tag(subject),
        )

    def of_record(self, seq: int) -> list[Target]:
        """Return every opening of a record."""
        return self._targets("SELECT seq, field FROM value WHERE seq = ? ORDER BY field", seq)

    # -- erasing

    @property
    def settled(self) -> int:
        """Number of records of which every erasure and every hold has been carried out here."""
        return int(self._one("SELECT settled FROM state"))

    def settle(self, size: int, *, durably: bool = True) -> None:
        """Note that every erasure and hold in the first ``size`` records has been carried out.

        If there were none, the note need not be durable: a later batch writes it, and opening a log waits for no sync.
        """
        with self._mutex:
            if durably:
                with self._writing() as db:
                    db.execute("DELETE FROM planned")
                    db.execute("UPDATE state SET settled = ? WHERE settled < ?", (size, size))
            self._unsettled = False

    def _note_settled(self, db: sqlite3.Connection, batch: range) -> None:
        """Note, with some batches, that nothing before them is left to carry out."""
        if not self._unsettled and -batch.start % _SETTLED_EVERY < len(batch):
            db.execute("UPDATE state SET settled = ? WHERE settled < ?", (batch.start, batch.start))

    @contextlib.contextmanager
    def settling(self) -> Iterator[None]:
        """Keep :attr:`settled` unchanged while an operation is recorded and carried out; one operation at a time."""
        with self._erasing:
            self._unsettled = True
            try:
                yield
            except (
                InvalidArgument,
                Refused,
            ):  # nothing was changed; after any other error the next opening settles it
                self._unsettled = False
                raise
            self._unsettled = False

    def planned(self) -> list[Target]:
        """Return the values that were to be destroyed by an erasure that an earlier version left unfinished."""
        return self._targets("SELECT seq, field FROM planned ORDER BY seq, field")

    def erase(self, targets: Iterable[Target], record: int) -> None:
        """Destroy openings and every key that could read them, for the erasure record of this number; idempotent.

        Other values sealed under the same keys are sealed again under new ones. When this returns, nothing of the
        openings is left in the file, in its write-ahead log or in the key file. Raises AuditUnavailable if the erasure
        may be incomplete; opening the log again finishes it.
        """
        targets = list(targets)
        with self._mutex:
            with self._writing() as db:
                newest = self._keys.add(self._wrapping_id)
                wrapping = self._keys.wrapping(newest)
                self._delete(db, targets, record)
                for shelf, wrapped in db.execute("SELECT id, wrapped FROM shelf").fetchall():
                    key = unwrap(self._wrapping, wrapped, f"shelf {shelf}")
                    again = wrap(wrapping, key, f"shelf {shelf}")
                    db.execute("UPDATE shelf SET wrapped = ? WHERE id = ?", (again, shelf))
                db.execute("DELETE FROM planned")
                db.execute("UPDATE state SET wrapping = ?", (newest,))
                self._hand_on(db, newest)
            self._forget()
            self._wrapping_id, self._wrapping = newest, wrapping
            self._keys.keep_only(newest)
            self._purge()

    def _hand_on(self, db: sqlite3.Connection, newest: bytes) -> None:
        """Do nothing: no other process has these keys."""

    def _purge(self) -> None:
        """Remove all traces of deleted rows outside the tables."""
        self._link.purge()

    def erased_by(self, seq: int) -> dict[str, int]:
        """Return the fields of a record that were erased, with the records that erased them."""
        with self._mutex, self._reading():
            query = "SELECT field, record FROM erased WHERE seq = ? ORDER BY field"
            return dict(self._db.execute(query, (seq,)).fetchall())

    # -- legal holds

    def hold(
        self, placed: int, *, subject: str | None = None, first: int | None = None, last: int | None = None
    ) -> None:
        """Place a hold on a subject's openings, on those of some records, or on all."""
        with self._writing() as db:
            holder = None if subject is None else self._holder(db, self._subject_tag(subject))[0]
            db.execute("DELETE FROM hold WHERE placed = ?", (placed,))
            db.execute("INSERT INTO hold VALUES (?, ?, ?, ?)", (placed, holder, first, last))

    def release(self, placed: int) -> None:
        """Release a hold."""
        with self._writing() as db:
            db.execute("DELETE FROM hold WHERE placed = ?", (placed,))

    def held(self) -> list[HoldRow]:
        """Return the holds in force, oldest first."""
        with self._mutex, self._reading():
            return [HoldRow(*row) for row in self._db.execute("SELECT * FROM hold ORDER BY placed")]

    def holds_on(self, targets: Iterable[Target]) -> list[HoldRow]:
        """Return the holds in force that cover any of these openings."""
        numbers = {target.seq for target in targets}
        holds = self.held()
        if not holds:
            return []
        with self._mutex, self._reading():
            query = "SELECT DISTINCT holder FROM value WHERE seq = ?"
            holders = {holder for seq in numbers for (holder,) in self._db.execute(query, (seq,))}
        return [hold for hold in holds if _covers(hold, numbers, holders)]

    def unheld(self, size: int) -> list[Target]:
        """Return every opening of the first ``size`` records that no hold in force covers, in order."""
        return self._targets(
            "SELECT seq, field FROM value AS kept WHERE seq < ? AND NOT EXISTS (SELECT 1 FROM hold WHERE "
            "CASE WHEN hold.holder IS NOT NULL "
            "THEN hold.holder IN (SELECT value.holder FROM value WHERE value.seq = kept.seq) "
            "ELSE hold.first IS NULL OR hold.last IS NULL OR kept.seq BETWEEN hold.first AND hold.last END) "
            "ORDER BY seq, field",
            size,
        )

    # -- keys

    def _delete(self, db: sqlite3.Connection, targets: list[Target], record: int) -> None:
        touched: dict[int, set[int]] = {}
        for target in targets:
            query = "SELECT holder FROM value WHERE seq = ? AND field = ?"
            for (holder,) in db.execute(query, target).fetchall():
                touched.setdefault(holder, set()).add(target.seq)
        db.executemany("DELETE FROM value WHERE seq = ? AND field = ?", targets)
        done = [(*each, record) for each in targets]
        db.executemany("INSERT INTO erased VALUES (?, ?, ?) ON CONFLICT DO NOTHING", done)
        for holder, numbers in touched.items():
            self._replace_holder(db, holder, numbers)
        for shelf in {holder // HOLDERS_A_SHELF for holder in touched}:
            self._replace_shelf(db, shelf)

    def _replace_holder(self, db: sqlite3.Connection, holder: int, numbers: Iterable[int]) -> None:
        """Give a holder a new key and seal its remaining openings under that key.

        ``numbers`` are the records with a deleted opening; those that have no subject any more get holders of their
        own, so that they can no longer be linked to that subject, not even by its key.
        """
        tag, wrapped = db.execute("SELECT pseudonym, wrapped FROM holder WHERE id = ?", (holder,)).fetchone()
        old = self._holder_key(db, holder, wrapped)
        query = "SELECT seq FROM value WHERE holder = ? AND field = 'subject'"
        staying = {seq for (seq,) in db.execute(query, (holder,)).fetchall()}
        query = "SELECT seq, field, box FROM value WHERE seq = ?"
        rows = [row for seq in {*staying, *numbers} for row in db.execute(query, (seq,)).fetchall()]
        db.execute("DELETE FROM holder WHERE id = ?", (holder,))
        self._holders.pop(bytes(tag), None)
        if staying:
            secret = token_bytes(KEY_SIZE)
            again = wrap(self._shelf(db, holder // HOLDERS_A_SHELF), secret, f"holder {holder}")
            db.execute("INSERT INTO holder VALUES (?, ?, ?)", (holder, tag, again))
            new = AESGCM(secret)
        for seq, field, box in rows:
            owner, key = (holder, new) if seq in staying else self._holder(db, self._record_tag(seq))
            kept = seal(key, unseal(old, box, seq, field), seq, field)
            db.execute(
                "UPDATE value SET holder = ?, box = ? WHERE seq = ? AND field = ?", (owner, kept, seq, field)
            )

    def _replace_shelf(self, db: sqlite3.Connection, shelf: int) -> None:
        old, secret = self._shelf(db, shelf), token_bytes(KEY_SIZE)
        new = AESGCM(secret)
        rows = db.execute(
            "SELECT id, wrapped FROM holder WHERE id BETWEEN ? AND ?",
            (shelf * HOLDERS_A_SHELF, (shelf + 1) * HOLDERS_A_SHELF - 1),
        ).fetchall()
        for holder, wrapped in rows:
            again = wrap(new, unwrap(old, wrapped, f"holder {holder}"), f"holder {holder}")
            db.execute("UPDATE holder SET wrapped = ? WHERE id = ?", (again, holder))
        place = f"shelf {shelf}"
        db.execute("UPDATE shelf SET wrapped = ? WHERE id = ?", (wrap(self._wrapping, secret, place), shelf))
        self._shelves[shelf] = new

    def _holder(self, db: sqlite3.Connection, tag: bytes) -> tuple[int, AESGCM]:
        return self._holders_of(db, [tag])[tag]

    def _holders_of(self, db: sqlite3.Connection, tags: Iterable[bytes]) -> dict[bytes, tuple[int, AESGCM]]:
        """Return holders' numbers and keys by pseudonym, created on first use, with few statements."""
        found = {tag: self._holders.get(tag) for tag in tags}
        if missing := [tag for tag, known in found.items() if known is None]:
            marks = ", ".join("?" * len(missing))
            query = f"SELECT pseudonym, id, wrapped FROM holder WHERE pseudonym IN ({marks})"  # noqa: S608 - marks
            for tag, holder, wrapped in db.execute(query, missing).fetchall():
                found[tag] = holder, self._holder_key(db, holder, wrapped)
            (last,) = db.execute("SELECT COALESCE(MAX(id), 0) FROM holder").fetchone()
            new = []
            for holder, tag in enumerate((tag for tag in missing if found[tag] is None), last + 1):
                secret = token_bytes(KEY_SIZE)
                shelf = self._shelf(db, holder // HOLDERS_A_SHELF)
                new.append((holder, tag, wrap(shelf, secret, f"holder {holder}")))
                found[tag] = holder, AESGCM(secret)
            insert(db, "holder", new)
        whole = {tag: known for tag, known in found.items() if known is not None}
        if len(self._holders) + len(whole) > _MAX_CACHED_HOLDERS:
            self._holders.clear()
        self._holders.update(whole)
        return whole

    def _holder_key(self, db: sqlite3.Connection, holder: int, wrapped: bytes) -> AESGCM:
        return AESGCM(unwrap(self._shelf(db, holder // HOLDERS_A_SHELF), wrapped, f"holder {holder}"))

    def _shelf(self, db: sqlite3.Connection, shelf: int) -> AESGCM:
        if shelf not in self._shelves:
            row = db.execute("SELECT wrapped FROM shelf WHERE id = ?", (shelf,)).fetchone()
            if row is None:
                secret = token_bytes(KEY_SIZE)
                wrapped = wrap(self._wrapping, secret, f"shelf {shelf}")
                db.execute("INSERT INTO shelf VALUES (?, ?)", (shelf, wrapped))
            else:
                secret = unwrap(self._wrapping, row[0], f"shelf {shelf}")
            self._shelves[shelf] = AESGCM(secret)
        return self._shelves[shelf]

    def _forget(self) -> None:
        self._holders: dict[bytes, tuple[int, AESGCM]] = {}
        self._shelves: dict[int, AESGCM] = {}

    def _tag_of(self, seq: int, openings: Mapping[str, Opening]) -> bytes:
        subject = openings.get("subject")
        return self._record_tag(seq) if subject is None else self._subject_tag(subject.value)

    def _subject_tag(self, subject: str) -> bytes:
        return hmac_sha256(self._keys.index, b"subject\0" + subject.encode("utf-8"))

    @staticmethod
    def _record_tag(seq: int) -> bytes:
        return seq.to_bytes(
            8, "big"
        )  # in order, so that the index grows at its end; the order need not be secret: the values show it

    # -- SQL

    def _writing(self) -> contextlib.AbstractContextManager[sqlite3.Connection]:
        """Write in a turn; if it is rolled back, the keys that were created in it are forgotten."""
        return self._link.turn()

    def _reading(self) -> contextlib.AbstractContextManager[None]:
        return self._link.reading()

    def _one(self, query: str, *parameters: object) -> Any:
        with self._mutex, self._reading():
            row = self._db.execute(query, parameters).fetchone()
        if row is None:
            raise CorruptFile(f"{self._path} lacks a row; restore it with private.key from a backup")
        return row[0]

    def _targets(self, query: str, *parameters: object) -> list[Target]:
        with self._mutex, self._reading():
            return [Target(*row) for row in self._db.execute(query, parameters)]


def _covers(hold: HoldRow, numbers: set[int], holders: set[int]) -> bool:
    if hold.holder is not None:
        return hold.holder in holders
    if hold.first is not None and hold.last is not None:
        return any(hold.first <= seq <= hold.last for seq in numbers)
    return True
