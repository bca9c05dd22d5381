"""Take advisory locks, which a server releases when the transaction, or the session, of their holder ends."""

from __future__ import annotations

from typing import Any


def lock(db: Any, name: str, of: int, *, session: bool = False) -> None:
    """Wait for a lock: number ``of`` among those of a name such as a schema's; held until the transaction ends."""
    db.execute(f"SELECT pg_advisory_{'' if session else 'xact_'}lock(hashtextextended(%s, %s))", (name, of))


def try_lock(db: Any, name: str, of: int, *, session: bool = False, shared: bool = False) -> bool:
    """Take a lock if it is free or, if shared, if only shared locks are held; tell whether it was taken."""
    how = f"{'' if session else 'xact_'}lock{'_shared' if shared else ''}"
    row = db.execute(f"SELECT pg_try_advisory_{how}(hashtextextended(%s, %s))", (name, of)).fetchone()
    return bool(row[0])


def unlock(db: Any, name: str, of: int) -> None:
    """Release an exclusive lock of the session."""
    db.execute("SELECT pg_advisory_unlock(hashtextextended(%s, %s))", (name, of))
