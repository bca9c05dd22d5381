"""Declare the extension module ``carag.index._core`` to cffi; run by ``setup.py``, never imported.

No ``-march``: each kernel file names its own instruction set, and one is chosen at run time.
"""

from __future__ import annotations

import sysconfig
from pathlib import Path

from cffi import FFI  # type: ignore[import-untyped]

# To build from an sdist, setuptools wants paths relative to setup.py, with forward slashes.
_CSRC = Path("csrc")
_BEGIN, _END = "/* cffi: begin */", "/* cffi: end */"


def _declarations() -> str:
    header = (_CSRC / "carag.h").read_text(encoding="utf-8")
    return header.partition(_BEGIN)[2].partition(_END)[0]


ffi = FFI()
ffi.cdef(_declarations())
ffi.set_source(
    "carag.index._core",
    '#include "carag.h"',
    sources=sorted(path.as_posix() for path in _CSRC.rglob("*.c")),
    depends=sorted(path.as_posix() for path in _CSRC.rglob("*.h")),
    include_dirs=[_CSRC.as_posix()],
    libraries=["m"],
    # Kernels write out fused multiply-adds where they are wanted; contraction anywhere else would make the bits of a
    # file depend on the compiler.
    extra_compile_args=[
        *("-std=c11", "-O3", "-ffp-contract=off", "-fvisibility=hidden", "-pthread"),
        *("-Wall", "-Wextra", "-Wshadow", "-Wstrict-prototypes"),
    ],
    extra_link_args=["-pthread"],
    py_limited_api=not sysconfig.get_config_var("Py_GIL_DISABLED"),  # as setup.py
)
