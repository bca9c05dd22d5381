"""``carag audit accept``: open a store that is not what its log says, on record."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 # Typer reads the annotations
from typing import Annotated

import typer

from carag.errors import InvalidArgument
from carag.terminal import say

__all__ = ["accept"]


def accept(
    store: Annotated[Path, typer.Option("--store", metavar="DIR", help="The store.")],
    labels: Annotated[
        bool,
        typer.Option(
            "--labels",
            help="Take the labels as they are, though the last record names others: see what changed them.",
        ),
    ] = False,
    lost_values: Annotated[
        bool,
        typer.Option(
            "--lost-values",
            help="Go on without [b]private.db[/b]: what records commit to stays closed for ever.",
        ),
    ] = False,
) -> int:
    """Accept a loss or a change that otherwise keeps the store shut, and put that on record.

    A store does not open where its labels are not those the last record names, or where the values its records commit
    to are gone. First look for a backup: what is accepted stays in the log for every auditor to see.

    [dim]carag audit accept --labels --store store[/dim]
    """
    from carag.engine import Engine

    if not (labels or lost_values):
        raise InvalidArgument("give --labels or --lost-values: what is it that you accept?")
    Engine.open(store, create=False, accept_labels=labels, accept_lost_values=lost_values).close()
    say(f"the store opens; what was accepted is on record: carag audit list --store {store}")
    return 0
