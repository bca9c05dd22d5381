"""Each night once, at a time of day in a zone; one that fails is logged without content, and the next tries again."""

from __future__ import annotations

import logging
import os
import signal
import threading
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from carag import extras
from carag.engine import SyncReport
from carag.engine.freshness import Nightly, night_trigger
from carag.errors import CorruptFile, InvalidArgument, MissingExtra

if TYPE_CHECKING:
    from collections.abc import Callable

PRIVATE = "the branch at Example Street reports late"


def nights(at: time, zone: str, start: str, count: int) -> list[str]:
    """When runs are due, in UTC, as the scheduler asks: after each run, a moment later."""
    trigger, now, last = night_trigger(at, ZoneInfo(zone)), datetime.fromisoformat(start), None
    found = []
    for _ in range(count):
        last = trigger.get_next_fire_time(last, now)
        found.append(last.astimezone(UTC).strftime("%m-%d %H:%M"))
        now = (last.astimezone(UTC) + timedelta(seconds=1)).astimezone(ZoneInfo(zone))
    return found


@pytest.mark.parametrize(
    ("zone", "start", "due"),
    [
        # No change of clocks: 02:00 in India is 20:30 the day before in UTC.
        ("Asia/Kolkata", "2026-03-28T12:00+00:00", ["03-28 20:30", "03-29 20:30", "03-30 20:30"]),
        # 29 March has no 02:00: the run comes at 01:00 UTC as the night before, when clocks show 03:00.
        ("Europe/Berlin", "2026-03-27T12:00+00:00", ["03-28 01:00", "03-29 01:00", "03-30 00:00"]),
        # 25 October has 02:00 twice: the run comes at the first.
        ("Europe/Berlin", "2026-10-23T12:00+00:00", ["10-24 00:00", "10-25 00:00", "10-26 01:00"]),
        # 8 March has no 02:00; 1 November has it once, for clocks go back from 02:00 to 01:00.
        ("America/New_York", "2026-03-06T12:00+00:00", ["03-07 07:00", "03-08 07:00", "03-09 06:00"]),
        ("America/New_York", "2026-10-30T12:00+00:00", ["10-31 06:00", "11-01 07:00", "11-02 07:00"]),
    ],
)
def test_no_night_is_left_out_where_clocks_change(zone: str, start: str, due: list[str]) -> None:
    """A time that does not exist comes an hour later by the clock, one that exists twice comes once."""
    assert due == nights(time(2), zone, start, len(due))


ZONES = [
    "Asia/Kolkata",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Africa/Cairo",
    "Asia/Beirut",
]


def test_every_day_has_one_run() -> None:
    """Three years, in zones with and without summer time, at each half hour of the night."""
    for zone in map(ZoneInfo, ZONES):
        for half in range(8):
            trigger = night_trigger(time(half // 2, half % 2 * 30), zone)
            last = trigger.get_next_fire_time(None, datetime(2026, 1, 1, tzinfo=zone))
            days = [last.date()]
            while last.year < 2029:
                now = (last.astimezone(UTC) + timedelta(seconds=1)).astimezone(zone)
                last = trigger.get_next_fire_time(last, now)
                days.append(last.date())
            assert [days[0] + timedelta(days=n) for n in range(len(days))] == days


def test_the_trigger_of_the_package_would_leave_a_night_out() -> None:
    """Why this one is not its ``CronTrigger``; where that is mended, this may be."""
    from apscheduler.triggers.cron import CronTrigger

    berlin = ZoneInfo("Europe/Berlin")
    last = datetime(2026, 3, 29, 0, 30, tzinfo=berlin)
    found = CronTrigger(hour=0, minute=30, timezone=berlin).get_next_fire_time(
        last, last + timedelta(seconds=1)
    )
    assert found.date().isoformat() == "2026-03-31"


@pytest.mark.parametrize("at", ["2:00", "24:00", "02:60", "02:00:00", "", "noon", "０2:00"])
def test_a_time_of_day_that_is_none_is_refused(at: str) -> None:
    with pytest.raises(InvalidArgument, match="such as 02:00"):
        Nightly(lambda stop: SyncReport(), at=at, zone=ZoneInfo("UTC"))


def test_the_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "requires", lambda _: ["APScheduler>=3.11; extra == 'schedule'"])
    monkeypatch.setattr(extras, "_absent", lambda _: True)
    with pytest.raises(MissingExtra, match=r"carag-engine\[schedule\]"):
        Nightly(lambda stop: SyncReport(), at="02:00", zone=ZoneInfo("UTC"))


def soon(run: Callable[[Callable[[], bool]], SyncReport], monkeypatch: pytest.MonkeyPatch) -> Nightly:
    """A service whose nights are a tenth of a second."""
    from apscheduler.triggers.interval import IntervalTrigger

    night = Nightly(run, at="02:00", zone=ZoneInfo("Asia/Kolkata"))
    monkeypatch.setattr(night, "_trigger", IntervalTrigger(seconds=0.1))
    monkeypatch.setattr(night, "next", lambda now: now)
    return night


def told_to_end() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def test_a_night_that_fails_is_logged_without_content_and_the_next_tries_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The type of the error and its place; not its words, nor what it was called with."""
    runs: list[int] = []

    def run(stop: Callable[[], bool]) -> SyncReport:
        runs.append(1)
        if len(runs) == 1:
            raise CorruptFile(PRIVATE)
        if len(runs) == 2:
            raise ValueError(PRIVATE)
        told_to_end()
        return SyncReport(added=7)

    with caplog.at_level(logging.INFO):
        soon(run, monkeypatch).start()
    logged = [record.getMessage() for record in caplog.records if record.name.startswith("carag.")]
    assert len(runs) >= 3
    assert [one for one in logged if "failed: CorruptFile" in one]
    assert [one for one in logged if "failed: ValueError" in one]
    assert [one for one in logged if "7 added" in one]
    assert PRIVATE not in caplog.text


def test_one_run_at_a_time_and_sigterm_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nights that come meanwhile are left out; the run is told to stop, and is over when the service is."""
    running: list[int] = []
    most: list[int] = []
    over = threading.Event()

    def run(stop: Callable[[], bool]) -> SyncReport:
        running.append(1)
        most.append(len(running))
        threading.Event().wait(0.5)  # five nights
        told_to_end()
        while not stop():
            threading.Event().wait(0.01)
        running.pop()
        over.set()
        return SyncReport(stopped=True)

    before = signal.getsignal(signal.SIGTERM)
    soon(run, monkeypatch).start()
    assert over.is_set()
    assert {1} == {*most}
    assert before is signal.getsignal(signal.SIGTERM)


def test_an_interrupt_ends_it_as_any_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(stop: Callable[[], bool]) -> SyncReport:
        os.kill(os.getpid(), signal.SIGINT)
        return SyncReport()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a worker of the tests ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            soon(run, monkeypatch).start()
    finally:
        signal.signal(signal.SIGINT, before)
