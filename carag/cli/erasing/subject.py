"""Answer a person's request: ``carag subject report`` finds where a person stands in a store, on record."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from carag.cli._files import write_text
from carag.cli._options import AsJson, BackendUrl, ClaimedRole, Store, unembedded
from carag.cli._output import Exit, say, say_json
from carag.cli.audit_erase import Actor, refuse
from carag.errors import Refused

app = typer.Typer(help="Answer a person's request for access or erasure.", no_args_is_help=True)


@app.callback()
def _root() -> None:
    """Keep ``report`` a command of its own: Typer takes the only command of a group for the group."""


@app.command()
def report(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME",
            help="The person's names and ids, such as 'Ana Ruiz' user:ana; found in any case, in texts as whole words.",
        ),
    ],
    store: Store,
    role: ClaimedRole,
    actor: Actor,
    why: Annotated[str, typer.Option(metavar="CODE", help="The purpose, as a code.")],
    page: Annotated[
        Path | None, typer.Option("--page", metavar="FILE", help="Write the report there, as Markdown.")
    ] = None,
    ids: Annotated[
        Path | None,
        typer.Option(
            "--ids",
            metavar="FILE",
            help="Write the ids of the documents there, one a line: review them, then erase them.",
        ),
    ] = None,
    backend: BackendUrl = None,
    as_json: AsJson = False,
) -> int:
    """Find every document, list, group, record and answer in which a person stands; the search is recorded first.

    Any other role is refused before anything is read, and the attempt is recorded. Exit codes: 0 done, 4 refused.

    [dim]carag subject report "Ana Ruiz" user:ana --store s --role auditor --actor "E. Ve" --why REQUEST-3[/dim]
    """
    from carag.engine import Engine

    try:
        with Engine.open(store, **unembedded(backend)) as engine:
            found = engine.erasures.report(names, role=role, actor=actor, why=why)
    except Refused as refused:
        return refuse(refused)
    if page is not None:
        write_text(page, found.page())
    if ids is not None:
        write_text(ids, "".join(f"{one.id}\n" for one in found.documents))
    if as_json:
        say_json(found.to_json())
    else:
        say(found.page().rstrip("\n"))
    return Exit.OK
