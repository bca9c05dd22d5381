"""Change what is in force in a shared store, and ask it meanwhile, each in a process that may be killed.

Every line that a process prints is JSON; instants are of the clock that all processes of a machine share.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from carag import Document, Engine, Session
from carag.audit import Access, Basis, Record, erase, place_hold, release_hold
from carag.engine import NO_EMBEDDER
from carag.policy import Profile
from carag.policy.shipped import shipped_text

QUESTION = "When does the canteen open?"
SUBJECT = "ana@office.example"
ASKER = Session(role="employee", purpose="work", subject=SUBJECT)


def memo(text: str, *bits: str, name: str = "memo/7") -> Document:
    return Document(id=name, text=text, bits=bits or ("INTERNAL",))


def numbered(number: int) -> Profile:
    """Make a profile whose table is like no other number's, and hides the memo from the asker if it is odd."""
    name, roles = (shipped_text("generic", one) for one in ("profile.toml", "roles.toml"))
    masks = 'forbidden = ["SECRET", "PERSONAL", "LEGAL"]'
    assert masks in roles
    if number % 2:
        roles = roles.replace(masks, 'forbidden = ["INTERNAL", "SECRET", "PERSONAL", "LEGAL"]')
    return Profile.from_texts(name.replace('"generic"', '"office"'), f"{roles}\n# change {number}\n")


def tell(**said: Any) -> None:
    sys.stdout.write(json.dumps({**said, "at": time.monotonic_ns()}) + "\n")
    sys.stdout.flush()


def ask(home: Path) -> None:
    """Ask until this process is killed, and tell when each question began and which table its record names."""
    with Engine.open(home) as engine:
        tell(ready=True)
        while True:
            time.sleep(0.01)  # so that the other processes get a turn on two cores
            began = time.monotonic_ns()
            found = engine.retrieve(QUESTION, ASKER)
            event = Record.parse(found.receipt.record).event
            assert isinstance(event, Access)
            tell(
                began=began, table=event.policy.table.hex(), seq=found.receipt.seq, found=len(found.passages)
            )


def change(home: Path, first: int, last: int) -> None:
    """Put one numbered policy after another in force; with every third erase, and with every third hold and release."""
    for number in range(first, last):
        tell(begins=number)
        with Engine.open(home, embedder=NO_EMBEDDER, profile=numbered(number), accept={"policy"}) as engine:
            tell(done=number)
            if number % 3 == 1:
                erase(engine.log, subject=SUBJECT, basis=Basis.UNLAWFUL, actor="dpo", approver="cco")
            elif number % 3 == 2:
                held = place_hold(engine.log, "MATTER-7", subject=SUBJECT, actor="counsel")
                release_hold(engine.log, held.seq, actor="counsel", approver="cco")


if __name__ == "__main__":
    what, where, *numbers = sys.argv[1:]
    if what == "ask":
        ask(Path(where))
    else:
        change(Path(where), *map(int, numbers))
