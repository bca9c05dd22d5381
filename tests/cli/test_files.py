"""Keys, files and logs named on a command line: a key as text or as a file, and never a traceback."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.audit import SigningKey
from carag.audit.tlog.log_verifier import LogVerifier
from carag.cli import Exit
from carag.cli._files import key_text, read_bytes, read_text, write_text
from carag.cli.app import run
from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from pathlib import Path

VKEYS = [str(SigningKey("log.example/1", bytes([n]) * 32).verifier) for n in range(200)]


@pytest.mark.parametrize("count", [1, 2, 200])
def test_a_key_is_the_same_as_text_and_as_a_file(tmp_path: Path, count: int) -> None:
    """Also where the text is far longer than a file's name can be."""
    text = "\n".join(VKEYS[:count])
    for name in ("vkey", "a+b", "c++"):
        (tmp_path / name).write_text(text + "\n")
        given = key_text(str(tmp_path / name))
        assert given == key_text(text) == key_text(f" {text}\n") == text
        assert len(LogVerifier.parse(given).keys) == count


def test_a_private_key_is_refused_by_name_and_never_quoted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a file or as text, the key that signs and the one that opens private values; the public one is named."""
    signing = SigningKey("log.example/1", bytes(32)).to_skey()
    (tmp_path / "audit.key").write_text(f"next {signing}\n{signing}\n")
    (tmp_path / "private.key").write_text("carag-private-key/v1\nAAAA\n")
    (tmp_path / "r.json").write_text("{}")
    for key in (str(tmp_path / "audit.key"), str(tmp_path / "private.key"), signing):
        assert Exit.BAD_INPUT == run(["verify", str(tmp_path / "r.json"), "--key", key])
        said = capsys.readouterr().err
        assert "holds a private key" in said
        assert "the file vkey" in said
        assert (key.startswith("/"), False) == (key in said, signing[-20:] in said)


@given(st.text(max_size=40) | st.text(alphabet="a/.0", max_size=9000))
def test_law_a_text_that_is_neither_is_refused(text: str) -> None:
    """With what came, cut short, and what to give instead."""
    with pytest.raises(InvalidArgument, match="give the vkey itself") as refused:
        key_text(f"/no such directory/{text}")
    assert len(str(refused.value)) < 700


@pytest.mark.parametrize("key", ["x" * 5000, "none/such", "a\0b", "", VKEYS[0][:12]])
def test_both_commands_refuse_what_is_no_key(
    key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """65 for a receipt, 2 for a log, as before; and a sentence, no traceback."""
    receipt = tmp_path / "r.json"
    receipt.write_text("{}")
    assert run(["verify", str(receipt), "--key", key]) == Exit.BAD_INPUT
    assert "give the vkey itself" in " ".join(capsys.readouterr().err.split())
    assert run(["audit", "verify", "--store", str(tmp_path), "--vkey", key]) == Exit.CANNOT_TELL
    assert "give the vkey itself" in " ".join(capsys.readouterr().err.split())


def test_files_that_cannot_be_read_or_written_say_why(tmp_path: Path) -> None:
    """A directory, a file of another encoding, a place that is not there."""
    (tmp_path / "latin").write_bytes(b"\xe9")
    with pytest.raises(InvalidArgument, match="not UTF-8"):
        read_text(tmp_path / "latin")
    with pytest.raises(InvalidArgument, match="name a readable file"):
        read_bytes(tmp_path)
    with pytest.raises(InvalidArgument, match="cannot write"):
        write_text(tmp_path / "no" / "where", "x")
