"""Import who is in which group, on record, and show it: ``carag groups``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from carag.cli._options import AsJson, BackendUrl, Store, unembedded
from carag.cli._output import Exit, say, say_json, warn

if TYPE_CHECKING:
    from carag.engine.what_if.groups import GroupsEffect
    from carag.policy.groups.statements import Window


app = typer.Typer(help="Import who is in which group, and show it.", no_args_is_help=True)

_SHOWN: Final = 10
"""The most groups that a warning names; ``--json`` has all."""


@app.command("import")
def import_(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="JSON Lines with one group per line, or SCIM 2.0: a Group, a list of them, or list responses.",
        ),
    ],
    store: Store,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing, and show what would change.")
    ] = False,
    by: Annotated[
        str | None, typer.Option("--by", metavar="NAME", help="Who imports them; recorded as a commitment.")
    ] = None,
    backend: BackendUrl = None,
    as_json: AsJson = False,
) -> int:
    """Set the groups that FILE names to what it states, and record that; other groups stay as they are.

    All of it takes effect at once, or none: an unknown field, a group stated twice or in two spellings, or a group
    inside itself ends the command. Exit codes: 0 done, 65 bad input.

    [dim]carag groups import groups.jsonl --store store --by anna[/dim]
    """
    from carag.engine import Engine

    with Engine.open(store, **unembedded(backend)) as engine:
        report = engine.contents.import_groups(file, by=by, dry_run=dry_run)
    if as_json:
        say_json(report._asdict())
        return Exit.OK
    done = "would change" if dry_run else "on record" if report.known_at is not None else "nothing differs"
    say(
        f"memberships opened: {report.opened}, closed: {report.closed}; groups stated for the first time: "
        f"{report.added}; {done}"
    )
    if dry_run:
        say(f"for all principals, {_tried(store, file).all}")
    if report.undefined:
        named = ", ".join(report.undefined[:_SHOWN]) + (", ..." if len(report.undefined) > _SHOWN else "")
        warn(f"groups that are members of others but have no members of their own on record: {named}")
    return Exit.OK


@app.command("list")
def list_(
    store: Store,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Show the members of this group, such as group:treasury."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Show the groups of a store, or the direct members of one; also while a service uses the store.

    [dim]carag groups list group:treasury --store store[/dim]
    """
    from carag.engine.corpus import open_corpus

    with open_corpus(store) as corpus:
        if name is None:
            groups = corpus.groups.listed()
            if as_json:
                say_json([{"group": group, "members": members} for group, members in groups])
            else:
                for group, members in groups:
                    say(f"{group}  members: {members}")
            return Exit.OK
        found = [(member, *_shown(window)) for member, window in corpus.groups.members(name)]
    if as_json:
        say_json([{"member": member, "from": since, "until": until} for member, since, until in found])
        return Exit.OK
    for member, since, until in found:
        say(member + (f"  from {since}" if since else "") + (f"  until {until}" if until else ""))
    return Exit.OK


def _tried(store: Path, file: Path) -> GroupsEffect:
    from carag.engine.contents import read_stated
    from carag.engine.corpus import open_corpus, profile_of
    from carag.engine.what_if.documents import this_minute
    from carag.engine.what_if.groups import group_effects

    stated = read_stated(file, profile_of(store))
    with open_corpus(store) as corpus:
        return group_effects(corpus, stated, this_minute())


def _shown(window: Window) -> tuple[str | None, str | None]:
    """Return the first minute of a membership and the first one after it, each None if there is no such limit."""
    from carag.policy import from_minutes
    from carag.policy.groups.statements import ALWAYS

    since, until = (
        None if minute == limit else from_minutes(minute).isoformat(timespec="minutes")
        for minute, limit in zip(window, ALWAYS, strict=True)
    )
    return since, until
