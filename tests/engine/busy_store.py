"""Use a store hard in a process of its own: ask, add, hold and erase from several threads, and keep every receipt.

``python -m tests.engine.busy_store STORE KEPT``: a receipt is written to ``KEPT/<record>.json`` when its record is
acknowledged, and the newest checkpoint to ``KEPT/checkpoint``. Ends when ``KEPT/stop`` is there.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from carag import Document, Engine, Session
from carag.audit import Basis, erase, place_hold, release_hold
from carag.audit._files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.audit import Receipt


def use(store: Path, kept: Path) -> None:
    def keep(receipt: Receipt) -> None:
        write_atomically(kept / f"{receipt.seq:08d}.json", receipt.to_bytes())

    with Engine.open(store, profile="generic", embedder="wordllama") as engine:

        def ask(name: str, number: int) -> None:
            session = Session(role="employee", purpose="work", subject=f"{name}@bank.example")
            keep(engine.retrieve(f"When does branch {number} report?", session).receipt)

        def bring(number: int) -> None:
            text = f"Branch {number % 40} reports on day {number} of the year."
            engine.add([Document(id=f"memo/{number % 40}", text=text, bits=["INTERNAL"])])
            write_atomically(kept / "checkpoint", engine.log.checkpoint().encode())

        def administer(number: int) -> None:
            if number % 2:
                held = place_hold(engine.log, f"MATTER-{number}", actor="counsel", subject="ben@bank.example")
                keep(held)
                keep(release_hold(engine.log, held.seq, actor="counsel", approver="chief"))
            else:
                cause = {"basis": Basis.UNLAWFUL, "actor": "officer", "approver": "chief"}
                keep(erase(engine.log, subject="ana@bank.example", **cause))

        def again(work: Callable[[int], None], pause: float) -> None:
            number = 0
            while not (kept / "stop").exists():
                number += 1
                work(number)
                time.sleep(pause)

        threads = [
            threading.Thread(target=again, args=(lambda number, name=name: ask(name, number), 0.05))
            for name in ("ana", "ben", "cleo")
        ]
        threads += [threading.Thread(target=again, args=one) for one in ((bring, 0.05), (administer, 0.2))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    use(Path(sys.argv[1]), Path(sys.argv[2]))
