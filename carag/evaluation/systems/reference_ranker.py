"""Rank any part of the corpus by the fused score, stated plainly: every row is scored, and the scores are sorted."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from carag.evaluation.systems.postings import Postings
from carag.retrieval import Catalogue, Topic, share_of, terms_of, topic_of
from carag.retrieval.evidence import Words
from carag.retrieval.ranking import NAMED, SIMILARITY, WORDS, Bonuses, Nearest, best_of
from carag.retrieval.reading import respelt

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from carag.evaluation.cases.ground_truth import GroundTruth


class Best(NamedTuple):
    """Rows, best first."""

    rows: NDArray[np.int64]
    similarities: NDArray[np.float32]
    topic: Topic
    words: Words | None
    nearest: float | None
    """Similarity of the most similar row; None for the most similar of these rows."""
    about: int | None
    """How many of the first rows are about what the question names; None for all."""
    respelt: str = ""
    """The question that was asked in place of the given one, if misspelt words were mended."""

    def among(self, mask: NDArray[np.bool_], k: int) -> Best:
        """Return the first ``k`` of the rows that a mask admits."""
        kept = np.flatnonzero(mask[self.rows])[:k]
        about = None if self.about is None else int(np.count_nonzero(kept < self.about))
        return self._replace(
            rows=self.rows[kept], similarities=self.similarities[kept], nearest=None, about=about
        )


class Read(NamedTuple):
    """A question as it is read among some rows."""

    topic: Topic
    words: Words
    tiers: NDArray[np.float64]
    """(n,) by row; 0 for rows that are not among those rows."""
    is_about: NDArray[np.bool_]
    """(n,) whether a row's document is about what the question names."""
    shares: NDArray[np.float64]
    """(n,) BM25 scores in units of the best."""
    is_about_somebody: bool


class ReferenceRanker:
    """The fused ranker over any rows of the ground truth."""

    def __init__(self, truth: GroundTruth) -> None:
        self._truth = truth
        self.catalogue = Catalogue(truth.store, truth.profile)

    @cached_property
    def _postings(self) -> Postings:
        return Postings(self._truth.terms)

    def best(
        self,
        question: str,
        query: NDArray[np.float32],
        mask: NDArray[np.bool_],
        k: int,
        *,
        nearest: tuple[NDArray[np.int64], NDArray[np.float32]] | None = None,
    ) -> Best:
        """Return the ``k`` best of the rows that a mask admits; ties go to the smaller row."""
        similarities, read = self._truth.vectors @ query, self.read(question, mask)
        bonus = WORDS * read.shares + (read.tiers + NAMED * read.is_about)
        if nearest is None:
            scores = SIMILARITY * similarities.astype(np.float64) + bonus
            among = np.flatnonzero(mask)
            rows = among[np.lexsort((among, -scores[among]))[:k]]
        else:
            some = np.flatnonzero(bonus > 0)
            rows, _, _ = best_of(
                Nearest(*nearest), Bonuses(some, bonus[some]), k, similarities.__getitem__, whole=False
            )
        about = int(np.count_nonzero(read.is_about[rows])) if read.is_about_somebody else None
        greatest = float(similarities[mask].max()) if nearest is None and mask.any() else None
        return Best(rows, similarities[rows], read.topic, read.words, greatest, about)

    def read(self, question: str, mask: NDArray[np.bool_]) -> Read:
        """Read a question among the rows that a mask admits: what it names, and what each row gets for it."""
        truth = self._truth
        documents = np.unique(truth.documents[mask])
        understood = self.catalogue.read(question, documents)
        at = np.searchsorted(documents, truth.documents[mask])
        tiers, is_about = np.zeros(len(truth)), np.zeros(len(truth), np.bool_)
        tiers[mask], is_about[mask] = understood.tiers[at], understood.is_about[at]
        terms = terms_of(question, understood.terms)
        scores = self._postings.scores(terms, mask)
        greatest = scores.max(initial=0.0)
        return Read(
            topic_of(understood, lambda terms: self._postings.count(terms, mask).frequencies),
            Words(share_of(greatest, self._postings.count(terms, mask)), self.catalogue.declared.least_words),
            tiers,
            is_about,
            scores / (greatest or 1.0),
            understood.reading.is_about_somebody,
        )

    def respelt(self, question: str, mask: NDArray[np.bool_]) -> str:
        """Return the question with its misspelt words mended, by the rows that a mask admits; empty without any."""
        found = respelt(question, lambda terms: self._postings.count(terms, mask).frequencies)
        return found.text if found else ""
