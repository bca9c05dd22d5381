"""Draw scripts that leave engines open, each with the exit code that it wants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from random import Random

PROFILES: Final = {"generic": "review", "circulars": "surveil", "edgar": "surveil"}
"""What compliance may do, by profile."""

_HEAD: Final = """
import atexit, gc, multiprocessing, os, signal, sys, threading
from concurrent.futures import ThreadPoolExecutor
import carag
from carag.errors import CaragError
from tests.engine.documents import Counting
from datetime import UTC, datetime

SESSION = carag.Session(role="compliance", purpose={purpose!r})
STORE, leaving = sys.argv[-1], []

def now():
    if leaving:
        sys.exit(6)
    return datetime.now(UTC)

def document(name):
    return carag.Document(id=f"d/{{name}}", text=f"Branches report on day {{name}}.", bits=())

def opened():
    engine = carag.Engine.open(STORE, profile={profile!r}, embedder=Counting(), clock=now)
    for number in range({count}):
        engine.add([document(number)])
        os.write(1, b"%d\\n" % number)
    ask(engine)
    return engine

def ask(engine):
    return engine.retrieve("When do branches report?", SESSION)

def ask_on(engine):
    while True:
        ask(engine)

def add_on(engine):
    for number in range(100, 10**6):
        engine.add([document(number)])
        os.write(1, b"%d\\n" % number)

def quietly(call, *given):
    try:
        call(*given)
    except CaragError:
        pass

class Cycle:
    def __init__(self, engine):
        self.me, self.engine = self, engine

class Late(Cycle):
    def __init__(self, engine):
        super().__init__(engine)
        self.index, self.words = carag.Index(2, views=1 << 20), carag.TextIndex()

    def __del__(self):
        quietly(ask, self.engine)
        quietly(len, self.engine._collection.words)
        quietly(len, self.index)
        quietly(self.words.compact)
"""
_HOLDS: Final = {
    "module": "engine = opened()",
    "cycle": "engine = opened()\nholder = Cycle(engine)",
    "late": "engine = opened()\nholder = Late(engine)",
    "generator": (
        "def lent():\n    with opened() as engine:\n        yield engine\nlending = lent()\nengine = next(lending)"
    ),
    "closed": "engine = opened()\nengine.close()\nengine = opened()",
    # Of these, none is left to end with:
    "dropped": "engine = opened()\ndel engine",
    "collected": "Cycle(opened())\ngc.collect()",
    "collected late": "Late(opened())\ngc.collect()",
}
_THREADS: Final = {
    "none": "",
    "asks": "threading.Thread(target=quietly, args=(ask_on, engine), daemon=True).start()",
    "adds": "threading.Thread(target=quietly, args=(add_on, engine), daemon=True).start()",
    "ends": "threading.Thread(target=quietly, args=(ask, engine)).start()",
    "pool": "pool = ThreadPoolExecutor(2)\nlist(pool.map(ask, [engine] * 4))\nleft = pool.submit(ask, engine)",
}
_FORK: Final = """
child = os.fork()
if child == 0:
    {child}
    sys.exit(9)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
quietly(ask, engine)
sys.exit(code)
"""
_ENDS: Final = {
    "end": ("", 0),
    "exit": ("sys.exit(3)", 3),
    "raise": ("raise RuntimeError('wanted')", 1),
    "_exit": ("os._exit(5)", 5),
    "SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM)\nsignal.pause()", -15),
    "SIGKILL": ("os.kill(os.getpid(), signal.SIGKILL)", -9),
    "SIGINT": (
        "signal.signal(signal.SIGINT, signal.default_int_handler)\nsignal.raise_signal(signal.SIGINT)",
        -2,
    ),
    "handler": (
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\nsignal.raise_signal(signal.SIGTERM)",
        7,
    ),
    "process": (
        "process = multiprocessing.get_context('fork').Process(target=sys.exit, args=(8,))\n"
        "process.start()\nprocess.join()\nsys.exit(process.exitcode)",
        8,
    ),
    # These take an engine:
    "asked last": ("atexit.register(ask, engine)", 0),
    "documents": ("def given():\n    yield document(1)\n    sys.exit(4)\nengine.add(given())", 4),
    "clock": ("leaving.append(1)\nask(engine)", 6),
    "fork": (_FORK.format(child="pass"), 9),
    "fork closes": (_FORK.format(child="engine.close()"), 9),
    "fork asks": (_FORK.format(child="quietly(ask, engine); quietly(engine.add, [document(1)])"), 9),
    "fork outlives": (
        "told, tell = os.pipe()\nif os.fork() == 0:\n    os.close(tell)\n    os.read(told, 1)\n    sys.exit(9)",
        0,
    ),
}
_ENTRIES: Final = ("file", "-c", "stdin", "cell")


@dataclass(frozen=True)
class Script:
    """A script, how it is run and what it wants."""

    name: str
    profile: str
    text: str
    entry: str
    code: int
    """Its exit code."""
    says: bool
    """Whether a traceback is its own."""


def drawn(random: Random) -> Script:
    """Draw one."""
    hold = random.choice([*_HOLDS])
    is_gone = hold in ("dropped", "collected", "collected late")
    threads = "none" if is_gone else random.choice([*_THREADS])
    ends = [*_ENDS]
    end = random.choice(ends[: ends.index("asked last")] if is_gone else ends)
    profile, count, unrelated = (
        random.choice([*PROFILES]),
        random.choice([0, 1, 1, 40]),
        random.random() < 0.5,
    )
    return _script(profile, count, hold, threads, end, random.choice(_ENTRIES), unrelated=unrelated)


def _script(
    profile: str, count: int, hold: str, threads: str, end: str, entry: str, *, unrelated: bool
) -> Script:
    text = [
        _HEAD.format(profile=profile, purpose=PROFILES[profile], count=count),
        "def unrelated():\n    return 1" if unrelated else "",
        _HOLDS[hold],
        _THREADS[threads],
        _ENDS[end][0],
    ]
    name = ", ".join([profile, f"{count} documents", hold, threads, end, entry])
    return Script(name, profile, "\n".join(text), entry, _ENDS[end][1], end in ("raise", "SIGINT"))


REPORTED: Final = _script("generic", 40, "module", "none", "end", "file", unrelated=True)
"""The one by which the fault was found: forty documents, a question, and the end of the file."""
