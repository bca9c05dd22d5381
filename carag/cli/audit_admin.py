"""Administer a log: ``carag audit rotate``, ``accept``, ``postgres`` and ``publish``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from carag.cli._files import opened_log, read_bytes
from carag.cli._options import BackendUrl, Store, store_settings
from carag.cli._output import Exit, say
from carag.errors import InvalidArgument

__all__ = ["accept", "postgres", "publish", "rotate"]


def rotate(
    store: Store,
    overlap_days: Annotated[
        int, typer.Option("--overlap-days", metavar="N", help="How long the old key signs along.")
    ] = 7,
    receipt: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where to write the receipt that leads from the old key to the new."
        ),
    ] = None,
    mldsa: Annotated[
        bool, typer.Option("--ml-dsa", help="Instead, add an ML-DSA-44 key, which signs what is anchored.")
    ] = False,
) -> int:
    """Give the log a new key, say so in the log under the old one, and print the new vkey.

    A rotation that was interrupted is finished by running it again. Give the new vkey, or the receipt, to those who
    verify; old receipts verify with the old vkey, and with the file [b]vkey[/b], which lists all.

    [dim]carag audit rotate --store store --receipt rotation.json[/dim]
    """
    from carag.audit.operations import rotation

    if not 0 <= overlap_days <= 365:
        raise InvalidArgument(f"the keys overlap by {overlap_days} days; want 0 to 365")
    with opened_log(store) as log:
        said = rotation.add_mldsa(log) if mldsa else rotation.rotate(log, overlap=overlap_days * 86_400)
        if receipt is not None:
            said.write(receipt)
        say(f"{log.keys.listed[-1] if mldsa else log.vkey}")
    return Exit.OK


def accept(
    store: Store,
    labels: Annotated[
        bool,
        typer.Option(
            "--labels",
            help="Take the labels as they are, though the last record names others: see what changed them.",
        ),
    ] = False,
    gate: Annotated[
        bool,
        typer.Option(
            "--gate",
            help="Drop the calibrated gate, though the log says that there is another: calibrate it again.",
        ),
    ] = False,
    lost_values: Annotated[
        bool,
        typer.Option(
            "--lost-values",
            help="Go on without [b]private.db[/b]: what records commit to stays closed for ever.",
        ),
    ] = False,
    backend: BackendUrl = None,
) -> int:
    """Accept a loss or a change that otherwise keeps the store shut, and put that on record.

    A store does not open where its labels or its gate are not those on record, or where the values its records commit
    to are gone. First look for a backup: what is accepted stays in the log for every auditor to see.

    [dim]carag audit accept --labels --store store[/dim]
    """
    from carag.engine import NO_EMBEDDER, Engine

    if not (labels or gate or lost_values):
        raise InvalidArgument("give --labels, --gate or --lost-values: what is it that you accept?")
    Engine.open(
        store,
        create=False,
        embedder=NO_EMBEDDER,
        accept_gate=gate,
        accept_labels=labels,
        accept_lost_values=lost_values,
        **store_settings(backend=backend),
    ).close()
    say(f"the store opens; what was accepted is on record: carag audit list --store {store}")
    return Exit.OK


def postgres(
    store: Store,
    url: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="postgresql://ROLE@HOST/DATABASE, with ?schema=NAME if it is not carag_audit, one for each log; the "
            "password in ~/.pgpass.",
        ),
    ],
    admin: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Make role, tables and triggers first, as this administrator."),
    ] = None,
) -> int:
    """Keep every record of a log in PostgreSQL, too, with a table of requests; an empty one gets all there is.

    [dim]carag audit postgres --store s --url postgresql://carag_app@db/audit --admin postgresql://dba@db/audit[/dim]
    """
    from carag.audit import AuditLog
    from carag.audit.log.postgres_setup import set_up

    if admin is not None:
        set_up(admin, url)
    with AuditLog.open(store, evidence=url) as log:
        say(
            f"the {log.size} records of {store} are on the server, too, and each one to come before its answer leaves"
        )
    return Exit.OK


def publish(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Such as [b]scripts/verify.html[/b].")],
    store: Store,
    receipt: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write the receipt of the record.")
    ] = None,
) -> int:
    """Put the SHA-256 of a file on record, such as of the page by which others verify receipts, and print it.

    Who gets the file from anywhere compares its hash with the record's, which the log cannot change later. The record
    is of the kind [b]policy[/b], whose table stays; its reason is [b]PUBLISHED:[/b] and the hash in base64url.

    [dim]carag audit publish scripts/verify.html --store store --receipt verifier.json[/dim]
    """
    import hashlib

    from carag.audit import PolicyChange
    from carag.audit.tlog.encoding import b64url

    digest = hashlib.sha256(read_bytes(file)).digest()
    with opened_log(store) as log:
        events = (log.record(seq).event for seq in reversed(range(log.size)))
        last = next((one for one in events if isinstance(one, PolicyChange)), None)
        if last is None:
            raise InvalidArgument(f"{store} has no policy on record yet; ask or ingest something first")
        why = f"PUBLISHED:{b64url(digest)}"
        said = log.append(PolicyChange(at=log.now(), table=last.table, before=last.table, why=why))
        if receipt is not None:
            said.write(receipt)
    say(f"{digest.hex()}  {file.name}, record {said.seq}")
    return Exit.OK
