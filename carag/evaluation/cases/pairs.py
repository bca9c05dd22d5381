"""Cross questions with sessions into pairs, and assign each pair its strata and its split.

A pair has three strata: the admissible share of its gold (loose, medium, tight, void), the admissible share of the
corpus, and whether what is admissible is near the question. All pairs of a question are in one split, development or
reported, by a hash of the question's id; nothing is tuned on the reported split.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from carag.evaluation.row import Stratum
from carag.policy import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import date

    from numpy.typing import NDArray

    from carag.evaluation.cases.corpus import ChunkLocation
    from carag.evaluation.cases.ground_truth import GroundTruth
    from carag.evaluation.cases.questions import Question

    _Option = tuple[Question, Session, tuple[tuple[int, ...], ...]]


CELLS: Final = (
    ("sell_side", "publish"),
    ("buy_side", "invest"),
    ("compliance", "surveil"),
    ("auditor", "assure"),
    ("retail_adviser", "advise"),
    ("counsel", "draft"),
    ("public", "public_qa"),
    ("dpo", "dsar"),
)
"""Role and purpose of the sessions. An access request (``dsar``, GDPR Article 15) concerns the filer of the gold."""
_T = TypeVar("_T")
_NEIGHBOURS: Final = 100
"""How many of the chunks nearest to a question are checked for admissibility."""
_BANDS: Final = (
    (0.0, "0"),
    (0.01, "0-0.01"),
    (0.1, "0.01-0.1"),
    (0.5, "0.1-0.5"),
    (0.9, "0.5-0.9"),
    (1.0, "0.9-1"),
)
"""Greatest admissible share of the corpus in each band of selectivity, and the band's name."""
_NEAR: Final = 1.1
"""Ratio of the admissible share around a question to that of the corpus above which the correlation is ``near``; below
its inverse it is ``far``."""
_DEV_ONE_IN: Final = 5
"""One question in five, by the first byte of its hash, is in the development split."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A question in a session."""

    question: Question
    session: Session
    gold: tuple[tuple[int, ...], ...]  # for each piece of evidence, the rows of the chunks that hold it
    filer: int
    split: str
    kind: str
    stratum: Stratum
    answerable: bool
    canaries: Mapping[str, str]  # texts planted in some chunks, by canary id
    documents: tuple[str, ...] = ()  # ids of documents that are gold as a whole, instead of chunks

    @property
    def gold_rows(self) -> tuple[int, ...]:
        """All chunks that hold evidence, each once."""
        return tuple(dict.fromkeys(row for piece in self.gold for row in piece))


def pair_of(
    truth: GroundTruth,
    question: Question,
    session: Session,
    gold: tuple[tuple[int, ...], ...],
    vector: NDArray[np.float32],
    *,
    filer: int | None = None,
    canaries: Mapping[str, str] | None = None,
) -> Pair:
    """Make a pair, with its strata and split."""
    mask = truth.admissible(session, question.text)
    rows = tuple(dict.fromkeys(row for piece in gold for row in piece))
    first = truth.filers[rows[0]] if rows else 0
    answerable = (
        mask is not None and bool(gold) and all(any(bool(mask[row]) for row in piece) for piece in gold)
    )
    return Pair(
        question,
        session,
        gold,
        first if filer is None else filer,
        split_of(question.id),
        question.kind,
        Stratum(share_of(rows, mask), _band(mask), _correlation(truth, mask, vector)),
        answerable,
        canaries or {},
    )


def cross(
    truth: GroundTruth,
    questions: Sequence[Question],
    places: Mapping[str, tuple[tuple[ChunkLocation, ...], ...]],
    vectors: Mapping[str, NDArray[np.float32]],
    *,
    count: int,
    seed: int,
) -> list[Pair]:
    """Cross questions with roles, purposes and days, and choose pairs, if possible a quarter of each share."""
    rng = random.Random(seed)  # noqa: S311 - sampling, no secret
    by_share: dict[str, list[_Option]] = defaultdict(list)
    for question in questions:
        pieces = (truth.rows_at(piece) for piece in places.get(question.id, ()))
        gold = tuple(piece for piece in pieces if piece)
        if question.evidence and not gold:
            continue
        rows = tuple(dict.fromkeys(row for piece in gold for row in piece))
        for session in _sessions(truth, rows):
            share = share_of(rows, truth.admissible(session, question.text))
            by_share[share].append((question, session, gold))
    chosen = []
    room = count
    # Scarce strata first, so that what they leave goes to the others.
    for left, share in zip(
        range(len(by_share), 0, -1), sorted(by_share, key=lambda one: len(by_share[one])), strict=True
    ):
        taken = _spread(by_share[share], room // left, rng, lambda option: option[0])
        room -= len(taken)
        chosen += taken
    return [
        pair_of(truth, question, session, gold, vectors[question.text]) for question, session, gold in chosen
    ]


def pairs_for_model(pairs: Sequence[Pair], *, count: int, seed: int) -> list[Pair]:
    """Choose pairs for a generator that is too slow to be asked all of them.

    All are real questions in the reported split. Two thirds (or as many as exist) can be answered and have a gold
    answer to compare with; the others measure refusal alone. Every question is chosen about equally often.
    """
    rng = random.Random(seed)  # noqa: S311 - sampling, no secret
    ways: tuple[list[Pair], list[Pair]] = [], []
    for pair in pairs:
        if pair.split == "reported" and pair.kind == "real":
            ways[pair.answerable and pair.question.answer is not None].append(pair)
    others, comparable = (_spread(way, len(way), rng, lambda pair: pair.question) for way in ways)
    chosen = comparable[: max(-(-2 * count // 3), count - len(others))]
    return chosen + others[: count - len(chosen)]


def share_of(rows: Sequence[int], mask: NDArray[np.bool_] | None) -> str:
    """Name the admissible share of the gold."""
    share = float(np.mean(mask[list(rows)])) if rows and mask is not None else 0.0
    if not share:
        return "void"
    return "loose" if share >= 0.8 else "tight" if share < 0.3 else "medium"


def split_of(question_id: str) -> str:
    """Return the split of a question, which depends on its id alone."""
    return "reported" if hashlib.sha256(question_id.encode()).digest()[0] % _DEV_ONE_IN else "dev"


def _sessions(truth: GroundTruth, rows: Sequence[int]) -> list[Session]:
    days: list[date | None] = [None]
    filed = sorted({day for row in rows if (day := truth.public_day(row)) is not None})
    if filed:
        days += [day + timedelta(days=1) for day in filed]
        days.append(filed[0] - timedelta(days=1))
    about = frozenset(truth.filers[row] for row in rows) - {0}
    return [
        Session(role=role, purpose=purpose, as_of=day, allow_entities=about if purpose == "dsar" else None)
        for role, purpose in CELLS
        if purpose != "dsar" or about
        for day in days
    ]


def _spread(
    options: Sequence[_T], count: int, rng: random.Random, question_of: Callable[[_T], Question]
) -> list[_T]:
    """Choose at random, about equally often for every question."""
    mixed = list(options)
    rng.shuffle(mixed)
    turn: Counter[str] = Counter()
    ranked = []
    for option in mixed:
        name = question_of(option).id
        turn[name] += 1
        ranked.append((turn[name], option))
    return [option for _, option in sorted(ranked, key=lambda one: one[0])[:count]]


def _band(mask: NDArray[np.bool_] | None) -> str:
    share = 0.0 if mask is None or not mask.size else float(mask.mean())
    return next(name for most, name in _BANDS if share <= most)


def _correlation(truth: GroundTruth, mask: NDArray[np.bool_] | None, vector: NDArray[np.float32]) -> str:
    if mask is None or not mask.any():
        return "none"
    near = _nearest(truth, vector)
    lift = float(mask[near].mean()) / float(mask.mean())
    return "near" if lift > _NEAR else "far" if lift < 1 / _NEAR else "independent"


def _nearest(truth: GroundTruth, vector: NDArray[np.float32]) -> NDArray[np.int64]:
    count = min(_NEIGHBOURS, len(truth))
    return np.argpartition(-(truth.vectors @ vector), count - 1)[:count]
