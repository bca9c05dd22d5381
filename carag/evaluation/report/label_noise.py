"""Count violations by the true labels while a filter is given labels with flipped bits.

A system measured with the bits it filters by shows 0 violations whatever the bits say. Here each of a chunk's 27 bits
is flipped with a given probability, once for all questions; the nearest chunks of the whole corpus (those that
``vanilla`` retrieved) are filtered by the false word; and what passes is judged by the admissibility in the rows.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument
from carag.evaluation.statistics.bootstrap import SEED
from carag.evaluation.statistics.estimate import SCALE, NotMeasured, Question, Sums, ValueRange, estimates
from carag.policy.word import POLICY_BITS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from carag.evaluation.row import Row
    from carag.evaluation.statistics.estimate import Estimate
    from carag.policy import Policy


RATES: Final = (0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
"""Probabilities with which a bit is flipped."""


@dataclass(frozen=True, slots=True)
class NoisePoint:
    """The figures at one rate of flipped bits."""

    rate: float
    wrong: int  # chunks whose word is false, of `chunks`
    chunks: int
    cvr_query: Estimate | NotMeasured  # share of rows to which the filter passed an inadmissible chunk
    cvr_chunk: Estimate | NotMeasured  # share of inadmissible chunks among those passed
    hidden: Estimate | NotMeasured  # share of admissible chunks that the filter held back
    skipped: int  # chunks of rows left out because their word was not in force for the session


def false_words(words: Mapping[str, int], rate: float, *, seed: int = SEED) -> dict[str, int]:
    """Flip each policy bit of each word with probability `rate`; the control bits stay."""
    if not 0 <= rate <= 1:
        raise InvalidArgument(f"rate is {rate!r}; want 0 <= rate <= 1")
    draw = random.Random(seed).random  # noqa: S311 - a simulation; the stream is the same for every Python
    bits = [1 << bit for bit in range(POLICY_BITS.bit_length())]
    # All rates use the same draws, so what is wrong at a low rate is wrong at every higher one.
    return {chunk: words[chunk] ^ sum(bit for bit in bits if draw() < rate) for chunk in sorted(words)}


def noise_sweep(
    rows: Iterable[Row],
    words: Mapping[str, int],
    policy_of: Callable[[Row], Policy],
    *,
    rates: Iterable[float] = RATES,
) -> list[NoisePoint]:
    """Count true violations at each rate, in the rows of ``vanilla``; InvalidArgument if a chunk has no word.

    A chunk that is inadmissible because of a time or a company stays inadmissible. A chunk that is inadmissible by its
    word is assumed to be admissible in other respects, so the counts are upper bounds.
    """
    read = sorted((row for row in rows if row.system == "vanilla"), key=lambda row: row.pair)
    used = {chunk for row in read for chunk in row.retrieved}
    if missing := sorted(used - set(words)):
        raise InvalidArgument(
            f"{len(missing)} chunks have no word, such as {missing[0]}; give the words of the same corpus"
        )
    true = {chunk: words[chunk] for chunk in used}
    return [_point(read, true, false_words(true, rate), policy_of, rate) for rate in rates]


def _point(
    rows: list[Row],
    true: Mapping[str, int],
    false: Mapping[str, int],
    policy_of: Callable[[Row], Policy],
    rate: float,
) -> NoisePoint:
    columns: dict[str, dict[Question, Sums]] = {
        name: defaultdict(Sums) for name in ("cvr_query", "cvr_chunk", "hidden")
    }
    skipped = 0
    for row in rows:
        policy = policy_of(row)
        passed: list[int] = []
        held: list[int] = []
        for chunk, admissible in zip(row.retrieved, row.retrieved_admissible, strict=True):
            by_word = policy.admits(true[chunk])
            if admissible and not by_word:
                skipped += 1
                continue
            open_ = policy.admits(false[chunk]) and (admissible or not by_word)
            if open_:
                passed.append(0 if admissible else SCALE)
            if admissible:
                held.append(0 if open_ else SCALE)
        question = (row.filer, row.question_id)
        columns["cvr_query"][question] += Sums.of(SCALE if any(passed) else 0)
        columns["cvr_chunk"][question] += Sums.of(*passed)
        columns["hidden"][question] += Sums.of(*held)
    made = estimates(columns, value_range=ValueRange.SHARE)
    return NoisePoint(
        rate=rate,
        wrong=sum(true[chunk] != false[chunk] for chunk in true),
        chunks=len(true),
        cvr_query=made["cvr_query"],
        cvr_chunk=made["cvr_chunk"],
        hidden=made["hidden"],
        skipped=skipped,
    )
