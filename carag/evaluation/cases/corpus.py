"""Build the benchmark's corpora by fixed rules; the engine itself chunks, labels and embeds the filings."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import carag
from carag.engine import Engine
from carag.errors import InvalidArgument
from carag.evaluation.cases.gold import holders, likely_holders, ngrams
from carag.evaluation.cases.manifest import check_same, described, manifest_sha256, read_manifest, selection
from carag.evaluation.cases.questions import real_questions, shipped_questions
from carag.labelling.chunking import chunk
from carag.profiles.edgar.reading.bounded import opened
from carag.profiles.edgar.reading.readers import read_filings
from carag.retrieval.public_names import PublicNames
from carag.store.store import CorpusStore

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from carag.evaluation.cases.manifest import Manifest
    from carag.evaluation.cases.questions import Question
    from carag.profiles.edgar.facts.filing import Filing
    from carag.retrieval import Embedder


_WINDOW: Final = ("2024-07-01", "2026-03-31")
"""First and last filing date of the paper's window."""


@dataclass(frozen=True, slots=True)
class CorpusRule:
    """How many chunks a corpus has, and from where they are chosen."""

    near: int  # chunks of the question sets' filings
    total: int  # with chunks of the window's filings added; 0 for every filing


SIZES: Final[dict[str, CorpusRule | None]] = {
    "small": None,
    "part": CorpusRule(1_600, 2_400),
    "paper": CorpusRule(20_000, 26_595),
    "full": CorpusRule(0, 0),
}
"""Rules by the name of the corpus; None for the corpus that ships."""


class ChunkLocation(NamedTuple):
    """Where a chunk starts: filing, type of document, and character offset in it."""

    accession_number: str
    document: str
    start: int


@dataclass(frozen=True, slots=True)
class BuiltCorpus:
    """A store, and the questions that are asked of it."""

    name: str
    store: Path
    questions: tuple[Question, ...]
    gold: dict[
        str, tuple[tuple[ChunkLocation, ...], ...]
    ]  # by question id: the locations of each piece of evidence
    dropped: int  # questions left out because none of their evidence was found
    filings: Manifest  # what was read, without the places of chunks
    names: PublicNames = field(default_factory=PublicNames)  # the companies by which questions are read


def small_data() -> Path:
    """Return the directory of the small corpus, in the installed package or at the top of the source tree."""
    shipped = Path(str(files(carag) / "data"))
    return shipped if shipped.is_dir() else shipped.parents[1] / "data"


def source_of(size: str, data: Path | None) -> Path:
    """Return the directory with the filings and questions of a corpus; InvalidArgument if it is unknown or missing."""
    if size not in SIZES:
        raise InvalidArgument(f"there is no corpus {size!r}; want one of {', '.join(SIZES)}")
    if SIZES[size] is None:
        return small_data()
    if data is None or not (data / "edgar" / "qa.jsonl.gz").is_file():
        raise InvalidArgument(
            f"the corpus {size!r} needs real filings and questions; name a directory with "
            "edgar/filings-*.jsonl.gz (scripts/fetch_edgar.py fetches some) and edgar/qa.jsonl.gz, or use --size small"
        )
    return data


def named_filings(manifest: Path, data: Path | None) -> tuple[Manifest, Path]:
    """Read a manifest, and return the directory where its filings must be; InvalidArgument if that is missing."""
    if data is None or not (data / "edgar").is_dir():
        raise InvalidArgument(
            f"the filings that {manifest} names must be in the folder edgar/ of the data, which is missing; name the "
            "data with --data, or fetch the filings: scripts/fetch_edgar.py --manifest FILE --out DATA/edgar"
        )
    return read_manifest(manifest), data / "edgar"


def names_of(size: str, data: Path | None) -> PublicNames:
    """Return the public table of companies next to a corpus's filings, or an empty one if there is no such file."""
    file = source_of(size, data) / "edgar" / "companies.jsonl.gz"
    return PublicNames.parse(file.read_bytes(), file.name) if file.is_file() else PublicNames()


def build_corpus(
    size: str,
    *,
    cache: Path,
    embedder: Embedder,
    data: Path | None = None,
    manifest: Path | None = None,
    seed: int = 0,
    say: Callable[[str], None] = lambda _: None,
) -> BuiltCorpus:
    """Build a corpus, or take it from the cache; InvalidArgument if the size is unknown or the data are missing.

    A corpus that an earlier run began in ``cache`` is completed. ``data`` is the directory with ``edgar/``, which
    ``small`` does not need; ``say`` is called with lines of progress. With ``manifest`` the corpus consists of the
    filings and chunks that it names, instead of those that the rule chooses; InvalidArgument if a filing is missing or
    differs.
    """
    given, names, rule = source_of(size, data), names_of(size, data), SIZES[size]
    questions = shipped_questions(given) if rule is None else real_questions(given)
    home = cache / f"{size}-{embedder.name.split(':')[0]}-{embedder.fingerprint[:12]}-{seed}"
    if manifest is not None:
        listed, edgar = named_filings(manifest, data)
        home = home.with_name(f"{home.name}-{manifest_sha256(listed)[:12]}")
    home.mkdir(parents=True, exist_ok=True)
    if manifest is not None:
        # A table of filings without text belongs to `full` alone.
        source = edgar if size == "full" else _copied(edgar, home / "candidates", listed, say)
    elif rule is None:
        source = given / "corpus"
    else:
        source = _candidates(given / "edgar", home / "candidates", questions, rule, seed, say)
    filings, asked_about = _read(source, questions, rule)
    only: dict[str, set[tuple[str, int]]] | None = None
    if manifest is not None:
        check_same(listed, filings)
        filings, only = {name: filings[name] for name in listed}, selection(listed)
    say("finding the evidence")
    plan = _Plan(asked_about, questions)
    if only is None and rule is not None and rule.total:
        only = _select(source, plan, rule, seed)
    say(f"building the store of {size}")
    with Engine.open(home / "store", embedder=embedder) as engine:
        report = engine.ingest(
            source, only=only, progress=lambda stage, _done, _total, note: say(f"{stage}: {note}")
        )
    if only is not None and report.total_chunks != (wanted := sum(map(len, only.values()))):
        raise InvalidArgument(
            f"the store in {home} has {report.total_chunks} chunks, but {wanted} were chosen: filings are missing, or "
            "the cache belongs to another run; name an empty cache"
        )
    with CorpusStore.open(home / "store" / "corpus.db", create=False) as store:
        if PublicNames.kept_in(store) != names:  # a cached corpus may have none, or another
            names.keep(store)
    asked = tuple(one for one in questions if not one.evidence or plan.gold[one.id])
    return BuiltCorpus(size, home / "store", asked, plan.gold, len(questions) - len(asked), filings, names)


class _Plan:
    """Locations of the chunks of some filings, and of the evidence in them."""

    def __init__(self, filings: dict[str, Filing], questions: Iterable[Question]) -> None:
        self.places: dict[str, list[ChunkLocation]] = {}
        texts: dict[str, list[str]] = {}
        for name, filing in filings.items():
            pieces = [(document.type, one) for document in filing.documents for one in chunk(document.text)]
            self.places[name] = [
                ChunkLocation(filing.accession_number, kind, one.start) for kind, one in pieces
            ]
            texts[name] = [one.text for _, one in pieces]
        held = {name: [ngrams(text) for text in of_filing] for name, of_filing in texts.items()}

        def find(name: str, evidence: str | None, answer: str | None) -> list[ChunkLocation]:
            if name not in texts:
                return []
            found = (
                likely_holders(answer or "", texts[name])
                if evidence is None
                else holders(evidence, held[name])
            )
            return [self.places[name][at] for at in found]

        self.gold: dict[str, tuple[tuple[ChunkLocation, ...], ...]] = {}
        for question in questions:
            pieces_held = (
                tuple(
                    dict.fromkeys(
                        place for one in piece.alternatives for place in find(*one, question.answer)
                    )
                )
                for piece in question.evidence
            )
            self.gold[question.id] = tuple(piece for piece in pieces_held if piece)


def _filings(source: Path) -> Iterable[Filing]:
    return (outcome.filing for outcome in read_filings(source) if outcome.filing is not None)


def _read(
    source: Path, questions: Iterable[Question], rule: CorpusRule | None
) -> tuple[Manifest, dict[str, Filing]]:
    """Describe all filings, and return those that questions ask about, by the name that the questions give them."""
    wanted = {doc for question in questions for piece in question.evidence for doc, _ in piece.alternatives}
    asked_about: dict[str, Filing] = {}

    def noted(filing: Filing) -> Filing:
        name = filing.accession_number if rule is None else filing.source_id
        if name in wanted:
            asked_about[name] = filing
        return filing

    return described(map(noted, _filings(source))), asked_about


def _copied(edgar: Path, home: Path, named: Collection[str], say: Callable[[str], None]) -> Path:
    """Copy the named filings alone, because others would change their labels; what is copied is checked afterwards."""
    say("reading the named filings")
    shutil.rmtree(home, ignore_errors=True)  # the data may have changed since
    home.mkdir()
    lines: dict[str, set[int]] = defaultdict(set)
    seen: set[str] = set()
    for outcome in read_filings(edgar):
        number = outcome.filing.accession_number if outcome.filing is not None else ""
        if number in seen or number not in named:
            continue
        seen.add(number)
        file, _, line = outcome.where.partition(":")
        if line:
            lines[file].add(int(line))
        else:
            shutil.copyfile(edgar / file, home / Path(file).name)
    with (home / "filings.jsonl").open("wb") as out:
        for file, numbers in lines.items():
            with opened(edgar / file) as rows:
                out.writelines(row.rstrip(b"\n") + b"\n" for at, row in rows.lines() if row and at in numbers)
    _link_headers(edgar, home)
    return home


def _link_headers(edgar: Path, home: Path) -> None:
    """Put the headers, which are read along with rows, next to rows that were copied."""
    if (edgar / "headers.jsonl.gz").exists():
        (home / "headers.jsonl.gz").symlink_to((edgar / "headers.jsonl.gz").resolve())


def _candidates(
    edgar: Path,
    home: Path,
    questions: list[Question],
    rule: CorpusRule,
    seed: int,
    say: Callable[[str], None],
) -> Path:
    """Copy the rows that a corpus may need, and all rows of those filers, whose later filings change their labels."""
    if not rule.total:
        return edgar
    if (home / "done").exists():
        return home
    say("choosing filings")
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    wanted = {doc for question in questions for piece in question.evidence for doc, _ in piece.alternatives}
    rows: list[dict[str, Any]] = []
    for path in sorted(edgar.glob("filings-*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                rows.append(
                    {name: row[name] for name in ("id", "cik", "filed")} | {"chars": len(row["text"])}
                )
    window = [
        row for row in rows if _WINDOW[0] <= (row["filed"] or "") <= _WINDOW[1] and row["id"] not in wanted
    ]
    random.Random(seed).shuffle(window)  # noqa: S311 - sampling, no secret
    # A chunk has about a thousand characters. Twice what is needed is kept; chunks are counted exactly later.
    room = 2 * 1000 * (rule.total - rule.near)
    kept = dict.fromkeys(wanted)
    for row in window:
        if room <= 0:
            break
        room -= row["chars"]
        kept[row["id"]] = None
    ciks = {row["cik"] for row in rows if row["id"] in kept and row["cik"]}
    keep = {row["id"] for row in rows if row["id"] in kept or row["cik"] in ciks}
    with (home / "filings.jsonl").open("w", encoding="utf-8") as out:
        for path in sorted(edgar.glob("filings-*.jsonl.gz")):
            with gzip.open(path, "rt", encoding="utf-8") as file:
                out.writelines(line for line in file if json.loads(line)["id"] in keep)
    _link_headers(edgar, home)
    (home / "done").touch()
    return home


def _select(source: Path, plan: _Plan, rule: CorpusRule, seed: int) -> dict[str, set[tuple[str, int]]]:
    """Choose chunks by the rule; filings without a chosen chunk still change the labels of others."""
    gold = {place for pieces in plan.gold.values() for piece in pieces for place in piece}
    rest = [place for name in sorted(plan.places) for place in plan.places[name] if place not in gold]
    rng = random.Random(seed + 1)  # noqa: S311
    chosen = gold | set(rng.sample(rest, min(len(rest), max(0, rule.near - len(gold)))))
    near = {place.accession_number for places in plan.places.values() for place in places}
    others: list[list[ChunkLocation]] = []
    known: list[str] = []
    read: Counter[str] = Counter()
    for filing in _filings(source):
        read[filing.accession_number] += 1
        if read[filing.accession_number] > 1:  # of two texts under one number, the engine keeps the first
            continue
        known.append(filing.accession_number)
        filed = filing.filed.isoformat() if filing.filed else ""
        if filing.accession_number not in near and _WINDOW[0] <= filed <= _WINDOW[1]:
            others.append(
                [
                    ChunkLocation(filing.accession_number, document.type, one.start)
                    for document in filing.documents
                    for one in chunk(document.text)
                ]
            )
    rng.shuffle(others)
    places = [place for of_filing in others for place in of_filing]
    chosen |= set(places[: rule.total - len(chosen)])
    if len(chosen) != rule.total:
        raise InvalidArgument(
            f"the filings give {len(chosen)} chunks, but the rule wants {rule.total}; add the missing filings"
        )
    only: dict[str, set[tuple[str, int]]] = {number: set() for number in known}
    for place in chosen:
        only[place.accession_number].add((place.document, place.start))
    return only
