"""Administer a log: ``carag audit rotate``, ``accept`` and ``publish``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from carag.cli._files import opened_log, read_bytes
from carag.cli._options import BackendUrl, Store, store_settings
from carag.cli._output import Exit, say
from carag.errors import InvalidArgument


def rotate(
    store: Store,
    overlap_days: Annotated[
        int, typer.Option("--overlap-days", metavar="N", help="How many days the old key also signs.")
    ] = 7,
    receipt: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where to write the receipt that leads from the old key to the new one."
        ),
    ] = None,
    mldsa: Annotated[
        bool, typer.Option("--ml-dsa", help="Add an ML-DSA-44 key instead, which signs what is anchored.")
    ] = False,
) -> int:
    """Give the log a new key, record the change under the old key, and print the new vkey.

    Run it again to finish an interrupted rotation. Give the new vkey, or the receipt, to those who verify; old receipts
    verify with the old vkey, and with the file [b]vkey[/b], which lists every key.

    [dim]carag audit rotate --store store --receipt rotation.json[/dim]
    """
    from carag.audit.operations import rotation

    if not 0 <= overlap_days <= 365:
        raise InvalidArgument(f"--overlap-days is {overlap_days}; want 0 to 365")
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
            help="Accept the labels as they are, though the last record names others; first find out what changed.",
        ),
    ] = False,
    gate: Annotated[
        bool,
        typer.Option(
            "--gate",
            help="Drop the calibrated gate, which is not the one on record; then calibrate again.",
        ),
    ] = False,
    lost_values: Annotated[
        bool,
        typer.Option(
            "--lost-values",
            help="Continue without [b]private.key[/b]: what records commit to can never be opened again.",
        ),
    ] = False,
    backend: BackendUrl = None,
) -> int:
    """Accept a loss or a change that otherwise keeps the store from opening, and put that on record.

    A store does not open if its labels or its gate are not those on record, or if the values that its records commit
    to are gone. Look for a backup first: what is accepted stays in the log, where every auditor sees it.

    [dim]carag audit accept --labels --store store[/dim]
    """
    from carag.engine import NO_EMBEDDER, Engine

    said = {"labels": labels, "gate": gate, "lost_values": lost_values}
    accepted = {word for word, is_accepted in said.items() if is_accepted}
    if not accepted:
        raise InvalidArgument("say what you accept: --labels, --gate or --lost-values")
    Engine.open(
        store,
        create=False,
        embedder=NO_EMBEDDER,
        accept=accepted,
        **store_settings(backend=backend),
    ).close()
    say(f"the store opens; what was accepted is on record: carag audit list --store {store}")
    return Exit.OK


def publish(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Such as [b]scripts/verify.html[/b].")],
    store: Store,
    receipt: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write the receipt of the record.")
    ] = None,
) -> int:
    """Put the SHA-256 of a file on record, such as the page with which others verify receipts, and print it.

    Others compare the hash of their copy with the record, which the log cannot change later. The record has the kind
    [b]policy[/b] and leaves the table as it is; its reason is [b]PUBLISHED:[/b] and the hash in base64url.

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
            raise InvalidArgument(f"{store} has no policy on record yet; ingest or ask something first")
        why = f"PUBLISHED:{b64url(digest)}"
        said = log.append(PolicyChange(at=log.now(), table=last.table, before=last.table, why=why))
        if receipt is not None:
            said.write(receipt)
    say(f"{digest.hex()}  {file.name}, record {said.seq}")
    return Exit.OK
