"""Check that two different people ask for an operation that cannot be undone."""

from __future__ import annotations

from carag.errors import InvalidArgument

__all__ = ["two_persons"]


def two_persons(actor: str, approver: str) -> None:
    """Check that two names differ by more than case and spaces.

    Raises
    ------
    InvalidArgument
        If a name is empty or both are the same.
    """
    names = {" ".join(name.casefold().split()) for name in (actor, approver)}
    if "" in names:
        raise InvalidArgument("name the person who acts and the person who approves")
    if len(names) < 2:
        raise InvalidArgument(f"{actor!r} cannot approve what {actor!r} does; a second person must")
