"""Run the benchmark from corpus to report; an interrupted run resumes where it stopped."""

from __future__ import annotations

import json
import random
import shutil
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import carag
from carag.backends import Checked
from carag.evaluation.cases.corpus import BuiltCorpus, build_corpus, named_filings, names_of, source_of
from carag.evaluation.cases.ground_truth import GroundTruth
from carag.evaluation.cases.manifest import manifest_bytes, manifest_sha256, read_manifest, with_chunks
from carag.evaluation.cases.pairs import Pair, cross, pairs_for_model
from carag.evaluation.cases.synthetic import built_pairs, company_pairs
from carag.evaluation.judge import judge_by_name
from carag.evaluation.models import Models, TimedEmbedder
from carag.evaluation.report.files import write_files
from carag.evaluation.row import ORACLE, SYSTEMS, Row, rows_sha256
from carag.evaluation.run_metadata import RunMetadata, Trials, Worlds, machine_name
from carag.evaluation.safety.attacks import attack
from carag.evaluation.safety.judging import JUDGED_SYSTEMS, judge_answers, judged_json
from carag.evaluation.safety.noninterference import Comparison, compare_rebuilt_stores
from carag.evaluation.safety.trials import QUERIES, run_fused_trials, run_trials
from carag.evaluation.searched import Searched
from carag.evaluation.systems.runner import PartialRows, Runner
from carag.evaluation.systems.systems import Systems
from carag.extras import require
from carag.generation import generator_by_name
from carag.index import TextIndex
from carag.retrieval import Catalogue, ConfidenceGate, embedder_by_name, threshold_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from carag.evaluation.cases.manifest import Manifest
    from carag.evaluation.judge import Judge
    from carag.evaluation.systems.own import OwnSystem
    from carag.generation import Generator
    from carag.retrieval import Embedder


NOW: Final = datetime(2026, 11, 1, tzinfo=UTC)
"""Instant at which every question is asked; it is fixed, so that a session dated today sees the same on every day."""
_BATCH: Final = 32
"""Random queries sent to a backend at once."""
_EXTRA_OF_MODEL: Final = {"minilm": "models", "wordllama": "models", "local": "local", "bedrock": "bedrock"}
"""Which extra of the package provides a model, by the part of the model's name before the colon."""
_MODEL_SYSTEMS: Final = (ORACLE, "vanilla", "carag-certified")
"""Systems asked with the second generator, which is too slow for all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of a run, on which its rows depend."""

    size: str  # one of :data:`~carag.evaluation.cases.corpus.SIZES`
    cache: Path  # where corpora are kept between runs
    data: Path | None = None  # the directory with ``edgar/``; not for ``small``
    manifest: Path | None = None  # which names the filings of the corpus, instead of the rule of its size
    embedder: str = "minilm"
    gate: float | None = (
        None  # least similarity of an answerable question; None for the embedder's calibration
    )
    pairs: int = 2_000  # of real questions
    built: int = 500  # pairs of built questions
    attacks: int = 20  # companies attacked
    compared: int = 2_000  # pairs asked of two stores
    worlds: int = 20  # sessions of those pairs; a store is rebuilt for each
    trials: int = 500_000  # randomised pairs for each of the two search plans
    fused_trials: int = (
        20_000  # for the fused ranker, which is a thousand times slower; none without ``trials``
    )
    model: str | None = None  # a second generator, such as ``local:PATH``, asked some pairs
    model_pairs: int = 100
    judge: str | None = None  # a model that judges some answers; no row depends on it
    judge_pairs: int = 100
    seed: int = 0
    systems: tuple[str, ...] = field(default=SYSTEMS)
    own: tuple[OwnSystem, ...] = ()  # systems that the user brings, asked in addition
    backend: str | None = None  # URL of a backend that CARAG's systems search, in new collections next to it

    def identity(self) -> dict[str, Any]:
        """Return all settings that the rows of our systems depend on, as JSON values."""
        left_out = {"backend", "cache", "data", "judge", "judge_pairs", "manifest", "own", "systems"}
        named = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in left_out}
        if self.manifest is not None:
            named["manifest"] = manifest_sha256(read_manifest(self.manifest))
        if self.backend is not None:  # the rest may contain a secret
            named["backend"] = self.backend.partition("://")[0]
        return {**named, "systems": list(self.systems), "version": carag.__version__}


def check_requirements(settings: Settings) -> None:
    """Check that packages and data are present before a run makes a directory, spends a dollar or builds a store.

    Raise MissingExtra if a package is not installed; the message has the one command that installs all. Raise
    InvalidArgument if the corpus is unknown, or its filings are missing.
    """
    models = (str(name).partition(":")[0] for name in (settings.embedder, settings.model, settings.judge))
    extras = dict.fromkeys(_EXTRA_OF_MODEL[name] for name in models if name in _EXTRA_OF_MODEL)
    require("the benchmark", "bench", *extras)
    source_of(settings.size, settings.data)
    if settings.manifest is not None:
        named_filings(settings.manifest, settings.data)


def run(
    settings: Settings,
    out: Path,
    *,
    embedder: Embedder | None = None,
    generator: Generator | None = None,
    model: Generator | None = None,
    judge: Judge | None = None,
    searched: Searched | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Path:
    """Run the benchmark, write its rows and its report to ``out``, and return the path of ``rows.jsonl``.

    An interrupted run with the same settings in that directory is resumed. The optional models and ``searched`` replace
    what the settings name, for tests and caches.

    Raise InvalidArgument if the directory contains a run with other settings, or the data are missing. Raise
    MissingExtra if hnswlib or a model's package is not installed.
    """
    check_requirements(settings)
    chosen = TimedEmbedder(embedder or embedder_by_name(settings.embedder))
    gate = ConfidenceGate(threshold_for(chosen.name) if settings.gate is None else settings.gate)
    models = Models(chosen, generator or generator_by_name("extractive"), gate)
    if model is None and settings.model is not None:
        model = generator_by_name(settings.model)
    if judge is None and settings.judge is not None:
        judge = judge_by_name(settings.judge)
    searched = searched or Searched.beside(settings.backend)
    own = {one.name: one.source_sha256 for one in settings.own}
    identity = {**settings.identity(), "names": names_of(settings.size, settings.data).sha256}
    with PartialRows(out, identity, own) as rows:
        runner = Runner(rows, chosen, settings.seed, say)
        built = build_corpus(
            settings.size,
            cache=settings.cache,
            embedder=chosen,
            data=settings.data,
            manifest=settings.manifest,
            seed=settings.seed,
            say=say,
        )
        if searched.is_elsewhere:  # the cached store must stay as it is for other runs
            built = replace(built, store=_copied(built.store, out / "searched"))
        truth = GroundTruth.open(built.store, now=NOW)
        with truth.store:
            this = _Run(settings, built, truth, models, searched, say)
            pairs = this.pairs()
            # No engine may hold the store while it is copied.
            compared = this.compare(pairs, out)
            this.ask([*pairs, *this.company_pairs(pairs)], runner)
            if judge is not None:
                (out / "judge.json").write_text(this.judge(pairs, judge), "utf-8")
            words = truth.words()
            if settings.attacks:
                words |= attack(
                    built.store,
                    truth,
                    pairs,
                    models,
                    runner,
                    count=settings.attacks,
                    names=settings.systems,
                    own=settings.own,
                    searched=searched,
                    scratch=out / "attacked",
                )
            if model is not None:
                few = replace(settings, systems=_MODEL_SYSTEMS, own=())
                second = replace(this, settings=few, models=replace(models, generator=model, once=True))
                some = pairs_for_model(pairs, count=settings.model_pairs, seed=settings.seed)
                second.ask(some, runner)
            trials, where = this.trials()
            found = rows.finish(out / "rows.jsonl")
            metadata = this.metadata(trials, compared, found, where)
            (out / "manifest.jsonl").write_bytes(manifest_bytes(this.manifest()))
    (out / "words.json").write_text(json.dumps(words, sort_keys=True, separators=(",", ":")) + "\n", "utf-8")
    (out / "run.json").write_text(metadata.to_json(), "utf-8")
    write_files(out / "rows.jsonl", out)
    return out / "rows.jsonl"


def _copied(store: Path, copy: Path) -> Path:
    """Copy a store that no engine holds, unless an interrupted run already did."""
    if not copy.exists():
        shutil.copytree(store, copy, ignore=shutil.ignore_patterns("*.lock"))
    return copy


@dataclass(frozen=True, slots=True)
class _Run:
    """What all steps of a run share."""

    settings: Settings
    built: BuiltCorpus
    truth: GroundTruth
    models: Models
    searched: Searched
    say: Callable[[str], None]

    def pairs(self) -> list[Pair]:
        self.say(f"{len(self.truth)} chunks; crossing questions with sessions")
        embedder, settings = self.models.embedder, self.settings
        for question in self.built.questions:
            embedder.embed_query(question.text)
        pairs = cross(
            *(self.truth, self.built.questions, self.built.gold, embedder.vectors),
            count=settings.pairs,
            seed=settings.seed,
        )
        return pairs + built_pairs(self.truth, embedder, count=settings.built, seed=settings.seed)

    def company_pairs(self, pairs: list[Pair]) -> list[Pair]:
        """Build a pair for each company that no other pair is about; the draws of all others stay the same."""
        about = {pair.filer for pair in pairs}
        return company_pairs(self.truth, self.models.embedder, left_out=about, seed=self.settings.seed)

    def _systems(self, names: tuple[str, ...], own: tuple[OwnSystem, ...] = ()) -> Systems:
        return Systems(
            *(self.built.store, self.truth, self.models),
            seed=self.settings.seed,
            names=names,
            own=own,
            searched=self.searched,
        )

    def ask(self, pairs: list[Pair], runner: Runner) -> None:
        with self._systems(self.settings.systems, self.settings.own) as systems:
            runner.ask(self.truth, pairs, systems, systems.names, self.models.generator.name)

    def judge(self, pairs: list[Pair], judge: Judge) -> str:
        """Have the answers to the wanted number of pairs judged; the pairs are chosen as for the second generator."""
        some = pairs_for_model(pairs, count=self.settings.judge_pairs, seed=self.settings.seed)
        with self._systems(JUDGED_SYSTEMS) as systems:
            return judged_json(judge, judge_answers(judge, self.truth, some, systems, say=self.say))

    def compare(self, pairs: list[Pair], out: Path) -> Comparison | None:
        if not self.settings.compared:
            return None
        kept = out / "noninterference.json"
        if kept.exists():
            got = json.loads(kept.read_text("utf-8"))
            return Comparison(**{**got, "differing": tuple(got["differing"])})
        self.say(f"asking {self.settings.compared} pairs in {self.settings.worlds} worlds")
        scratch = out / "worlds"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        compared = compare_rebuilt_stores(
            self.built.store,
            self.truth,
            self._many_of_few_sessions(pairs),
            scratch,
            self.models,
            self.searched,
        )
        shutil.rmtree(scratch)
        kept.write_text(json.dumps(asdict(compared)) + "\n", encoding="utf-8")
        return compared

    def _many_of_few_sessions(self, pairs: list[Pair]) -> list[Pair]:
        """Choose pairs with few sessions and many questions, because a store is rebuilt for each session."""
        rng = random.Random(self.settings.seed)  # noqa: S311 - sampling, no secret
        sessions = {
            (
                one.session.role,
                one.session.purpose,
                one.session.as_of,
                one.session.allow_entities,
            ): one.session
            for one in pairs
            if self.truth.admissible(one.session, "") is not None
        }
        some = rng.sample(list(sessions.values()), min(self.settings.worlds, len(sessions)))
        plain = list(
            {
                one.question.id: one for one in pairs if not self.truth.meant(one.session, one.question.text)
            }.values()
        )
        each = min(len(plain), -(-self.settings.compared // max(len(some), 1)))
        return [replace(one, session=session) for session in some for one in rng.sample(plain, each)]

    def trials(self) -> tuple[tuple[Trials, ...], str]:
        """Ask at random; return the findings, and the name of the backend searched, if any."""
        count = self.settings.trials
        if count:
            self.say(f"{2 * count + self.settings.fused_trials} randomised pairs at the level of retrieval")
        asked, seed = [question.text for question in self.built.questions], self.settings.seed
        with (
            self.searched.index(self.built.store, self.truth.store, self.models.embedder.dim) as index,
            TextIndex.load(self.built.store / "index.words") as text,
        ):
            where = index.state().backend if isinstance(index, Checked) else ""
            if not count:
                return (), where
            # A server must answer a batch within its timeout.
            batch = _BATCH if isinstance(index, Checked) else QUERIES
            plain = [
                run_trials(index, self.truth.store, plan=plan, count=count, seed=seed, batch=batch)
                for plan in ("auto", "certified")
            ]
            catalogue = Catalogue(self.truth.store, self.truth.profile)
            fused = run_fused_trials(
                index, text, catalogue, self.truth.store, asked, count=self.settings.fused_trials, seed=seed
            )
        return (*plain, fused), where

    def manifest(self) -> Manifest:
        return with_chunks(self.built.filings, self.truth.row_at)

    def metadata(
        self, trials: tuple[Trials, ...], compared: Comparison | None, rows: list[Row], where: str
    ) -> RunMetadata:
        names = self.built.names
        filed = sorted(day for row in range(len(self.truth)) if (day := self.truth.public_day(row)))
        notes = [
            f"seed {self.settings.seed}; every question asked as of {NOW.date()} or an earlier day",
            f"{self.built.dropped} questions left out: no chunk contains any of their evidence",
            f"questions are read by a public table of {len(names.rows)} names, SHA-256 {names.sha256}"
            if names.rows
            else "questions are read by the names in filings alone: there is no public table next to them",
            *(f"{one.name} comes from a file with SHA-256 {one.source_sha256}" for one in self.settings.own),
            *([f"CARAG's systems search in {where}"] if where else []),
        ]
        return RunMetadata(
            corpus="builtin" if self.settings.size == "small" else self.settings.size,
            chunks=len(self.truth),
            filings=len({self.truth.filing(row).document_id for row in range(len(self.truth))}),
            filers=len(set(self.truth.filers) - {0}),
            window=f"{filed[0]}/{filed[-1]}" if filed else "",
            machine=machine_name(),
            version=carag.__version__,
            rows_sha256=rows_sha256(rows),
            manifest_sha256=manifest_sha256(self.manifest()),
            trials=trials,
            worlds=None
            if compared is None
            else Worlds(compared.asked, len(compared.differing), compared.worlds, compared.rows_deleted),
            notes=tuple(notes),
        )
