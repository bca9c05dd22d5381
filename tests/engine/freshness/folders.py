"""Write folders of invented circulars, whose clauses are long enough that each is a passage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag import Engine, Session
from tests.engine.documents import Clock, Counting

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

WORDS = (
    "banks",
    "report",
    "deposits",
    "lend",
    "assess",
    "verify",
    "retain",
    "disclose",
    "monthly",
    "annually",
)
REVIEW = Session(role="compliance", purpose="review")
FACTS = "---\nclassification: internal\ntitle: Circular {}\n---\n"


def clause(circular: int, number: int) -> str:
    """About 650 characters that no other clause has."""
    words = [WORDS[(circular * 7 + number * 3 + n * n) % len(WORDS)] for n in range(90)]
    return f"{number}. Under circular {circular}, clause {number}: {' '.join(words)}."


def circular(number: int, clauses: int = 6) -> str:
    return FACTS.format(number) + "\n\n".join(clause(number, n) for n in range(1, clauses + 1)) + "\n"


def written(folder: Path, circulars: int = 4, clauses: int = 6) -> Path:
    folder.mkdir()
    for number in range(circulars):
        (folder / f"c{number}.md").write_text(circular(number, clauses))
    return folder


def opened(home: Path, embedder: Any = None, **settings: Any) -> Engine:
    settings = {"profile": "generic", "clock": Clock(), **settings}
    return Engine.open(home, embedder=embedder or Counting(), **settings)


def held(engine: Engine) -> dict[str, list[str]]:
    """The texts of the open passages, by document."""
    store = engine._collection.store
    labels = store.labels.open().tolist()
    found: dict[str, list[str]] = {}
    for one in store.chunks(labels):
        found.setdefault(one.document_id, []).append(one.text)
    return found


def sound(engine: Engine) -> None:
    """Index, words and state match the store's last instant, the state is on record, and no passage occurs twice."""
    collection = engine._collection
    collection.check()
    assert engine._configuration.is_recorded(collection.state)
    assert all(len(texts) == len(set(texts)) for texts in held(engine).values())
