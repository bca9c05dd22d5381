"""Count the answers whose text says what is right: ``python -m bench.edgar.said --data DIR --cache DIR``.

Each question of the paper-sized corpus that has an answer and evidence is asked once, in a session that may use
everything. By rule, the text is right if it states every figure of the right answer or, where that has none, at least
70 % of its words. Answers that begin with yes or no are left out, because a quote says neither. ``--list`` prints each
question, its right answer and what was said, for a reader. Choices may be made on the development questions;
``--reported`` is for the end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.harness import parser
from bench.metric.measures import Interval, interval, mean
from carag import Engine, Session
from carag.evaluation.cases.corpus import build_corpus
from carag.evaluation.cases.pairs import split_of
from carag.evaluation.run import NOW
from carag.evaluation.systems.stated_figure import Figure, figures, single_figure, states
from carag.evaluation.systems.token_f1 import normalised_tokens
from carag.retrieval import embedder_by_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from carag.evaluation.cases.corpus import BuiltCorpus
    from carag.evaluation.cases.questions import Question

COMPLIANCE: Final = Session(role="compliance", purpose="surveil")
LEAST_WORDS: Final = 0.7
_YES_NO: Final = re.compile(r"\s*(?:yes|no)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Said:
    """What came of one question."""

    question: Question
    text: str
    outcome: str
    found: bool
    """Whether a passage with evidence is among the first eight."""

    @property
    def right(self) -> bool | None:
        """Whether the text says what is right, by rule; None where the rule cannot tell."""
        answer = self.question.answer or ""
        if _YES_NO.match(answer):
            return None
        return self.outcome == "answer" and is_said(answer, self.text, self.question.text)


def is_said(gold: str, text: str, question: str) -> bool:
    """Tell whether a text says what is right, by rule.

    Examples
    --------
    >>> is_said("$1,577 million", "Capex was $1.58 billion. [1]", "What was capex?")
    True
    >>> is_said("the chief executive officer", "The Chief Financial Officer signs. [1]", "Who signs?")
    False
    """
    single = single_figure(gold, question)
    wanted: Sequence[Figure] = [single] if single else figures(gold)
    if wanted:
        return all(states(text, one) for one in wanted)
    words = set(normalised_tokens(gold)) - set(normalised_tokens(question))
    return bool(words) and len(words & set(normalised_tokens(text))) >= LEAST_WORDS * len(words)


def asked(built: BuiltCorpus, engine: Engine, split: str) -> Iterator[Said]:
    """Ask the questions of a split that have an answer and evidence, in the order of their filings."""
    questions = [
        one for one in built.questions if one.answer and built.gold[one.id] and split_of(one.id) == split
    ]
    for question in sorted(questions, key=_filing):
        places = {(one.accession_number, one.start) for piece in built.gold[question.id] for one in piece}
        said = engine.ask(question.text, COMPLIANCE)
        found = engine.retrieve(question.text, COMPLIANCE, 8).passages
        holds = any((one.document_id, one.start) in places for one in found)
        yield Said(question, said.text, said.outcome.value, holds)


def _filing(question: Question) -> str:
    return question.evidence[0].alternatives[0][0]


def counted(said: Sequence[Said]) -> Iterator[tuple[str, Interval]]:
    """Yield the shares, a filing being a cluster."""
    judged = [one for one in said if one.right is not None]
    for name, some in (
        ("evidence among the first eight", [(one, one.found) for one in said]),
        ("the text says what is right", [(one, bool(one.right)) for one in judged]),
        ("the same, evidence among the eight", [(one, bool(one.right)) for one in judged if one.found]),
    ):
        filings = sorted({_filing(one.question) for one, _ in some})
        values = [float(held) for _, held in some]
        clusters = [filings.index(_filing(one.question)) for one, _ in some]
        yield name, interval(partial(mean, values), clusters)


def main() -> int:
    """Ask, and print the counts."""
    arguments = parser("bench.edgar.said", __doc__, data=True)
    arguments.add_argument("--cache", type=Path, required=True)
    arguments.add_argument("--size", default="paper")
    arguments.add_argument("--embedder", default="wordllama")
    arguments.add_argument("--reported", action="store_true")
    arguments.add_argument("--list", action="store_true")
    given = arguments.parse_args()
    embedder = embedder_by_name(given.embedder)
    built = build_corpus(given.size, cache=given.cache, embedder=embedder, data=given.data)
    with Engine.open(built.store, create=False, embedder=embedder, clock=lambda: NOW) as engine:
        said = list(asked(built, engine, "reported" if given.reported else "dev"))
    if given.list:
        for one in said:
            print(
                f"## {one.question.text}\nright: {one.question.answer}\nfound: {one.found}, by rule: {one.right}"
                f"\n{one.outcome}: {one.text}\n"
            )
    for name, share in counted(said):
        print(f"{name}: {share.value:.3f} ({share.low:.3f} .. {share.high:.3f}), n {share.n}")
    print(f"left out, yes or no: {sum(one.right is None for one in said)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
