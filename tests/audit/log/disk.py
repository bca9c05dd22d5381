"""Build ``disk.c`` and run a process on the disk it makes."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
SOURCE: Final = Path(__file__).with_name("disk.c")


def shim() -> Path:
    """Compile the shim unless this very source has been compiled already."""
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    library = Path(tempfile.gettempdir(), f"carag-disk-{os.getuid()}-{digest}.so")
    if not library.exists():
        scratch = library.with_suffix(f".{os.getpid()}")
        compiler = os.environ.get("CC", "cc")
        subprocess.run(
            [
                compiler,
                "-O1",
                "-Wall",
                "-Werror",
                "-shared",
                "-fPIC",
                "-o",
                scratch,
                SOURCE,
                "-ldl",
                "-lpthread",
            ],
            check=True,
        )
        scratch.replace(library)
    return library


def environment(root: Path, **settings: object) -> dict[str, str]:
    """Make the environment of a process whose files below ``root`` lie on such a disk.

    Parameters
    ----------
    root : Path
    **settings
        As ``disk.c`` explains them, in small letters and without ``DISK_``.
    """
    disk = {f"DISK_{name.upper()}": str(value) for name, value in settings.items()}
    return {
        **os.environ,
        **disk,
        "DISK_ROOT": str(root.resolve()),
        "LD_PRELOAD": str(shim()),
        "PYTHONPATH": str(ROOT),
    }
