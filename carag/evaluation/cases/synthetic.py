"""Build questions from metadata facts of filings, for the strata that real questions leave empty."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from carag.evaluation.cases.pairs import CELLS, Pair, pair_of
from carag.evaluation.cases.questions import GoldEvidence, Question
from carag.policy import Session

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import date

    from carag.evaluation.cases.ground_truth import GroundTruth
    from carag.evaluation.models import TimedEmbedder


_FACT: Final = re.compile(
    r"\bItem\s+\d\.\d\d\b|\bForm\s+(?:10-K|10-Q|20-F|40-F|6-K|8-K|S-1|S-3)\b", re.IGNORECASE
)
_ADMISSIBLE_OF_FOUR: Final = (1, 2, 3, 1, 0)
"""How many of four filings the session may use, in turn: tight, medium, medium, tight, void."""


def built_pairs(truth: GroundTruth, embedder: TimedEmbedder, *, count: int, seed: int) -> list[Pair]:
    """Build pairs; fewer than ``count`` if the corpus has too few filings."""
    rng = random.Random(seed)  # noqa: S311 - sampling, no secret
    facts = _facts(truth)
    if len(facts) < 8:
        return []
    days = _days(truth, facts)
    found: list[Pair] = []
    for attempt in range(8 * count):
        if len(found) == count:
            break
        session = _session(days, rng)
        rows = _four(truth, facts, session, _ADMISSIBLE_OF_FOUR[attempt % len(_ADMISSIBLE_OF_FOUR)], rng)
        if rows is None:
            continue
        question = _question(truth, rows, [facts[row] for row in rows], f"{len(found):05d}")
        gold = tuple((row,) for row in rows)
        found.append(pair_of(truth, question, session, gold, embedder.embed_query(question.text)))
    return found


def company_pairs(
    truth: GroundTruth, embedder: TimedEmbedder, *, left_out: Collection[int] = (), seed: int
) -> list[Pair]:
    """Build one pair for each company but those left out, if a filing of it states its item or form.

    Questions about one company are alike, so that it takes many companies to bound how often anything happens.
    """
    rng = random.Random(seed)  # noqa: S311 - sampling, no secret
    facts = _facts(truth)
    days = _days(truth, facts)
    by_filer: dict[int, list[int]] = defaultdict(list)
    for row in facts:
        by_filer[truth.filers[row]].append(row)
    found: list[Pair] = []
    for filer in sorted(by_filer.keys() - set(left_out)):
        row, session = rng.choice(by_filer[filer]), _session(days, rng)
        question = _question(truth, (row,), [facts[row]], f"company-{filer}")
        found.append(pair_of(truth, question, session, ((row,),), embedder.embed_query(question.text)))
    return found


def _days(truth: GroundTruth, rows: Iterable[int]) -> list[date]:
    return sorted({day for row in rows if (day := truth.public_day(row)) is not None})


def _session(days: list[date], rng: random.Random) -> Session:
    role, purpose = CELLS[rng.randrange(len(CELLS) - 1)]  # an access request is about one filer only
    as_of = rng.choice([None, rng.choice(days) + timedelta(days=1)]) if days else None
    return Session(role=role, purpose=purpose, as_of=as_of)


def _facts(truth: GroundTruth) -> dict[int, str]:
    """Return the first chunk of each filing that states its item or form, with what it states."""
    found: dict[int, str] = {}
    seen: set[str] = set()
    for row in range(len(truth)):
        filing = truth.filing(row)
        if filing.document_id in seen or not filing.company or not filing.ciks:
            continue
        if stated := _FACT.search(truth.text(row)):
            seen.add(filing.document_id)
            found[row] = " ".join(stated.group().split())
    return found


def _four(
    truth: GroundTruth, facts: dict[int, str], session: Session, usable: int, rng: random.Random
) -> tuple[int, ...] | None:
    mask = truth.admissible(session, "")
    if mask is None:
        return None
    by_filer: dict[bool, dict[int, list[int]]] = {True: defaultdict(list), False: defaultdict(list)}
    for row in facts:
        by_filer[bool(mask[row])][truth.filers[row]].append(row)
    chosen: list[int] = []
    taken: set[int] = set()
    for side, wanted in ((True, usable), (False, 4 - usable)):
        filers = sorted(set(by_filer[side]) - taken)
        if len(filers) < wanted:
            return None
        for filer in rng.sample(filers, wanted):
            taken.add(filer)
            chosen.append(rng.choice(by_filer[side][filer]))
    rng.shuffle(chosen)
    return tuple(chosen)


def _question(truth: GroundTruth, rows: tuple[int, ...], facts: list[str], name: str) -> Question:
    named = "; ".join(_named(truth, row) for row in rows)
    return Question(
        id=f"built-{name}",
        text=f"Which item or form heads each of these filings: {named}?",
        answer="; ".join(facts),
        evidence=tuple(GoldEvidence(((truth.filing(row).document_id, None),)) for row in rows),
        kind="built",
    )


def _named(truth: GroundTruth, row: int) -> str:
    filing = truth.filing(row)
    day: date | None = truth.public_day(row)
    return f"{filing.company} {filing.form}" + ("" if day is None else f" of {day.isoformat()}")
