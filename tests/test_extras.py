"""Optional packages: what is missing is named with its extra before work starts; what is not used is not needed."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from carag import __main__ as entry
from carag import extras
from carag.errors import MissingExtra
from carag.evaluation.run import _EXTRA_OF_MODEL

ROOT = Path(__file__).parents[1]
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
ENVIRONMENT = {**os.environ, "PYTHONTZPATH": ""}

ALONE = """
import sys
from importlib.abc import MetaPathFinder

class OnlyThese(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        known = top in sys.stdlib_module_names or top.startswith("_sysconfigdata")
        if not known and top not in {allowed}:
            raise ModuleNotFoundError(f"{{name}} is not installed here", name=name)

sys.meta_path.insert(0, OnlyThese())
"""


def alone(allowed: set[str], program: str) -> subprocess.CompletedProcess[str]:
    """Run a program that can import the standard library and the packages given, and has no time zone data."""
    code = ALONE.format(allowed=allowed | {"carag"}) + program
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True
    )


def without(monkeypatch: pytest.MonkeyPatch, *absent: str) -> None:
    """Let some distributions look as if they were not installed, under the extras of this tree."""

    def distribution(name: str) -> None:
        if name in absent:
            raise PackageNotFoundError(name)

    lines = [f"{item}; extra == '{extra}'" for extra, items in DECLARED.items() for item in items]
    monkeypatch.setattr(extras, "_declared", lambda: lines)
    monkeypatch.setattr(extras, "distribution", distribution)


def test_the_index_and_its_words_need_numpy_and_cffi_alone() -> None:
    """Nor do they read time zone data, which not every system has."""
    done = alone(
        {"numpy", "cffi", "_cffi_backend", "pycparser"},
        "import numpy as np, carag\n"
        "index = carag.Index(8)\n"
        "index.add(np.eye(8), carag.policy_word(np.arange(8)))\n"
        "assert index.search(np.ones(8), 3, carag.Policy(carag.Mask())).counts.tolist() == [3]\n"
        "assert carag.PolicyBit.J_US.name == 'J_US'\n",
    )
    assert 0 == done.returncode, done.stderr


def test_what_verifies_needs_cryptography_alone() -> None:
    """``verify`` and ``receipt`` are told apart before the command line's own packages are imported."""
    for words in (["verify", "r.json", "--key", "vkey"], ["receipt", "redact", "r.json"]):
        done = alone(
            {"cryptography", "cffi", "_cffi_backend"},
            "import types, carag.audit\n"
            "from carag.__main__ import main\n"
            "stand_in = types.ModuleType('carag.cli.verify')\n"
            f"stand_in.run = lambda words: 2 if words == {words} else 99\n"
            "sys.modules['carag.cli.verify'] = stand_in\n"
            f"main({words})\n",
        )
        assert 2 == done.returncode, done.stderr


def test_all_that_is_missing_is_said_at_once_with_one_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Extras that are complete are not named; those within an extra are looked into."""
    without(monkeypatch, "cryptography", "hnswlib")
    with pytest.raises(MissingExtra) as said:
        extras.require("It", "models", "engine", "bench")
    assert "It needs cryptography, hnswlib; run: pip install 'carag-engine[engine,bench]'" == str(said.value)
    extras.require("It", "models", "tokens")


@pytest.mark.parametrize("words", [[], ["--help"], ["ask", "What?"], ["bench", "edgar", "--out", "out"]])
def test_a_missing_extra_is_a_sentence_and_never_a_traceback(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The installation is at fault, not the input: exit 70."""
    without(monkeypatch, "typer")
    with pytest.raises(SystemExit) as ended:
        entry.main(words)
    assert 70 == ended.value.code
    command = " ".join(["carag", *words[:1]])
    assert f"{command} needs typer; run: pip install 'carag-engine[engine]'\n" == capsys.readouterr().err


@pytest.mark.parametrize("word", ["ask", "verify"])
def test_what_cannot_be_loaded_never_looks_like_a_failed_check(word: str) -> None:
    """Exit 1 says that something was altered; an installation that is broken, though it looks whole, is 70."""
    done = alone({"cffi", "_cffi_backend"}, f"from carag.__main__ import main\nmain(['{word}'])\n")
    assert 70 == done.returncode
    assert f"carag {word} cannot be loaded: ModuleNotFoundError" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_name_whose_extra_is_missing_names_it() -> None:
    """From ``import carag`` too."""
    done = alone({"numpy", "cffi", "_cffi_backend"}, "import carag\ncarag.Nothing\n")
    assert "AttributeError" in done.stderr
    done = alone({"numpy", "cffi", "_cffi_backend"}, "import carag\ncarag.Engine\n")
    assert "is not installed here" in done.stderr  # installed, but kept from it: the import itself is told


def test_every_extra_that_code_asks_for_is_declared() -> None:
    """Or nothing would be asked for."""
    asked = set(_EXTRA_OF_MODEL.values())
    for path in (ROOT / "carag").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "require":
                asked |= {one.value for one in node.args[1:] if isinstance(one, ast.Constant)}
    assert {"verify", "engine", "models", "bench"} <= asked <= set(DECLARED)
