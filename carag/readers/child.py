r"""Parse files in a child process with limits on processor time and memory.

Parsers are large, and some input makes a parser loop or allocate memory without end where none of this package's checks
is reached. So each file is parsed in a child process. If the child dies, the file is reported as
a problem and the next one gets a new child. A child gets bytes and returns JSON: nothing that it produces is executed
or unpickled.

::

    request   MODULE:FUNCTION SIZE\n  and SIZE bytes, the content
    reply     SIZE\n  and SIZE bytes of JSON: {"found": ...} or {"kind": ..., "reason": ...}
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from dataclasses import asdict, is_dataclass
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any, Final

from carag.readers.outcome import ProblemKind, Unreadable, problem_of, too_large

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self


MAX_SECONDS: Final = 120
"""Seconds of processor time that one file may take: a PDF of 5,000 pages with 40 short lines takes about 50, and 32 MiB
of nothing but tags half a minute."""
MAX_MEMORY: Final = 3 << 30
"""Bytes of address space that a child may have; an idle one has about 100 MiB."""


class Child:
    """A process that reads files; it is started for the first file, and again after a file that ended it.

    A file may take ``seconds`` of processor time, and the process ``memory`` bytes of address space.
    """

    def __init__(self, *, seconds: int | None = None, memory: int | None = None) -> None:
        self._seconds, self._memory = seconds or MAX_SECONDS, memory or MAX_MEMORY
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def call(self, function: Callable[[bytes], object], content: bytes) -> Any:
        """Return the result of a module-level function on a content, as JSON; a data class becomes a dictionary.

        Raises ``Unreadable`` if the function raised one of CARAG's errors, or the child came to an end.
        """
        process = self._process or self._started()
        try:
            _send(process.stdin, f"{function.__module__}:{function.__qualname__}", content)
            reply = _received(process.stdout)
        except BrokenPipeError:
            reply = None
        except BaseException:  # half a request would be read as the beginning of the next request
            self.close()
            raise
        if reply is None:
            raise self._ended()
        if "found" in reply:
            return reply["found"]
        raise Unreadable(ProblemKind(reply["kind"]), reply["reason"])

    def close(self) -> None:
        """End the child; idempotent."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _started(self) -> subprocess.Popen[bytes]:
        # This is the parent's own path without the current directory, whose files must not be run by accident.
        path = os.pathsep.join(os.path.abspath(one) for one in sys.path if one)  # noqa: PTH100 - may be a ZIP file
        self._process = subprocess.Popen(  # noqa: S603 - this module, by this interpreter
            [sys.executable, "-P", "-m", __name__, str(self._seconds), str(self._memory)],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # a parser's own messages quote the file
        )
        return self._process

    def _ended(self) -> Unreadable:
        process = self._process
        code = process.wait() if process is not None else 0
        self.close()
        if code == -signal.SIGXCPU:
            why = f"takes more than {self._seconds} seconds of processor time to read"
        elif code == -signal.SIGKILL:
            why = "takes more memory to read than the machine has"
        elif code in {-signal.SIGABRT, -signal.SIGTRAP}:  # PDFium, when it cannot get memory
            why = "makes its parser run out of memory"
        else:
            return Unreadable(
                ProblemKind.FAILED, f"crashed the process that read it (exit status {code}); please report it"
            )
        return too_large(f"{why}; split the file")


def _send(pipe: IO[bytes] | None, head: str, content: bytes) -> None:
    assert pipe is not None  # noqa: S101 - for mypy: the pipe was requested
    pipe.write(f"{head} {len(content)}\n".encode())
    pipe.write(content)
    pipe.flush()


def _received(pipe: IO[bytes] | None) -> dict[str, Any] | None:
    assert pipe is not None  # noqa: S101 - as above
    size = pipe.readline()
    content = pipe.read(int(size)) if size.endswith(b"\n") else b""
    return dict(json.loads(content)) if content and len(content) == int(size) else None


def _serve(seconds: int, memory: int) -> None:
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # a parser's output must not be taken for a reply
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_AS, memory)
    while head := requests.readline().decode():
        name, size = head.split()
        content = requests.read(int(size))
        used = resource.getrusage(resource.RUSAGE_SELF)
        # The limit counts whole seconds.
        _limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + 1 + seconds)
        reply = json.dumps(_reply(name, content)).encode()
        replies.write(f"{len(reply)}\n".encode() + reply)
        replies.flush()


def _limit(kind: int, most: int) -> None:
    """Set the soft limit so that it can be raised again; a lower hard limit of the parent stays."""
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _reply(name: str, content: bytes) -> dict[str, Any]:
    module, _, function = name.partition(":")
    try:
        found = getattr(import_module(module), function)(content)
    except MemoryError:
        return {
            "kind": ProblemKind.TOO_LARGE,
            "reason": "takes more memory to read than a file may; split the file",
        }
    except Exception as error:  # noqa: BLE001 - reported as a problem
        problem = problem_of("", error)
        return {"kind": problem.kind, "reason": problem.reason}
    return {"found": asdict(found) if is_dataclass(found) and not isinstance(found, type) else found}


if __name__ == "__main__":
    _serve(int(sys.argv[1]), int(sys.argv[2]))
