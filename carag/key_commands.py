"""``carag audit rotate``: a new signing key for a log."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 # Typer reads the annotations
from typing import Annotated

import typer

from carag.errors import InvalidArgument
from carag.named_files import opened_log
from carag.terminal import say

__all__ = ["rotate"]


def rotate(
    store: Annotated[Path, typer.Option("--store", metavar="DIR", help="The store with the audit log.")],
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

    A rotation that was interrupted is finished by running it again. Give the new vkey, or the receipt, to whoever
    verifies; old receipts verify with the old vkey, and with the file [b]vkey[/b], which lists all.

    [dim]carag audit rotate --store store --receipt rotation.json[/dim]
    """
    from carag.audit import rotation

    if not 0 <= overlap_days <= 365:
        raise InvalidArgument(f"the keys overlap by {overlap_days} days; want 0 to 365")
    with opened_log(store) as log:
        said = rotation.add_mldsa(log) if mldsa else rotation.rotate(log, overlap=overlap_days * 86_400)
        if receipt is not None:
            said.write(receipt)
        say(f"{log.keys.listed[-1] if mldsa else log.vkey}")
    return 0
