"""Measure how long ``carag adopt`` takes, and the most memory it holds: ``python -m bench.adopting``.

Rows are drawn around 300 centres and written with each source's own library; the command then runs in a process of its
own, twice, the second time without a difference. A source whose library is not installed is left out, and so is
pgvector without ``--postgres``, the address of an empty database with the extension.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from bench.adopting.peers import MAPPING, SOURCES, drawn
from bench.harness import parser

_LIBRARY: Final = {"pgvector": "psycopg", "chroma": "chromadb", "qdrant": "qdrant_client"}
_MIB: Final = 1024
"""Kilobytes, in which the kernel counts a process's memory."""


def measured(address: str, place: Path) -> tuple[float, int]:
    """Run the command; return its seconds and the most memory that it held, in MiB."""
    words = ["adopt", address, "--profile", "generic", "--mapping", "mapping.toml", "--store", "store"]
    begin = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "carag", *words],
        cwd=place,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        most = 0
        # Of the process itself: what the kernel says of a child that ended counts the memory of its parent.
        while process.poll() is None:
            found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
            most = max(most, int(found[1]) if found else 0)
            time.sleep(0.1)
    if process.returncode:
        raise SystemExit(f"carag adopt ended with {process.returncode}")
    return time.perf_counter() - begin, most // _MIB


def main() -> None:
    """Print a table."""
    arguments = parser("bench.adopting", __doc__)
    arguments.add_argument("--rows", type=int, default=100_000)
    arguments.add_argument("--dim", type=int, default=384)
    arguments.add_argument("--postgres", metavar="URL", default="")
    arguments.add_argument("--only", choices=SOURCES, action="append")
    given = arguments.parse_args()
    rows = drawn(given.rows, given.dim)
    print("| source | seconds | rows/s | most memory | again, without a difference |\n|---|---|---|---|---|")
    for name in given.only or SOURCES:
        if not find_spec(_LIBRARY.get(name, name)) or (name == "pgvector" and not given.postgres):
            print(f"| {name} | not measured: its library or its server is not there |", flush=True)
            continue
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            (place / "mapping.toml").write_text(MAPPING)
            written = SOURCES[name](rows, place / "source", given.postgres)
            seconds, memory = measured(written.address, place)
            again, _ = measured(written.address, place)
            speed = round(len(rows) / seconds)
            print(f"| {name} | {seconds:.0f} | {speed:,} | {memory:,} MiB | {again:.0f} s |", flush=True)


if __name__ == "__main__":
    main()
