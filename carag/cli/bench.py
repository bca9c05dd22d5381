"""Run the SEC EDGAR benchmark, rebuild its report from rows, or measure a store: ``carag bench``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from carag.cli._options import BackendUrl, EmbedderName, Store, model_settings
from carag.cli._output import Exit, columns, say, warn
from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.evaluation.run import Settings


app = typer.Typer(
    help="Measure who sees what and at what cost, compared with an oracle.", no_args_is_help=True
)

_SECONDS_BETWEEN_LINES: Final = 2.0

_Systems = Annotated[
    list[str] | None,
    typer.Option(
        "--system",
        metavar="MODULE:FACTORY",
        help="Your own retriever or RAG system, measured along with the others; can be repeated.",
    ),
]


@app.command()
def edgar(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where rows and report are written.")],
    quick: Annotated[bool, typer.Option("--quick", help="A few hundred pairs, in under 3 minutes.")] = False,
    size: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="[b]small[/b] ships with the project; [b]part[/b], [b]paper[/b] (26,595 chunks) and [b]full[/b] "
            "need --data. Default: paper, or part with --quick; small without data.",
        ),
    ] = None,
    rows: Annotated[
        Path | None, typer.Option("--from", metavar="ROWS", help="Run nothing; only report on these rows.")
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="With --from: write nothing; fail if the report in DIR differs from the rows."
        ),
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            envvar="CARAG_SHARED_DATA",
            help="Real filings and questions: a directory with edgar/.",
        ),
    ] = None,
    manifest: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Build the corpus of the filings that manifest.jsonl of another run names, out of those in edgar/ of "
            "--data; --size names the questions. A filing that is missing or differs is refused by name.",
        ),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where corpora are cached between runs. Default: DIR of --out, /cache."
        ),
    ] = None,
    embedder: Annotated[
        str | None, typer.Option(metavar="NAME", help="Default: minilm, or wordllama with --quick or full.")
    ] = None,
    pairs: Annotated[int | None, typer.Option(metavar="N", help="Pairs of real questions.")] = None,
    trials: Annotated[
        int | None,
        typer.Option(metavar="N", help="Randomised pairs that test retrieval alone, for each of two plans."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="The seed of every draw.")] = 0,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A second generator on 100 pairs and 3 systems: [b]local[/b], [b]local:PATH[/b] or "
            "[b]bedrock:MODEL_ID[/b].",
        ),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A model that judges, in addition to the canaries, whether answers to 100 pairs leak: "
            "[b]bedrock:MODEL_ID[/b]. It is sent what sessions must not see. Default: no model.",
        ),
    ] = None,
    gate: Annotated[
        float | None, typer.Option(metavar="C", help="The least similarity; needed if no gate is calibrated.")
    ] = None,
    system: _Systems = None,
    backend: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="A backend for CARAG's systems to search, as for [b]carag ingest[/b]. Every store of the run gets its "
            "own collection there, which is kept. The other systems search in memory.",
        ),
    ] = None,
    max_usd: Annotated[
        float,
        typer.Option("--max-usd", metavar="USD", help="The most that models of Amazon Bedrock may cost."),
    ] = 0.0,
) -> int:
    """Run the benchmark: CVR, ODR, F1 and refusal of a dozen systems, compared with an oracle.

    Run the same command again to resume a run that was stopped. Paid models start only if the estimate is within
    --max-usd, and are never asked the same thing twice.

    [dim]carag bench edgar --quick --out out[/dim]
    """
    from carag.evaluation.report.files import check_files, write_files
    from carag.evaluation.run import Settings, check_requirements, run
    from carag.evaluation.systems.own import load_own_systems

    if rows is not None and system:
        raise InvalidArgument("--from runs nothing, so --system has no effect; leave one of them out")
    if rows is not None and manifest is not None:
        raise InvalidArgument("--from builds no corpus, so --manifest has no effect; leave one of them out")
    if check and rows is None:
        raise InvalidArgument("--check compares a report with its rows; name them with --from ROWS")
    if rows is not None:
        (check_files if check else write_files)(rows, out)
        return Exit.OK
    has_data = data is not None and (data / "edgar").is_dir()
    size = size or (("part" if quick else "paper") if has_data else "small")
    is_slow = size == "full" or backend is not None
    settings = Settings(
        size=size,
        data=data,
        manifest=manifest,
        cache=cache or out / "cache",
        embedder=embedder or ("wordllama" if quick or size == "full" else "minilm"),
        gate=gate,
        pairs=pairs if pairs is not None else (160 if quick else 2_400),
        built=40 if quick else 600,
        attacks=2 if quick else 20,
        # A store is rebuilt for each world, which at full size, or in a backend, takes minutes.
        compared=60 if quick else 200 if is_slow else 2_000,
        worlds=2 if is_slow else 3 if quick else 20,
        trials=trials if trials is not None else _trials(size, quick=quick, backend=backend),
        fused_trials=2_000 if backend is not None else 20_000,
        model=model,
        judge=judge,
        seed=seed,
        own=load_own_systems(system or ()),
        backend=backend,
    )
    check_requirements(settings)  # before the price is printed
    run(settings, out, **_paid(settings, max_usd), say=_Progress())
    return Exit.OK


@app.command()
def store(
    context: typer.Context,
    questions: Annotated[
        Path,
        typer.Argument(
            metavar="QUESTIONS",
            help='JSON lines: {"question", "role", "purpose"}, and optionally "documents" (ids of documents that '
            'hold the answer) and "as_of".',
        ),
    ],
    store: Store,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where rows and report are written.")],
    canaries: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help='JSON lines: {"document", "text"}. The text must never reach a session that may not use the document.',
        ),
    ] = None,
    system: _Systems = None,
    embedder: EmbedderName = None,
    generator: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="[b]extractive[/b], [b]local[/b], [b]local:PATH[/b] or [b]MODULE:FACTORY[/b], on this machine.",
        ),
    ] = "extractive",
    backend: BackendUrl = None,
) -> int:
    """Measure with your own questions whether a store shows anyone what they may not use.

    CARAG and the oracle are compared with ordinary retrieval over the same vectors, which shows whether the questions
    can find a leak at all. The questions and the result are recorded in the store's log.

    [dim]carag bench store questions.jsonl --store store --canaries canaries.jsonl --out out[/dim]
    """
    from carag.evaluation.report.page import figures_in_words
    from carag.evaluation.run_store import run_store
    from carag.evaluation.systems.own import load_own_systems

    result = run_store(
        store,
        questions,
        out,
        canaries=canaries,
        own=load_own_systems(system or (), not_in=store),
        backend=backend,
        say=_Progress(),
        **model_settings(context, store, embedder=embedder, generator=generator),
    )
    headings, *rows = figures_in_words(result.report)
    columns(headings, rows, wraps=headings[-1])
    said = "passed" if result.passed else "did not pass"
    say(f"the store {said}: record {result.record} in the audit log; {out / 'report.md'}", style="dim")
    return Exit.OK


def _trials(size: str, *, quick: bool, backend: str | None) -> int:
    """Return how many randomised pairs to ask; a server takes a thousand times as long as the index for each."""
    if backend is not None:
        return 2_000
    return 20_000 if quick or size == "small" else 1_000_000


class _Progress:
    """Prints what a run reports, at most one line every two seconds."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._last = -_SECONDS_BETWEEN_LINES

    def __call__(self, text: str) -> None:
        now = time.monotonic() - self._started
        if now - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = now
            warn(f"{now:6.0f} s  {text}", style="dim")


def _paid(settings: Settings, max_usd: float) -> dict[str, Any]:
    """Print the most that a run can cost, refuse it above the limit, and give its paid models a cache."""
    names = {"embedder": settings.embedder, "model": settings.model, "judge": settings.judge}
    paid = {what: name for what, name in names.items() if (name or "").startswith("bedrock:")}
    if settings.judge is not None and "judge" not in paid:
        raise InvalidArgument(f"--judge is {settings.judge!r}; want bedrock:MODEL_ID")
    if not paid:
        return {}
    from carag.evaluation.cases.corpus import SIZES
    from carag.evaluation.judge import judge_by_name
    from carag.evaluation.paid import CachedEmbedder, CachedGenerator, CachedJudge, estimate
    from carag.evaluation.safety.judging import JUDGED_SYSTEMS
    from carag.generation import generator_by_name
    from carag.retrieval import embedder_by_name

    rule = SIZES.get(settings.size)
    chunks = 400 if rule is None else rule.total or 220_000
    # The model answers each pair in three systems, and once without a passage.
    cost = estimate(
        *(paid.get("model"), 4 * settings.model_pairs, paid.get("embedder"), 1_200 * chunks),
        judge=paid.get("judge"),
        verdicts=len(JUDGED_SYSTEMS) * settings.judge_pairs,
    )
    warn(f"estimated cost at list prices: {cost:.2f} USD at most")
    if cost > max_usd:
        raise InvalidArgument(
            f"the run is estimated to cost {cost:.2f} USD, and the limit is {max_usd:.2f}; allow it with "
            f"--max-usd {cost:.2f}"
        )
    makes: dict[str, Callable[[str], object]] = {
        "embedder": lambda name: CachedEmbedder(
            embedder_by_name(name), settings.cache / "paid-vectors.jsonl"
        ),
        "model": lambda name: CachedGenerator(generator_by_name(name), settings.cache / "paid-answers.jsonl"),
        "judge": lambda name: CachedJudge(judge_by_name(name), settings.cache / "paid-verdicts.jsonl"),
    }
    return {what: makes[what](name) for what, name in paid.items() if name}
