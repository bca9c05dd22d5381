"""Run a program in a process that is forked from one which has imported the engine already.

For tests that kill: an interpreter that imports all of it first costs two seconds of processor each time.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from functools import cache
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkServerContext
    from types import TracebackType

PRELOADED = ["carag.engine.engine", "carag.profiles.edgar.reading", "tests.engine.documents"]


@cache
def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


def _run(program: str, arguments: tuple[str, ...], output: Connection) -> None:
    os.dup2(output.fileno(), 1)
    sys.argv = ["-c", *arguments]
    sys.stdout = os.fdopen(1, "w", closefd=False)
    exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})  # noqa: S102 - the test's own program


class Child:
    """A running program, with as much of ``subprocess.Popen``'s interface as a test that kills needs.

    Attributes
    ----------
    stdout : IO[str]
        What the program prints, by lines.
    """

    def __init__(self, program: str, *arguments: object) -> None:
        incoming, outgoing = _context().Pipe(duplex=False)
        words = tuple(map(str, arguments))
        self._process = _context().Process(target=_run, args=(program, words, outgoing))
        self._process.start()
        outgoing.close()
        self.stdout: IO[str] = os.fdopen(os.dup(incoming.fileno()))
        incoming.close()

    @property
    def returncode(self) -> int | None:
        """Its exit status once it has ended; the negative signal if it was killed."""
        return self._process.exitcode

    def wait(self, timeout: float = 120) -> int:
        """Wait for its end and return its exit status."""
        self._process.join(timeout)
        assert self._process.exitcode is not None, "the program is still running"
        return self._process.exitcode

    def kill(self) -> None:
        """Send SIGKILL."""
        self._process.kill()

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.kill()
        self.wait()
        self.stdout.close()
