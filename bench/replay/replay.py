"""Ask questions about the past before and after later filings come in, and compare the answers.

Real filings are ingested in the order in which they became public, in batches. After each of the early batches
random questions are asked, from random sessions whose cell has a right to all of the past, as of random days, some of
them about what was known at a random earlier instant; ids, similarities and words of what they find are saved. Then
the rest is ingested, and every question is asked again with ``known_at`` set to the instant of its saved answer, and
once more without. The first must give the same; the second tells how many answers the later filings do affect.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from carag.engine.collection import Collection, no_progress
from carag.engine.ingest import Ingestor
from carag.errors import CorruptFile
from carag.index import Index
from carag.policy import (
    NEVER,
    PolicyTable,
    Session,
    as_of_minutes,
    from_minutes,
    infer,
    known_at_microseconds,
)
from carag.profiles.edgar.reading.dataset import filing_of_row, load_row
from carag.profiles.edgar.rules.labeller import label
from carag.retrieval import FUSED, Retriever, embedder_by_name, ranker_by_name
from carag.store.store import CorpusStore

if TYPE_CHECKING:
    from collections.abc import Iterable

    from carag.policy import Decision
    from carag.retrieval import Embedder

_K: Final = 10
_INSTANTS: Final = 4
"""Random instants drawn within each ingested batch, at which questions about the past are asked."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and all that decides its answer: its decision names the instant of knowledge."""

    question: str
    decision: Decision
    is_live: bool
    """Answered from the index of the day, not from the labels of the past."""


Found: TypeAlias = "tuple[int, tuple[tuple[str, float, int], ...]]"
"""How many passages were admissible; of those found, id, similarity and word."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a run found."""

    queries: int
    live: int
    """First answered from the index of the day; the others asked about the past already then."""
    instants: int
    """Distinct states of knowledge asked about."""
    affected: int
    """Answers that are others without ``known_at``."""
    relabelled: int
    """Of these, answers with a passage whose word on that day is another now, or whose version was replaced."""
    differences: int
    """Answers that are others with ``known_at``: none, or the promise is broken."""
    filings: int
    chunks: int
    early_filings: int
    labels: int
    closed: int
    seed: int
    seconds: float

    def __str__(self) -> str:
        return "\n".join(f"{name:16} {value}" for name, value in asdict(self).items())


def by_publication(lines: Iterable[str]) -> list[str]:
    """Sort rows of the dataset by when they became public, then by place; rows that are no filing are left out."""
    dated = []
    for place, line in enumerate(lines):
        try:
            minutes = label(filing_of_row(load_row(line))).public_at
        except CorruptFile:
            continue
        dated.append((minutes, place, line))
    never = [one for one in dated if one[0] == NEVER]  # known to no day: as the source has them, all along
    stride = max(1, len(dated) // max(1, len(never)))
    ordered = [line for *_, line in sorted(one for one in dated if one[0] != NEVER)]
    for number, (*_, line) in enumerate(never):
        ordered.insert(min(len(ordered), number * (stride + 1)), line)
    return ordered


def replay(
    lines: list[str], questions: list[str], *, queries: int, seed: int, early: int = 6, late: int = 4
) -> Report:
    """Run the experiment on rows in order of publication, of which ``early`` batches are in when it is asked."""
    started = time.perf_counter()
    cuts = [len(lines) * n // (early + late) for n in range(early + late + 1)]
    batches = [lines[first:end] for first, end in pairwise(cuts)]
    draw = _Draw(lines, questions, seed)
    embedder = embedder_by_name("wordllama")
    with tempfile.TemporaryDirectory() as directory, ExitStack() as resources:
        home = Path(directory)
        store = resources.enter_context(CorpusStore.open(home / "corpus.db"))
        exact = _Exact(store, _Remembering(embedder), home / "index.carag")
        collection = resources.enter_context(closing(exact))
        ingestor = Ingestor(collection)
        retriever = Retriever(collection, ranker_by_name(FUSED, collection.catalogue))
        saved: list[tuple[Asked, Found]] = []
        for number, batch in enumerate(batches[:early], start=1):
            before = _now()
            _ingest(ingestor, batch, home / f"{number}.jsonl")
            draw.learnt(before, _now())
            share = queries * number // early - len(saved)
            saved += [(one, _ask(retriever, one, first=True)) for one in draw.questions(share)]
            say(f"{store.counts().filings} filings in, {len(saved)} answers saved")
        early_filings = store.counts().filings
        for number, batch in enumerate(batches[early:], start=early + 1):
            _ingest(ingestor, batch, home / f"{number}.jsonl")
        counts = store.counts()
        say(f"{counts.filings} filings in; asking again")
        differences = affected = relabelled = 0
        for one, found in sorted(saved, key=lambda pair: _instant(pair[0])):
            differences += _ask(retriever, one) != found
            if _ask(retriever, _today(one)) != found:
                affected += 1
                as_of = one.decision.as_of
                relabelled += any(store.chunk(chunk, as_of=as_of).word != word for chunk, _, word in found[1])
        return Report(
            queries=len(saved),
            live=sum(one.is_live for one, _ in saved),
            instants=len({store.known(_instant(one)) for one, _ in saved}),
            affected=affected,
            relabelled=relabelled,
            differences=differences,
            filings=counts.filings,
            chunks=counts.chunks,
            early_filings=early_filings,
            labels=len(store.open_labels()),
            closed=len(store.closed_labels(after=-1)),
            seed=seed,
            seconds=round(time.perf_counter() - started, 1),
        )


class _Exact(Collection):
    """The index of the day with the least graph: so few rows are searched exactly, and no search walks it."""

    def _new_index(self) -> Index:
        return Index(self.embedder.dim, M=8, ef_construction=20)


class _Draw:
    """Draws questions: any text, any cell of the table that may ask about any instant, any day."""

    def __init__(self, lines: list[str], questions: list[str], seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - a drawing of questions, not of secrets
        self._texts = questions
        self._table = PolicyTable.shipped()
        self._cells = [cell for cell in self._table.cells if "known_at" in cell.past]
        sample = lines[:: max(1, len(lines) // 500)]
        minutes = (label(filing_of_row(load_row(line))).public_at for line in sample)
        self._days = [from_minutes(one) for one in minutes if one < as_of_minutes(datetime.now(UTC))]
        self._instants: list[int] = []

    def learnt(self, first: int, last: int) -> None:
        """Take note that a batch came in between two instants in microseconds."""
        self._instants += [*sorted(self._random.randint(first, last) for _ in range(_INSTANTS)), last]

    def questions(self, count: int) -> list[Asked]:
        """Draw questions, in order of the instants they are about: half about the last one."""
        return sorted((self._question() for _ in range(count)), key=_instant)

    def _question(self) -> Asked:
        cell = self._random.choice(self._cells)
        is_live = self._random.random() < 0.5
        instant = self._instants[-1] if is_live else self._random.choice(self._instants)
        day = None if self._random.random() < 0.3 else self._random.choice(self._days)
        known = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=instant)
        session = Session(role=cell.role, purpose=cell.purpose, as_of=day, known_at=known)
        # The withheld bucket is a search of its own, which ids do not depend on.
        decision = replace(infer(session, self._table, now=datetime.now(UTC)), may_know_existence=False)
        return Asked(self._random.choice(self._texts), decision, is_live)


class _Remembering:
    """An embedder that embeds a question once."""

    def __init__(self, embedder: Embedder) -> None:
        self.name, self.dim, self.fingerprint = embedder.name, embedder.dim, embedder.fingerprint
        self.remote = embedder.remote
        self.embed_documents = embedder.embed_documents
        self.embed_query = cache(embedder.embed_query)


def _instant(one: Asked) -> int:
    assert one.decision.known_at is not None
    return one.decision.known_at


def _today(one: Asked) -> Asked:
    return replace(one, decision=replace(one.decision, known_at=None))


def _ask(retriever: Retriever, one: Asked, *, first: bool = False) -> Found:
    decision = _today(one).decision if first and one.is_live else one.decision
    evidence = retriever.retrieve(one.question, decision, _K)
    return evidence.admissible, tuple((hit.chunk_id, hit.similarity, hit.word) for hit in evidence.passages)


def _ingest(ingestor: Ingestor, lines: list[str], path: Path) -> None:
    path.write_text("".join(lines), encoding="utf-8")
    ingestor.run(path, progress=no_progress)
    path.unlink()


def _now() -> int:
    return known_at_microseconds(datetime.now(UTC))


def say(what: str) -> None:
    """Print progress with the time of day."""
    print(f"{datetime.now(UTC):%H:%M:%S} {what}", file=sys.stderr, flush=True)


def read_edgar(
    directory: Path, *, filings: int | None, seed: int, pattern: str = "filings-*.jsonl.gz"
) -> tuple[list[str], list[str]]:
    """Read rows in order of publication, and questions; of randomly chosen companies only, if `filings` are wanted."""
    lines: list[str] = []
    for path in sorted(directory.glob(pattern)):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            lines += file
    if filings is not None:
        companies: dict[object, list[str]] = defaultdict(list)
        for line in lines:
            companies[json.loads(line).get("cik")].append(line)
        drawn = list(companies.values())
        random.Random(seed).shuffle(drawn)  # noqa: S311
        lines = list(islice(chain.from_iterable(drawn), filings))
    with gzip.open(directory / "qa.jsonl.gz", "rt", encoding="utf-8") as file:
        questions = [json.loads(line)["question"] for line in file]
    return by_publication(lines), questions
