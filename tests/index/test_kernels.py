"""The chosen kernel, and the forced one."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from carag.errors import InvalidArgument
from carag.index import kernels
from carag.index._core import ffi, lib

EDGES = (1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 97, 127, 128, 129, 384, 1024)


def dot(a, b):
    out = ffi.new("float *")
    status = lib.carag_dot(
        ffi.from_buffer(ffi.typeof("float[]"), a),
        ffi.from_buffer(ffi.typeof("float[]"), b),
        a.size,
        out,
        ffi.NULL,
    )
    assert lib.CARAG_OK == status
    return np.float32(out[0])


@pytest.mark.parametrize("name", kernels.known())
def test_equals_float64_and_the_reference(name):
    """At every edge of a lane each kernel gives the bits of the reference, close to the float64 value."""
    if name not in kernels.available():
        pytest.skip(f"{name}: this processor cannot run it (tests/csrc/test_csrc.py emulates NEON)")
    for n in EDGES:
        a, b = np.random.default_rng(n).standard_normal((2, n)).astype(np.float32)
        with kernels.use("serial"):
            reference = dot(a, b)
        with kernels.use(name):
            assert reference.tobytes() == dot(a, b).tobytes(), n
        true = a.astype(np.float64) @ b.astype(np.float64)
        assert abs(float(reference) - true) <= 1e-6 * float(np.abs(a * b).sum())


def test_use_restores_the_kernel_before():
    """The block's kernel ends with the block, also when the block fails."""
    before = kernels.active()
    with kernels.use("serial"):
        assert "serial" == kernels.active()
    assert before == kernels.active()

    def fail():
        with kernels.use("serial"):
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert before == kernels.active()


def test_unknown_kernels_are_refused():
    """A name that cannot be honoured is an error that lists the alternatives, and changes nothing."""
    before = kernels.active()
    for name in ("sse9", "", *(set(kernels.known()) - set(kernels.available()))):
        with pytest.raises(InvalidArgument, match=r"available: .*serial"), kernels.use(name):
            pass
    assert before == kernels.active()


def run_with(names):
    """Return what a fresh process says with each kernel forced, by a child that sets the environment first."""
    code = (
        "import os, carag.index as i, carag.index.kernels as k\n"
        f"for name in {names!r}:\n"
        "    if os.fork() == 0:\n"
        "        os.environ['CARAG_KERNEL'] = name\n"
        "        try: i.Index(2); print(k.active(), flush=True)\n"
        "        except ValueError as error: print(type(error).__name__, error, flush=True)\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_the_environment_forces_a_kernel():
    """CARAG_KERNEL names the kernel; one that does not exist or cannot run is an error at first use."""
    serial, unknown, *absent = run_with(
        ["serial", "mmx", *sorted(set(kernels.known()) - set(kernels.available()))]
    )
    assert serial == "serial"
    assert unknown.startswith("InvalidArgument CARAG_KERNEL in the environment: no kernel")
    assert all(one.startswith("InvalidArgument CARAG_KERNEL") for one in absent)
