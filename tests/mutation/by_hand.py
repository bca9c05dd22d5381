"""Break by hand what mutmut does not reach: properties, decorators, and what a module computes as it is imported.

The list is by_hand.toml. Each mutant is a package of its own, of links to the files of this one but for the one that it
changes, and is tested in a process of its own. A text that is not found exactly once in its file is a mistake in the
list.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path

from tests.mutation.mutants import COPIED, PLUGINS, ROOT, Outcome

SECONDS = 300  # a test that takes longer hangs, and so has noticed


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change to one file, and the tests that should notice it."""

    file: str
    tests: tuple[str, ...]
    name: str
    found: str
    becomes: str
    same: str = ""  # why it means the same, where it does


def listed() -> list[Mutant]:
    """Read the list, and see that it fits the files."""
    mutants = [
        Mutant(block["name"], tuple(block["tests"]), *mutant)
        for block in tomllib.loads(Path(__file__).with_name("by_hand.toml").read_text())["file"]
        for mutant in block["mutants"]
    ]
    for mutant in mutants:
        if (times := (ROOT / mutant.file).read_text().count(mutant.found)) != 1:
            raise ValueError(
                f"{mutant.file}: {mutant.name}: found {times} times, wanted once: {mutant.found!r}"
            )
    return mutants


def run(mutants: list[Mutant]) -> list[tuple[Mutant, Outcome]]:
    """Every mutant, and what became of it; first the tests as they are."""
    whole = [
        Mutant(file, tests, "", "", "") for file, tests in {one.file: one.tests for one in mutants}.items()
    ]
    with ThreadPoolExecutor(2) as pool:
        if failing := [
            one.tests for one, noticed in zip(whole, pool.map(_noticed, whole), strict=True) if noticed
        ]:
            raise RuntimeError(f"nothing can be learned from mutants: as it is, {failing} fail")
        outcomes = pool.map(_outcome, mutants)
        return list(zip(mutants, outcomes, strict=True))


def _outcome(mutant: Mutant) -> Outcome:
    if _noticed(mutant):
        return Outcome.KILLED
    return Outcome.SAME if mutant.same else Outcome.SURVIVED


def _noticed(mutant: Mutant) -> bool:
    """Run a mutant's tests until one fails."""
    with tempfile.TemporaryDirectory(prefix="carag-mutants-") as directory:
        room = Path(directory)
        for name in (*COPIED, "pyproject.toml"):
            (room / name).symlink_to(ROOT / name)
        shutil.copytree(ROOT / "carag", room / "carag", copy_function=os.symlink)
        changed = room / mutant.file
        text = changed.read_text()
        changed.unlink()
        changed.write_text(text.replace(mutant.found, mutant.becomes) if mutant.found else text)
        Path(cache_from_source(str(changed))).unlink(missing_ok=True)
        words = ["nice", sys.executable, "-m", "pytest", "-x", "-q", *PLUGINS, *mutant.tests]
        environment = {**os.environ, "PYTHONPATH": directory, "PYTHONDONTWRITEBYTECODE": "1", "CI": "1"}
        try:
            ran = subprocess.run(words, cwd=room, env=environment, capture_output=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return True
    return ran.returncode != 0


def score(results: list[tuple[Mutant, Outcome]]) -> str:
    """All outcomes in a line."""
    counted = Counter(outcome for _, outcome in results)
    return f"{len(results)} mutants by hand: " + ", ".join(
        f"{counted[one]} {one}" for one in Outcome if counted[one]
    )


def unexplained(results: list[tuple[Mutant, Outcome]]) -> list[str]:
    """Those that no test notices, and those of which the reason is wrong."""
    return [
        f"{one.file}: {one.name}: {'does not mean the same' if one.same else outcome}"
        for one, outcome in results
        if outcome is Outcome.SURVIVED or (one.same and outcome is Outcome.KILLED)
    ]


if __name__ == "__main__":
    results = run([one for one in listed() if not sys.argv[1:] or one.file in sys.argv[1:]])
    print("\n".join([score(results), *unexplained(results)]))  # noqa: T201
