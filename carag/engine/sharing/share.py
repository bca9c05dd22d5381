"""Share a store between processes: texts, labels and the log in PostgreSQL, and a directory for each process.

The keys, which the server must not learn, are copied from a directory that already shares the store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carag.audit._notes import SHARED_AT, remember, remembered
from carag.audit._shared import talking
from carag.audit.log.shared import set_up_shared
from carag.errors import InvalidArgument
from carag.postgres.address import Address
from carag.postgres.connection import connected
from carag.store.postgres import set_up

if TYPE_CHECKING:
    from pathlib import Path


_LONGEST: Final = 50
"""Greatest number of characters of that name."""
_OTHERS: Final = ("corpus.db", "audit.db", "vkey")
"""Files of a directory that has, or had, a store of its own."""


def share(directory: Path, url: str, *, admin: str | None = None) -> Address:
    """Note that a directory's store is in PostgreSQL; given an administrator's address, set it up there.

    ``url`` is ``postgresql://ROLE@HOST/DATABASE?schema=NAME``, the application's account, whose password is in
    ``~/.pgpass``. The administrator makes role, schemas, tables and grants; what is there is kept.
    """
    place = shared_place(url)
    check_new(directory, place)
    if admin is not None:
        with talking(admin), connected(admin) as db:
            set_up_shared(db, place.schema, place.role)
            set_up(db, place.schema, place.role)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    remember(directory, place, SHARED_AT)
    return place


def shared_place(url: str) -> Address:
    """Read the address of a shared store."""
    place = Address.parse(url)
    if len(place.schema) > _LONGEST:  # the server truncates longer names, so that two could become the same
        raise InvalidArgument(
            f"schema {place.schema!r} is longer than {_LONGEST} characters; name a shorter one"
        )
    return place


def check_new(directory: Path, place: Address) -> None:
    """Check that a directory has no store of its own, and shares no other."""
    if (known := remembered(directory, SHARED_AT)) not in (None, place):
        raise InvalidArgument(f"{directory} shares the store at {known}; name another directory")
    if known is None and (found := [name for name in _OTHERS if (directory / name).exists()]):
        raise InvalidArgument(
            f"{directory} holds {found[0]}, so it has a store of its own; name an empty directory, or move this store "
            f"there with: carag share URL --admin URL --from {directory} --store EMPTY"
        )
