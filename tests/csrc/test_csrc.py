"""The core's own tests: built with every warning an error, run under the sanitizers, from pytest."""

from __future__ import annotations

import shutil
import subprocess
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """``made(target)`` makes a target of the Makefile and returns its output; it fails as the target did."""
    if not shutil.which("make") or not shutil.which("gcc"):
        pytest.skip("make and gcc build the core's tests")
    out = tmp_path_factory.mktemp("csrc")

    def make(target: str) -> str:
        done = subprocess.run(
            ["make", "-s", "-j2", target, f"OUT={out}", f"MUTATIONS={examples(300)}"],
            cwd=HERE,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        assert done.returncode == 0, done.stdout[-12_000:]
        return done.stdout

    return make


def calls_between_files(symbols: str) -> dict[str, set[str]]:
    """Read ``nm -A -g``: by file, the files that define what it needs."""
    defined: dict[str, str] = {}
    needed: dict[str, set[str]] = {}
    for line in symbols.splitlines():
        path, _, rest = line.partition(":")
        *_, kind, name = rest.split()
        if not name.startswith("carag_"):  # the C library's and the sanitizers'
            continue
        file = Path(path).stem
        if kind == "U":
            needed.setdefault(file, set()).add(name)
        else:
            defined[name] = file
    return {file: {defined[name] for name in names} for file, names in needed.items()}


@pytest.mark.release
def test_compiles_without_a_warning(made):
    """Every header compiles on its own, and the core at -O3, with warnings as errors."""
    made("headers")


def test_calls_between_files_go_one_way(made):
    """No file of the core depends, directly or through others, on a file that depends on it."""
    calls = calls_between_files(made("symbols"))
    assert "view" in calls["call"]  # row/view.c, search/call.c
    TopologicalSorter(calls).prepare()


def test_a_circle_of_calls_is_found():
    """Two files that call each other are named."""
    symbols = "out/a.o:0000 T carag_a\nout/a.o: U carag_b\nout/b.o:0000 T carag_b\nout/b.o: U carag_a\n"
    with pytest.raises(CycleError, match=r"\['a', 'b', 'a'\]|\['b', 'a', 'b'\]"):
        TopologicalSorter(calls_between_files(symbols)).prepare()


def test_the_laws_of_the_core_hold(made):
    """Kernels, codes, catalog, laws, plans, graph, files and failing memory."""
    assert "serial: ok" in made("bare")


@pytest.mark.release
def test_under_address_and_undefined_behaviour_sanitizers(made):
    """The same are clean under ASan and UBSan."""
    assert "serial: ok" in made("plain")


@pytest.mark.release
def test_under_thread_sanitizer(made):
    """Searches, counts, relabels, adds, deletes, clean-ups and saves at once are free of data races."""
    made("threads")


@pytest.mark.release
def test_the_loader_survives_mutations(made):
    """The fuzz corpus and seeded mutations of it with corrected checksums are loaded soundly or refused."""
    assert "read whole: " in made("fuzz")


@pytest.mark.release
@pytest.mark.skipif(
    not shutil.which("aarch64-linux-gnu-gcc"),
    reason="NEON not compiled here: gcc-aarch64-linux-gnu is not installed",
)
@pytest.mark.skipif(
    not shutil.which("qemu-aarch64"), reason="NEON compiled only where qemu-user is not installed"
)
def test_neon_gives_the_same_bits(made):
    """The AArch64 build passes under emulation: same kernels, same codes, same graph, same files."""
    assert "neon: ok" in made("neon")
