"""Builders the generation tests share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from carag.policy import Mask, Policy, Reason, Rule, withheld_kinds
from carag.retrieval.evidence import Evidence, Hidden, Passage, Withheld

if TYPE_CHECKING:
    from collections.abc import Callable

HIDDEN_CHUNK = "0000000099-24-000099:7"


def build_passage(
    text: str = "Net sales rose.", *, similarity: float = 0.8, ordinal: int = 0, company: str = "Example Corp"
) -> Passage:
    return Passage(
        chunk_id=f"0000000001-24-000001:{ordinal}",
        text=text,
        similarity=similarity,
        word=0x0800_0001,
        accession_number="0000000001-24-000001",
        form="10-K",
        company=company,
        filed="2024-02-01",
        document="EX-13",
        start=100 * ordinal,
        end=100 * ordinal + len(text),
        source="Example Corp, 10-K, EX-13, filed 2024-02-01, 0000000001-24-000001",
    )


@pytest.fixture(scope="session")
def passages() -> Callable[..., tuple[Passage, ...]]:
    """Build passages from their texts, in order."""

    def build(*texts: str, similarity: float = 0.8) -> tuple[Passage, ...]:
        return tuple(build_passage(text, similarity=similarity, ordinal=at) for at, text in enumerate(texts))

    return build


@pytest.fixture(scope="session")
def withheld() -> Withheld:
    """What a policy hides, by kind alone."""
    return Withheld(withheld_kinds(Policy(Mask(0, 0x4000))))


@pytest.fixture(scope="session")
def withheld_with_neighbours(withheld: Withheld) -> Withheld:
    """The same, for a role that may know which neighbours exist."""
    return Withheld(withheld.kinds, (Hidden(HIDDEN_CHUNK, (Reason(Rule.QUARANTINE, (), "quarantined"),)),))


@pytest.fixture(scope="session")
def evidence(passages: Callable[..., tuple[Passage, ...]], withheld: Withheld) -> Callable[..., Evidence]:
    """Build evidence from the texts of its passages."""

    def build(*texts: str, similarity: float = 0.8) -> Evidence:
        found = passages(*texts, similarity=similarity)
        return Evidence(found, withheld, plan="exact", admissible=len(found))

    return build
