"""Take pairs of ContractNLI as items to classify: a statement, and the spans of a contract that were marked for it."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from bench.metric.classification import Judged
from bench.metric.contracts import CHOICES, read_contracts
from bench.metric.corpora import SEED

if TYPE_CHECKING:
    from pathlib import Path


DRAWN: Final = {"dev": 200, "test": 400}
"""Pairs of each part, drawn of those with evidence: what all models of the benchmark can read in its time."""
_CONTRADICTION: Final = CHOICES.index("Contradiction")
_NOT_MENTIONED: Final = CHOICES.index("NotMentioned")


def contract_pairs(data: Path) -> list[Judged]:
    """Return the drawn pairs: entailment supports, contradiction contradicts; what is not mentioned is left out."""
    found, before = [], 0
    for part, count in DRAWN.items():
        contracts = read_contracts(data / "legal", part)
        pairs = [
            Judged(
                id=f"{contract.name}/{at}",
                cluster=before + place,
                claims=(pair.hypothesis,),
                passages=(" ".join(contract.spans[span] for span in sorted(pair.evidence)),),
                contradicts=pair.label == _CONTRADICTION,
                is_dev=part == "dev",
            )
            for place, contract in enumerate(contracts)
            for at, pair in enumerate(contract.pairs)
            if pair.label != _NOT_MENTIONED and pair.evidence
        ]
        draw = random.Random(SEED)  # noqa: S311 - sampling, not secrets
        found += draw.sample(pairs, min(count, len(pairs)))
        before += len(contracts)
    return found
