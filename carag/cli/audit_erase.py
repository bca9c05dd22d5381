"""Erase, hold and open what records commit to: ``carag audit erase``, ``hold``, ``release`` and ``disclose``.

Each is put on record. Exit codes: 0 done, 4 refused (a hold, a duty to keep, a role), 65 bad input, 70 perhaps not
done.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from carag.cli._files import opened_log
from carag.cli._options import ClaimedRole, Store, unembedded
from carag.cli._output import Exit, say, say_json, warn
from carag.cli.ask import Narrowed, conditions
from carag.errors import InvalidArgument, Refused

if TYPE_CHECKING:
    from collections.abc import Collection

    from carag.audit import Receipt


Records = Annotated[
    list[int] | None, typer.Option("--record", metavar="N", help="A record; can be repeated.")
]
Subject = Annotated[
    str | None,
    typer.Option(
        metavar="S",
        help="A person; [b]-[/b] reads the name from standard input, so that it is not in the shell's history.",
    ),
]
Fields = Annotated[
    list[str] | None,
    typer.Option("--field", metavar="F", help="Only this field, such as [b]query[/b]; can be repeated."),
]
Actor = Annotated[str, typer.Option(metavar="NAME", help="The person who does this; kept sealed.")]
Approver = Annotated[str, typer.Option(metavar="NAME", help="The second person, who approves it.")]
ReceiptFile = Annotated[
    Path | None, typer.Option("--receipt", metavar="FILE", help="Where to keep the receipt of the record.")
]
_ERASED: Final = "erased; back up the store again: the values in older copies of audit.db no longer open"


def erase(
    store: Store,
    actor: Actor,
    approver: Approver,
    basis: Annotated[
        str | None,
        typer.Option(
            metavar="CODE",
            help="GDPR_17_1 or GDPR_5_1_E, which give way to a duty to keep; GDPR_17_1_D or GDPR_17_1_E, which do not.",
        ),
    ] = None,
    record: Records = None,
    subject: Subject = None,
    field: Fields = None,
    expired: Annotated[
        bool,
        typer.Option(
            "--expired",
            help="Everything whose retention period has ended and that no hold covers (GDPR_5_1_E).",
        ),
    ] = False,
    receipt: ReceiptFile = None,
) -> int:
    """Destroy the private values of records, of a person, or past their retention period; every proof stays valid.

    The values in earlier copies of audit.db no longer open afterwards: back the store up again.

    [dim]carag audit erase --store s --record 17 --basis GDPR_17_1_D --actor "D. Po" --approver "C. Co"[/dim]
    [dim]carag audit erase --store s --expired --actor "D. Po" --approver "C. Co"[/dim]
    """
    from carag.audit import erase as erase_values

    if expired:
        if record or subject is not None or field or basis is not None:
            raise InvalidArgument(
                "--expired erases everything past its retention period; leave out --record, --subject, --field, --basis"
            )
        return _erase_expired(store, actor, approver, receipt)
    if basis is None:
        raise InvalidArgument(
            "no reason is given; want --basis GDPR_17_1, GDPR_5_1_E, GDPR_17_1_D or GDPR_17_1_E, or --expired"
        )

    with opened_log(store) as log:
        try:
            done = erase_values(
                log,
                actor=actor,
                approver=approver,
                basis=basis,
                records=record or (),
                subject=_read_name(subject),
                fields=field or (),
            )
        except Refused as refused:
            return refuse(refused)
        _report(done, receipt, _ERASED)
    return Exit.OK


def _erase_expired(store: Path, actor: str, approver: str, receipt: Path | None) -> int:
    from carag.audit import erase_expired, expired
    from carag.audit.operations.persons import two_persons

    two_persons(actor, approver)
    with opened_log(store) as log:
        if not expired(log):
            say("nothing was erased: every value is on hold or still in its retention period")
            return Exit.OK
        done = erase_expired(log, actor=actor, approver=approver)
        _report(done, receipt, _ERASED)
    return Exit.OK


def hold(
    store: Store,
    actor: Actor,
    matter: Annotated[str, typer.Option(metavar="CODE", help="A code for the matter; no names.")],
    subject: Subject = None,
    first: Annotated[int | None, typer.Option(metavar="N", help="The first record.")] = None,
    last: Annotated[int | None, typer.Option(metavar="N", help="The last record.")] = None,
    document: Annotated[
        list[str] | None,
        typer.Option("--document", metavar="ID", help="A document of the store; can be repeated."),
    ] = None,
    words: Annotated[
        list[str] | None,
        typer.Option(
            "--words",
            metavar="TEXT",
            help="The documents in which this stands now, as whole words; can be repeated.",
        ),
    ] = None,
    entity: Annotated[
        int | None,
        typer.Option(metavar="N", help="The documents about this entity, also those that are added later."),
    ] = None,
    where: Narrowed = None,
    receipt: ReceiptFile = None,
) -> int:
    """Forbid erasing a person, records, documents or, if nothing is named, anything, until two people release the hold.

    [dim]carag audit hold --store s --matter MATTER-2026-17 --actor "C. Co" --first 0 --last 999[/dim]
    [dim]carag audit hold --store s --matter MATTER-2026-17 --actor "C. Co" --where department=treasury[/dim]
    """
    from carag.audit import place_hold

    held = {"ids": document, "words": words, "entity": entity, "where": conditions(where or ())}
    if any(one not in (None, {}) for one in held.values()):
        if subject is not None or first is not None or last is not None:
            raise InvalidArgument("a hold covers documents or values of the log, not both; place two holds")
        placed = _hold_documents(
            store, matter, actor, {name: one for name, one in held.items() if one is not None}
        )
        _report(placed, receipt, f"hold in force; release it with: carag audit release {placed.seq}")
        return Exit.OK

    if (first is None) != (last is None):
        raise InvalidArgument("a range of records needs both --first and --last")
    records = None if first is None or last is None else (first, last)
    with opened_log(store) as log:
        placed = place_hold(log, matter, actor=actor, subject=_read_name(subject), records=records)
        _report(placed, receipt, f"hold in force; release it with: carag audit release {placed.seq}")
    return Exit.OK


def _hold_documents(store: Path, matter: str, actor: str, held: dict[str, Any]) -> Receipt:
    from carag.engine import Engine

    with Engine.open(store, **unembedded()) as engine:
        return engine.erasures.holds.place(matter, by=actor, **held)


def release(
    placed: Annotated[int, typer.Argument(metavar="N", help="The record that placed the hold.")],
    store: Store,
    actor: Actor,
    approver: Approver,
    receipt: ReceiptFile = None,
) -> int:
    """End a legal hold.

    [dim]carag audit release 42 --store s --actor "D. Po" --approver "C. Co"[/dim]
    """
    from carag.audit import release_hold

    with opened_log(store) as log:
        done = release_hold(log, placed, actor=actor, approver=approver)
        _report(done, receipt, "hold released")
    return Exit.OK


def disclose(
    record: Annotated[int, typer.Argument(metavar="N", help="The record.")],
    store: Store,
    actor: Actor,
    role: ClaimedRole,
    why: Annotated[str, typer.Option(metavar="CODE", help="The purpose, as a code.")],
    field: Fields = None,
) -> int:
    """Open what a record commits to; the opening, or a refused attempt, is recorded first.

    [dim]carag audit disclose 17 --store s --role auditor --actor "E. Ve" --why COMPLAINT-3[/dim]
    """
    try:
        say_json(opened_values(store, record, role=role, actor=actor, why=why, fields=field or ()))
    except Refused as refused:
        return refuse(refused)
    return Exit.OK


def opened_values(
    store: Path, record: int, *, role: str, actor: str, why: str, fields: Collection[str]
) -> dict[str, str]:
    """Record that values are opened, then open them; any other role is Refused, and the refusal is recorded too."""
    from carag.audit import disclose as open_values

    with opened_log(store) as log:
        opened = open_values(log, record, role=role, actor=actor, why=why, fields=fields)
    return {name: opening.value for name, opening in opened.items()}


def _read_name(subject: str | None) -> str | None:
    if subject != "-":
        return subject
    name = sys.stdin.readline().rstrip("\r\n")
    if not name:
        raise InvalidArgument("--subject - found no name on standard input; write the name as one line")
    return name


def refuse(refused: Refused) -> int:
    """Print the reason, and return the exit code."""
    warn(f"refused ({refused.code}): {refused}")
    return Exit.REFUSED


def _report(receipt: Receipt, path: Path | None, what: str) -> None:
    if path is not None:
        receipt.write(path)
    say(f"record {receipt.seq}: {what}")
