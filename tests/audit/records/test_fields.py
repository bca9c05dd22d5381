"""What a code, a key and a number of a record may be, at the edges that docs/reference/receipts.md states."""

from __future__ import annotations

from pathlib import Path

import pytest

from carag.audit import MAX_RECORD_BYTES, ModelChange, Models
from carag.audit.records import _fields
from carag.errors import InvalidArgument
from tests.loaded import loaded


def passes(check, *values):
    try:
        check("it", *values)
    except InvalidArgument:
        return False
    return True


@pytest.mark.parametrize("check", [_fields.code, _fields.key], ids=["code", "key"])
def test_a_code_and_a_key_have_one_to_64_characters(check):
    """So that a word of any language fits, and no sentence."""
    assert [False, True, True, False] == [passes(check, "a" * length) for length in (0, 1, 64, 65)]


@pytest.mark.parametrize("gate", [-1_000_001, -1_000_000, 1_000_000, 1_000_001])
def test_a_gate_is_a_cosine_in_millionths(gate):
    """Both ends are."""

    def change(_):
        return ModelChange(at=1, models=Models(), gate=gate, before=None, before_gate=None, why="X")

    assert (abs(gate) <= 1_000_000) is passes(change)


def test_a_record_is_as_long_as_the_script_reads():
    """What one writes the other takes."""
    script = loaded(Path(__file__).parents[3] / "scripts" / "verify_receipt.py", "script_of_fields")
    assert script.MAX_RECORD_BYTES == MAX_RECORD_BYTES
