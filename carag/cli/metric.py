"""Measure what assistants said against a corpus of regulation: ``carag metric run``."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Final

import typer

from carag.cli._output import Exit, columns, progress, say, say_lines, warn
from carag.errors import InvalidArgument, Refused
from carag.extras import require
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.cli._configuration import Configuration
    from carag.evaluation.regulatory import Settings, Variant
    from carag.evaluation.regulatory.run import MetricRun


app = typer.Typer(
    help="Measure whether an assistant's answers agree with a corpus of regulation.", no_args_is_help=True
)

_EMBEDDER: Final = "minilm"
_RERANKER: Final = "maxsim"
"""The default of ``paper`` and ``reference``."""
_STANCE: Final = "stance-head"
"""The name of the default judge of ``stance``."""


@app.command()
def run(
    context: typer.Context,
    corpus: Annotated[
        Path,
        typer.Argument(
            metavar="CORPUS",
            help="A folder of public regulation, or a store together with --role and --purpose.",
        ),
    ],
    sessions: Annotated[
        Path,
        typer.Argument(
            metavar="SESSIONS",
            help="JSON lines with session_id, assistant_id, qa_id, query, assistant, and optionally weight.",
        ),
    ],
    variant: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="[b]paper[/b], exactly as published; [b]reference[/b], as the package gaussia 1.2.0; [b]stance[/b], "
            "which gives no verdict where no passage decides.",
        ),
    ] = "stance",
    store: Annotated[
        Path | None,
        typer.Option(
            "--store",
            metavar="DIR",
            help="The store whose log gets the record. Default: CORPUS if it is a store.",
        ),
    ] = None,
    role: Annotated[
        str | None, typer.Option(metavar="R", help="The role that reads CORPUS, if it is a store.")
    ] = None,
    purpose: Annotated[str | None, typer.Option(metavar="P", help="The purpose for which it reads.")] = None,
    embedder: Annotated[
        str, typer.Option(metavar="NAME", help="As for a store; [b]MODULE:FACTORY[/b] names your own.")
    ] = _EMBEDDER,
    reranker: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Default: [b]maxsim[/b], or for stance [b]stance-head[/b]. Also [b]onnx:DIR[/b], a cross-encoder, or "
            "for stance an NLI model; [b]cosine[/b] of the embedder, not for stance; [b]bedrock:MODEL_ID[/b], a "
            "language model, for stance only; [b]MODULE:FACTORY[/b].",
        ),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="For onnx: the output that counts as support, such as entailment."),
    ] = None,
    bayesian: Annotated[
        bool,
        typer.Option("--bayesian", help="Bootstrap each session's score, with a 95 % credible interval."),
    ] = False,
    seed: Annotated[int, typer.Option(metavar="N", help="The seed of that bootstrap.")] = 42,
    top_k: Annotated[int, typer.Option("--top-k", metavar="K", help="Passages to judge for each turn.")] = 10,
    similarity: Annotated[float, typer.Option(metavar="S", help="Least cosine of a passage to judge.")] = 0.3,
    contradiction: Annotated[
        float, typer.Option(metavar="C", help="A passage with a lower score contradicts; not for stance.")
    ] = 0.6,
    compliance: Annotated[float, typer.Option(metavar="C", help="Least score that is compliant.")] = 0.5,
    chunk_size: Annotated[
        int, typer.Option("--chunk-size", metavar="N", help="Characters in a passage.")
    ] = 1_000,
    chunk_overlap: Annotated[
        int, typer.Option("--chunk-overlap", metavar="N", help="Characters shared with the next passage.")
    ] = 100,
    jsonl: Annotated[Path | None, typer.Option(metavar="FILE", help="Write one session per line.")] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a page that links each verdict to its passage."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON list of sessions instead of text.")
    ] = False,
) -> int:
    """Judge every turn of every session by the nearest passages of a corpus.

    With --store, or a store as corpus, settings and result go into its audit log before anything is printed. Exit
    codes: 0 every session has a verdict, 2 some session has NO_VERDICT, 4 this role may not read the store for this
    purpose.

    [dim]carag metric run regulation/ sessions.jsonl --variant stance --html page.html[/dim]
    """
    from carag.evaluation.regulatory import BayesianMode, SessionVerdict, Settings, Variant
    from carag.evaluation.regulatory.run import run_metric

    settings = Settings(
        variant=Variant.of(variant),
        chunk_size=chunk_size,
        chunk_overlap=chunk_overlap,
        top_k=top_k,
        similarity_threshold=similarity,
        contradiction_threshold=contradiction,
        compliance_threshold=compliance,
    )
    for path in (jsonl, html):
        _check_writable(path)
    if html is not None:
        require("--html", "bench")
    model = _embedder(context, embedder, corpus)
    judge = _reranker(context, reranker, label, model, settings.variant, corpus)
    is_package = settings.variant.is_package
    with tempfile.TemporaryFile() as found, progress() as bars:
        task = bars.add_task("turns", note="", total=None)

        def show(done: int, of: int) -> None:
            bars.update(task, completed=done, total=of, note=f"{done} of {of}")

        try:
            result = run_metric(
                corpus,
                sessions,
                settings,
                found,
                embedder=model,
                reranker=judge,
                statistical_mode=BayesianMode(rng_seed=seed, is_exact_package=is_package)
                if bayesian
                else None,
                store=store,
                reader=_reader(role, purpose),
                progress=show,
            )
        except Refused as refusal:
            warn(str(refusal), style="red")
            return Exit.REFUSED
        bars.stop()
        _write(found, jsonl, html, settings, result, as_json=as_json)
    return Exit.CANNOT_TELL if SessionVerdict.NO_VERDICT in result.sessions else Exit.OK


def _reader(role: str | None, purpose: str | None) -> Any:
    from carag.policy import Session

    if (role is None) != (purpose is None):
        raise InvalidArgument(
            "what may be read in a store depends on both role and purpose; give both --role and --purpose, or neither"
        )
    return None if role is None or purpose is None else Session(role=role, purpose=purpose)


def _embedder(context: typer.Context, name: str, corpus: Path) -> Any:
    from carag.retrieval import embedder_by_name

    configuration: Configuration = context.obj
    made = configuration.made("embedder", name, not_in=corpus)
    return embedder_by_name(made) if isinstance(made, str) else made


def _reranker(
    context: typer.Context, name: str | None, label: str | None, embedder: Any, variant: Variant, corpus: Path
) -> Any:
    from carag.engine.factories import imported, is_factory
    from carag.evaluation.regulatory import CosineReranker, ModelJudge, NliJudge, StanceHead, Variant
    from carag.retrieval import reranker_by_name

    configuration: Configuration = context.obj
    is_stance = variant is Variant.STANCE
    name = name or (_STANCE if is_stance else _RERANKER)
    kind, _, path = name.partition(":")
    if label is not None and (kind != "onnx" or is_stance):
        raise InvalidArgument(
            "--label applies only to the reranker onnx:DIR of the variants paper and reference; leave it out"
        )
    if is_stance and name == _STANCE:
        return StanceHead()
    if is_stance and kind == "onnx":
        return NliJudge(path)
    if is_stance and kind == "bedrock" and path:
        return ModelJudge(path)
    if is_stance and is_factory(name):
        return imported("judge", name, not_in=corpus)()
    if is_stance or name == _STANCE:
        want = (
            f"{_STANCE}, onnx:DIR, bedrock:MODEL_ID or MODULE:FACTORY"
            if is_stance
            else "a reranker; only the variant stance takes a judge"
        )
        raise InvalidArgument(f"--reranker is {quoted(name)} for the variant {variant.value}; want {want}")
    if name == "cosine":
        return CosineReranker(embedder)
    if label is not None:
        return reranker_by_name(name, {"label": label})
    made = configuration.made("reranker", name, not_in=corpus)
    return reranker_by_name(made) if isinstance(made, str) else made


def _check_writable(path: Path | None) -> None:
    if path is not None and not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
        raise InvalidArgument(f"cannot write {path}: {path.parent} is not a writable directory")


def _lines(found: IO[bytes]) -> Iterator[bytes]:
    found.seek(0)
    yield from found


def _write(
    found: IO[bytes],
    jsonl: Path | None,
    html: Path | None,
    settings: Settings,
    result: MetricRun,
    *,
    as_json: bool,
) -> None:
    from carag.evaluation.regulatory import RegulatoryMetric
    from carag.evaluation.regulatory.agreement import agreement
    from carag.evaluation.regulatory.page import page

    if jsonl is not None:
        jsonl.write_bytes(b"".join(_lines(found)))
    if html is not None:
        with html.open("w", encoding="utf-8") as file:
            file.writelines(
                page((RegulatoryMetric.model_validate_json(one) for one in _lines(found)), settings, result)
            )
    record = "not on record" if result.record is None else f"record {result.record} in the audit log"
    about = f"{result.turns} turns, {result.passages} passages; result {result.sha256[:16]}; {record}"
    if as_json:
        say_lines("[" + ",\n".join(one.decode("ascii").rstrip("\n") for one in _lines(found)) + "]")
        warn(about, style="dim")
        warn(agreement(settings.variant), style="dim")
        return
    rows = [_row(json.loads(one)) for one in _lines(found)]
    columns(("session", "verdict", "score", "covered", "turns"), rows)
    for session, turn, source in _undecided(found):
        say(f"no verdict on turn {turn} of {session}: read {source}")
    say(about, style="dim")
    say(agreement(settings.variant), style="dim")


def _undecided(found: IO[bytes]) -> Iterator[tuple[str, str, str]]:
    """Yield session, turn and nearest passage of each turn without a verdict."""
    for session in map(json.loads, _lines(found)):
        for turn in session["interactions"]:
            if turn["verdict"] == "NO_VERDICT":
                claim = next(one for one in turn["claims"] if one["verdict"] == "UNDECIDED")
                place = f"{claim['source']}, characters {claim['evidence_start']} to {claim['evidence_end']}"
                yield session["session_id"], turn["qa_id"], place


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    low, high = one["compliance_score_ci_low"], one["compliance_score_ci_high"]
    interval = "" if low is None else f" ({low:.3f} to {high:.3f})"
    score = f"{one['compliance_score']:.3f}{interval}"
    return one["session_id"], one["verdict"], score, f"{one['coverage']:.0%}", str(one["n_interactions"])
