"""Count the questions on circulars whose answer holds a fact: ``python -m bench.circulars.facts WORK``.

The passages of each question are retrieved once, with wordllama and compliance/surveil, and kept in the directory WORK;
from then on only the generator runs, in seconds. A fact is words of the clause that are the answer, such as a date or
an amount. Of the questions that a clause answers the first 161 are asked: on those at an odd place choices may be made,
those at an even place are for the end.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from bench.circulars.asking import NOW, OWN, Row, done, ingested
from bench.circulars.gold import read_questions
from carag import Engine, Session
from carag.generation import Draft, Extractive
from carag.retrieval import ConfidenceGate
from carag.retrieval.evidence import Head, Passage, Withheld

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.circulars.gold import Asked

ASKED: Final = 161
OPENING: Final = re.compile(
    r"please refer to|attention is (?:drawn|invited) to|\A[^.;:]*\s\[\d+\]\Z", re.IGNORECASE
)
"""What an opening says; or a title, which no mark ends."""
BROKEN: Final = re.compile(r"\A(?![(\[]?[a-zivx\d]{1,4}[.)\]])[a-z,;)]|[^.;:!?\"'”’)\]|\d]\s\[\d+\]\Z")
"""A piece that starts or ends inside its sentence; an item's own letter is no such start."""
PIECES: Final = re.compile(r".+?\s\[\d+\](?=\n|\Z)", re.DOTALL)


class Watching:
    """A generator that keeps what it is given, and says nothing."""

    name, remote, fingerprint = "watching", False, "watching-1"

    def __init__(self) -> None:
        self.given: Sequence[Passage] = ()

    def generate(self, question: str, passages: Sequence[Passage], withheld: Withheld) -> Draft:  # noqa: ARG002
        """See :class:`carag.generation.Generator`."""
        self.given = passages
        return Draft("Nothing. [1]", (0,))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.circulars.facts", description=__doc__)
    parser.add_argument("work", type=Path, metavar="WORK", help="where the store and the passages are kept")
    parser.add_argument("--data", type=Path, default=os.environ.get("CARAG_SHARED_DATA"))
    parser.add_argument(
        "--show", action="store_true", help="print the answers at odd places that hold no fact"
    )
    given = parser.parse_args()
    asked = [one for one in read_questions() if one.kind == "on"][:ASKED]
    kept = _kept(given.work, given.data, asked)
    rows = [_row(one, kept[one.id], show=given.show and not at % 2) for at, one in enumerate(asked)]
    print("| questions | fact in the answer | in passage 1 | in all | characters | opening | broken pieces |")
    print("|---|---|---|---|---|---|---|")
    for name, of in (("odd", rows[::2]), ("even", rows[1::2]), ("all", rows)):
        print(f"| {name} | {_cells(of)} |")


def _kept(work: Path, data: Path | None, asked: Sequence[Asked]) -> dict[str, tuple[Passage, ...]]:
    path = work / "passages.jsonl"
    if not path.exists():
        if data is None:
            raise SystemExit(
                "set CARAG_SHARED_DATA or give --data: the directory that holds rbi/circulars.jsonl.gz"
            )
        packed = gzip.decompress((data / "rbi" / "circulars.jsonl.gz").read_bytes())
        ids = [json.loads(line)["id"] for line in packed.decode().splitlines()]
        work.mkdir(exist_ok=True)
        done(work / "ingest.jsonl", partial(ingested, work, packed, "wordllama", ids))
        done(path, partial(_retrieved, work / "store", asked))
    lines = map(json.loads, path.read_text("utf-8").splitlines())
    return {line["id"]: tuple(map(_passage, line["passages"])) for line in lines}


def _retrieved(store: Path, asked: Sequence[Asked]) -> Iterator[Row]:
    watching = Watching()
    session = Session(role="compliance", purpose="surveil")
    with Engine.open(
        store, ranker=OWN, generator=watching, gate=ConfidenceGate(-1.0), clock=lambda: NOW
    ) as engine:
        for one in asked:
            watching.given = ()
            engine.ask(one.question, session)
            yield {"id": one.id, "passages": [asdict(of) | {"text_sha256": ""} for of in watching.given]}


def _passage(row: dict[str, Any]) -> Passage:
    head = row["head"] and Head(**row["head"])
    return Passage(**row | {"text_sha256": b"", "head": head})


def _row(asked: Asked, passages: tuple[Passage, ...], *, show: bool) -> Row:
    draft = Extractive().generate(asked.question, passages, Withheld(()))
    texts = [one.text for one in passages]
    said = PIECES.findall(draft.text)
    row = {
        "text": _holds(asked, draft.text),
        "first": _holds(asked, *texts[:1]),
        "all": _holds(asked, *texts),
        "characters": len(draft.text),
        "opening": any(map(OPENING.search, said)),
        "pieces": len(said),
        "broken": sum(BROKEN.search(piece.strip()) is not None for piece in said),
    }
    if show and row["all"] and not row["text"]:
        print(f"--- {asked.id} {asked.question}\n    facts {asked.facts}\n{draft.text}\n")
    return row


def _holds(asked: Asked, *texts: str) -> bool:
    plain = [" ".join(text.split()) for text in texts]
    return any(" ".join(fact.split()) in text for fact in asked.facts for text in plain)


def _cells(rows: Sequence[Row]) -> str:
    count = len(rows)
    shares = [f"{sum(row[name] for row in rows)} of {count}" for name in ("text", "first", "all")]
    characters = median(row["characters"] for row in rows)
    pieces = sum(row["pieces"] for row in rows)
    opening = f"{sum(row['opening'] for row in rows)} of {count}"
    return " | ".join(
        [*shares, f"{characters:.0f}", opening, f"{sum(row['broken'] for row in rows)} of {pieces}"]
    )


if __name__ == "__main__":
    main()
