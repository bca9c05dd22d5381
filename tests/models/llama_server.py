"""Run llama.cpp's own HTTP server, with real weights, in a process of its own on the loopback interface."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


_PROGRAM: Final = """
import os, sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.n_ctx, params.n_parallel, params.warmup, params.verbosity, params.offline = int(sys.argv[3]), 1, False, -1, True
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.api_keys, params.hostnames, params.port = [os.environ["SERVER_KEY"]], ["127.0.0.1"], 0
if sys.argv[2] != "chat":
    params.embedding = True
    kind = {"embed": "MEAN", "rerank": "RANK"}[sys.argv[2]]
    params.pooling_type = getattr(xllamacpp.llama_pooling_type, f"LLAMA_POOLING_TYPE_{kind}")
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


@contextmanager
def serving(weights: Path, kind: str, *, key: str, context: int) -> Iterator[str]:
    """Serve a GGUF file to ``chat``, ``embed`` or ``rerank``; lend the URL.

    Parameters
    ----------
    key : str
        What a request must bear.
    context : int
        Tokens that prompt and answer may take together.
    """
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(weights), kind, str(context)],
        env={**os.environ, "SERVER_KEY": key},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            address = process.stdout.readline().strip() if process.stdout else ""
            if not address:
                raise RuntimeError(f"llama.cpp's server did not start with {weights}")
            yield f"{address}/v1"
        finally:
            process.kill()
