"""Compare measures of disclosure with verdicts of a reader: ``python -m bench.edgar.judged``.

``--list`` prints the answers as a judge reads them: each piece with the sentence most like it that the
reader may not see (``W``), and with the one most like it that the reader may (``O``). What a measure says, it does not
show.
``judged.tsv`` holds the verdicts of one reader, a language model that read the list piece by piece; no person has
reviewed them. A line is id, hash of the answer, ``yes`` or ``no``.

Without an option it prints Cohen's kappa of the rule (canaries and 8-grams) with them. ``--judge bedrock:MODEL_ID``
adds a model's.

The answers are over the small corpus, which was written for this project. They are made by the extractive generator and
by an adversary that drops words, in systems that ignore the policy and in those that keep it, from the corpus as it is
and from a copy with planted canaries.
"""

from __future__ import annotations

import hashlib
import random
import re
import sys
import tempfile
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from bench.harness import parser
from bench.metric.measures import kappa
from carag.engine import Engine
from carag.errors import ModelUnavailable
from carag.evaluation.cases.adversaries import attacked_pairs, plan_attacks, write_planted
from carag.evaluation.cases.corpus import build_corpus
from carag.evaluation.cases.ground_truth import GroundTruth
from carag.evaluation.cases.pairs import cross
from carag.evaluation.judge import judge_by_name
from carag.evaluation.models import Models, TimedEmbedder
from carag.evaluation.paid import CachedJudge, estimate
from carag.evaluation.row import ORACLE
from carag.evaluation.run import NOW
from carag.evaluation.safety.judging import case_of, says_the_rule
from carag.evaluation.systems.scoring import row_of
from carag.evaluation.systems.systems import Systems
from carag.generation import Extractive
from carag.generation.words import terms
from carag.retrieval import ConfidenceGate, embedder_by_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from carag.evaluation.cases.pairs import Pair
    from carag.evaluation.judge import Case, Judge
    from carag.generation import Draft
    from carag.retrieval import Passage, Withheld


BY_HAND: Final = Path(__file__).with_name("judged.tsv")
_WANTED: Final = {
    ("plain", "vanilla"): 55,
    ("plain", "prefilter-rbac"): 25,
    ("plain", "carag-certified"): 30,
    ("dropped", "vanilla"): 50,
    ("planted", "vanilla"): 30,
    ("planted", "carag-certified"): 10,
}
"""Answers of each origin and system: together 200, the paper's number."""
_EVERY: Final = 7
"""The adversary drops each seventh word, so that few 8-grams of a passage stay whole."""
_SHOWN: Final = 230
"""Characters of a piece or a sentence in the listing."""
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n+")
_PIECE: Final = re.compile(r"\s*\[\d+(?:\s*,\s*\d+)*\]\s*")


class DropsWords:
    """Generator of an adversary: says what the extractive one does, without each seventh word."""

    name, remote, fingerprint = "drops-words", False, "drops-words-1"

    def __init__(self) -> None:
        self._extractive = Extractive()

    def generate(self, question: str, passages: Sequence[Passage], withheld: Withheld) -> Draft:
        """Draft an answer; see :class:`~carag.generation.generator.Generator`."""
        draft = self._extractive.generate(question, passages, withheld)
        words = draft.text.split(" ")
        kept = [
            word for at, word in enumerate(words, start=1) if at % _EVERY or word.startswith(("[", "CANARY"))
        ]
        return replace(draft, text=" ".join(kept)) if draft.cited else draft


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to judge."""

    id: str
    case: Case
    by_rule: bool
    all_open: tuple[str, ...]
    """Texts of all passages that the session may use."""
    all_withheld: tuple[str, ...]

    @property
    def sha256(self) -> str:
        """Hash of the answer's text, in hexadecimal."""
        return hashlib.sha256(self.case.answer.encode()).hexdigest()


def answers(home: Path, embedder_name: str = "wordllama") -> list[Answer]:
    """Make the answers; the same on every machine."""
    embedder = TimedEmbedder(embedder_by_name(embedder_name))
    built = build_corpus("small", cache=home / "cache", embedder=embedder)
    truth = GroundTruth.open(built.store, now=NOW)
    try:
        for question in built.questions:
            embedder.embed_query(question.text)
        pairs = cross(truth, built.questions, built.gold, embedder.vectors, count=800, seed=0)
        plain = Models(embedder, Extractive(), ConfidenceGate(0.3))
        found = [*_answers("plain", built.store, truth, pairs, plain)]
        found += _answers("dropped", built.store, truth, pairs, replace(plain, generator=DropsWords()))
        attacks = plan_attacks(truth, pairs, count=6, seed=0)
        write_planted(attacks, home / "planted.jsonl")
        with Engine.open(built.store, create=False, embedder=embedder) as engine:
            engine.ingest(home / "planted.jsonl")
    finally:
        truth.store.close()
    planted = GroundTruth.open(built.store, now=NOW)
    try:
        attacked = attacked_pairs(planted, attacks, embedder, pairs)
        found += _answers("planted", built.store, planted, attacked, plain)
    finally:
        planted.store.close()
    return found


def _answers(
    origin: str, store: Path, truth: GroundTruth, pairs: Sequence[Pair], models: Models
) -> Iterator[Answer]:
    """Draw the answers of one origin, no text twice to readers who may see the same of what it could be made of."""
    wanted = {name: count for (of, name), count in _WANTED.items() if of == origin}
    mixed = random.Random(0).sample(list(pairs), len(pairs))  # noqa: S311 - sampling, no secret
    seen = set()
    with Systems(store, truth, models, seed=0, names=("vanilla", *wanted)) as systems:
        for pair in mixed:
            if not any(wanted.values()):
                return
            oracle, nearby = systems.ask(ORACLE, pair), [one.text for one in systems.hidden_nearby(pair)]
            for name, count in wanted.items():
                said = systems.ask(name, pair) if count else oracle
                case = case_of(truth, pair, said, nearby)
                key = pair.question.id, said.text, case.withheld
                if not count or said.outcome != "answer" or key in seen:
                    continue
                seen.add(key)
                wanted[name] -= 1
                session, mask = pair.session, truth.admissible(pair.session, pair.question.text)
                row = row_of(truth, pair, name, said, oracle, embedder="-", generator="-", seed=0)
                is_open = np.zeros(len(truth), bool) if mask is None else mask
                yield Answer(
                    f"{origin}/{name}/{pair.question.id}/{session.role}/{session.purpose}/{session.as_of or 'now'}",
                    case,
                    says_the_rule(row),
                    tuple(truth.text(at) for at in np.flatnonzero(is_open).tolist()),
                    tuple(truth.text(at) for at in np.flatnonzero(~is_open).tolist()),
                )


def listing(found: Sequence[Answer]) -> Iterator[str]:
    """Print the answers by question, for a judge."""
    asked = ""
    for at, one in sorted(enumerate(found), key=lambda pair: (pair[1].case.question, pair[0])):
        if one.case.question != asked:
            asked = one.case.question
            yield f"\n== {asked}"
        yield f"#{at} {one.id}"
        pieces = [piece for piece in _PIECE.split(one.case.answer) if piece.strip()]
        for piece in pieces:
            yield f"   A {_line(piece)}"
            yield f"   W {_likest(piece, one.all_withheld)}"
            yield f"   O {_likest(piece, one.all_open)}"


def _likest(piece: str, texts: tuple[str, ...]) -> str:
    held = terms(piece)
    best, share = "", 0.0
    for sentence, words in _sentences(texts):
        if len(held & words) / max(len(held), 1) > share:
            best, share = sentence, len(held & words) / len(held)
    if " ".join(piece.split()) in " ".join(best.split()):
        return "the same words"
    return f"{share:.2f} {_line(best)}" if share > 0.3 else "-"


@lru_cache(maxsize=64)
def _sentences(texts: tuple[str, ...]) -> tuple[tuple[str, frozenset[str]], ...]:
    cut = dict.fromkeys(
        sentence for text in texts for sentence in (text, *_SENTENCE.split(text)) if len(sentence) < 600
    )
    return tuple((sentence, terms(sentence)) for sentence in cut)


def _line(text: str) -> str:
    return " ".join(text.split())[:_SHOWN]


def read_by_hand(found: Sequence[Answer], path: Path = BY_HAND) -> list[bool]:
    """Read the reader's verdicts, in the order of the answers.

    Raises
    ------
    ValueError
        If there is not one for each answer as it is now: then judge again what changed.
    """
    lines = [line.split("\t") for line in path.read_text("utf-8").splitlines()]
    kept = {(id_, digest): verdict for id_, digest, verdict in lines}
    missing = [one.id for one in found if (one.id, one.sha256[:16]) not in kept]
    if missing or len(kept) != len(found) or not {"yes", "no"}.issuperset(kept.values()):
        raise ValueError(
            f"{path}: {len(missing)} of {len(found)} answers have no verdict, first {missing[:3]}"
        )
    return [kept[one.id, one.sha256[:16]] == "yes" for one in found]


def agreement(by_hand: Sequence[bool], said: Sequence[bool | None]) -> str:
    """Return a line: kappa over what both judge, and how often they differ in each direction."""
    both = [(hand, other) for hand, other in zip(by_hand, said, strict=True) if other is not None]
    table = np.array(
        [[sum(one == (row, column) for one in both) for column in (False, True)] for row in (False, True)],
        float,
    )
    return (
        f"kappa {float(kappa(table)):.2f} on {len(both)}: both yes {table[1, 1]:.0f}, both no {table[0, 0]:.0f}, "
        f"the reader alone {table[1, 0]:.0f}, it alone {table[0, 1]:.0f}; unjudged {len(said) - len(both)}"
    )


def _verdicts(judge: Judge, found: Sequence[Answer]) -> list[bool | None]:
    said: list[bool | None] = []
    for one in found:
        try:
            said.append(judge.judge(one.case).disclosed)
        except ModelUnavailable as failure:
            print(f"  {one.id}: {failure}", file=sys.stderr)
            said.append(None)
    return said


def main() -> int:
    """List, or compare."""
    arguments = parser("bench.edgar.judged", __doc__)
    arguments.add_argument("--list", action="store_true", help="print the answers to judge")
    arguments.add_argument("--judge", help="bedrock:MODEL_ID, with the credentials that boto3 finds")
    arguments.add_argument("--max-usd", type=float, default=0.0)
    arguments.add_argument("--cache", type=Path, help="where paid verdicts are kept; needed with --judge")
    given = arguments.parse_args()
    if given.judge and given.cache is None:
        arguments.error("--judge costs money; name with --cache where its verdicts are kept")
    with tempfile.TemporaryDirectory() as home:
        found = answers(Path(home))
    if given.list:
        print("\n".join(listing(found)))
        return 0
    by_hand = read_by_hand(found)
    print(f"{len(found)} answers, {sum(by_hand)} disclose by the reader")
    print(f"canaries and 8-grams: {agreement(by_hand, [one.by_rule for one in found])}")
    if given.judge:
        cost = estimate(None, 0, None, 0, judge=given.judge, verdicts=len(found))
        if cost > given.max_usd:
            arguments.error(f"estimated to cost {cost:.2f} USD at most; give --max-usd {cost:.2f}")
        judge = CachedJudge(judge_by_name(given.judge), given.cache / "paid-verdicts.jsonl")
        print(f"{given.judge}: {agreement(by_hand, _verdicts(judge, found))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
