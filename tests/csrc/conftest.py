"""The core's tests are made beside all others: pytest uses one processor, and these need nothing of it.

What the selected tests want of the Makefile is begun as soon as they are known, one target after another in a
process of its own, which gives way to the tests in front. They come last, and take what has been made by then.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent

# Code and output of each target in a file of its own; the code last, whole or not there.
ONE_AFTER_ANOTHER = """
for target; do
    make -s -j2 "$target" OUT="$OUT/made" >"$OUT/$target.said" 2>&1
    echo $? >"$OUT/code" && mv "$OUT/code" "$OUT/$target.code"
done
"""


class Makes:
    """Some targets of the Makefile, being made."""

    def __init__(self, targets: list[str]) -> None:
        self.directory = tempfile.TemporaryDirectory(prefix="carag-csrc-")
        self.out = Path(self.directory.name)
        self.process = subprocess.Popen(
            ["nice", "-n", "5", "sh", "-c", ONE_AFTER_ANOTHER, "make", *targets],
            cwd=HERE,
            env={**os.environ, "OUT": str(self.out)},
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # so that an end before its time ends compilers and tests as well
        )

    def made(self, target: str) -> str:
        """Wait for a target; its output is the message when it failed."""
        code = self.out / f"{target}.code"
        while not code.exists():
            ended = self.process.poll() is not None
            assert code.exists() or not ended, f"make ended before {target}"
            time.sleep(0.05)
        said = (self.out / f"{target}.said").read_text(errors="replace")
        assert code.read_text() == "0\n", said[-12_000:]
        return said

    def end(self) -> None:
        """Leave nothing running."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.directory.cleanup()


MAKES = pytest.StashKey[Makes]()


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark."""
    config.addinivalue_line("markers", "makes(target): a test of what a target of tests/csrc/Makefile says")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put these tests last."""
    items.sort(key=lambda item: item.get_closest_marker("makes") is not None)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Begin what the selected tests want."""
    marks = [mark for item in session.items if (mark := item.get_closest_marker("makes"))]
    targets = list(dict.fromkeys(mark.args[0] for mark in marks))
    if targets and not session.config.option.collectonly and shutil.which("make") and shutil.which("gcc"):
        session.config.stash[MAKES] = Makes(targets)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End what is still being made."""
    if makes := config.stash.get(MAKES, None):
        makes.end()


@pytest.fixture
def made(request: pytest.FixtureRequest) -> Callable[[], str]:
    """``made()`` waits for the test's target and returns what it said; it fails as the target did."""
    makes = request.config.stash.get(MAKES, None)
    if makes is None:
        pytest.skip("make and gcc build the core's tests")
    return lambda: makes.made(request.node.get_closest_marker("makes").args[0])
