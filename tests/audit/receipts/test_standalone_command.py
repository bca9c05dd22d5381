"""scripts/verify_receipt.py as a command: terminals, files and lines at their limits, and its own exit codes."""

from __future__ import annotations

import contextlib
import io
import json

import pytest

from carag.audit import Checkpoint, SigningKey
from tests.audit.receipts.page import script

VKEY = str(SigningKey("log.example", b"k" * 32).verifier)


def test_a_misspelt_command_is_told_how_it_is_spelt(capsys):
    """And ends in a code of its own, which no check ends in."""
    with pytest.raises(SystemExit) as ended:
        script.main([])
    said = capsys.readouterr().err
    assert (64, True, True) == (ended.value.code, said.startswith("usage: "), "required: path" in said)


def test_a_terminal_without_a_character_is_no_failed_check(monkeypatch):
    """What it cannot show is spelt out."""
    shown = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(shown, encoding="ascii"))
    assert script.main(["\u2014", "--key", VKEY]) == 2
    assert b"cannot read \\u2014" in shown.getvalue()


def test_a_terminal_that_has_gone_is_no_check(monkeypatch):
    """Output that cannot be written ends in 70, whatever the verdict was."""

    class Gone(io.RawIOBase):
        writable = lambda self: True  # noqa: E731

        def write(self, _):
            raise BrokenPipeError

    gone = io.TextIOWrapper(io.BufferedWriter(Gone()), encoding="ascii")
    monkeypatch.setattr("sys.stdout", gone)
    try:
        assert script.main(["nowhere", "--key", VKEY]) == 70
    finally:
        with contextlib.suppress(BrokenPipeError):
            gone.close()


def test_a_file_is_read_to_its_limit_and_no_further(monkeypatch, tmp_path):
    """A longer one is refused, and of one without end no more is read."""

    class Endless(io.BytesIO):
        open = lambda self, _: self  # noqa: E731

        def read(self, size):
            return b"x" * size

    monkeypatch.setattr(script, "MAX_BYTES", 10)
    path = tmp_path / "f"
    path.write_bytes(b"x" * 10)
    assert script.read(path) == b"x" * 10
    path.write_bytes(b"x" * 11)
    for longer in (path, Endless()):
        with pytest.raises(script.CannotTell, match="more than 10 bytes"):
            script.read(longer)


@pytest.mark.parametrize(
    ("size", "end", "code"),
    [
        (60_000, b"\n", 0),
        (60_001, b"\n", 1),
        (60_000, b" \n", 2),
        (59_999, b" \n", 2),
        (59_999, b"X\n", 2),
        (59_999, b"", 1),
    ],
)
def test_a_line_of_an_export_is_one_record_and_no_longer_than_one(tmp_path, size, end, code):
    """The longest record there can be, of the first instant there is; and nothing before the end of its line."""
    key, empty = (
        SigningKey("log.example", b"k" * 32),
        {"id": "A" * 22, "log": "log.example", "seq": 0, "tc": 0},
    )
    length = len(json.dumps({**empty, "pad": ""}, separators=(",", ":")))
    body = json.dumps({**empty, "pad": "x" * (size - length)}, sort_keys=True, separators=(",", ":")).encode()
    root = script.tree_root([script.leaf_hash(body)])
    (tmp_path / "records.jsonl").write_bytes(body + end)
    (tmp_path / "checkpoint").write_text(key.sign(Checkpoint(key.name, 1, root).to_text()).to_text())
    assert script.main([str(tmp_path), "--key", str(key.verifier)]) == code
