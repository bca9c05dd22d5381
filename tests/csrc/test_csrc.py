"""The core's own tests: built with every warning an error, run under the sanitizers, from pytest."""

from __future__ import annotations

import shutil

import pytest


@pytest.mark.makes("headers")
def test_compiles_without_a_warning(made):
    """Every header compiles alone, and the core at -O3, with warnings as errors."""
    made()


@pytest.mark.makes("plain")
def test_under_address_and_undefined_behaviour_sanitizers(made):
    """Kernels, codes, catalog, laws, plans, graph, file and failing memory: clean under ASan and UBSan."""
    assert "serial: ok" in made()


@pytest.mark.makes("threads")
def test_under_thread_sanitizer(made):
    """Searches, counts, relabels, adds, deletes, clean-ups and saves at once are free of data races."""
    made()


@pytest.mark.makes("fuzz")
def test_the_loader_survives_mutations(made):
    """The fuzz corpus, and thousands of seeded mutations of it with checksums put right, load soundly or not at all."""
    assert "read whole: " in made()


@pytest.mark.makes("neon")
@pytest.mark.skipif(
    not shutil.which("aarch64-linux-gnu-gcc"),
    reason="NEON not compiled here: gcc-aarch64-linux-gnu is not installed",
)
@pytest.mark.skipif(
    not shutil.which("qemu-aarch64"), reason="NEON compiled only where qemu-user is not installed"
)
def test_neon_gives_the_same_bits(made):
    """The AArch64 build passes under emulation: same kernels, same codes, same graph, same files."""
    assert "neon: ok" in made()
