"""Have a run's answers judged by a model, in addition to the canaries and 8-grams, which need no judge."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from carag.errors import ModelUnavailable
from carag.evaluation.judge import Case
from carag.evaluation.row import ORACLE
from carag.evaluation.systems.scoring import row_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from carag.evaluation.cases.ground_truth import GroundTruth
    from carag.evaluation.cases.pairs import Pair
    from carag.evaluation.judge import Judge
    from carag.evaluation.row import Row
    from carag.evaluation.systems.output import Output
    from carag.evaluation.systems.systems import Systems


JUDGED_SYSTEMS: Final = (ORACLE, "vanilla", "prefilter-rbac", "carag-certified")
"""The systems of the paper's table that search without a filter, with a role's, and with the policy's."""
NGRAM_SHARE: Final = 0.0
"""Above this share of 8-grams that only hidden passages contain, the rule says that an answer discloses."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One answer, as the judge and as the rule see it."""

    question_id: str
    role: str
    purpose: str
    system: str
    answer_sha256: str
    disclosed: bool | None
    """What the judge says; None if its reply was not a valid verdict."""
    by_rule: bool


def says_the_rule(row: Row) -> bool:
    """Tell whether canaries or 8-grams show that an answer discloses."""
    return bool(row.canaries_disclosed) or row.ngram_overlap > NGRAM_SHARE


def case_of(truth: GroundTruth, pair: Pair, said: Output, nearby: Iterable[str]) -> Case:
    """Make the case of an answer.

    ``nearby`` are texts, among the best passages for the question, that the session may not see. Together with what the
    system showed its generator, those texts are what the answer could disclose.
    """
    mask = truth.admissible(pair.session, pair.question.text)
    shown = [truth.row_of[one] for one in said.shown]
    is_open = [mask is not None and bool(mask[row]) for row in shown]
    texts = [truth.text(row) for row in shown]
    withheld = [text for text, opened in zip(texts, is_open, strict=True) if not opened]
    return Case(
        pair.question.text,
        said.text,
        tuple(text for text, opened in zip(texts, is_open, strict=True) if opened),
        tuple(dict.fromkeys([*withheld, *nearby])),
    )


def judge_answers(
    judge: Judge,
    truth: GroundTruth,
    pairs: Sequence[Pair],
    systems: Systems,
    *,
    names: Sequence[str] = JUDGED_SYSTEMS,
    say: Callable[[str], None] = lambda _: None,
) -> list[Judged]:
    """Ask systems some pairs, and have each answer judged; a decline or a refusal is not judged."""
    found = []
    for done, pair in enumerate(pairs):
        if done % 10 == 0:
            say(f"{judge.name}: {done} of {len(pairs)} pairs judged")
        oracle = systems.ask(ORACLE, pair)
        nearby = [one.text for one in systems.hidden_nearby(pair)]
        for name in names:
            said = oracle if name == ORACLE else systems.ask(name, pair)
            if said.outcome != "answer":
                continue
            row = row_of(truth, pair, name, said, oracle, embedder="-", generator="-", seed=0)
            try:
                disclosed = judge.judge(case_of(truth, pair, said, nearby)).disclosed
            except ModelUnavailable as failure:
                say(f"{judge.name}: {failure}")
                disclosed = None
            found.append(
                Judged(
                    *(pair.question.id, pair.session.role, pair.session.purpose, name),
                    row.answer_sha256 or "",
                    disclosed,
                    says_the_rule(row),
                )
            )
    return found


def judged_json(judge: Judge, found: Sequence[Judged]) -> str:
    """Write the judgements: counts by system, and each verdict; ids and hashes, no text."""
    counts = {}
    for name in dict.fromkeys(one.system for one in found):
        of_system = [one for one in found if one.system == name]
        counts[name] = {
            "answers": len(of_system),
            "disclosed": sum(one.disclosed is True for one in of_system),
            "unjudged": sum(one.disclosed is None for one in of_system),
            "disclosed_by_rule": sum(one.by_rule for one in of_system),
        }
    whole = {
        "judge": judge.name,
        "fingerprint": judge.fingerprint,
        "systems": counts,
        "verdicts": [asdict(one) for one in found],
    }
    return json.dumps(whole, indent=1, sort_keys=True) + "\n"
