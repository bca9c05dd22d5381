"""Keep which cells were opened by breaking the glass, in memory alone: a service that starts again has none open."""

from __future__ import annotations

import secrets
import threading
from typing import TYPE_CHECKING, Any, Final

from carag.service.problems import Problem
from carag.service.wire import BrokenGlassBody

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.policy import Session
    from carag.policy.session import Glass
    from carag.service.admission import Person


MOST_EACH: Final = 16
"""Greatest number of cells that one person has open at once."""
_SECRET_BYTES: Final = 32


class Glasses:
    """The broken glasses of every person, each by a handle that cannot be guessed. Thread-safe.

    ``now`` returns microseconds since 1970.
    """

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._kept: dict[Person, dict[str, Glass]] = {}

    def keep(self, person: Person, broken: Callable[[], Session]) -> BrokenGlassBody:
        """Break a glass and keep it for this person alone; return its handle, and what it opened.

        Raises Problem ``BREAK_GLASS_LIMIT``, and breaks nothing, if :data:`MOST_EACH` of the person's cells are open;
        otherwise what ``broken`` raises.
        """
        with self._lock:  # so that requests at once do not pass the limit together
            now = self._now()
            kept = {handle: one for handle, one in self._kept.get(person, {}).items() if one.until > now}
            if len(kept) >= MOST_EACH:
                raise Problem("BREAK_GLASS_LIMIT")
            glass: Any = broken().glass
            handle = secrets.token_urlsafe(_SECRET_BYTES)
            self._kept[person] = {**kept, handle: glass}
        return BrokenGlassBody(
            glass=handle, role=glass.role, purpose=glass.purpose, until=glass.until, record=glass.record
        )

    def under(self, handle: str, person: Person, session: Session) -> Session:
        """Return a person's session under the glass that a handle names; one that has ended is left to the engine.

        Raises Problem ``BREAK_GLASS_UNKNOWN``, which is the same for a handle of another person, one of another cell,
        and one that never was.
        """
        glass = self._kept.get(person, {}).get(handle)
        if glass is None or (glass.role, glass.purpose) != (session.role, session.purpose):
            wanted = {"glass": "What opened this cell for this person since the service started"}
            raise Problem("BREAK_GLASS_UNKNOWN", at=["glass"], wanted=wanted)
        return session.under(glass)
