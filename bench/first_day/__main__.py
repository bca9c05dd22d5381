"""Count what new stores answer before their gates are calibrated: ``python -m bench.first_day``.

``development.jsonl`` and ``held_out.jsonl`` hold thirty short documents each, the natural questions that one of them
answers, and questions on other subjects. All documents go into one store of a profile that ships no gate; and by one,
two and three into stores of the generic profile, which are asked their own questions and every question on other
subjects in one of them. The questions were written before the gate's baseline was measured.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import carag
from bench.harness import parser, wilson
from carag.policy.shipped import shipped_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


HERE: Final = Path(__file__).parent
EMBEDDERS: Final = ("minilm", "wordllama")
SETTINGS: Final = ("new", "generic")
FIRST: Final = 3
"""Passages among which the document that answers must be for a decline to count as wrong."""
_SESSION: Final = carag.Session(role="employee", purpose="work")
_SMALL: Final = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class Row:
    """How a question fared."""

    question: str
    document: str
    """That answers it; empty of a question on another subject."""
    rank: int
    """Of that document among the passages, from 1; 0 where it is not there."""
    why: str
    similarity: float

    @property
    def counts(self) -> bool:
        """Whether it is a question on another subject, or one whose document is among the first."""
        return not self.document or 1 <= self.rank <= FIRST


def read_set(name: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the documents with their questions, and the questions on other subjects."""
    rows = [json.loads(line) for line in (HERE / f"{name}.jsonl").read_text("utf-8").splitlines()]
    return [row for row in rows if "id" in row], [row["off"] for row in rows if "off" in row]


def stores_of(
    setting: str, documents: Sequence[dict[str, Any]], off: Sequence[str]
) -> list[tuple[list[dict[str, Any]], list[str]]]:
    """Return the documents of each store, and the questions on other subjects that it is asked."""
    if setting == "new":
        return [(list(documents), list(off))]
    rest = list(documents)
    parts: list[list[dict[str, Any]]] = []
    while rest:
        size = _SMALL[len(parts) % len(_SMALL)]
        parts.append(rest[:size])
        rest = rest[size:]
    return [(part, list(off[number :: len(parts)])) for number, part in enumerate(parts)]


def asked_of(
    setting: str, embedder: str, documents: Sequence[dict[str, Any]], off: Sequence[str]
) -> Iterator[Row]:
    """Make a store, and ask it the questions of its documents and those on other subjects."""
    with tempfile.TemporaryDirectory() as home:
        profile: str | Path = "generic"
        if setting == "new":
            profile = Path(home) / "profile"
            profile.mkdir()
            for file in ("profile.toml", "roles.toml"):
                text = shipped_text("generic", file).replace('name = "generic"', 'name = "house"')
                (profile / file).write_text(text, "utf-8")
        with carag.Engine.open(Path(home) / "store", profile=profile, embedder=embedder) as engine:
            engine.add(
                [
                    carag.Document(id=one["id"], text=one["text"], facts={"classification": "public"})
                    for one in documents
                ]
            )
            for of, question in [
                *((one["id"], question) for one in documents for question in one["questions"]),
                *(("", question) for question in off),
            ]:
                answer = engine.ask(question, _SESSION)
                ids = [passage.document_id for passage in answer.passages]
                yield Row(
                    question,
                    of,
                    ids.index(of) + 1 if of in ids else 0,
                    answer.why,
                    answer.top_similarity or 0.0,
                )


def main() -> None:
    """Ask, and print one line for each embedder and setting."""
    options = parser("bench.first_day", __doc__)
    options.add_argument("set", nargs="?", choices=("development", "held_out"), default="development")
    options.add_argument("--show", action="store_true", help="print each question that fared badly")
    arguments = options.parse_args()
    documents, off = read_set(arguments.set)
    print(
        "| embedder | store | found | answered | off topic answered | declines |\n|---|---|---|---|---|---|"
    )
    for embedder in EMBEDDERS:
        for setting in SETTINGS:
            rows = [
                row
                for some, strange in stores_of(setting, documents, off)
                for row in asked_of(setting, embedder, some, strange)
            ]
            natural = [row for row in rows if row.document]
            found = [row for row in natural if row.counts]
            why = Counter(row.why for row in found if row.why != "ANSWERED")
            declines = ", ".join(f"{count} {code}" for code, count in sorted(why.items()))
            cells = [_share(found), _share([row for row in rows if not row.document]), declines]
            print(f"| {embedder} | {setting} | {len(found)} of {len(natural)} | {' | '.join(cells)} |")
            for row in rows if arguments.show else ():
                if row.counts and (row.why == "ANSWERED") != bool(row.document):
                    print(f"    {row.why} {row.similarity:.3f} {row.document}: {row.question}")


def _share(rows: Sequence[Row]) -> str:
    answered = sum(row.why == "ANSWERED" for row in rows)
    low, high = wilson(answered, len(rows))
    return f"{answered} of {len(rows)} ({low:.2f} to {high:.2f})"


if __name__ == "__main__":
    main()
