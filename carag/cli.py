"""The command line: ingest, ask, explain, verify, policy, bench.

Exit codes: 0 answered or verified · 1 a cryptographic check failed · 2 cannot tell · 3 declined · 4 refused ·
64 usage · 65 bad input, also when none of it was usable · 70 internal error or unwritable log · 130 interrupted ·
141 whoever read the output went away. Nothing unforeseen ends in 1.

The engine is imported inside the commands that need it, so that ``verify`` runs with nothing but the audit room.
"""

from __future__ import annotations

import os
import sys
import traceback
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

import carag
from carag import audit_commands, policy_commands
from carag.bench_commands import bench_app
from carag.errors import AuditUnavailable, CaragError, CorruptFile, InvalidArgument, StoreLocked
from carag.named_files import read_text
from carag.terminal import (
    box,
    columns,
    flush,
    hang_up,
    logging_shown,
    progress,
    say,
    say_json,
    say_lines,
    survive,
    warn,
)

if TYPE_CHECKING:
    from datetime import date, datetime

    from carag.answers import Answer, Explanation
    from carag.audit import Outcome
    from carag.ingest import IngestReport
    from carag.policy import Session
    from carag.retrieval import Withheld

__all__ = ["Exit", "app", "main"]

app = typer.Typer(
    name="carag",
    help="Compliance-aware search over regulated documents, with a receipt for every answer.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,  # they would show the values of variables
    # The older name of an option that all commands spell alike now.
    context_settings={"token_normalize_func": lambda name: "key" if name == "vkey" else name},
)
_DEBUG: Final = "CARAG_DEBUG"
_FORMATS: Final = (
    "EDGAR submissions (.txt, .sgml, .nc), JSON lines of filings (.jsonl, .ndjson), EDGAR's lists of filings (.tsv, "
    "CIK##########.json), each also with .gz"
)


class Exit(IntEnum):
    """What the process says to its caller."""

    OK = 0
    TAMPERED = 1
    CANNOT_TELL = 2
    DECLINED = 3
    REFUSED = 4
    USAGE = 64
    BAD_INPUT = 65
    INTERNAL = 70
    INTERRUPTED = 130
    HUNG_UP = 141


def _version(wanted: bool) -> None:
    if wanted:
        say(f"carag {carag.__version__}")
        raise typer.Exit


Store = Annotated[Path, typer.Option("--store", metavar="DIR", help="The store: text, index and audit log.")]
Role = Annotated[str, typer.Option(metavar="R", help="Who asks, such as [b]buy_side[/b].")]
Purpose = Annotated[str, typer.Option(metavar="P", help="What for, such as [b]invest[/b].")]
AsOf = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="D",
        help="What was public then: a date (end of that day, US Eastern) or a time with zone. Default: now.",
    ),
]
Subject = Annotated[
    str | None, typer.Option(metavar="S", help="Who asks; recorded only as a salted commitment.")
]
Entity = Annotated[
    list[int] | None,
    typer.Option(
        "--entity",
        metavar="CIK",
        help="Only passages about this company or person and nobody else not given as well; for an access request, "
        "about anyone given.",
    ),
]
Retain = Annotated[
    str | None,
    typer.Option(
        metavar="CLASS",
        help="How long the records must be kept: [b]ai6m[/b], [b]fin5y[/b], [b]fin6y[/b], [b]fin7y[/b] (default).",
    ),
]
NotBefore = Annotated[
    Path | None,
    typer.Option(
        "--not-before",
        metavar="FILE",
        help="A checkpoint or receipt kept elsewhere: a store put back behind it is not opened.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback ends the command
        bool, typer.Option("--version", help="Print the version and end.", is_eager=True, callback=_version)
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Say on standard error what is done; never content.")
    ] = False,
) -> None:
    if verbose:
        context.with_resource(logging_shown())


@app.command()
def ingest(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH",
            help="A filing, a JSONL file of filings, EDGAR's list of a company's filings (CIK##########.json), or a "
            "directory.",
        ),
    ],
    store: Store,
    embedder: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="For a new store: [b]minilm[/b] (default) or [b]wordllama[/b]."),
    ] = None,
    retain: Retain = None,
    not_before: NotBefore = None,
    as_json: AsJson = False,
) -> int:
    """Read filings, label them, and make them searchable.

    Can be killed at any point and run again: what is stored and unchanged is skipped, by content hash. A filing
    that cannot be labelled is stored in quarantine, where no policy reaches it, and counted with its reason. A filing
    that is only listed, without text, adds no passage; it is an event: it may amend, supersede or delist others.

    [dim]carag ingest data/corpus --store store[/dim]
    """
    from carag.engine import Engine

    with (
        Engine.open(store, embedder=embedder, **_log_settings(retain, not_before)) as engine,
        progress() as bars,
    ):
        tasks: dict[str, Any] = {}

        def show(stage: str, done: int, total: int, note: str) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, note="")
            bars.update(tasks[stage], completed=done, total=total or None, note=note)

        report = engine.ingest(path, progress=show)
    if as_json:
        say_json(report.to_json())
    else:
        _show_report(report)
    if report.filings or report.events or report.events_unchanged:
        return Exit.OK
    warn(
        f"nothing under {path} could be used: {len(report.problems)} skipped or broken; want {_FORMATS}",
        style="red",
    )
    return Exit.BAD_INPUT


@app.command()
def ask(
    question: Annotated[
        str, typer.Argument(help="A question in plain words. It can only tighten the policy.")
    ],
    store: Store,
    role: Role,
    purpose: Purpose,
    as_of: AsOf = None,
    subject: Subject = None,
    entity: Entity = None,
    generator: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="[b]extractive[/b] quotes; [b]local[/b] or [b]local:PATH[/b] runs a GGUF model here; "
            "[b]bedrock:MODEL_ID[/b] asks Amazon Bedrock.",
        ),
    ] = "extractive",
    receipt: Annotated[
        Path | None, typer.Option("--receipt", metavar="FILE", help="Write the receipt of this answer here.")
    ] = None,
    retain: Retain = None,
    not_before: NotBefore = None,
    as_json: AsJson = False,
) -> int:
    """Answer a question from what this role may use for this purpose.

    Exit codes: 0 answered, 3 declined (too little admissible evidence), 4 refused (this role may not ask for this
    purpose).

    [dim]carag ask "What drove revenue?" --store store --role buy_side --purpose invest --receipt r.json[/dim]
    """
    from carag.engine import Engine

    session = _session(role, purpose, as_of, subject, entity)
    settings = _log_settings(retain, not_before)
    with Engine.open(store, create=False, generator=generator, **settings) as engine:
        answer = engine.ask(question, session)
    if receipt is not None:
        _write_receipt(answer, receipt)
    if as_json:
        say_json(answer.to_json())
    else:
        _show_answer(answer, receipt)
    return _exit_of(answer.outcome)


@app.command()
def explain(
    chunk: Annotated[str, typer.Argument(metavar="CHUNK", help="A chunk id: accession number and ordinal.")],
    store: Store,
    role: Role,
    purpose: Purpose,
    as_of: AsOf = None,
    entity: Entity = None,
    retain: Retain = None,
    not_before: NotBefore = None,
    as_json: AsJson = False,
) -> int:
    """Say why a passage is admissible or hidden for a session.

    Which rule hides it, for which regulation, how its filing came to that, and who could lift it and how. A role that
    may not know of hidden passages gets the same answer for a hidden chunk as for one that does not
    exist (exit code 3).

    [dim]carag explain 0000002488-23-000076:00003 --store store --role compliance --purpose surveil[/dim]
    """
    from carag.engine import Engine

    session = _session(role, purpose, as_of, None, entity)
    with Engine.open(store, create=False, **_log_settings(retain, not_before)) as engine:
        explanation = engine.explain(chunk, session)
    if as_json:
        say_json(explanation.to_json())
    else:
        _show_explanation(explanation)
    return _exit_of(explanation.outcome)


_AS_GIVEN: dict[str, Any] = {
    "context_settings": {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    "add_help_option": False,
}
"""Of commands that read their words themselves, by a parser that an auditor has without Typer."""


@app.command(**_AS_GIVEN)
def verify(words: typer.Context) -> int:
    """Check a receipt offline, with nothing but the receipt and the log's public key, and say what it shows."""
    from carag.verify_command import run

    return run(["verify", *words.args])


@app.command(**_AS_GIVEN)
def receipt(words: typer.Context) -> int:
    """Leave parts of a receipt out: [b]carag receipt redact[/b]."""
    from carag.verify_command import run

    return run(["receipt", *words.args])


app.add_typer(audit_commands.app, name="audit")

policy_app = typer.Typer(help="What the policy is, and what it says of filings.", no_args_is_help=True)
app.add_typer(policy_app, name="policy")
app.add_typer(bench_app, name="bench")
for _command in (policy_commands.show, policy_commands.lint, policy_commands.diff):
    policy_app.command()(_command)


@policy_app.command("label")
def policy_label(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH", help="Filings, SGML headers or submissions rows: a file or a directory."
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a filing and line.")] = False,
) -> int:
    """Say which bits the rules give each filing, from which EDGAR field, without storing anything.

    State bits are those the filings under PATH cause in each other. Exit code 65 if something could not be read.

    [dim]carag policy label data/corpus --json[/dim]
    """
    from carag.policy_label import UNREADABLE, labelled

    broken = False
    for said in labelled(path):
        if "skipped" in said:
            warn(f"{said['where']}: skipped: {said['skipped']}")
            continue
        aside = said["quarantined"]
        broken |= aside is not None and aside["code"] == UNREADABLE
        if as_json:
            say_json(said, indent=None)
            continue
        bits = " ".join(said["bits"]) + (f"  quarantined: {aside['code']}: {aside['text']}" if aside else "")
        say(f"{said['accession'] or said['where']}  {said['word']:#010x}  {bits}")
    return Exit.BAD_INPUT if broken else Exit.OK


@policy_app.command("bits")
def policy_bits(
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write the page here.")] = None,
) -> int:
    """Print the page that documents all 27 bits, from the rules themselves, as Markdown.

    [dim]carag policy bits --out carag/policy/BITS.md[/dim]
    """
    from carag.policy import PolicyTable
    from carag.policy_label import bits_page

    page = bits_page(PolicyTable.shipped())
    if out is None:
        say_lines(page)
    else:
        out.write_text(page, encoding="utf-8")
    return Exit.OK


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and end the process with its exit code."""
    survive()
    code = _run(arguments)
    if code == Exit.HUNG_UP:
        hang_up()
    sys.exit(code)


def _run(arguments: list[str] | None) -> int:
    try:
        code = int(app(arguments, prog_name="carag", standalone_mode=False) or Exit.OK)
        flush()  # what cannot be printed was not said
    except BaseException as error:  # noqa: BLE001 - Python's own exit code for a traceback is 1, which says "tampered"
        try:
            return _told(error)
        except BaseException:  # noqa: BLE001 - and there is nobody to tell
            return Exit.INTERNAL
    return code


def _told(error: BaseException) -> Exit:
    """Say in one line what ended a command; return the exit code for it."""
    if isinstance(error, SystemExit) and not error.code:
        return Exit.OK
    if isinstance(error, SystemExit | typer.Abort):  # Typer's, where a pipe breaks or the input ends
        error = error.__context__ or error
    if os.environ.get(_DEBUG):
        for line in "".join(traceback.format_exception(error)).splitlines():
            warn(line)
    if isinstance(error, BrokenPipeError):
        return Exit.HUNG_UP
    if isinstance(error, KeyboardInterrupt):
        return Exit.INTERRUPTED
    if isinstance(error, typer.TyperException):
        if str(error):  # help was printed otherwise
            warn(f"usage: {error}", style="red")
        return Exit.USAGE
    if isinstance(error, CaragError | OSError):
        warn(str(error), style="red")
        bad_input = isinstance(error, InvalidArgument | CorruptFile | StoreLocked)
        return Exit.BAD_INPUT if bad_input else Exit.INTERNAL
    # Its message could hold text that is not on record.
    *_, last = traceback.extract_tb(error.__traceback__) or [None]
    where = f" at {Path(last.filename).name}:{last.lineno}" if last else ""
    warn(f"internal error: {type(error).__name__}{where}; {_DEBUG}=1 shows how it came to that", style="red")
    return Exit.INTERNAL


def _session(
    role: str, purpose: str, as_of: str | None, subject: str | None, entities: list[int] | None
) -> Session:
    from carag.policy import Session

    allowed = frozenset(entities) if entities else None
    return Session(role=role, purpose=purpose, subject=subject, as_of=_moment(as_of), allow_entities=allowed)


def _log_settings(retain: str | None, not_before: Path | None) -> dict[str, Any]:
    given: dict[str, Any] = {} if retain is None else {"retain": retain}
    if not_before is not None:
        given["not_before"] = read_text(not_before)
    return given


def _moment(text: str | None) -> datetime | date | None:
    from carag.policy import parse_moment

    if text is None:
        return None
    try:
        return parse_moment(text)
    except InvalidArgument:
        raise InvalidArgument(
            f"--as-of is {text!r}; want a date such as 2025-05-01, or a time such as 2025-05-01T16:30:00-04:00"
        ) from None


def _exit_of(outcome: Outcome) -> Exit:
    from carag.audit import Outcome

    return {Outcome.ANSWER: Exit.OK, Outcome.DECLINE: Exit.DECLINED}.get(outcome, Exit.REFUSED)


def _write_receipt(answer: Answer, path: Path) -> None:
    try:
        answer.receipt.write(path)
    except OSError as error:
        # The record is safe in the log; only this copy of its proof could not be kept.
        raise AuditUnavailable(f"cannot write the receipt {path}: {error.strerror}") from error


def _show_report(report: IngestReport) -> None:
    say(
        f"{report.added} filings added, {report.changed} changed, {report.unchanged} unchanged; "
        f"{report.chunks} chunks, {report.relabelled} relabelled. "
        f"The store holds {report.total_filings} filings in {report.total_chunks} chunks."
    )
    if report.events or report.events_unchanged or report.total_events:
        say(
            f"{report.events} events without text, {report.events_unchanged} rows said nothing new; "
            f"the store knows {report.total_events} filings by their facts alone."
        )
    for reason, count in sorted(report.quarantined.items()):
        say(f"  quarantined {count:>6}  {reason}")
    for problem in report.problems:
        warn(f"  {problem}")


def _show_answer(answer: Answer, receipt: Path | None) -> None:
    box(answer.text, title=answer.outcome.value)
    if answer.citations:
        cells = [
            (f"[{cited.number}]", cited.chunk_id, cited.form, cited.document, cited.company, cited.filed)
            for cited in answer.citations
        ]
        columns(("", "chunk", "form", "document", "filer", "filed"), cells, wraps="filer")
    _show_withheld(answer.withheld)
    where = f"receipt {receipt}" if receipt else "no receipt file asked for (--receipt FILE)"
    say(f"record {answer.receipt.seq} in the audit log; {where}", style="dim")


def _show_withheld(withheld: Withheld | None) -> None:
    if withheld is None:
        return
    say("withheld from this session:", style="dim")
    for kind in withheld.kinds:
        say(f"  {kind.text}", style="dim")
    for hidden in withheld.hidden:
        why = "; ".join(reason.code for reason in hidden.reasons)
        say(f"  hidden neighbour {hidden.chunk_id}: {why}")


def _show_explanation(explanation: Explanation) -> None:
    say(explanation.text)
    for one in explanation.reasons:
        on = f" [{', '.join(one.basis)}]" if one.basis else ""
        say(f"  {one.reason.code}{on}: {one.reason.text}")
        say(f"    rules: {one.regulation or 'none of regulation'}")
        say(f"    lifted by: {one.lift}")
    for cause in explanation.causes:
        say(f"  {cause}", style="dim")
