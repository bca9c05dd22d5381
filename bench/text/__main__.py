"""Measure searches by words at 100, 10 and 1 % admissible, one thread, beside other engines in the same run.

    python -m bench.text --chunks 221465
    CARAG_SHARED_DATA=DIR python -m bench.text --filings --chunks 40000

Times are the least of repeats in a row, engine after engine for each question in turn; `first` is the first of them,
which finds the caches full of what the engines before it read. An engine that is not installed is left out, and the
report says so. None of the others searches what is measured here: they take their statistics from all rows, the
hidden ones included. `moved` counts the questions whose first eight come out otherwise when hidden rows are not there.
"""

from __future__ import annotations

import os
import sqlite3
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from bench.harness import parser
from bench.text.worlds import CHUNKS, SHARES, Texts, drawn, filings
from carag import Mask, TextIndex, policy_word

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

K: Final = 8
GOALS: Final = {"100 %": 3.0, "10 %": 0.5, "1 %": 0.2}
"""Milliseconds at 221,465 chunks, at the median."""


class Engine(Protocol):
    """Finds the keys of the best chunks that have a bit."""

    name: str

    def best(self, terms: list[str], bit: int) -> list[int]:
        """Return at most `K` keys, best first."""


class Carag:
    """Statistics of the admissible chunks; the policy decides before a posting is read."""

    name = "carag.TextIndex"

    def __init__(self, texts: Texts, rows: NDArray[np.int64]) -> None:
        self.index = TextIndex()
        bits = texts.bits()
        for some in np.array_split(rows, max(1, rows.size // 20_000)):
            named = set(texts.documents[some].tolist())
            heads = {document: texts.headings[document] for document in named}
            self.index.add(some, texts.documents[some], [texts.tokens[row] for row in some], headings=heads)
            self.index.label(some, some, policy_word(bits[some]))
        self.index.compact()

    def best(self, terms: list[str], bit: int) -> list[int]:
        """Search under a mask of one bit."""
        return [int(key) for key in self.index.search(terms, K, Mask(required=bit)).chunks]


def _whole(texts: Texts, rows: Iterable[int]) -> list[list[str]]:
    """Write the heading before each chunk, for engines that know none."""
    return [texts.headings[int(texts.documents[row])] + texts.tokens[row] for row in rows]


class Fts5:
    """Statistics of all rows; the policy is a join, tried on each row that matches."""

    name = "SQLite FTS5"

    def __init__(self, texts: Texts, rows: NDArray[np.int64]) -> None:
        self.base = sqlite3.connect(":memory:")
        self.base.execute(
            "CREATE VIRTUAL TABLE words USING fts5(body, content='', tokenize=\"ascii tokenchars '-.'\")"
        )
        self.base.execute("CREATE TABLE labels (row INTEGER PRIMARY KEY, bits INTEGER)")
        bodies = zip(rows.tolist(), map(" ".join, _whole(texts, rows)), strict=True)
        self.base.executemany("INSERT INTO words (rowid, body) VALUES (?, ?)", bodies)
        self.base.executemany(
            "INSERT INTO labels VALUES (?, ?)", zip(rows.tolist(), texts.bits()[rows].tolist(), strict=True)
        )
        self.base.execute("INSERT INTO words (words) VALUES ('optimize')")

    def best(self, terms: list[str], bit: int) -> list[int]:
        """Match any term, join the labels, order by rank."""
        match = " OR ".join('"' + term.replace('"', '""') + '"' for term in terms)
        return [
            row
            for (row,) in self.base.execute(
                "SELECT words.rowid FROM words JOIN labels ON labels.row = words.rowid AND labels.bits & ? "
                "WHERE words MATCH ? ORDER BY bm25(words), words.rowid LIMIT ?",
                (bit, match, K),
            )
        ]


class Bm25s:
    """Statistics of all rows, multiplied into the scores when it is built; the policy is an array of 0 and 1."""

    name = "bm25s"

    def __init__(self, texts: Texts, rows: NDArray[np.int64]) -> None:
        import bm25s

        self.rows, self.bits = rows, texts.bits()[rows]
        self.index: Any = bm25s.BM25(k1=0.9, b=0.4)
        self.index.index(_whole(texts, rows), show_progress=False)

    def best(self, terms: list[str], bit: int) -> list[int]:
        """Score every row, then multiply by the mask."""
        mask = (self.bits & bit > 0).astype(np.float32)
        found = self.index.retrieve([terms], k=min(K, self.rows.size), weight_mask=mask, show_progress=False)
        return [
            int(self.rows[at]) for at, s in zip(found.documents[0], found.scores[0], strict=True) if s > 0
        ]


class Tantivy:
    """Statistics of all rows; the policy is a clause that must match, walked along with the words."""

    name = "tantivy"

    def __init__(self, texts: Texts, rows: NDArray[np.int64]) -> None:
        import tantivy

        self.tantivy: Any = tantivy
        schema = tantivy.SchemaBuilder()
        schema.add_text_field("body", tokenizer_name="whitespace")
        schema.add_unsigned_field("row", stored=True)
        for bit in SHARES.values():
            schema.add_boolean_field(f"bit{bit}", indexed=True)
        self.schema = schema.build()
        self.index: Any = tantivy.Index(self.schema)
        writer = self.index.writer(heap_size=200_000_000, num_threads=1)
        for row, body, bits in zip(
            rows.tolist(), _whole(texts, rows), texts.bits()[rows].tolist(), strict=True
        ):
            has = {f"bit{bit}": bool(bits & bit) for bit in SHARES.values()}
            writer.add_document(tantivy.Document(body=" ".join(body), row=row, **has))
        writer.commit()
        writer.wait_merging_threads()
        self.index.reload()

    def best(self, terms: list[str], bit: int) -> list[int]:
        """Ask for any term and the bit."""
        query, occur = self.tantivy.Query, self.tantivy.Occur
        words = query.boolean_query(
            [(occur.Should, query.term_query(self.schema, "body", term)) for term in terms]
        )
        admits = query.const_score_query(query.term_query(self.schema, f"bit{bit}", True), 0.0)
        searcher = self.index.searcher()
        found = searcher.search(query.boolean_query([(occur.Must, words), (occur.Must, admits)]), K)
        return [searcher.doc(address)["row"][0] for _, address in found.hits]


PEERS: Final[dict[str, type[Fts5 | Bm25s | Tantivy]]] = {"sqlite3": Fts5, "bm25s": Bm25s, "tantivy": Tantivy}


def measure(engines: list[Engine], questions: list[list[str]], bit: int, repeats: int) -> NDArray[np.float64]:
    """Milliseconds by engine, question and repeat."""
    times = np.full((len(engines), len(questions), repeats), np.inf)
    for q, terms in enumerate(questions):
        for e, engine in enumerate(engines):
            for repeat in range(repeats):
                begin = time.perf_counter()
                engine.best(terms, bit)
                times[e, q, repeat] = 1e3 * (time.perf_counter() - begin)
    return times


def moved(make: type[Any], whole: Engine, texts: Texts, bit: int) -> int:
    """Count the questions whose best come out otherwise where only admissible chunks are indexed."""
    alone = make(texts, np.flatnonzero(texts.bits() & bit))
    return sum(alone.best(terms, bit) != whole.best(terms, bit) for terms in texts.questions)


def _read(index: TextIndex, texts: Texts, bit: int) -> str:
    stats = [index.search(terms, K, Mask(required=bit)).stats for terms in texts.questions]
    names = ("admissible", "runs", "runs_skipped", "postings", "parts", "parts_skipped")
    return ", ".join(f"{name} {np.median([getattr(one, name) for one in stats]):,.0f}" for name in names)


def main() -> None:
    """Print times, counts and what hidden rows move."""
    arguments = parser("bench.text", __doc__)
    arguments.add_argument("--chunks", type=int, default=CHUNKS)
    arguments.add_argument("--filings", action="store_true", help="real ones, from CARAG_SHARED_DATA")
    arguments.add_argument("--repeats", type=int, default=5)
    options = arguments.parse_args()
    shared = os.environ.get("CARAG_SHARED_DATA", "")
    if options.filings and not shared:
        arguments.error("set CARAG_SHARED_DATA to the directory that holds edgar/")
    texts = filings(Path(shared), options.chunks) if options.filings else drawn(options.chunks)
    rows = np.arange(len(texts.tokens))
    ours = Carag(texts, rows)
    engines: list[Engine] = [ours]
    print(f"{texts.name}, {len(texts.questions)} questions, {K} best, one thread")
    for package, make in PEERS.items():
        if find_spec(package) is None:
            print(f"{make.name}: not measured, {package} is not installed")
        else:
            engines.append(make(texts, rows))
    for share, bit in SHARES.items():
        times = measure(engines, texts.questions, bit, options.repeats)
        print(
            f"\n{share} admissible (goal {GOALS[share]} ms at {CHUNKS:,} chunks): {_read(ours.index, texts, bit)}"
        )
        least = times.min(axis=2)
        for engine, own, first in zip(engines, least, times[:, :, 0], strict=True):
            print(
                f"  {engine.name:16} p50 {np.median(own):8.3f} p95 {np.percentile(own, 95):8.3f} ms  "
                f"{np.median(own / least[0]):6.1f} x; first {np.median(first):8.3f} ms"
            )
    print("\nmoved by hidden rows, at 10 % admissible:")
    for engine in engines:
        count = moved(type(engine), engine, texts, SHARES["10 %"])
        print(f"  {engine.name:16} {count} of {len(texts.questions)}; {type(engine).__doc__}")


if __name__ == "__main__":
    main()
