"""Test noninterference: rebuild a store without what a session may not see, and compare the answers of both stores.

Noninterference (Goguen and Meseguer, 1982) means that what is hidden from a session changes nothing in its answers.
Every inadmissible label is deleted from the second store with its passage and vector, as is every filing that has
nothing left; the files next to the store, which are copies of it, are rebuilt. Both are asked through
:meth:`carag.Engine.ask`. All that the session gets must be equal, similarities to the last bit, with three exceptions:
remaining labels are kept as they are, so a state bit such as *superseded* stays although its cause is deleted; the
receipt names its log; and roles that may know about hidden neighbours are rightly shown them.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from carag.engine import Engine
from carag.evaluation.cases.reference_policy import ReferenceLabel, ReferencePolicy, reference_session
from carag.evaluation.searched import Searched
from carag.policy import as_of_minutes

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from carag.engine import Answer
    from carag.evaluation.cases.ground_truth import GroundTruth
    from carag.evaluation.cases.pairs import Pair
    from carag.evaluation.models import Models
    from carag.policy import Session
    from carag.store.store import CorpusStore


@dataclass(frozen=True, slots=True)
class Comparison:
    """Questions asked of both stores, and the ids of those whose answers differed."""

    asked: int
    worlds: int
    rows_deleted: int
    differing: tuple[str, ...]


def session_view(answer: Answer) -> dict[str, Any]:
    """Return what a session gets, with similarities to the last bit, except the receipt and the hidden neighbours."""
    return {
        "outcome": answer.outcome.value,
        "why": answer.why,
        "text": answer.text,
        "complete": answer.complete,
        "left_out": [one.value for one in answer.left_out],
        "understood": answer.understood,
        "basis": answer.basis,
        "asked_day": answer.asked_day and answer.asked_day.to_json(),
        "superseded": [asdict(one) for one in answer.superseded],
        "citations": [asdict(one) for one in answer.citations],
        "passages": [{**asdict(one), "similarity": one.similarity.hex()} for one in answer.passages],
        "kinds": None if answer.withheld is None else [one.code for one in answer.withheld.kinds],
    }


def without_inadmissible(
    store: Path, copy: Path, said: dict[str, Any], *, now: int, corpus: CorpusStore
) -> int:
    """Copy a store without the rows that a session may not use, and return the number of labels deleted.

    No engine may hold ``store``, whose open corpus store is ``corpus``; ``said`` is a session as
    :func:`~carag.evaluation.cases.reference_policy.reference_session` returns it, ``now`` is in minutes since 1970.
    """
    table = ReferencePolicy()
    keys = corpus.labels.open()
    verdicts: dict[ReferenceLabel, bool] = {}
    gone: list[int] = []
    for key, one in zip(keys.tolist(), corpus.chunks(keys), strict=True):
        row = ReferenceLabel(
            one.word, table.names(one.word), frozenset(one.subjects), one.public_at, one.expires_at
        )
        if row not in verdicts:
            verdicts[row] = table.admits(said, row, now=now)
        if not verdicts[row]:
            gone.append(key)
    shutil.copytree(store, copy, ignore=shutil.ignore_patterns("index.*", "*.lock"))
    with closing(sqlite3.connect(copy / "corpus.db", isolation_level=None)) as sql:
        sql.execute("BEGIN")
        sql.executemany("DELETE FROM labels WHERE label = ?", ((key,) for key in gone))
        orphans = "SELECT key FROM chunks WHERE key NOT IN (SELECT key FROM labels)"
        sql.execute(f"DELETE FROM vectors WHERE key IN ({orphans})")  # noqa: S608 - a constant
        sql.execute(f"DELETE FROM chunks WHERE key IN ({orphans})")  # noqa: S608
        # Questions are read by the names of filings, so filings without a passage must not be known either.
        sql.execute("DELETE FROM filings WHERE version > 0 AND filing NOT IN (SELECT filing FROM chunks)")
        sql.execute("COMMIT")
    return len(gone)


def compare_rebuilt_stores(
    store: Path,
    truth: GroundTruth,
    pairs: Iterable[Pair],
    scratch: Path,
    models: Models,
    searched: Searched | None = None,
) -> Comparison:
    """Ask each pair of the store and of a store rebuilt without what the pair's session may not use, searched alike."""
    where = searched or Searched()
    by_session: dict[Any, list[Pair]] = {}
    for pair in pairs:
        if truth.admissible(pair.session, pair.question.text) is not None:
            meant = truth.meant(pair.session, pair.question.text)
            session = pair.session
            key = session.role, session.purpose, session.as_of, session.allow_entities, meant
            by_session.setdefault(key, []).append(pair)
    asked = deleted = 0
    differing = []

    def ask(home: Path, some: list[Pair]) -> list[dict[str, Any]]:
        with Engine.open(
            home,
            create=False,
            embedder=models.embedder,
            generator=models.generator,
            gate=models.gate,
            clock=lambda: truth.now,
            accept={"labels"} if home != store else (),  # which rebuilds the index
            **where.settings(home),
        ) as engine:
            return [session_view(engine.ask(pair.question.text, pair.session)) for pair in some]

    now = as_of_minutes(truth.now)
    for number, ((_role, _purpose, _as_of, _allowed, meant), some) in enumerate(by_session.items()):
        copy = scratch / f"store-{number}"
        deleted += without_inadmissible(
            store, copy, _plain(some[0].session, meant), now=now, corpus=truth.store
        )
        try:
            both = zip(some, ask(store, some), ask(copy, some), strict=True)
            differing += [pair.question.id for pair, first, second in both if first != second]
        finally:
            shutil.rmtree(copy)
        asked += len(some)
    return Comparison(asked, len(by_session), deleted, tuple(differing))


def _plain(session: Session, meant: frozenset[str]) -> dict[str, Any]:
    return reference_session(
        session.role,
        session.purpose,
        as_of=None if session.as_of is None else as_of_minutes(session.as_of),
        allow=session.allow_entities,
        intents=meant,
    )
