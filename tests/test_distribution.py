"""Source distribution and wheel build, and install into an empty environment."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROGRAM = """
import numpy as np, carag
index = carag.Index(8)
index.add(np.eye(8), carag.policy_word(np.arange(8)))
assert index.search(np.ones(8), 3, carag.Policy(carag.Mask(required=4))).counts.tolist() == [3]
assert carag.Engine.__doc__
"""


def run(*command: object, cwd: Path = ROOT) -> None:
    subprocess.run([str(word) for word in command], cwd=cwd, check=True, capture_output=True, text=True)


@pytest.mark.full
def test_sdist_and_wheel_install_into_an_empty_environment(tmp_path: Path) -> None:
    """One abi3 wheel, built from the sdist alone, and the sdist itself."""
    run(sys.executable, "-m", "build", "--outdir", tmp_path, ROOT)  # builds the wheel from the sdist
    (sdist,) = tmp_path.glob("carag_engine-*.tar.gz")
    (wheel,) = tmp_path.glob("carag_engine-*-cp311-abi3-*.whl")
    for number, package in enumerate((wheel, sdist)):
        home = tmp_path / f"venv{number}"
        venv.create(home, with_pip=True)
        run(home / "bin" / "pip", "install", "--quiet", package)
        run(home / "bin" / "python", "-c", PROGRAM, cwd=tmp_path)
        run(home / "bin" / "carag", "--help", cwd=tmp_path)
