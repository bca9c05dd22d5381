"""Break by hand what mutmut does not reach: properties, decorators, and what a module computes as it is imported.

The list is by_hand.toml, as listed.py reads it. Each mutant is a package of its own, of links to the files of this one
but for the one that it changes, and is tested in a process of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.util import cache_from_source
from pathlib import Path

from tests.mutation.listed import Mutant, Outcome, counted, outcome, read, unexplained
from tests.mutation.mutants import COPIED, PLUGINS, ROOT

SECONDS = 300  # a test that takes longer hangs, and so has noticed


def mutants() -> list[Mutant]:
    """Read the list."""
    return read(Path(__file__).with_name("by_hand.toml"), ROOT)


def run(listed: list[Mutant]) -> list[tuple[Mutant, Outcome]]:
    """Every mutant, and what became of it; first the tests as they are."""
    whole = [
        Mutant(file, tests, "", "", "") for file, tests in {one.file: one.tests for one in listed}.items()
    ]
    with ThreadPoolExecutor(2) as pool:
        if failing := [
            one.tests for one, noticed in zip(whole, pool.map(_noticed, whole), strict=True) if noticed
        ]:
            raise RuntimeError(f"nothing can be learned from mutants: as it is, {failing} fail")
        noticed = pool.map(_noticed, listed)
        return [
            (one, outcome(one, is_noticed=is_noticed))
            for one, is_noticed in zip(listed, noticed, strict=True)
        ]


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
    return f"{len(results)} mutants by hand: {counted([one for _, one in results])}"


if __name__ == "__main__":
    results = run([one for one in mutants() if not sys.argv[1:] or one.file in sys.argv[1:]])
    print("\n".join([score(results), *unexplained(results)]))  # noqa: T201
