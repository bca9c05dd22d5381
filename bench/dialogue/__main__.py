"""Read the dialogues, print each later turn beside what was meant, and count: ``python -m bench.dialogue``.

No store is opened, because a follow-up is read by the words of the dialogue alone. A turn that stands alone must be
read as asked; whether a follow-up is read as meant is a person's judgement, kept in :mod:`bench.dialogue.judged`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench.dialogue.judged import NOT_AS_MEANT
from carag.retrieval.reading.follow_up import Carried, carried

if TYPE_CHECKING:
    from collections.abc import Iterator

DIALOGUES = Path(__file__).with_name("dialogues.jsonl")


class Turn(NamedTuple):
    """A later turn of a dialogue."""

    number: int
    said: str
    meant: str
    read: Carried


def turns() -> Iterator[Turn]:
    """Yield the second and third turns of all dialogues, as they are read."""
    number = 0
    for line in DIALOGUES.read_text("utf-8").splitlines():
        dialogue, before = json.loads(line), list[str]()
        for turn in dialogue["turns"]:
            if before:
                number += 1
                instants = dialogue["profile"] == "circulars"
                read = carried(turn["say"], before, instants=instants)
                yield Turn(number, turn["say"], turn["meant"], read)
            before.append(turn["say"])


def main() -> None:
    """Print all later turns and the counts."""
    alone, follow = list[Turn](), list[Turn]()
    for one in turns():
        (alone if one.said == one.meant else follow).append(one)
        print(f"{one.number}. {one.said}\n   meant: {one.meant}\n   read:  {one.read.text}")
    kept = sum(not one.read.taken for one in alone)
    as_meant = [one for one in follow if one.read.taken and one.number not in NOT_AS_MEANT]
    print(f"stand alone, read as asked: {kept} of {len(alone)}")
    print(f"follow-ups, judged as meant: {len(as_meant)} of {len(follow)}")


if __name__ == "__main__":
    main()
