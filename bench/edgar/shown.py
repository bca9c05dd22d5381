"""Write ten questions with their answers, right and wrong ones, as a page: ``python -m bench.edgar.shown``.

An analyst at a bank, one at a fund and an auditor ask about the small corpus of filings, a nurse about notes of her
patients; both were written for this project, since the text of other corpora may not be shown here. Whether an answer
is right is judged as in the benchmark, by the plain reading of the rules and the gold of each question, and not by
the engine.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.harness import parser
from carag.engine import Engine
from carag.evaluation.cases.corpus import build_corpus, small_data
from carag.evaluation.cases.ground_truth import GroundTruth
from carag.evaluation.cases.pairs import CELLS, pair_of
from carag.evaluation.report.measures import MEASURES
from carag.evaluation.report.page import cells
from carag.evaluation.row import STAGES, Standing
from carag.evaluation.run import NOW
from carag.evaluation.systems.output import Output
from carag.evaluation.systems.scoring import row_of
from carag.policy import Session
from carag.retrieval import embedder_by_name
from carag.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.evaluation.cases.corpus import BuiltCorpus
    from carag.evaluation.row import Row


PAGE: Final = Path(__file__).parents[2] / "docs" / "explanation" / "ten-questions.md"
TEN: Final = (
    ("showcase", "sell_side", "publish"),
    ("harrowgate-sales-revised", "sell_side", "publish"),
    ("kestrel-guidance-final", "sell_side", "publish"),
    ("kestrel-guidance-final", "buy_side", "invest"),
    ("harrowgate-sales-original", "buy_side", "invest"),
    ("northpane-revenue", "buy_side", "invest"),
    ("tidewater-revenue", "auditor", "assure"),
    ("thornbury-guidance", "auditor", "assure"),
    ("fluid", "nurse", "treat"),
    ("medicines", "nurse", "treat"),
)
"""The question's id, and who asks for what: open evidence, hidden evidence, another year's."""
PEOPLE: Final = {
    "sell_side": "an analyst at a bank",
    "buy_side": "an analyst at a fund",
    "auditor": "an auditor",
    "nurse": "a nurse",
}
_PATIENT: Final = 10021
_NOTES: Final = (
    ("fluid", "How much fluid may Ms Penfield drink?", "note-001.md", "1.5 litres"),
    ("medicines", "Which medicines does Ms Penfield take at home?", "note-005.md", "bisoprolol"),
)
"""A nurse's questions: id, text, the note that answers it, and words of the answer."""
_CITES_GOLD: Final = next(measure for measure in MEASURES if measure.name == "cites_gold")


@dataclass(frozen=True, slots=True)
class Asked:
    """One question in one session: what came of it, and whether that is right."""

    id: str
    question: str
    session: Session
    outcome: str
    understood: str
    """What the question was read to name; empty if nothing."""
    text: str
    documents: tuple[str, ...]
    """Those that are cited, by name."""
    full: str
    """The whole right answer, whether or not this session may read it."""
    is_open: bool
    """Whether the session may use evidence."""
    is_right: bool
    why: str


def verdict(row: Row) -> tuple[bool, str]:
    """Judge a row: whether it is right, and why."""
    if row.standing is not Standing.OPEN:
        none = "nothing in the corpus answers it" if not row.gold else "no evidence is open to this session"
        said = "answered all the same" if row.outcome == "answer" else "did not answer"
        return row.outcome != "answer", f"{none}, and CARAG {said}"
    if row.outcome != "answer":
        return False, "the evidence is open to this session, and CARAG did not answer"
    if not _CITES_GOLD.sums(row, None).values:
        return False, "the answer is not from the passage that holds the evidence"
    if row.figure_right is False:
        return False, "the answer is from the right passage, without the figure asked for"
    return True, "the answer is from a passage that holds the evidence" + (
        ", with the figure asked for" if row.figure_right else ""
    )


def ask(built: BuiltCorpus, embedder: str) -> list[Asked]:
    """Ask every question of a corpus in a session of each role and purpose, and score what comes."""
    found = []
    model = embedder_by_name(embedder)
    truth = GroundTruth.open(built.store, now=NOW)
    try:
        with Engine.open(built.store, create=False, embedder=model, clock=lambda: NOW) as engine:
            for question in built.questions:
                gold = tuple(truth.rows_at(piece) for piece in built.gold.get(question.id, ()))
                vector = model.embed_query(question.text)
                for role, purpose in CELLS[:-1]:  # an access request is about one filer only
                    session = Session(role=role, purpose=purpose)
                    answer = engine.ask(question.text, session)
                    said = Output(
                        tuple(truth.row_of[one.chunk_id] for one in answer.passages),
                        (),
                        answer.outcome.value,
                        answer.text,
                        tuple(one.chunk_id for one in answer.citations),
                        dict.fromkeys(STAGES),
                    )
                    pair = pair_of(truth, question, session, gold, vector)
                    row = row_of(
                        *(truth, pair, "carag-certified", said, said),
                        embedder=embedder,
                        generator="extractive",
                        seed=0,
                    )
                    filings = [truth.filing(truth.row_of[one.chunk_id]) for one in answer.citations]
                    documents = dict.fromkeys(f"{one.form} of {one.company}, {one.filed}" for one in filings)
                    found.append(
                        Asked(
                            *(
                                question.id,
                                question.text,
                                session,
                                said.outcome,
                                answer.understood,
                                said.text,
                            ),
                            *(tuple(documents), question.answer or "not in the corpus"),
                            row.standing is Standing.OPEN,
                            *verdict(row),
                        )
                    )
    finally:
        truth.store.close()
    return found


def ask_notes(home: Path, embedder: str) -> list[Asked]:
    """Ask a nurse's questions about the notes of one patient."""
    session = Session(role="nurse", purpose="treat", allow_entities=frozenset({_PATIENT}))
    found = []
    with Engine.open(home, profile="clinical", embedder=embedder, clock=lambda: NOW) as engine:
        engine.ingest(small_data() / "clinical")
        for id_, question, note, fact in _NOTES:
            answer = engine.ask(question, session)
            cited = dict.fromkeys(one.source for one in answer.citations)
            is_right = answer.outcome.value == "answer" and fact in answer.text
            why = f"the answer {'states' if is_right else 'does not state'} what {note} says"
            found.append(
                Asked(
                    *(id_, question, session, answer.outcome.value, answer.understood, answer.text),
                    *(tuple(cited), fact, True, is_right, why),
                )
            )
    return found


def page(found: list[Asked], embedder: str) -> str:
    """Write the page."""
    by_name = {(one.id, one.session.role, one.session.purpose): one for one in found}
    return visible("\n\n".join(_blocks(found, [by_name[key] for key in TEN], embedder))) + "\n"


def _blocks(found: list[Asked], ten: list[Asked], embedder: str) -> Iterator[str]:
    filings = [one for one in found if one.session.role != "nurse"]
    right = Counter((one.is_open, one.is_right) for one in filings)
    where = [f"{right[open_, True]} of {right[open_, True] + right[open_, False]}" for open_ in (True, False)]
    yield "# Ten questions, right and wrong answers"
    yield (
        "What an analyst at a bank, one of a fund, an auditor and a nurse are told, and whether it is right. The "
        "filings and the notes are those in `data/`, which were written for this project; the models are "
        f"{embedder} and the extractive generator, which quotes. An answer is right if it "
        "cites a passage that holds the evidence and, where the right answer is one figure, states it; where the "
        "session may use no evidence, it is right not to answer. The ten were chosen to show each kind. Of all "
        f"{len({one.id for one in filings})} questions about filings in the sessions of {len(CELLS) - 1} roles, "
        f"{where[0]} came out right where evidence was open, and {where[1]} where none was."
    )
    lines = [
        cells(
            (at, one.id, f"{one.session.role} / {one.session.purpose}", one.outcome),
            ["right" if one.is_right else "**wrong**"],
        )
        for at, one in enumerate(ten, start=1)
    ]
    yield "\n".join(["|  | question | asked by | outcome | verdict |", "|---|---|---|---|---|", *lines])
    for at, one in enumerate(ten, start=1):
        yield f"## {at}. {one.question}"
        read = f" Read: {one.understood}." if one.understood else ""
        asker = f"{PEOPLE[one.session.role]} ({one.session.role} for {one.session.purpose})"
        yield (f"Asked by {asker}.{read} {_said(one.outcome)}:")
        yield ("\n>\n".join(f"> {line}" for line in one.text.splitlines() if line.strip()))
        if one.documents:
            yield (f"Cites {'; '.join(one.documents)}.")
        yield (f"The full answer: {one.full}. {'Right' if one.is_right else 'Wrong'}: {one.why}.")
    yield ("Written by `python -m bench.edgar.shown`.")


def _said(outcome: str) -> str:
    return {"answer": "Answered", "decline": "Declined", "refuse": "Refused"}[outcome]


def main() -> None:
    """Ask, and write the page."""
    arguments = parser("bench.edgar.shown", __doc__)
    arguments.add_argument("--embedder", default="wordllama")
    arguments.add_argument("--page", type=Path, default=PAGE)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as home:
        built = build_corpus("small", cache=Path(home), embedder=embedder_by_name(given.embedder))
        found = ask(built, given.embedder) + ask_notes(Path(home) / "notes", given.embedder)
    given.page.write_text(page(found, given.embedder), encoding="utf-8")


if __name__ == "__main__":
    main()
