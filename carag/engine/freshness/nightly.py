"""Run once a night, at a time of day in a time zone, until the process gets SIGTERM."""

from __future__ import annotations

import os
import re
import signal
import threading
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, Final

from carag.errors import InvalidArgument, type_and_place
from carag.extras import require
from carag.limits import quoted
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Callable
    from zoneinfo import ZoneInfo

    from carag.engine.results import SyncReport


_logger = logger(__name__)

_GRACE: Final = 6 * 3600
"""Seconds by which a run may begin late, such as on a machine that slept; a later one waits for the next night."""
_TIME: Final = re.compile("([01][0-9]|2[0-3]):([0-5][0-9])", re.ASCII)


def night_trigger(at: time, zone: ZoneInfo) -> Any:
    """Return a trigger of APScheduler that fires once a day, at a time of day in a zone.

    If clocks change, a time that a day does not have is taken as before the change, so that 02:00 comes when clocks
    show 03:00; of a time that a day has twice the first counts. APScheduler's own ``CronTrigger`` (3.11.3) fires twice
    then, and after a day of 23 hours it skips a day if the time is in the hour after midnight.

    Examples
    --------
    >>> from zoneinfo import ZoneInfo
    >>> night = night_trigger(time(2), ZoneInfo("Asia/Kolkata"))
    >>> str(night.get_next_fire_time(None, datetime.fromisoformat("2026-03-01T12:00+00:00")))
    '2026-03-02 02:00:00+05:30'
    """
    require("a nightly run", "schedule")
    from apscheduler.triggers.base import BaseTrigger

    class _Night(BaseTrigger):  # type: ignore[misc] # of a package without types
        def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime:
            since = now if previous_fire_time is None else previous_fire_time + timedelta(microseconds=1)
            # Datetimes of one zone compare by wall clock, which is wrong where the clock goes back.
            since = since.astimezone(UTC)
            day = since.astimezone(zone).date()
            due = datetime.combine(day, at, zone)
            return (
                due if due.astimezone(UTC) >= since else datetime.combine(day + timedelta(days=1), at, zone)
            )

    return _Night()


class Nightly:
    """Runs something each night, one run at a time: a night that comes during a run is left out.

    A run that fails is logged by the type and place of its error, without its message, which may quote content; the
    next night tries again.

    ``run`` gets a function that tells whether to stop. It should open the store itself and close it at the end, so that
    the store is free all day.
    """

    def __init__(
        self, run: Callable[[Callable[[], bool]], SyncReport], *, at: str | time, zone: ZoneInfo
    ) -> None:
        if isinstance(at, str):
            if not (found := _TIME.fullmatch(at)):
                raise InvalidArgument(
                    f"the time of day is {quoted(at)}; want hours and minutes, such as 02:00"
                )
            at = time(int(found[1]), int(found[2]))
        self._run = run
        self._zone = zone
        self._trigger = night_trigger(at, zone)
        self._stopping = threading.Event()

    def next(self, now: datetime) -> datetime:
        """Return when the next run after a moment is due."""
        due: datetime = self._trigger.get_next_fire_time(None, now)
        return due

    def once(self) -> SyncReport | None:
        """Run now; return the report, or None if the run failed."""
        try:
            report = self._run(self._stopping.is_set)
        except Exception as error:  # noqa: BLE001 - logged, and the next night tries again
            _logger.error("the nightly run failed: %s; the next night tries again", type_and_place(error))  # noqa: TRY400 - its words may be content
            return None
        _logger.info(
            "the nightly run %s: %d added, %d changed, %d unchanged, %d embedded, %d reused, %d vanished, "
            "%d withdrawn, %d left, %d problems",
            "was stopped" if report.stopped else "ends",
            *(report.added, report.changed, report.unchanged, report.embedded, report.reused),
            *(len(report.vanished), report.removed, len(report.left), len(report.problems)),
        )
        return report

    def start(self) -> None:
        """Wait for each night and run, until SIGTERM, which stops a run between two documents. Main thread only."""
        from apscheduler.schedulers.background import BackgroundScheduler

        scheduler = BackgroundScheduler(timezone=self._zone)
        scheduler.add_job(
            self.once,
            self._trigger,
            max_instances=1,
            coalesce=True,
            misfire_grace_time=_GRACE,
            name="nightly",
        )
        # The handler only writes to a pipe: raising an exception or taking a lock where the signal arrives could leave
        # a lock held for good, such as the log's.
        told, tell = os.pipe()
        before = signal.signal(signal.SIGTERM, lambda *_: os.write(tell, b"."))
        try:
            _logger.info("the next nightly run is due at %s", self.next(datetime.now(self._zone)).isoformat())
            scheduler.start()
            os.read(told, 1)
            _logger.info("told to end")
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            self._stopping.set()
            if scheduler.running:
                scheduler.shutdown(wait=True)
            signal.signal(signal.SIGTERM, before)
            os.close(told)
            os.close(tell)
