"""Count the questions on circulars whose answer holds a fact: ``python -m bench.circulars.facts WORK``.

The passages of each question are retrieved once, by one embedder for compliance/surveil, and kept in the directory
WORK; from then on only the generator runs, in seconds. A fact is words of the clause that are the answer, such as a
date or an amount. Of the questions that a clause answers the first 161 are asked: on those at an odd place choices
may be made, those at an even place are for the end. With ``--fresh`` the questions of ``fresh_questions.jsonl`` are
asked instead.
"""

from __future__ import annotations

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
from bench.circulars.gold import HOME, read_questions
from bench.harness import parser, wilson
from carag import Engine, Session
from carag.generation import Draft, Extractive
from carag.retrieval import ConfidenceGate
from carag.retrieval.evidence import Head, Passage, Withheld

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.circulars.gold import Asked

ASKED: Final = 161
REFERS: Final = re.compile(
    r"please refer to|attention .{0,99}is (?:drawn|invited) to", re.IGNORECASE | re.DOTALL
)
SHORT: Final = 20
"""Characters. A shorter first line may stand in a title by chance."""
BROKEN: Final = re.compile(
    r"\A(?![(\[]?[a-zivx\d]{1,4}[.)\]])[a-z,;)]|[^.;:!?\"'”’)\]|\d]\Z(?<!\band)(?<!\bor)"
)
"""A piece that starts or ends inside its sentence; an item's own letter does not count."""
PIECES: Final = re.compile(r"(.+?)\s\[(\d+)\](?:\n|\Z)", re.DOTALL)
CHANGES: Final = re.compile(
    r"[^.]{0,160}\.\s[^.]{0,80}\b(?:now|stands?|been|is|are|being)\b[^.]{0,20}\b(?:revise|enhance|raise|reduce|increase)d?\b",
    re.DOTALL,
)
"""The next sentence or the one after says that something is changed."""


class Watching:
    """A generator that keeps what it is given, and says nothing."""

    name, remote, fingerprint = "watching", False, "watching-1"

    def __init__(self) -> None:
        self.given: list[Passage] = []

    def generate(self, question: str, passages: Sequence[Passage], withheld: Withheld) -> Draft:  # noqa: ARG002
        """See :class:`carag.generation.Generator`."""
        self.given[:] = passages
        return Draft("Nothing. [1]", (0,))


def main() -> None:
    """Print a table."""
    arguments = parser("bench.circulars.facts", __doc__)
    arguments.add_argument(
        "work", type=Path, metavar="WORK", help="where the store and the passages are kept"
    )
    arguments.add_argument("--data", type=Path, default=os.environ.get("CARAG_SHARED_DATA"))
    arguments.add_argument(
        "--show", action="store_true", help="print the answers at odd places that hold no fact"
    )
    arguments.add_argument("--fresh", action="store_true", help="ask the questions of fresh_questions.jsonl")
    arguments.add_argument("--embedder", default="wordllama", help="of a store that WORK does not hold yet")
    given = arguments.parse_args()
    asked = [one for one in read_questions() if one.kind == "on"][:ASKED]
    if given.fresh:
        asked = read_questions(HOME / "fresh_questions.jsonl")
    kept = _kept(given.work, given.data, asked, "fresh" if given.fresh else "passages", given.embedder)
    rows = [_row(one, kept[one.id], show=given.show and not at % 2) for at, one in enumerate(asked)]
    print(
        "| questions | fact in the answer | in passage 1 | in all | characters | opening | superseded | broken |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name, of in (("odd", rows[::2]), ("even", rows[1::2]), ("all", rows)):
        print(f"| {name} | {_cells(of)} |")
    low, high = wilson(sum(row["text"] for row in rows), len(rows))
    print(f"\nA fact in the answer, 95 % interval: {low:.1%} to {high:.1%}.")
    changed = [row["stale"] for one, row in zip(asked, rows, strict=True) if one.superseded]
    print(f"Superseded figures stated as valid: {sum(changed)} of {len(changed)}.")


def _kept(
    work: Path, data: Path | None, asked: Sequence[Asked], name: str, embedder: str
) -> dict[str, tuple[Passage, ...]]:
    path = work / f"{name}.jsonl"
    if not path.exists():
        if data is None:
            raise SystemExit(
                "set CARAG_SHARED_DATA or give --data: the directory that holds rbi/circulars.jsonl.gz"
            )
        packed = gzip.decompress((data / "rbi" / "circulars.jsonl.gz").read_bytes())
        ids = [json.loads(line)["id"] for line in packed.decode().splitlines()]
        work.mkdir(exist_ok=True)
        done(work / "ingest.jsonl", partial(ingested, work, packed, embedder, ids))
        done(path, partial(_retrieved, work / "store", asked))
    lines = map(json.loads, path.read_text("utf-8").splitlines())
    return {line["id"]: tuple(map(_passage, line["passages"])) for line in lines}


def _retrieved(store: Path, asked: Sequence[Asked]) -> Iterator[Row]:
    watching = Watching()
    session = Session(role="compliance", purpose="surveil")
    with Engine.open(
        store,
        ranker=OWN,
        generator=watching,
        gate=ConfidenceGate(-1.0),
        clock=lambda: NOW,
    ) as engine:
        for one in asked:
            watching.given.clear()
            engine.ask(one.question, session)
            yield {"id": one.id, "passages": [asdict(of) | {"text_sha256": ""} for of in watching.given]}


def _passage(row: dict[str, Any]) -> Passage:
    head = row["head"] and Head(**row["head"])
    return Passage(**row | {"text_sha256": b"", "head": head})


def _row(asked: Asked, passages: tuple[Passage, ...], *, show: bool) -> Row:
    draft = Extractive().generate(asked.question, passages, Withheld(()))
    texts = [one.text for one in passages]
    said = [(piece, passages[int(number) - 1]) for piece, number in PIECES.findall(draft.text)]
    row = {
        "text": _holds(asked.facts, draft.text),
        "stale": _holds(asked.superseded, draft.text) and not _holds(asked.facts, draft.text),
        "first": _holds(asked.facts, *texts[:1]),
        "all": _holds(asked.facts, *texts),
        "characters": len(draft.text),
        "opening": any(_is_opening(*one) for one in said),
        "superseded": any(_is_superseded(*one, draft.text) for one in said),
        "pieces": len(said),
        "broken": sum(BROKEN.search(piece) is not None for piece, _ in said),
    }
    if show and row["all"] and not row["text"]:
        print(f"--- {asked.id} {asked.question}\n    facts {asked.facts}\n{draft.text}\n")
    return row


def _is_opening(piece: str, of: Passage) -> bool:
    first = " ".join(piece.splitlines()[0].split())
    return REFERS.search(piece[:200]) is not None or (len(first) > SHORT and first in of.source)


def _is_superseded(piece: str, of: Passage, answer: str) -> bool:
    """Tell whether a piece is quoted without the change of it that stands one or two sentences behind."""
    at = of.text.find(piece)
    changed = CHANGES.match(of.text, at + len(piece) - 1) if at >= 0 and re.search(r"\d", piece) else None
    return changed is not None and changed[0][-60:] not in answer


def _holds(facts: Sequence[str], *texts: str) -> bool:
    plain = [" ".join(text.split()) for text in texts]
    return any(" ".join(fact.split()) in text for fact in facts for text in plain)


def _cells(rows: Sequence[Row]) -> str:
    count = len(rows)
    shares = [f"{sum(row[name] for row in rows)} of {count}" for name in ("text", "first", "all")]
    characters = median(row["characters"] for row in rows)
    pieces = sum(row["pieces"] for row in rows)
    quoted = [f"{sum(row[name] for row in rows)} of {count}" for name in ("opening", "superseded")]
    broken = f"{sum(row['broken'] for row in rows)} of {pieces}"
    return " | ".join([*shares, f"{characters:.0f}", *quoted, broken])


if __name__ == "__main__":
    main()
