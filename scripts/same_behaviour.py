"""Print digests of what a restructuring must not change; compare two commits' output with diff.

``python scripts/same_behaviour.py`` labels the small corpus and 500 real filings, builds and searches an index, and
asks a store under a fixed clock and fixed randomness. Format versions are taken out where the format is renumbered.
"""

from __future__ import annotations

import gzip
import hashlib
import itertools
import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_DRAWN: Counter[int] = Counter()


def _drawn(nbytes: int | None = None) -> bytes:
    size = 32 if nbytes is None else nbytes
    _DRAWN[size] += 1
    blocks = (
        hashlib.sha256(f"{size} {_DRAWN[size]} {block}".encode()).digest() for block in itertools.count()
    )
    return b"".join(itertools.islice(blocks, size // 32 + 1))[:size]


secrets.token_bytes = _drawn
secrets.token_hex = lambda nbytes=None: _drawn(nbytes).hex()

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: E402

setattr(Ed25519PrivateKey, "generate", classmethod(lambda cls: cls.from_private_bytes(_drawn(32))))  # noqa: B010

import numpy as np  # noqa: E402

import carag  # noqa: E402


def digest(data: bytes) -> str:
    """Return the first 16 hexadecimal digits of SHA-256."""
    return hashlib.sha256(data).hexdigest()[:16]


def labels(path: Path) -> str:
    """Return the digest of the labels that the command line prints for filings."""
    done = subprocess.run(
        [sys.executable, "-m", "carag", "policy", "label", str(path), "--json"],
        capture_output=True,
        check=False,
    )
    lines = sorted(done.stdout.splitlines())
    return f"{len(lines)} lines, exit {done.returncode}, {digest(b'|'.join(lines))}"


def real_filings(count: int, into: Path) -> Path:
    """Copy the first rows of each file of real filings, and all their headers, into a directory."""
    source = Path(os.environ["CARAG_SHARED_DATA"], "edgar")
    files = sorted(source.glob("filings-*.jsonl.gz"))
    for path in files:
        with gzip.open(path, "rt") as rows:
            (into / path.stem).write_text("".join(itertools.islice(rows, count // len(files))))
    (into / "headers.jsonl.gz").symlink_to(source / "headers.jsonl.gz")
    return into


def index(directory: Path) -> None:
    """Print digests of an index file, its version and checksums apart, and of what every plan finds."""
    rng = np.random.default_rng(7)
    for dtype in ("float32", "float16", "int8"):
        built = carag.Index(96, dtype=dtype)
        built.add(
            rng.standard_normal((6000, 96)).astype("float32"), carag.policy_word(rng.integers(0, 2**27, 6000))
        )
        built.save(directory / "i")
        data = (directory / "i").read_bytes()
        print("index file", dtype, len(data), digest(data[4096:]), digest(data[:4096]))
        for plan in ("auto", "exact", "certified", "graph", "scan"):
            found = built.search(
                rng.standard_normal((50, 96)).astype("float32"),
                10,
                carag.Mask(required="J_US", forbidden=["J_EU"]),
                plan=plan,
            )
            got = (found.keys.tobytes(), found.similarities.tobytes(), found.counts.tobytes())
            print("search", dtype, plan, digest(b"|".join(got)))


ASKED = [
    ("buy_side", "invest", "What royalty rate does Lumenfield pay on net sales of LMF-204?"),
    ("compliance", "surveil", "Who sold shares?"),
    ("auditor", "assure", "What are the audited revenues?"),
    ("public", "public_qa", "What is the latest risk factor?"),
    ("public", "invest", "Who are the customers?"),
    ("nobody", "invest", "Anything?"),
    ("counsel", "draft", "Which agreement was amended and restated?"),
    ("retail_adviser", "advise", "What is the dividend?"),
    ("sell_side", "publish", "What is the guidance for next year?"),
    ("compliance", "surveil", "What royalty rate does Lumenfield pay on net sales of LMF-204?"),
]


def records(directory: Path) -> None:
    """Print digests of records, receipts and answers of one store."""
    start = datetime(2026, 1, 5, 12, tzinfo=UTC)
    now = [start]
    with carag.Engine.open(directory / "store", embedder="wordllama", clock=lambda: now[0]) as engine:
        engine.ingest(ROOT / "data" / "corpus")
        for number, (role, purpose, text) in enumerate(ASKED):
            now[0] = start + timedelta(minutes=number + 1)
            session = carag.Session(role=role, purpose=purpose)
            answer = engine.ask(text, session)
            found = engine.retrieve(text, session)
            receipt = answer.receipt.to_json() if hasattr(answer.receipt, "to_json") else repr(answer.receipt)
            shown = receipt if isinstance(receipt, str) else receipt.decode()
            print(
                "answer", number, answer.outcome.value, digest(repr((answer.text, answer.citations)).encode())
            )
            print("passages", number, digest(repr([(p.chunk_id, p.text) for p in found.passages]).encode()))
            print("receipt", number, digest(without_versions(shown).encode()))
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "carag",
            "audit",
            "export",
            "--store",
            str(directory / "store"),
            "--out",
            str(directory / "export"),
        ],
        capture_output=True,
        check=False,
    )
    print("export", done.returncode)
    for path in sorted((directory / "export").rglob("*")):
        if path.is_file() and path.suffix in {".jsonl", ".json"}:
            for number, line in enumerate(path.read_text().splitlines()):
                print(
                    "record",
                    path.name,
                    number,
                    digest(without_versions(line).encode()),
                )


def without_versions(text: str) -> str:
    """Take out what a renumbered format changes: version numbers, and the hashes and signatures made over them."""
    if os.environ.get("KEEP_VERSIONS"):
        return text
    text = re.sub(r'(\\?"(?:format|schema|v|version)\\?":)\s*("[^"]*"|\d+)', r"\1_", text)
    text = re.sub(r"v\d+\\?\"", 'v_"', text)
    return re.sub(r"[A-Za-z0-9+/]{40,}={0,2}|[0-9a-f]{64}", "_", text)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        room = Path(scratch)
        print("labels small", labels(ROOT / "data" / "corpus"))
        (room / "real").mkdir()
        print("labels real", labels(real_filings(500, room / "real")))
        index(room)
        records(room)
        print(json.dumps({"roles": digest((ROOT / "carag/policy/BITS.md").read_bytes())}))
