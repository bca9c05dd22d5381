"""Retention classes: each with its law, none under six months."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.audit import RETENTION, Recovery, RetentionClass, place_hold, retain_until
from carag.audit.records.retention import DEFAULT_CLASS
from carag.errors import InvalidArgument


def microseconds(*date):
    return int(datetime(*date, tzinfo=UTC).timestamp()) * 1_000_000


@pytest.mark.parametrize(
    ("committed", "code", "until"),
    [
        ((2026, 11, 22), "fin7y", (2033, 11, 22)),
        ((2024, 2, 29), "fin7y", (2031, 2, 28)),
        ((2024, 2, 29), "fin6y", (2030, 2, 28)),
        ((2026, 8, 31), "ai6m", (2027, 2, 28)),
        ((2027, 8, 31), "ai6m", (2028, 2, 29)),
        ((2026, 6, 30), "ai6m", (2026, 12, 30)),
        ((2026, 12, 31), "fin5y", (2031, 12, 31)),
    ],
)
def test_a_term_ends_on_the_same_day_or_the_last_of_the_month(committed, code, until):
    """Calendar months, as terms in law are counted, not days."""
    assert retain_until(microseconds(*committed), code) == datetime(*until, tzinfo=UTC)


def test_the_default_is_seven_years_and_every_class_names_its_law():
    """What the operator must be able to show."""
    assert (DEFAULT_CLASS, RETENTION[DEFAULT_CLASS].months) == ("fin7y", 84)
    assert all(each.law and each.months >= 6 and code == each.code for code, each in RETENTION.items())


@given(st.integers(-5, 5))
def test_no_class_is_under_six_months(months):
    """AI Act Art. 19(1), 26(6)."""
    with pytest.raises(InvalidArgument, match="2024/1689"):
        RetentionClass("short", months, binds_values=False, law="none")


@pytest.mark.parametrize("code", ["", "fin9y", None, ["fin7y"]])
def test_an_unknown_class_is_refused(code):
    """An unknown retention class is refused."""
    with pytest.raises(InvalidArgument, match="want one of"):
        retain_until(0, code)


@pytest.mark.parametrize(("opened", "named"), [("ai6m", None), ("fin5y", "fin7y"), ("fin7y", "ai6m")])
def test_law_a_record_has_its_own_class_or_the_logs(build, opened, named):
    """Also what the log itself writes; the class of a log is not remembered, but given at every opening."""
    with tempfile.TemporaryDirectory() as directory:
        with build.open_log(directory, retain=opened) as log:
            log.append(Recovery("DRILL"), retain=named)
            place_hold(log, "MATTER-7", actor="counsel")
        with build.open_log(directory) as log:
            build.ask(log)
            assert [log.record(n).retain for n in range(3)] == [named or opened, opened, DEFAULT_CLASS]


def test_a_log_is_not_opened_with_an_unknown_class(tmp_path, build):
    """And no log is created."""
    with pytest.raises(InvalidArgument, match="want one of"):
        build.open_log(tmp_path / "log", retain="fin9y")
    assert not (tmp_path / "log").exists()
