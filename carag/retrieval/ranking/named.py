"""Make rankers by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument
from carag.limits import quoted
from carag.retrieval.ranking.diversity import Diverse, diversity_of
from carag.retrieval.ranking.ranker import DENSE, FUSED, Dense, Fused

if TYPE_CHECKING:
    from carag.retrieval.catalogue import Catalogue
    from carag.retrieval.ranking.ranker import Ranker


RANKERS: Final = (FUSED, DENSE)
"""Names of the rankers, the default first. A ranker with another order gets another name, and the old one stays.

A suffix of :mod:`carag.retrieval.ranking.diversity` may follow, as in ``fused-1+mmr-0.7-20``."""


def ranker_by_name(name: str | None, catalogue: Catalogue) -> Ranker:
    """Return a ranker by its name in records, or the default of the catalogue's profile."""
    if name is None:
        declared = catalogue.declared
        fused = Fused(catalogue)
        return fused if declared.relevance == 1 else Diverse(fused, declared.relevance, declared.fetch)
    if (diversity := diversity_of(name)) is not None:
        chosen_from, relevance, fetch = diversity
        return Diverse(ranker_by_name(chosen_from, catalogue), relevance, fetch)
    if name == DENSE:
        return Dense()
    if name == FUSED:
        return Fused(catalogue)
    raise InvalidArgument(f"there is no ranker {quoted(name)}; want one of {', '.join(RANKERS)}")
