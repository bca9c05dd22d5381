"""Keep the labels of passages on two time axes (bitemporal): when a word holds, and when the store knew it.

A label changes at most once: when new facts become known it is closed, and other labels replace it. The labels of a
passage that are open at one instant cover every minute from its ``public_at`` to its ``expires_at`` without overlap, so
each minute has one word. All statements run inside the caller's transaction.
"""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from carag.errors import InvalidArgument
from carag.labelling.canonical_json import canonical_json
from carag.labelling.lifecycle import StateSpan
from carag.policy import NEVER, TOMBSTONE
from carag.store._audiences import JOINED, STATE_LABEL, STATED, audience_of
from carag.store.values import PastAudience, PastLabel

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Mapping, Sequence

NO_EVENTS: Final = (StateSpan(0, 0),)
"""The history of a document that no other document affects."""

_NEWS: Final = "SELECT value FROM json_each(:news)"
_SHARING_A_CIK: Final = """
    SELECT filing FROM filing_ciks WHERE cik IN (SELECT cik FROM filing_ciks WHERE filing IN ({}))"""
_CONCERNED: Final = f"""
    SELECT filing, accession_number FROM current_filings
    WHERE (filing IN ({_NEWS}) OR filing IN ({_SHARING_A_CIK.format(_NEWS)})) AND version > 0
    ORDER BY filing"""  # noqa: S608 - constants
"""Documents that share a CIK with new ones; those of version 0 have no passages to label."""
_FACTS: Final = f"""
    SELECT facts FROM current_filings
    WHERE filing IN ({_NEWS}) OR filing IN ({_SHARING_A_CIK.format(_SHARING_A_CIK.format(_NEWS))})
    ORDER BY filing"""  # noqa: S608
"""Facts that decide the histories of those filings. A filing may have several CIKs, so this goes one step further."""
_LINKED: Final = f"""
    SELECT facts FROM current_filings
    WHERE filing IN ({_SHARING_A_CIK.format("SELECT filing FROM current_filings WHERE accession_number = :id")})
    ORDER BY filing"""  # noqa: S608
"""Facts of a filing, and of filings that share a CIK with it."""

_HISTORIES: Final = f"SELECT filing, history FROM filings WHERE filing IN ({_NEWS})"  # noqa: S608 - constants
_PASSAGES: Final = f"""
    SELECT filing, key, word, public_at, expires_at, entity, audience
    FROM chunks LEFT JOIN document_audiences USING (filing) WHERE filing IN ({_NEWS}) ORDER BY key"""  # noqa: S608
_OPEN: Final = f"""
    SELECT key, label, labels.word, valid_from, valid_to, causes
    FROM labels JOIN chunks USING (key) WHERE filing IN ({_NEWS}) AND known_to IS NULL"""  # noqa: S608
_HISTORY: Final = f"""
    SELECT labels.word, valid_from, valid_to, known_from, known_to, causes,
           {STATED}
    FROM labels JOIN chunks USING (key)
         {JOINED}
    WHERE chunk_id = ? ORDER BY known_from, valid_from"""  # noqa: S608
_AUDIENCES: Final = f"""
    SELECT DISTINCT version, valid_from, valid_to, known_from, known_to, {STATED}
    FROM labels JOIN chunks USING (key) JOIN filings USING (filing)
         {JOINED}
    WHERE accession_number = ? ORDER BY known_from, valid_from, version"""  # noqa: S608
_INSERT: Final = """
    INSERT INTO labels (label, key, word, valid_from, valid_to, entity, known_from, causes)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)"""

# Labels are numbered in the order they were opened, without a gap, so a sum gives the first label of an instant.
_FIRST: Final = "(SELECT CAST(coalesce(sum(opened), 0) AS BIGINT) FROM changes WHERE known_at <= :{})"
_CHANGED: Final = (
    f"{STATE_LABEL}, place, leaf "
    f"FROM labels JOIN chunks USING (key) {JOINED} LEFT JOIN erased_labels USING (label)"
)
CLOSED_BETWEEN: Final = f"""
    SELECT 0, {_CHANGED}
    WHERE known_to > :a AND known_to <= :b AND label < {_FIRST.format("a")}"""
OPENED_BETWEEN: Final = f"""
    SELECT 1, {_CHANGED}
    WHERE label >= {_FIRST.format("a")} AND label < {_FIRST.format("b")}
    AND (known_to IS NULL OR known_to > :b)"""


def deciding_facts(sql: sqlite3.Connection, filings: Iterable[int]) -> list[dict[str, Any]]:
    return [json.loads(facts) for (facts,) in sql.execute(_FACTS, _news(filings)).fetchall()]


def linked_facts(sql: sqlite3.Connection, document_id: str) -> list[dict[str, Any]]:
    return [json.loads(facts) for (facts,) in sql.execute(_LINKED, {"id": document_id}).fetchall()]


def history(sql: sqlite3.Connection, chunk_id: str) -> list[PastLabel]:
    found = sql.execute(_HISTORY, (chunk_id,)).fetchall()
    return [
        PastLabel(
            *(word, since, until, known_from, known_to, tuple(map(tuple, json.loads(causes)))),
            audience=audience_of(stated),
        )
        for word, since, until, known_from, known_to, causes, stated in found
    ]


def audiences(sql: sqlite3.Connection, document_id: str) -> list[PastAudience]:
    found = sql.execute(_AUDIENCES, (document_id,)).fetchall()
    return [
        PastAudience(version, since, until, known_from, known_to, audience_of(stated))
        for version, since, until, known_from, known_to, stated in found
    ]


def system_clock() -> int:
    return time.time_ns() // 1000


def begin_change(sql: sqlite3.Connection, filing: int, now: int) -> int:
    """Add a change without labels yet; return when it is known.

    ``now`` is in microseconds since 1970; if an earlier transaction has the same or a later reading, the next free
    microsecond is taken, so that no two changes are known at the same instant.
    """
    last = sql.execute("SELECT max(known_at) FROM changes").fetchone()[0]
    known_at = now if last is None else max(now, int(last) + 1)
    sql.execute(
        "INSERT INTO changes (known_at, filing, opened, closed) VALUES (?, ?, 0, 0)", (known_at, filing)
    )
    return known_at


class LabelChange:
    """The changes that one transaction makes to labels.

    ``filings`` are the rows of the new filings. ``now`` is as for :func:`begin_change`.
    """

    def __init__(self, sql: sqlite3.Connection, filings: Sequence[int], *, now: int) -> None:
        self._sql = sql
        self._filings = filings
        self.known_at = begin_change(sql, filings[-1], now)
        self.opened = self.closed = self.relabelled = 0

    def retire(self, filings: Iterable[int]) -> None:
        self._close(label for _, label, *_ in self._sql.execute(_OPEN, _news(filings)).fetchall())

    def apply(self, histories: Mapping[str, Sequence[StateSpan]] | None, *, old: Iterable[int]) -> None:
        """Update the labels of the new filings and of all that share a CIK with them.

        ``histories`` has a history for each of these, by document id; None if the new filings have no events. ``old``
        are the rows of the versions that the new filings replace, whose CIKs may have been different.
        """
        if histories is None:
            self._relabel(dict.fromkeys(self._filings, NO_EVENTS))
        else:
            concerned = self._sql.execute(_CONCERNED, _news([*self._filings, *old])).fetchall()
            changed = self._relabel({filing: histories[id_] for filing, id_ in concerned})
            self.relabelled += sum(changed[filing] for filing in changed.keys() - set(self._filings))
        self._sql.execute(
            "UPDATE changes SET opened = ?, closed = ? WHERE known_at = ?",
            (self.opened, self.closed, self.known_at),
        )

    def _relabel(self, histories: Mapping[int, Sequence[StateSpan]]) -> Counter[int]:
        known = dict(self._sql.execute(_HISTORIES, _news(histories)).fetchall())
        written = {filing: _written(tuple(spans)) for filing, spans in histories.items()}
        changes = [(history, filing) for filing, history in written.items() if history != known[filing]]
        self._sql.executemany("UPDATE filings SET history = ? WHERE filing = ?", changes)
        news = _news(filing for _, filing in changes)
        found: dict[int, dict[tuple[Any, ...], int]] = defaultdict(dict)
        for key, label, *value in self._sql.execute(_OPEN, news):
            found[key][tuple(value)] = label
        closing: list[int] = []
        opening: list[tuple[Any, ...]] = []
        changed: Counter[int] = Counter()
        for filing, key, word, public_at, expires_at, entity, audience in self._sql.execute(_PASSAGES, news):
            wanted = [
                (word | span.bits, since, until, _written(span.causes))
                for since, until, span in _between(public_at, expires_at, histories[filing])
            ]
            gone = [label for value, label in found[key].items() if value not in wanted]
            new = [
                (key, *value[:3], entity, value[3], audience) for value in wanted if value not in found[key]
            ]
            closing += gone
            opening += new
            changed[filing] += bool(gone or new)
        self._close(closing)
        self._open(opening)
        return changed

    def _close(self, labels: Iterable[int]) -> None:
        if not (closing := [(self.known_at, label) for label in labels]):
            return
        self._sql.executemany("UPDATE labels SET known_to = ? WHERE label = ?", closing)
        self.closed += len(closing)

    def _open(self, opening: Sequence[tuple[Any, ...]]) -> None:
        first = self._sql.execute("SELECT coalesce(max(label) + 1, 0) FROM labels").fetchone()[0]
        self._sql.executemany(
            _INSERT,
            (
                (label, *value[:5], self.known_at, value[5])
                for label, value in enumerate(opening, start=first)
            ),
        )
        shared = [
            (label, value[6]) for label, value in enumerate(opening, start=first) if value[6] is not None
        ]
        self._sql.executemany("INSERT INTO label_audiences (label, audience) VALUES (?, ?)", shared)
        self.opened += len(opening)


def _news(filings: Iterable[int]) -> dict[str, str]:
    return {"news": canonical_json(list(filings), "rows")}


@lru_cache(maxsize=4096)  # most filings have the same history: no events
def _written(history: tuple[Any, ...]) -> str:
    return canonical_json(history, "history of a filing")


def _between(
    public_at: int, expires_at: int, spans: Sequence[StateSpan]
) -> Iterator[tuple[int, int, StateSpan]]:
    """Cut a history to a passage's own window; a passage that is never public keeps the state of its first minute.

    A last span with the tombstone is not a state: it ends the passage.
    """
    if spans[-1].bits & TOMBSTONE:
        expires_at, spans = max(public_at, min(expires_at, spans[-1].since)), spans[:-1]
    edges = [0, *(span.since for span in spans[1:]), NEVER]
    if edges != sorted(edges):
        raise InvalidArgument(f"the history {spans} is out of order; want ascending minutes")
    if public_at == expires_at:
        yield (
            public_at,
            expires_at,
            [one for one, at in zip(spans, edges, strict=False) if at <= public_at][-1],
        )
        return
    for span, (since, until) in zip(spans, pairwise(edges), strict=True):
        start, end = max(since, public_at), min(until, expires_at)
        if start < end:
            yield start, end, span
