"""A cell that opens by breaking the glass opens for what was broken, until its time has ended, and not otherwise."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from carag.errors import Refused
from carag.policy import PolicyTable, Session, SessionSource, infer
from carag.policy.session import Glass
from carag.policy.time import known_at_microseconds

NOW = datetime(2026, 1, 2, tzinfo=UTC)
THEN = known_at_microseconds(NOW)
CELL = """
[[cell]]
role = "{}"
purpose = "treat"
regulation = "one"
may_know_existence = false
past = "none"
masks = [{{}}]
"""
TABLE = PolicyTable.from_toml(
    f"schema = 1\n{CELL.format('nurse')}{CELL.format('doctor')}break_glass = true\n"
)


DOCTOR = TABLE.get("doctor", "treat")
assert DOCTOR is not None
SHA256 = DOCTOR.sha256


class Trusting:
    """Verifies whatever it is given."""

    def verify(self, token: str) -> dict[str, Any]:
        """Return claims."""
        return {"sub": "ana", "role": "nurse", "purpose": "work"}


@pytest.mark.parametrize(
    ("glass", "code"),
    [
        (None, "BREAK_GLASS_REQUIRED"),
        (Glass("nurse", "treat", THEN + 1, 7), "BREAK_GLASS_REQUIRED"),
        (Glass("doctor", "bill", THEN + 1, 7), "BREAK_GLASS_REQUIRED"),
        (Glass("doctor", "treat", THEN + 1, 7), "BREAK_GLASS_CHANGED"),
        (Glass("doctor", "treat", THEN, 7, SHA256), "BREAK_GLASS_ENDED"),
        (Glass("doctor", "treat", THEN + 1, 7, SHA256), None),
    ],
)
def test_a_cell_opens_for_its_glass_until_it_ends(glass: Glass | None, code: str | None) -> None:
    """Neither another cell's glass nor one whose time has ended counts; other cells need none."""
    session = Session(role="doctor", purpose="treat")
    session._set("glass", glass)
    assert infer(Session(role="nurse", purpose="treat"), TABLE, now=NOW).role == "nurse"
    if code is None:
        assert infer(session, TABLE, now=NOW).role == "doctor"
        return
    with pytest.raises(Refused, match="the glass") as refusal:
        infer(session, TABLE, now=NOW)
    assert refusal.value.code == code


def test_only_a_narrowed_copy_keeps_the_glass() -> None:
    """And what proved the session; any other change loses both."""
    glass = Glass("doctor", "treat", THEN, 7)
    proved = Session.from_token("t", Trusting())
    opened = proved.under(glass)
    assert (opened.role, opened.purpose, opened.subject) == ("doctor", "treat", proved.subject)
    for kept in (opened, opened.narrow(restricted={7})):
        assert (kept.glass, kept.source) == (glass, SessionSource.VERIFIED)
    assert replace(opened, restricted=frozenset({7})).glass is None
