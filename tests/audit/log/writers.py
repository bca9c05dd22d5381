"""Write to one log from several clients, as a process to be slowed down, cut off or killed.

``python -m tests.audit.log.writers DIR --clients 8 --each 25 --acks FILE`` appends whole answered questions and adds a
line ``seq sha256`` to the file only after :meth:`AuditLog.append` has returned.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import threading
from typing import TYPE_CHECKING, Final

from carag.audit import (
    Access,
    AuditLog,
    IndexState,
    Models,
    Outcome,
    Passage,
    PolicyApplied,
    RecordKind,
    SessionSource,
)
from carag.errors import AuditUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence


_WORD: Final = 1 << 27 | 0x21
EVENT: Final = Access(
    kind=RecordKind.QUERY,
    started=1_763_755_555_123_456,
    ended=1_763_755_556_345_678,
    role="sell_side_analyst",
    purpose="research_publication",
    source=SessionSource.VERIFIED,
    as_of=29_395_925,
    policy=PolicyApplied(table=b"T" * 32, masks=((0x20, 0x10000),)),
    index=IndexState(snapshot=b"S" * 32, admissible=417, plan="exact", known_at=1_763_755_555_000_000),
    models=Models("minilm", "extractive", "bucket-prompt-1"),
    outcome=Outcome.ANSWER,
    why="ANSWERED",
)
"""One answered question, as the engine records it."""
SECRETS: Final = {
    "subject": "ana@bank.example",
    "query": "What royalty does the filer pay on net sales?",
    "answer": "Six per cent of net sales, paid each quarter [1].",
}
PASSAGES: Final = [
    Passage(
        f"0000320193-23-000106#{n}", f"Passage {n}: " + "net sales fell. " * 40, 0.75 - n / 64, _WORD, n == 0
    )
    for n in range(8)
]
"""Eight hits, as many as the engine asks for."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Append until done, killed or refused."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--each", type=int, default=25)
    parser.add_argument("--acks", default="/dev/null")
    parser.add_argument("--pages", type=int, default=1000, help="pages after which SQLite checkpoints")
    parser.add_argument("--break", dest="broken", choices=["syncs", "values"], help="leave them out")
    options = parser.parse_args(arguments)
    acks = os.open(options.acks, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with AuditLog.open(options.directory) as log:
        link = log._backend.link  # type: ignore[attr-defined]
        link.execute(f"PRAGMA wal_autocheckpoint={options.pages}")
        if options.broken == "syncs":
            link.execute("PRAGMA synchronous=NORMAL")
        if options.broken == "values":
            log._private.put = lambda rows: None  # type: ignore[method-assign]

        def work() -> None:
            with contextlib.suppress(AuditUnavailable):
                for _ in range(options.each):
                    receipt = log.append(EVENT, secrets=SECRETS, passages=PASSAGES)
                    digest = hashlib.sha256(receipt.record).hexdigest()
                    os.write(acks, f"{receipt.seq} {digest}\n".encode())  # only now is it acknowledged

        threads = [threading.Thread(target=work) for _ in range(options.clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    main()
