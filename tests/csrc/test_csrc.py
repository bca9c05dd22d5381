"""The core's own tests: built with every warning an error, run under the sanitizers, from pytest."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    if not shutil.which("make") or not shutil.which("gcc"):
        pytest.skip("make and gcc build the core's tests")
    return tmp_path_factory.mktemp("csrc")


def make(target, out):
    """Run one target of the Makefile; its output is the message when it fails."""
    done = subprocess.run(
        ["make", "-s", "-j2", target, f"OUT={out}"],
        cwd=HERE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-8_000:]
    return done.stdout


def test_compiles_without_a_warning(out):
    """Every header compiles alone, and the core at -O3, with warnings as errors."""
    make("headers", out)


def test_under_address_and_undefined_behaviour_sanitizers(out):
    """Kernels, codes, catalog, laws, plans, graph, file and failing memory: clean under ASan and UBSan."""
    assert "serial: ok" in make("plain", out)


def test_under_thread_sanitizer(out):
    """Searches, counts, relabels, adds, deletes, clean-ups and saves at once are free of data races."""
    make("threads", out)


def test_the_loader_survives_mutations(out):
    """The fuzz corpus, and thousands of seeded mutations of it with checksums put right, load soundly or not at all."""
    make("fuzz", out)


def test_neon_gives_the_same_bits(out):
    """The AArch64 build passes under emulation: same kernels, same codes, same graph, same files."""
    if not shutil.which("aarch64-linux-gnu-gcc"):
        pytest.skip("NEON not compiled here: gcc-aarch64-linux-gnu is not installed")
    if not shutil.which("qemu-aarch64"):
        pytest.skip("NEON compiled only where qemu-user is not installed")
    assert "neon: ok" in make("neon", out)
