"""However an interpreter goes down with engines open, the store is sound and the exit code is the script's own."""

from __future__ import annotations

import gc
import os
import random
import runpy
import shutil
import subprocess
import sys
import sysconfig
import warnings
import weakref
from pathlib import Path

import pytest

from carag import Document, Engine, Session
from carag.errors import AuditUnavailable
from carag.index._core import ffi
from carag.index._handle import owned
from tests.engine.documents import Counting
from tests.engine.exits import PROFILES, REPORTED, Script, drawn

ROOT = Path(__file__).parents[2]
COUNTS = [
    pytest.param(0, 1),
    pytest.param(1, 40, marks=pytest.mark.release),
    pytest.param(40, 300, marks=pytest.mark.full),
]
"""The first and the last of the scripts."""
ASAN_COUNTS = [
    pytest.param(0, 12, marks=pytest.mark.release),
    pytest.param(12, 300, marks=pytest.mark.full),
]
SANITIZED = """
import importlib.machinery, importlib.util, sys

class Sanitized:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "carag.index._core":
            loader = importlib.machinery.ExtensionFileLoader(name, {core!r})
            return importlib.util.spec_from_file_location(name, {core!r}, loader=loader)

sys.meta_path.insert(0, Sanitized)
"""


def check(script: Script, home: Path, environment: dict[str, str]) -> None:
    """Run a script, and look at its exit code, at what it says and at what it leaves."""
    store, file = home / "store", home / "script.py"
    file.write_text(script.text)
    cell = "import sys; exec(compile(open(sys.argv[1]).read(), '<cell>', 'exec'), {'__name__': '__main__'})"
    arguments = {"file": [file], "-c": ["-c", script.text], "stdin": ["-"], "cell": ["-c", cell, file]}
    done = subprocess.run(
        [sys.executable, *arguments[script.entry], store],
        input=script.text if script.entry == "stdin" else "",
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        cwd=home,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, "" if script.says else done.stderr) == (script.code, ""), (
        f"{script.name}\n{done.stderr[-6000:]}"
    )
    with Engine.open(store, profile=script.profile, embedder=Counting()) as engine:
        engine._collection.check()
        session = Session(role="compliance", purpose=PROFILES[script.profile])
        engine.retrieve("When do branches report?", session)
        assert engine._collection.store.documents.counts().filings >= len(set(done.stdout.split())), (
            script.name
        )
        engine.log.verify()
    shutil.rmtree(home)


def test_an_engine_that_is_dropped_is_closed_with_a_warning_and_its_store_opens_again(tmp_path: Path) -> None:
    """As CPython's files: dropped or collected in a cycle, it tells, closes all it held, and loses nothing."""
    for number, collect in enumerate((False, True, True)):
        engine = Engine.open(tmp_path, profile="generic", embedder=Counting())
        engine.add([Document(id=f"d/{number}", text="Branches report.", bits=())])
        engine.cycle = engine if collect else None  # type: ignore[attr-defined]
        gone = weakref.ref(engine)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            del engine
            gc.collect()
        assert [ResourceWarning] == [one.category for one in said]
        assert gone() is None
    with Engine.open(tmp_path, profile="generic", embedder=Counting()) as engine:
        engine._collection.check()
        assert 3 == engine._collection.store.documents.counts().filings


def test_what_the_core_lent_is_freed_after_every_finalizer_that_may_reach_it() -> None:
    """In a cycle the collector runs finalizers in any order; an object of the core outlives them, and its view."""
    events: list[str] = []

    class Late:
        def __init__(self) -> None:
            index = owned(ffi.new("int *"), lambda _: events.append("index freed"))
            self.me, self.view = self, owned(ffi.new("int *"), lambda _: events.append("view freed"), index)

        def __del__(self) -> None:
            events.append("finalizer")

    for _ in range(2):
        Late()
    gc.collect()
    assert ["finalizer"] * 2 + ["view freed", "index freed"] * 2 == events


def test_a_child_of_fork_leaves_the_store_to_its_parent(tmp_path: Path) -> None:
    """It is refused everything, closes nothing, and does not keep the store locked for a parent that was killed."""
    with Engine.open(tmp_path, profile="generic", embedder=Counting()) as engine:
        told, tell = os.pipe()
        if (child := os.fork()) == 0:
            said = []
            for call in (
                lambda: engine.add([Document(id="d/1", text="Branches report.", bits=())]),
                engine.contents.counts,
            ):
                try:
                    call()
                except AuditUnavailable as error:
                    said.append("before the process forked" in str(error))
            engine.close()
            os.close(tell)
            os.read(told, 1)  # until the parent has let go of the store
            os._exit(0 if said == [True, True] else 1)
        os.close(told)
        engine.add([Document(id="d/1", text="Branches report.", bits=())])
    with Engine.open(tmp_path, profile="generic", embedder=Counting()) as engine:  # the child is there still
        engine._collection.check()
    os.close(tell)
    assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def scripts(first: int, last: int) -> list[Script]:
    return [drawn(random.Random(f"exit {number}")) for number in range(first, last)]  # noqa: S311


@pytest.mark.parametrize(("first", "last"), COUNTS)
def test_whatever_is_open_as_a_script_ends_it_has_its_own_exit_code_and_leaves_a_sound_store(
    first: int, last: int, tmp_path: Path
) -> None:
    """Engines, threads, cycles, forks and ways to end, drawn: none crashes, says anything, or loses a document."""
    for number, script in enumerate([*([REPORTED] if first == 0 else []), *scripts(first, last)]):
        (home := tmp_path / str(number)).mkdir()
        check(script, home, {})


@pytest.mark.parametrize(("first", "last"), ASAN_COUNTS)
def test_no_script_reaches_freed_memory_of_the_core_as_it_ends(first: int, last: int, tmp_path: Path) -> None:
    """The same with the core under AddressSanitizer, which ends a process that touches what was freed."""
    (home := tmp_path / "sanitized").mkdir()
    core = home / "_core.abi3.so"
    found = runpy.run_path(str(ROOT / "carag/index/_build_core.py"))
    found["ffi"].emit_c_code(str(home / "_core.c"))
    flags = "-shared -fPIC -std=c11 -g -O1 -ffp-contract=off -pthread -w -fsanitize=address -DPy_LIMITED_API=0x030b0000"
    places = [f"-I{ROOT / 'csrc'}", f"-I{sysconfig.get_path('include')}"]
    sources = [home / "_core.c", *sorted((ROOT / "csrc").rglob("*.c"))]
    subprocess.run(["gcc", *flags.split(), *places, *sources, "-o", core, "-lm"], check=True)
    (home / "sitecustomize.py").write_text(SANITIZED.format(core=str(core)))
    runtime = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    )
    environment = {
        "LD_PRELOAD": runtime.stdout.strip(),
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONPATH": f"{home}{os.pathsep}{ROOT}",
    }
    for number, script in enumerate(scripts(first, last)):
        (home := tmp_path / str(number)).mkdir()
        check(script, home, environment)
