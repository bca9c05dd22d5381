"""Break the guards written in Python one at a time, and see that the tests notice. mutmut makes the mutants.

The list is mutants.toml: which files, by which tests, and of the mutants that mean the same, why they do. What only
words differently is told by words.py, and neither run nor listed. Properties and what a module computes as it is
imported are beyond mutmut's reach: by_hand.py breaks those.

``python -m tests.mutation.mutants [GROUP...] > tests/mutation/mutants.txt`` runs them and writes the committed result.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import json
import os
import platform
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from tests.mutation.words import words_only

ROOT = Path(__file__).parents[2]
LISTED: dict[str, Any] = tomllib.loads(Path(__file__).with_name("mutants.toml").read_text())
PLUGINS = ["-p", "no:cacheprovider", "-p", "tests.mutation.quickly"]
COPIED = ["tests", "bench", "csrc", "data", "docs", "scripts", "README.md"]


class Change(NamedTuple):
    """What a mutant does, as the list has it: its line, or lines, before and after."""

    file: str
    function: str
    before: str
    after: str


class Outcome(StrEnum):
    """What became of a mutant; the first three are as they should be."""

    KILLED = "killed"
    SAME = "mean the same"
    WORDS = "only word differently"
    SURVIVED = "survived"


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change, under mutmut's name for it."""

    name: str
    change: Change
    is_words: bool


def reasons() -> dict[Change, str]:
    """Why the mutants that are listed mean the same."""
    return {Change(*change): block["why"] for block in LISTED["same"] for change in block["mutants"]}


def run(group: dict[str, Any]) -> list[tuple[Mutant, Outcome]]:
    """Every mutant of a group's files, and what became of it."""
    with tempfile.TemporaryDirectory(prefix="carag-mutants-") as directory:
        room = Path(directory)
        _furnish(room, group)
        with contextlib.chdir(room):
            mutants = [mutant for file in group["files"] for mutant in made_of(file)]
        wanted = [mutant.name for mutant in mutants if not mutant.is_words]
        # The same examples each time, and nothing from beside the copy.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {
            "CI": "1",
            "TMPDIR": directory,
        }
        ran = subprocess.run(
            [
                "nice",
                "-n",
                os.environ.get("MUTANTS_NICE", "10"),
                Path(sys.executable).with_name("mutmut"),
                "run",
                "--max-children",
                "2",
                *wanted,
            ],
            cwd=room,
            env=environment,
            capture_output=True,
            text=True,
        )
        codes: dict[str, int | None] = {}
        for file in group["files"]:
            with contextlib.suppress(FileNotFoundError):
                codes |= json.loads((room / "mutants" / f"{file}.meta").read_text())["exit_code_by_key"]
        for mutant in mutants:
            if mutant.change.function in group.get("at_import", ()) and codes.get(mutant.name) in _UNNOTICED:
                codes[mutant.name] = _alone(mutant, room, group, environment)
        if ran.returncode or any(codes.get(name) is None for name in wanted):
            raise RuntimeError(
                f"mutmut ended with {ran.returncode}: {ran.stdout[-3000:]}{ran.stderr[-3000:]}"
            )
    why = reasons()
    return [(mutant, _outcome(mutant, codes, why)) for mutant in mutants]


def _alone(mutant: Mutant, room: Path, group: dict[str, Any], environment: dict[str, str]) -> int:
    """Run the tests in a process of their own: mutmut's have imported everything before they know the mutant."""
    words = [sys.executable, "-m", "pytest", "-x", "-q", *PLUGINS, *group["tests"]]
    environment = {**environment, "MUTANT_UNDER_TEST": mutant.name}
    return subprocess.run(words, cwd=room / "mutants", env=environment, capture_output=True).returncode


def _furnish(room: Path, group: dict[str, Any]) -> None:
    for name in ["carag", *COPIED]:
        (room / name).symlink_to(ROOT / name)
    settings = {
        "source_paths": sorted({Path(file).parts[0] for file in group["files"]}),
        "only_mutate": group["files"],
        "also_copy": [*COPIED, "carag"],
        "pytest_add_cli_args": PLUGINS,
        "timeout_multiplier": 3,  # of the time that its tests take; who goes round and round is noticed
        "timeout_constant": 5,
        "pytest_add_cli_args_test_selection": group["tests"],
    }
    told = "".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items())
    project = (ROOT / "pyproject.toml").read_text()
    (room / "pyproject.toml").write_text(f"{project}\n[tool.mutmut]\n{told}")


def made_of(file: str) -> list[Mutant]:
    """Return the mutants that mutmut makes of a file below the working directory."""
    from mutmut.configuration import reset_config
    from mutmut.mutation.file_mutation import mutate_file_contents
    from mutmut.utils.format_utils import get_mutant_name

    reset_config()
    made = mutate_file_contents(file, Path(file).read_text())
    functions = {
        node.name: node for node in ast.walk(ast.parse(made.code)) if isinstance(node, ast.FunctionDef)
    }
    lines = made.code.splitlines()
    mutants = []
    for name in made.mutant_names:
        stem = name.partition("__mutmut_")[0]
        mutant, original = functions[name], functions[f"{stem}__mutmut_orig"]
        is_words = words_only(original, mutant, LISTED["names"].get(file, {}))
        before, after = (
            "\n".join(lines[node.lineno - 1 : node.end_lineno]).replace(node.name, "").splitlines()
            for node in (original, mutant)
        )
        function = ".".join(stem.removeprefix("x").removeprefix("_").strip("ǁ").split("ǁ"))
        change = Change(file, function, *_changed(before, after))
        mutants.append(Mutant(get_mutant_name(Path(file), name), change, is_words))
    return mutants


def _changed(before: list[str], after: list[str]) -> tuple[str, str]:
    said: dict[str, list[str]] = {"-": [], "+": []}
    for line in difflib.ndiff(before, after):
        if line[0] in said:
            said[line[0]].append(line[2:].strip())
    return " ".join(said["-"]), " ".join(said["+"])


def _outcome(mutant: Mutant, codes: dict[str, int | None], why: dict[Change, str]) -> Outcome:
    if mutant.is_words:
        return Outcome.WORDS
    if codes[mutant.name] not in _UNNOTICED:
        return Outcome.KILLED
    return Outcome.SAME if mutant.change in why else Outcome.SURVIVED


_UNNOTICED = {0, 5, 33}
"""mutmut's codes for a mutant that passed its tests, and for one that no test reaches."""


def score(results: list[tuple[Mutant, Outcome]]) -> str:
    """All outcomes in a line."""
    counted = Counter(outcome for _, outcome in results)
    return f"{len(results)} mutants: " + ", ".join(f"{counted[one]} {one}" for one in Outcome)


def unexplained(results: list[tuple[Mutant, Outcome]]) -> list[str]:
    """Those that no test notices, and those of the list that are noticed or no longer made."""
    files = {mutant.change.file for mutant, _ in results}
    same = {mutant.change for mutant, outcome in results if outcome is Outcome.SAME}
    survived = [mutant.change for mutant, outcome in results if outcome is Outcome.SURVIVED]
    stale = [change for change in reasons() if change.file in files and change not in same]
    return [f"survived: {_spelt(one)}" for one in survived] + [
        f"does not mean the same: {_spelt(one)}" for one in stale
    ]


def _spelt(change: Change) -> str:
    return "[" + ", ".join(json.dumps(part, ensure_ascii=False) for part in change) + "]"


def report(groups: list[dict[str, Any]]) -> str:
    """Run groups and write the results down: score, by file, and every mutant that means the same with its reason."""
    results = [one for group in groups for one in run(group)]
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    ).stdout
    lines = [
        score(results),
        f"commit {commit.strip()}, Python {platform.python_version()}, mutmut {version('mutmut')}",
        "",
    ]
    for file in dict.fromkeys(mutant.change.file for mutant, _ in results):
        of_file = [one for one in results if one[0].change.file == file]
        lines.append(f"{file}: {score(of_file)}")
    return "\n".join([*lines, *unexplained(results)])


if __name__ == "__main__":
    named = [group for group in LISTED["group"] if group["name"] in sys.argv[1:]]
    print(report(named or LISTED["group"]))  # noqa: T201
