"""What a session may not see must change nothing it is told: two stores, one question, compared byte by byte.

In the second store every row of an inadmissible label is gone: label, passage, vector; and the index is built from
what is left. Both are asked through :meth:`carag.Engine.ask`. What must be the same is all that the session gets but
the receipt: outcome, ids, similarities to the last bit, text and citations. Labels of what is left are held fixed, so a
state bit such as *superseded* stays although its cause is gone; the receipt names a log and is left out. For roles that
may know what is hidden, the list of hidden neighbours differs by right, and is left out too.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from carag.engine import Engine
from carag.evaluation.plain_reading import PlainRow, PlainTable, names_of, plain_session
from carag.policy import as_of_minutes

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from carag.answers import Answer
    from carag.corpus.store import CorpusStore
    from carag.evaluation.asking import Models
    from carag.evaluation.pairs import Pair
    from carag.evaluation.world import World
    from carag.policy import Session

__all__ = ["Compared", "compare_worlds", "told", "without_inadmissible"]


@dataclass(frozen=True, slots=True)
class Compared:
    """How many questions were asked in both worlds, and of which the answers differed."""

    asked: int
    worlds: int
    rows_deleted: int
    differing: tuple[str, ...]


def told(answer: Answer) -> dict[str, Any]:
    """Return all that a session gets, but the receipt and the hidden neighbours.

    Similarities are written to the last bit.
    """
    return {
        "outcome": answer.outcome.value,
        "why": answer.why,
        "text": answer.text,
        "complete": answer.complete,
        "citations": [asdict(one) for one in answer.citations],
        "passages": [{**asdict(one), "similarity": one.similarity.hex()} for one in answer.passages],
        "kinds": None if answer.withheld is None else [one.code for one in answer.withheld.kinds],
    }


def without_inadmissible(
    store: Path, copy: Path, said: dict[str, Any], *, now: int, corpus: CorpusStore
) -> int:
    """Copy a store without the rows that a session may not use; return how many labels went.

    Parameters
    ----------
    store, copy : Path
        Directories; no engine may hold the first.
    said : dict
        The session in plain values (:func:`~carag.evaluation.plain_reading.plain_session`).
    now : int
        Minutes since 1970.
    corpus : CorpusStore
        The first, open.
    """
    table = PlainTable()
    keys = corpus.open_labels()
    verdicts: dict[PlainRow, bool] = {}
    gone: list[int] = []
    for key, one in zip(keys.tolist(), corpus.chunks(keys), strict=True):
        row = PlainRow(one.word, names_of(one.word), frozenset(one.subjects), one.public_at, one.expires_at)
        if row not in verdicts:
            verdicts[row] = table.admits(said, row, now=now)
        if not verdicts[row]:
            gone.append(key)
    shutil.copytree(store, copy, ignore=shutil.ignore_patterns("index.carag", "*.lock"))
    with closing(sqlite3.connect(copy / "corpus.db", isolation_level=None)) as sql:
        sql.execute("BEGIN")
        sql.executemany("DELETE FROM labels WHERE label = ?", ((key,) for key in gone))
        orphans = "SELECT key FROM chunks WHERE key NOT IN (SELECT key FROM labels)"
        sql.execute(f"DELETE FROM vectors WHERE key IN ({orphans})")  # noqa: S608 - a constant
        sql.execute(f"DELETE FROM chunks WHERE key IN ({orphans})")  # noqa: S608
        sql.execute("COMMIT")
    return len(gone)


def compare_worlds(
    store: Path,
    world: World,
    pairs: Iterable[Pair],
    scratch: Path,
    models: Models,
) -> Compared:
    """Ask each pair in the store and in one rebuilt without what its session may not use."""
    by_session: dict[Any, list[Pair]] = {}
    for pair in pairs:
        if world.admissible(pair.session, pair.question.text) is not None:
            meant = world.meant(pair.session, pair.question.text)
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
            clock=lambda: world.now,
            accept_labels=True,
        ) as engine:
            return [told(engine.ask(pair.question.text, pair.session)) for pair in some]

    now = as_of_minutes(world.now)
    for number, ((_role, _purpose, _as_of, _allowed, meant), some) in enumerate(by_session.items()):
        copy = scratch / f"world-{number}"
        deleted += without_inadmissible(
            store, copy, _plain(some[0].session, meant), now=now, corpus=world.store
        )
        try:
            both = zip(some, ask(store, some), ask(copy, some), strict=True)
            differing += [pair.question.id for pair, first, second in both if first != second]
        finally:
            shutil.rmtree(copy)
        asked += len(some)
    return Compared(asked, len(by_session), deleted, tuple(differing))


def _plain(session: Session, meant: frozenset[str]) -> dict[str, Any]:
    return plain_session(
        session.role,
        session.purpose,
        as_of=None if session.as_of is None else as_of_minutes(session.as_of),
        allow=session.allow_entities,
        intents=meant,
    )
