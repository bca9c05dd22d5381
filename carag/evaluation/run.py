"""A run of the benchmark: corpus, pairs, systems, rows; killed at any point, it is gone on with."""

from __future__ import annotations

import json
import platform
import random
import shutil
import threading
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import carag
from carag.errors import CorruptFile, InvalidArgument
from carag.evaluation.about import About, Trials, Worlds
from carag.evaluation.adversaries import (
    Attack,
    attacked_pairs,
    knowing,
    plan_attacks,
    write_amendments,
    write_planted,
)
from carag.evaluation.built import built_pairs
from carag.evaluation.corpus import Built, build_corpus
from carag.evaluation.judge import row_of
from carag.evaluation.models import Remembered
from carag.evaluation.noninterference import Compared, compare_worlds
from carag.evaluation.pairs import Pair, cross
from carag.evaluation.report import report_from, rows_sha256
from carag.evaluation.row import ORACLE, SYSTEMS, PairKey, Row, write_rows
from carag.evaluation.systems import Systems
from carag.evaluation.trials import run_trials
from carag.evaluation.world import World
from carag.generation import generator_by_name
from carag.index import Index
from carag.retrieval import ConfidenceGate, embedder_by_name, threshold_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from carag.generation import Generator
    from carag.retrieval import Embedder

__all__ = ["NOW", "Settings", "check_files", "report_files", "run"]

NOW: Final = datetime(2026, 11, 1, tzinfo=UTC)
"""When everything is asked: fixed, so that a session of today sees the same on every day."""
_MODEL_SYSTEMS: Final = (ORACLE, "vanilla", "carag-certified")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is run.

    Attributes
    ----------
    size : str
        One of :data:`~carag.evaluation.corpus.SIZES`.
    data : Path or None
        The directory with ``edgar/``; not for ``small``.
    cache : Path
        Where corpora are kept between runs.
    embedder : str
    gate : float or None
        The threshold; that calibrated for the embedder if None.
    pairs, built : int
        Pairs of real and of built questions.
    attacks : int
        Companies attacked.
    compared : int
        Pairs asked in two worlds.
    trials : int
        Randomised pairs for each of the two plans.
    model : str or None
        A second generator, such as ``local`` or ``local:PATH``, on some pairs.
    model_pairs : int
    seed : int
    """

    size: str
    cache: Path
    data: Path | None = None
    embedder: str = "minilm"
    gate: float | None = None
    pairs: int = 2_000
    built: int = 500
    attacks: int = 20
    compared: int = 400
    trials: int = 500_000
    model: str | None = None
    model_pairs: int = 100
    seed: int = 0
    systems: tuple[str, ...] = field(default=SYSTEMS)

    def identity(self) -> str:
        """Name all that the rows depend on."""
        named = asdict(self)
        for name in ("cache", "data"):
            del named[name]
        return json.dumps({**named, "version": carag.__version__}, sort_keys=True)


class _Rows:
    """Rows as they come, on disk at once; what a run that was killed left is not asked again."""

    def __init__(self, out: Path, identity: str) -> None:
        out.mkdir(parents=True, exist_ok=True)
        self._path, settings = out / "rows.partial.jsonl", out / "settings.json"
        if settings.exists() and settings.read_text("utf-8") != identity:
            raise InvalidArgument(
                f"{out} holds a run with other settings; give another directory, or delete it: {settings}"
            )
        settings.write_text(identity, encoding="utf-8")
        self._rows: dict[tuple[PairKey, str], Row] = {}
        kept = b""
        if self._path.exists():
            data = self._path.read_bytes()
            kept = data[: data.rfind(b"\n") + 1]  # a kill may cut the last line
            for line in kept.splitlines():
                self._keep(Row.from_json(line))
        self._path.write_bytes(kept)
        self._file = self._path.open("a", encoding="utf-8")

    def has(self, pair: Pair, systems: Iterable[str], models: tuple[str, str, int]) -> bool:
        session = pair.session
        key = PairKey(
            *(pair.kind, pair.question.id, session.role, session.purpose),
            *("" if session.as_of is None else session.as_of.isoformat(), *models),
        )
        return all((key, system) in self._rows for system in systems)

    def add(self, row: Row) -> None:
        if self._keep(row):
            self._file.write(row.to_json() + "\n")
            self._file.flush()

    def _keep(self, row: Row) -> bool:
        key = row.pair, row.system
        new = key not in self._rows
        self._rows.setdefault(key, row)
        return new

    def finish(self, path: Path) -> list[Row]:
        self._file.close()
        rows = list(self._rows.values())
        write_rows(path, rows)
        return rows


def run(
    settings: Settings,
    out: Path,
    *,
    embedder: Embedder | None = None,
    generator: Generator | None = None,
    model: Generator | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Path:
    """Run the benchmark and write its rows and its report.

    Parameters
    ----------
    out : Path
        A directory; one that an interrupted run of the same settings left is gone on with.
    embedder, generator, model : optional
        Instead of those by name; tests and caches bring their own.

    Returns
    -------
    Path
        Of ``rows.jsonl``.

    Raises
    ------
    InvalidArgument
        If the directory holds a run of other settings, or the data are missing.
    MissingExtra
        If hnswlib or a model's package is not installed.
    """
    remembered = Remembered(embedder or embedder_by_name(settings.embedder))
    generator = generator or generator_by_name("extractive")
    rows = _Rows(out, settings.identity())
    gate = ConfidenceGate(threshold_for(remembered.name) if settings.gate is None else settings.gate)
    built = build_corpus(
        settings.size,
        cache=settings.cache,
        embedder=remembered,
        data=settings.data,
        seed=settings.seed,
        say=say,
    )
    world = World.open(built.store, now=NOW)
    say(f"{len(world)} chunks; crossing questions with sessions")
    for question in built.questions:
        remembered.embed_query(question.text)
    pairs = cross(
        world, built.questions, built.gold, remembered.vectors, count=settings.pairs, seed=settings.seed
    )
    pairs += built_pairs(world, remembered, count=settings.built, seed=settings.seed)
    asker = _Asker(rows, remembered, settings.seed, say)
    # The store's index is saved when its engine is closed, so this goes before.
    compared = _compare(settings, built, world, pairs, remembered, generator, gate, out, say)
    with Systems(
        built.store, world, remembered, generator, gate, seed=settings.seed, names=settings.systems
    ) as systems:
        asker.ask(world, pairs, systems, settings.systems, generator.name)
    words = world.words()
    words.update(_attack(settings, built, world, pairs, remembered, generator, gate, asker, out, say))
    if settings.model is not None or model is not None:
        _second_model(
            settings,
            built,
            world,
            pairs,
            remembered,
            model or generator_by_name(settings.model or ""),
            gate,
            asker,
        )
    trials = _trials(settings, built, world, say)
    found = rows.finish(out / "rows.jsonl")
    (out / "words.json").write_text(json.dumps(words, sort_keys=True, separators=(",", ":")) + "\n", "utf-8")
    (out / "run.json").write_text(_about(settings, built, world, trials, compared, found).to_json(), "utf-8")
    report_files(out / "rows.jsonl", out)
    return out / "rows.jsonl"


def report_files(rows: Path, out: Path) -> None:
    """Write the report of a file of rows, with what lies beside it, into a directory."""
    out.mkdir(parents=True, exist_ok=True)
    for name, content in report_from(rows).files().items():
        (out / name).write_bytes(content)


def check_files(rows: Path, out: Path) -> None:
    """Raise CorruptFile if the report in a directory is not, to the last byte, what the rows make."""
    made = report_from(rows).files()
    odd = [
        name for name, data in made.items() if not (out / name).is_file() or (out / name).read_bytes() != data
    ]
    if odd:
        raise CorruptFile(f"{out}: {', '.join(odd)} not as {rows} makes them; write the report again")


@dataclass(slots=True)
class _Asker:
    """Asks systems, judges, and keeps the rows."""

    rows: _Rows
    embedder: Remembered
    seed: int
    say: Callable[[str], None]
    said: dict[str, str] = field(default_factory=dict)
    """What a model says to a question with an empty context, by both."""

    def ask(
        self, world: World, pairs: Iterable[Pair], systems: Systems, names: Iterable[str], generator: str
    ) -> None:
        pairs, names = list(pairs), tuple(names)
        for done, pair in enumerate(pairs):
            if done % 50 == 0:
                self.say(f"{generator}: {done} of {len(pairs)} pairs")
            if self.rows.has(pair, names, (self.embedder.name, generator, self.seed)):
                continue
            if pair.kind == "adversary:stale-cache":
                for name in names:
                    systems.ask(name, knowing(pair))
            oracle = systems.ask(ORACLE, pair)
            parametric = self._parametric(systems, pair, generator)
            for name in names:
                said = oracle if name == ORACLE else systems.ask(name, pair)
                self.rows.add(
                    row_of(
                        world,
                        pair,
                        name,
                        said,
                        oracle,
                        embedder=self.embedder.name,
                        generator=generator,
                        seed=self.seed,
                        cost_usd=0.0 if not systems.remote else None,
                        parametric=parametric,
                    )
                )

    def _parametric(self, systems: Systems, pair: Pair, generator: str) -> str:
        key = f"{generator}\x00{pair.question.text}"
        if key not in self.said:
            self.said[key] = systems.empty_context(pair.question.text)
        return self.said[key]


def _compare(
    settings: Settings,
    built: Built,
    world: World,
    pairs: list[Pair],
    embedder: Remembered,
    generator: Generator,
    gate: ConfidenceGate,
    out: Path,
    say: Callable[[str], None],
) -> Compared | None:
    if not settings.compared:
        return None
    kept = out / "noninterference.json"
    if kept.exists():
        got = json.loads(kept.read_text("utf-8"))
        return Compared(**{**got, "differing": tuple(got["differing"])})
    say(f"asking {settings.compared} pairs in two worlds")
    scratch = out / "worlds"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    # Few sessions of many questions each: a world is built for each session.
    by_session: dict[str, list[Pair]] = {}
    for pair in pairs:
        session = pair.session
        meant = sorted(world.meant(session, pair.question.text))
        by_session.setdefault(
            f"{session.role} {session.purpose} {session.as_of} {session.allow_entities} {meant}", []
        ).append(pair)
    chosen: list[Pair] = []
    for some in sorted(by_session.values(), key=len, reverse=True):
        if len(chosen) >= settings.compared:
            break
        chosen += some
    compared = compare_worlds(
        built.store,
        world,
        chosen[: settings.compared],
        scratch,
        embedder=embedder,
        generator=generator,
        gate=gate,
    )
    shutil.rmtree(scratch)
    kept.write_text(json.dumps(asdict(compared)) + "\n", encoding="utf-8")
    return compared


def _attack(
    settings: Settings,
    built: Built,
    world: World,
    pairs: list[Pair],
    embedder: Remembered,
    generator: Generator,
    gate: ConfidenceGate,
    asker: _Asker,
    out: Path,
    say: Callable[[str], None],
) -> dict[str, int]:
    """Plant filings in a copy of the store and ask for what they hide; return the copy's words."""
    attacks = (
        plan_attacks(world, pairs, count=settings.attacks, seed=settings.seed) if settings.attacks else []
    )
    if not attacks:
        return {}
    say(f"attacking {len(attacks)} companies")
    scratch = out / "attacked"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    shutil.copytree(built.store, scratch / "store", ignore=shutil.ignore_patterns("*.lock"))
    write_planted(attacks, scratch / "planted.jsonl")
    write_amendments(attacks, scratch / "amendments.jsonl")
    with carag.Engine.open(scratch / "store", create=False, embedder=embedder) as engine:
        engine.ingest(scratch / "planted.jsonl")
    _relabel_while_asked(scratch, attacks, pairs, embedder, generator, gate, asker)
    planted = World.open(scratch / "store", now=NOW)
    rest = attacked_pairs(planted, attacks, embedder, pairs)
    with Systems(
        scratch / "store", planted, embedder, generator, gate, seed=settings.seed, names=settings.systems
    ) as systems:
        asker.ask(planted, rest, systems, settings.systems, generator.name)
    words = planted.words()
    planted.store.close()
    shutil.rmtree(scratch)
    return words


def _relabel_while_asked(
    scratch: Path,
    attacks: list[Attack],
    pairs: list[Pair],
    embedder: Remembered,
    generator: Generator,
    gate: ConfidenceGate,
    asker: _Asker,
) -> None:
    """Ask one engine about the planted reports while they are superseded, and keep what it says afterwards.

    Its warm state is that of before: what it hands out after the amendment is on record is judged by the labels of
    after.
    """
    store = scratch / "store"
    before = World.open(store, now=NOW)
    asked = [
        pair for pair in attacked_pairs(before, attacks, embedder, pairs) if pair.kind == "adversary:relabel"
    ]
    with Systems(
        store, before, embedder, generator, gate, seed=0, names=(ORACLE, "carag-certified")
    ) as systems:
        news = threading.Thread(target=systems.engine.ingest, args=(scratch / "amendments.jsonl",))
        news.start()
        while True:
            for pair in asked:
                systems.engine.ask(pair.question.text, pair.session)
            if not news.is_alive():
                break
        news.join()
        after = World.open(store, now=NOW)
        systems.world = after
        again = [
            pair
            for pair in attacked_pairs(after, attacks, embedder, pairs)
            if pair.kind == "adversary:relabel"
        ]
        asker.ask(after, again, systems, ("carag-certified",), generator.name)
        after.store.close()
    before.store.close()


def _second_model(
    settings: Settings,
    built: Built,
    world: World,
    pairs: list[Pair],
    embedder: Remembered,
    model: Generator,
    gate: ConfidenceGate,
    asker: _Asker,
) -> None:
    rng = random.Random(settings.seed)  # noqa: S311 - sampling, no secret
    some = rng.sample(pairs, min(settings.model_pairs, len(pairs)))
    with Systems(
        built.store, world, embedder, model, gate, seed=settings.seed, names=_MODEL_SYSTEMS
    ) as systems:
        asker.ask(world, some, systems, _MODEL_SYSTEMS, model.name)


def _trials(settings: Settings, built: Built, world: World, say: Callable[[str], None]) -> tuple[Trials, ...]:
    if not settings.trials:
        return ()
    say(f"{2 * settings.trials} randomised pairs at the level of retrieval")
    with Index.load(built.store / "index.carag") as index:
        return tuple(
            run_trials(index, world.store, plan=plan, count=settings.trials, seed=settings.seed)
            for plan in ("auto", "certified")
        )


def _about(
    settings: Settings,
    built: Built,
    world: World,
    trials: tuple[Trials, ...],
    compared: Compared | None,
    rows: list[Row],
) -> About:
    filed = sorted(day for row in range(len(world)) if (day := world.public_day(row)))
    notes = [
        f"seed {settings.seed}; every question asked as of {NOW.date()} or an earlier day",
        f"{built.dropped} questions left out: no chunk holds any of their evidence",
    ]
    return About(
        corpus="builtin" if settings.size == "small" else settings.size,
        chunks=len(world),
        filings=len({world.filing(row).accession_number for row in range(len(world))}),
        filers=len(set(world.filers) - {0}),
        window=f"{filed[0]}/{filed[-1]}" if filed else "",
        machine=f"{platform.processor() or platform.machine()}, Python {platform.python_version()}",
        version=carag.__version__,
        rows_sha256=rows_sha256(rows),
        trials=trials,
        worlds=None
        if compared is None
        else Worlds(compared.asked, len(compared.differing), compared.worlds, compared.rows_deleted),
        notes=tuple(notes),
    )
