"""Check that two different people request an operation that cannot be undone."""

from __future__ import annotations

import getpass

from carag.errors import InvalidArgument


def two_persons(actor: str, approver: str) -> None:
    """Check that two names differ by more than case and spaces; InvalidArgument if they do not, or one is empty."""
    names = {" ".join(name.casefold().split()) for name in (actor, approver)}
    if "" in names:
        raise InvalidArgument("name the person who acts and the person who approves")
    if len(names) < 2:
        raise InvalidArgument(f"{actor!r} cannot approve their own request; a second person must approve it")


def acting(by: str | None, approver: str | None, *, two: bool) -> str:
    """Return who acts, by default this process's account; an approver is checked, and needed if ``two``."""
    actor = by or getpass.getuser()
    if two or approver is not None:
        two_persons(actor, approver or "")
    return actor
