"""Acceptance times as the sources write them, each read as every moment it may mean.

EDGAR's submissions JSON labels acceptance times ``Z``, and they are not always UTC. Of 661 accessions whose
SGML header and submissions row could be compared, 583 were UTC and 78 the header's Eastern time with a ``Z``
behind it. No field tells them apart, so a ``Z`` has two readings.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from carag.policy import EASTERN

__all__ = ["acceptance_readings", "eastern"]


def eastern(digits: str) -> datetime | None:
    """Read ``YYYYMMDDHHMMSS`` as EDGAR means it: US Eastern. Of an hour that occurs twice, the second."""
    try:
        moment = datetime.strptime(digits, "%Y%m%d%H%M%S").replace(tzinfo=EASTERN, fold=1)
    except ValueError:
        return None
    return moment if 1970 < moment.year < 9000 else None


def acceptance_readings(stated: str) -> tuple[datetime, ...]:
    """Return every moment an acceptance time may mean, the latest first; empty where it tells none.

    A stated offset is believed, ``Z`` is not: it has the Eastern reading and the UTC one. Midnight under a
    ``Z``, UTC or Eastern, is a date without a time.

    Examples
    --------
    >>> [moment.isoformat() for moment in acceptance_readings("2025-04-30T16:32:30.000Z")]
    ['2025-04-30T16:32:30-04:00', '2025-04-30T12:32:30-04:00']
    >>> acceptance_readings("1994-03-11T05:00:00.000Z")
    ()
    """
    moment = eastern(re.sub(r"\D", "", stated)[:14])
    if moment is None:
        return ()
    if re.search(r"[+-]\d\d:\d\d$", stated):
        try:
            return (datetime.fromisoformat(stated).astimezone(EASTERN),)
        except ValueError:
            return ()
    if not stated.endswith("Z"):
        return (moment,)
    as_utc = moment.replace(tzinfo=UTC)
    readings = (moment, as_utc.astimezone(EASTERN))
    clocks = {(reading.hour, reading.minute, reading.second) for reading in (as_utc, readings[1])}
    return () if (0, 0, 0) in clocks else readings
