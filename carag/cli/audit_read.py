"""List and show records, even while the log is being written: ``carag audit list`` and ``carag audit show``.

Every record shown is proved to be in the log as signed; ``carag audit verify`` tells whether any record is missing.
Reading needs neither the lock nor the signing key. Opening values needs both, and is recorded before the values are
shown.
"""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from carag.cli._files import profile_texts, reader_of
from carag.cli._options import AsJson, AsJsonLines, ClaimedRole, Key, ReadableStore
from carag.cli._output import Exit, say, say_json
from carag.cli.audit_erase import opened_values, refuse
from carag.errors import InvalidArgument, Refused

if TYPE_CHECKING:
    from carag.audit import Record


_UNREADABLE: Final = "of a kind that this version cannot read"
_BRIEFLY: Final = ("record", "logged", "kind", "role", "purpose", "outcome", "code")


def list_records(
    store: ReadableStore,
    key: Key = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="D", help="Logged on or after this UTC day, or at or after this time with zone."
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(metavar="D", help="Logged on or before this UTC day, or at or before this time."),
    ] = None,
    role: Annotated[str | None, typer.Option(metavar="R", help="Asked in this role.")] = None,
    purpose: Annotated[str | None, typer.Option(metavar="P", help="Asked for this purpose.")] = None,
    outcome: Annotated[
        str | None,
        typer.Option(
            metavar="O", help="The outcome: [b]answer[/b], [b]decline[/b], [b]refuse[/b] or [b]error[/b]."
        ),
    ] = None,
    code: Annotated[
        str | None, typer.Option(metavar="CODE", help="With this reason, such as [b]BELOW_GATE[/b].")
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="In this conversation; found with the store's own keys, unless it was erased."
        ),
    ] = None,
    break_glass: Annotated[
        bool,
        typer.Option("--break-glass", help="Only where the glass was broken, and what was asked under it."),
    ] = False,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum number of records to list.")] = 50,
    as_json: AsJsonLines = False,
) -> int:
    """List records, newest first.

    [dim]carag audit list --store store --since 2026-11-01 --outcome refuse[/dim]
    """
    from carag.audit import Outcome
    from carag.audit.auditor.find import find

    if outcome is not None and outcome not in set(Outcome):
        raise InvalidArgument(f"--outcome is {outcome!r}; want {', '.join(Outcome)}")
    wanted = {"role": role, "purpose": purpose, "outcome": outcome, "why": code}
    shown = 0
    with reader_of(store, key) as reader:
        of = None if session is None else _of_conversation(store, session)
        for seq, record in find(
            reader,
            since=_instant(since),
            until=_instant(until, ends=True),
            wanted=wanted,
            among=of,
            under_glass=break_glass,
        ):
            if as_json:
                say_json(_brief(seq, record), indent=None)
            else:
                say(_line(_brief(seq, record)))
            shown += 1
            if shown == limit:
                break
        reader.check_unchanged()
        if not as_json:
            say(f"{shown} of {reader.size} records", style="dim")
    return Exit.OK


def show(
    seq: Annotated[int, typer.Argument(metavar="N", help="The record's number, from 0.")],
    store: ReadableStore,
    key: Key = None,
    opened: Annotated[
        list[str] | None,
        typer.Option(
            "--open",
            metavar="F",
            help="Open a value that the record commits to, such as [b]query[/b], [b]answer[/b] or [b]subject[/b]; "
            "can be repeated.",
        ),
    ] = None,
    purpose: Annotated[str | None, typer.Option(metavar="CODE", help="Why it is opened.")] = None,
    actor: Annotated[str | None, typer.Option(metavar="NAME", help="Who opens it; kept sealed.")] = None,
    role: ClaimedRole = "auditor",
    profile: Annotated[
        Path | None,
        typer.Option(
            "--profile",
            metavar="DIR",
            help="The profile's folder, to name bits; not needed for shipped profiles.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Show one record: the role, purpose and policy of a request, and its outcome.

    The question, the answer and the person are not in it, only commitments to them. Opening them needs a purpose and
    the log's lock, and is recorded before anything is printed. Exit code 4: refused.

    [dim]carag audit show 17 --store store[/dim]
    [dim]carag audit show 17 --store store --open query --purpose COMPLAINT-3 --actor "E. Ve"[/dim]
    """
    from carag.audit.auditor.find import proved
    from carag.audit.private.openable import openable
    from carag.cli._describe import describe_record

    values: dict[str, str] = {}
    if opened and not (purpose and actor):
        return refuse(Refused("NO_PURPOSE", "--open needs --actor, who opens the values, and --purpose, why"))
    if opened:
        try:
            values = opened_values(store, seq, role=role, actor=actor or "", why=purpose or "", fields=opened)
        except Refused as refused:
            return refuse(refused)
    with reader_of(store, key) as reader:
        record = proved(reader, seq)
        reader.check_unchanged()
        if record is None:
            raise InvalidArgument(f"record {seq} is {_UNREADABLE}; read it with a newer version")
        said = describe_record(record, profile_texts(profile))
        said["commits_to"] = openable(store, seq, record.commitments)
        said["proved"] = f"as the log signed it, among {reader.size} records"
    if values:
        said["opened"] = values
    if as_json:
        say_json(said)
    else:
        _show(said)
    return Exit.OK


def _of_conversation(store: Path, conversation: str) -> frozenset[int]:
    """Return the records that commit to this conversation, which the caller knows already."""
    from carag.audit.private.openable import PrivateReader

    with PrivateReader(store) as values:
        found = values.of_field("conversation")
        return frozenset(seq for seq, opening in found if opening.value == conversation)


def _instant(text: str | None, *, ends: bool = False) -> int | None:
    """Read a time as microseconds since 1970; a day as its beginning, or with ``ends`` as that of the next day."""
    from carag.policy import known_at_microseconds, parse_moment

    if text is None:
        return None
    when = parse_moment(text)
    if not isinstance(when, datetime):
        when = datetime.combine(when, time(), tzinfo=UTC) + timedelta(days=ends)
    elif when.utcoffset() is None:
        raise InvalidArgument(
            f"{text!r} has no time zone; want a UTC day, or a time such as 2026-11-01T09:30:00Z"
        )
    return known_at_microseconds(when)


def _brief(seq: int, record: Record | None) -> dict[str, Any]:
    from carag.cli._describe import describe_record

    if record is None:
        return {"record": seq, "kind": _UNREADABLE}
    said = describe_record(record)
    return {name: said[name] for name in _BRIEFLY if name in said} | {"passages": len(record.hits)}


def _line(said: dict[str, Any]) -> str:
    cell = "/".join(said[name] for name in ("role", "purpose") if name in said)
    passages = f"{said['passages']} passages" if said.get("passages") else ""
    ended = (cell, said.get("outcome", ""), said.get("code", ""), passages)
    when = said.get("logged", "")[:19]
    return f"{said['record']:>7}  {when:<19}  {said['kind']:<10}  {'  '.join(filter(None, ended))}".rstrip()


def _show(said: dict[str, Any], indent: str = "") -> None:
    """Print names and values; nested values are indented below their name, rows of a table are lines."""
    for key, value in said.items():
        name = key.replace("_", " ")
        rows = [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
        if rows:
            say(f"{indent}{name:<{18 - len(indent)}}{len(rows)}")
            for row in rows:
                say(f"{indent}  {'; '.join(f'{part} {_text(of)}' for part, of in row.items())}")
        elif isinstance(value, dict) and value:
            say(f"{indent}{name}")
            _show(value, f"{indent}  ")
        else:
            say(f"{indent}{name:<{18 - len(indent)}}{_text(value)}")


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | dict):
        return ", ".join(map(str, value)) or "nothing"
    return str(value)
