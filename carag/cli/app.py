"""Assemble the commands of ``carag``, run one, and turn its outcome or error into an exit code.

Commands import the engine and other large packages inside their functions, so that ``carag --help`` starts fast.
"""

from __future__ import annotations

import os
import traceback
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

import carag
from carag.cli import ask, attack, audit, bench, documents, gate, groups, ingest, metric, policy, store, trust
from carag.cli._output import Exit, flush, logging_shown, say, warn
from carag.cli.erasing import due, subject
from carag.errors import CaragError, CorruptFile, InvalidArgument, Refused, StoreLocked, type_and_place

if TYPE_CHECKING:
    from carag.cli._configuration import Lookup


app = typer.Typer(
    name="carag",
    help="Compliance-aware search over regulated documents, with a receipt for every answer.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,  # they would show the values of variables
    # The older name of --key.
    context_settings={"token_normalize_func": lambda name: "key" if name == "vkey" else name},
)
_DEBUG: Final = "CARAG_DEBUG"
"""The environment variable that asks for tracebacks."""
_NOT_CONFIGURED: Final = {
    ("verify",),
    ("receipt",),
    ("attack",),
    ("bench",),
    ("metric",),
    ("policy", "show"),
    ("audit", "consistency"),
}
"""Commands that read no settings file: an auditor's, those that need no store, or where it is one of two choices."""


def _version(wanted: bool) -> None:
    if wanted:
        say(f"carag {carag.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback ends the command
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_version)
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Log to standard error what is done, but never content.")
    ] = False,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            envvar="CARAG_CONFIG",
            help="A settings file, for what neither an option nor the environment sets. Default: [b]carag.toml[/b] in "
            "the current directory.",
        ),
    ] = None,
) -> None:
    from carag.cli._configuration import Configuration

    if verbose and context.invoked_subcommand != "serve":  # serve always logs, as its settings say
        context.with_resource(logging_shown())
    context.obj = Configuration(config, is_made=context.invoked_subcommand == "init")
    context.default_map = _defaults(context.command, context.obj.lookups())


def _defaults(command: Any, lookups: dict[str, Lookup], *path: str) -> dict[str, Any]:
    """Give every command the same look-ups; Click calls one if neither option nor environment gives a value."""
    below = {
        name: one
        for name, one in getattr(command, "commands", {}).items()
        if (*path, name) not in _NOT_CONFIGURED
    }
    return (
        {name: _defaults(one, lookups, *path, name) for name, one in below.items()} if below else {**lookups}
    )


for _command in (
    ingest.init,
    ingest.ingest,
    ingest.adopt,
    ingest.fetch,
    ingest.sync,
    due.erase_due,
    ask.ask,
    ask.explain,
    ask.serve,
    store.names,
    store.upgrade,
    store.backup,
    store.restore,
    store.share,
    documents.erase,
    trust.trust,
    attack.attack,
):
    app.command()(_command)

_PASS_WORDS_ON: Final[dict[str, Any]] = {
    "context_settings": {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    "add_help_option": False,
}
"""For commands that parse their arguments with argparse, because an auditor runs them without Typer."""


@app.command(**_PASS_WORDS_ON)
def verify(words: typer.Context) -> int:
    """Check a receipt offline, with nothing but the receipt and the log's public key, and say what it shows."""
    from carag.cli.verify import run

    return run(["verify", *words.args])


@app.command(**_PASS_WORDS_ON)
def receipt(words: typer.Context) -> int:
    """Leave parts of a receipt out: [b]carag receipt redact[/b]."""
    from carag.cli.verify import run

    return run(["receipt", *words.args])


app.add_typer(audit.app, name="audit")
app.add_typer(documents.documents, name="documents")
app.add_typer(documents.quarantine, name="quarantine")
app.add_typer(groups.app, name="groups")
app.add_typer(subject.app, name="subject")
app.add_typer(policy.app, name="policy")
app.add_typer(bench.app, name="bench")
app.add_typer(gate.app, name="gate")
app.add_typer(store.backend, name="backend")
app.add_typer(metric.app, name="metric")


@cache
def assembled() -> Any:
    """Return every command, assembled once: Typer reads the annotations of every option of every command for it."""
    return typer.main.get_command(app)


def run(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code, whatever happens."""
    try:
        code = int(assembled()(arguments, prog_name="carag", standalone_mode=False) or Exit.OK)
        flush()  # output that cannot be written is a failure of the command
    except BaseException as error:  # noqa: BLE001 - Python exits with 1 after a traceback, which would say "tampered"
        try:
            return _report(error)
        except BaseException:  # noqa: BLE001 - standard error is gone as well
            return Exit.INTERNAL
    return code


def _report(error: BaseException) -> Exit:
    """Print in one line what ended a command, and return the exit code for it."""
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
        if str(error):  # empty if help was printed
            warn(f"usage: {error}", style="red")
        return Exit.USAGE
    if isinstance(error, Refused):
        warn(f"refused ({error.code}): {error}")
        return Exit.REFUSED
    if isinstance(error, CaragError | OSError):
        warn(str(error), style="red")
        bad_input = isinstance(error, InvalidArgument | CorruptFile | StoreLocked)
        return Exit.BAD_INPUT if bad_input else Exit.INTERNAL
    # Its message could hold text that is not on record.
    warn(f"internal error: {type_and_place(error)}; {_DEBUG}=1 prints the traceback", style="red")
    return Exit.INTERNAL
