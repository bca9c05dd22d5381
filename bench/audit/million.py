"""Measure a log of a million records: opening, proofs and full audit; and pymerkle with the same bytes.

``python -m bench.audit.million carag|pymerkle build|measure|open DIR RECORDS`` runs one step in a process of its own
and prints one JSON object.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.harness import child, forget
from carag.audit import AuditLog
from carag.audit.records.draft import Draft
from tests.audit.log.writers import EVENT, PASSAGES, SECRETS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_PROOFS: Final = 500
_OPENINGS: Final = 7
_RUNS: Final = 2


def build_carag(directory: Path, records: int) -> dict[str, Any]:
    """Write the log through its own commit, 512 records at a time; the drafts are made once."""
    with AuditLog.open(directory / "log") as log:
        drafts = [
            Draft.of(log.origin, replace(EVENT, started=EVENT.started + n), SECRETS, PASSAGES)
            for n in range(512)
        ]
        began = time.perf_counter()
        while log.size < records:
            log._commit(drafts[: records - log.size])  # noqa: SLF001
        took = time.perf_counter() - began
        body = log._backend.body(records // 2)  # noqa: SLF001
    size = (directory / "log" / "audit.db").stat().st_size
    return {
        "record_bytes": len(body),
        "disk_bytes_a_record": size / records,
        "batched_appends_s": records / took,
    }


def build_pymerkle(directory: Path, records: int) -> dict[str, Any]:
    """Append the same bytes in one bulk operation."""
    from pymerkle import SqliteTree

    with AuditLog.open(directory / "log") as log:
        body = log.append(EVENT, secrets=SECRETS, passages=PASSAGES).record
    tree = SqliteTree(str(directory / "tree.db"))
    began = time.perf_counter()
    tree.append_entries(body.replace(b'"seq":0,', b'"seq":%d,' % n) for n in range(records))
    took = time.perf_counter() - began
    tree.close()
    size = (directory / "tree.db").stat().st_size
    return {
        "record_bytes": len(body),
        "disk_bytes_a_record": size / records,
        "batched_appends_s": records / took,
    }


def measure_carag(directory: Path, records: int) -> dict[str, Any]:
    """Open once, prove at random, then hash everything again."""
    forget(directory / "log")
    began = time.perf_counter()
    log = AuditLog.open(directory / "log")
    opening = time.perf_counter() - began
    assert log.size == records
    dice = random.Random(7)  # noqa: S311
    prove = [_timed(lambda: log.prove(dice.randrange(records))) for _ in range(_PROOFS)]
    consistency = [_timed(lambda: log.consistency(dice.randrange(1, records))) for _ in range(_PROOFS)]
    proof = len(log.prove(records // 3))
    began = time.perf_counter()
    log.verify()
    audit = time.perf_counter() - began
    log.close()
    return {
        "open_cold_ms": 1e3 * opening,
        "inclusion_ms": 1e3 * statistics.median(prove),
        "consistency_ms": 1e3 * statistics.median(consistency),
        "proof_bytes": proof,
        "audit_records_s": records / audit,
    }


def open_carag(directory: Path, records: int) -> dict[str, Any]:
    """Open with the files in the page cache, as a restarted service finds them."""
    began = time.perf_counter()
    log = AuditLog.open(directory / "log")
    opening = time.perf_counter() - began
    assert log.size == records
    log.close()
    return {"open_ms": 1e3 * opening}


def measure_pymerkle(directory: Path, records: int) -> dict[str, Any]:
    """Open and read the root, then prove at random."""
    from pymerkle import SqliteTree

    forget(directory)
    began = time.perf_counter()
    tree = SqliteTree(str(directory / "tree.db"))
    tree.get_root()
    opening = time.perf_counter() - began
    assert tree.get_size() == records
    dice = random.Random(7)  # noqa: S311
    tree.prove_inclusion(1, records)
    prove = [
        _timed(lambda: tree.prove_inclusion(dice.randrange(records) + 1, records)) for _ in range(_PROOFS)
    ]
    consistency = [
        _timed(lambda: tree.prove_consistency(dice.randrange(1, records), records)) for _ in range(_PROOFS)
    ]
    tree.close()
    return {
        "open_cold_ms": 1e3 * opening,
        "inclusion_ms": 1e3 * statistics.median(prove),
        "consistency_ms": 1e3 * statistics.median(consistency),
    }


def open_pymerkle(directory: Path, records: int) -> dict[str, Any]:
    """Open and read the root with the file in the page cache."""
    from pymerkle import SqliteTree

    began = time.perf_counter()
    tree = SqliteTree(str(directory / "tree.db"))
    tree.get_root()
    opening = time.perf_counter() - began
    assert tree.get_size() == records
    tree.close()
    return {"open_ms": 1e3 * opening}


def _timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


STEPS: Final = {
    ("carag", "build"): build_carag,
    ("carag", "measure"): measure_carag,
    ("carag", "open"): open_carag,
    ("pymerkle", "build"): build_pymerkle,
    ("pymerkle", "measure"): measure_pymerkle,
    ("pymerkle", "open"): open_pymerkle,
}


def measured(subject: str, directory: Path, records: int) -> dict[str, Any]:
    """Run every step in a process of its own; a log that was built there before is measured again.

    Of proofs and openings the best of a few runs counts.
    """

    def step(name: str) -> dict[str, Any]:
        return child("bench.audit.million", subject, name, directory, records)

    built = directory / "built.json"
    if not built.exists():
        built.write_text(json.dumps(step("build")))
    runs = [
        {
            **step("measure"),
            "open_ms": statistics.median(step("open")["open_ms"] for _ in range(_OPENINGS)),
        }
        for _ in range(_RUNS)
    ]
    best = {key: (max if key.endswith("_s") else min)(run[key] for run in runs) for key in runs[0]}
    return {"records": records, **json.loads(built.read_text()), **best}


def main(arguments: Sequence[str]) -> None:
    """Run one step and print what it found."""
    subject, step, directory, records = arguments
    print(json.dumps(STEPS[subject, step](Path(directory), int(records))))


if __name__ == "__main__":
    main(sys.argv[1:])
