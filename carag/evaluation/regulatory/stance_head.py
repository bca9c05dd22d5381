"""Judge by words alone whether passages support or contradict a claim: fast, the same everywhere, but limited in reach.

*Learnt requirements.* For each claim that it was trained with, the head keeps two weights per term (a word, or two
adjacent words): does a sentence bear on the claim, and does it speak against it? That is how a fixed list of
requirements is checked: the claims are known, the documents are new. What ships was learnt from the 17 requirements of
ContractNLI.

*Any other claim.* A sentence bears on it by the share of the claim's words that it contains, with rare words counting
more; :mod:`~carag.evaluation.regulatory.norms` decides whether the claim meets what the sentence demands. Often the
words do not settle that: then support and contradiction get equal shares, and there is no verdict.
``bench/metric/RESULTS.md`` measures both.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import zlib
from collections import Counter
from functools import lru_cache
from importlib.resources import files
from io import BytesIO
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from carag.evaluation.regulatory.norms import Said, read
from carag.labelling.numerals import NUMBER_WORDS
from carag.labelling.sentences import sentences
from carag.retrieval.embedder import check_texts
from carag.retrieval.model_files import fingerprint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


_RULE: Final = 3
"""Version of how unknown claims are judged; raise it on a change, because records name a judge by its hash."""
_AS_MUCH: Final = 0.8
"""Share of the supporting rule's overlap with a claim that a contradicting rule must have in order to count."""
BITS: Final = 14
"""Terms are told apart by this many bits of their CRC-32, so that the weights contain no text."""
POOLED: Final = 10
"""Numbers that the scores of a claim's sentences are reduced to."""
_CACHED: Final = 1 << 15
"""Sentences whose terms are cached; at about 40 terms each, some 30 MB."""
_WORD: Final = re.compile(r"[^\W_]+(?:[.,]\d+)*")
_NUMBERS: Final = {word: str(number) for word, number in NUMBER_WORDS.items() if number <= 12}
"""This must stay as it was when the weights were learnt."""


class Conclusion(NamedTuple):
    """What all passages together say about a claim."""

    probabilities: tuple[float, float, float]
    """The probabilities of SUPPORTS, CONTRADICTS and NEUTRAL."""
    passage: int
    """The passage that decides."""
    start: int
    """The position of the deciding sentence in that passage, in characters: from ``start`` up to ``end``."""
    end: int
    rows: NDArray[np.float64]
    """What each passage says by itself, as :meth:`StanceHead.judge` returns it."""


class _Read(NamedTuple):
    """What a passage's most relevant sentence says about a claim, and where it is."""

    row: NDArray[np.float64]
    start: int
    end: int
    rank: tuple[bool, float, int] = (False, 0.0, 0)
    """The rank, for unknown claims: the greatest decides."""


class StanceHead:
    """A :class:`~carag.evaluation.regulatory.ports.StanceJudge` that uses words alone, without a model.

    Parameters
    ----------
    weights : bytes, optional
        As ``bench/metric/train_stance.py`` (tag ``evidence-0.3``) writes them; by default the weights that
        ship with the package.
    knows_requirements : bool
        Whether to use what was learnt about single requirements.

    Examples
    --------
    >>> head, claim = StanceHead(), "Providers keep the logs for six months."
    >>> passages = ["Providers shall keep logs for 6 months.", "Providers shall keep logs for two months.", "Rome."]
    >>> head.judge(claim, passages).argmax(axis=1).tolist()
    [0, 1, 2]
    """

    name: Final = "stance-head"
    remote: Final = False

    def __init__(self, weights: bytes | None = None, *, knows_requirements: bool = True) -> None:
        data = files(__package__).joinpath("stance_head.npz").read_bytes() if weights is None else weights
        with np.load(BytesIO(data), allow_pickle=False) as kept:
            self._idf = kept["idf"].astype(np.float64)
            self._slope, self._level = kept["coverage"].tolist()
            self._terms = kept["terms"]  # (claims, 2, terms) int8
            self._scale = kept["scale"].astype(np.float64)
            self._prior = kept["prior"].astype(np.float64)
            self._pooled = kept["pooled"].astype(np.float64)  # (3, 1 + POOLED + 3)
            claims = kept["claims"] if knows_requirements else ()
            self._known = {bytes(one).hex(): at for at, one in enumerate(claims)}
            self.provenance: dict[str, Any] = json.loads(bytes(kept["provenance"]))
        self.fingerprint = fingerprint(self.name, _RULE, hashlib.sha256(data).hexdigest(), len(self._known))

    def knows(self, claim: str) -> bool:
        """Tell whether a claim is one of the learnt requirements."""
        return claim_hash(claim) in self._known

    def judge(self, claim: str, passages: Sequence[str]) -> NDArray[np.float64]:
        """Return ``(n, 3)`` rows with the sum 1: how far each passage's most relevant sentence supports or contradicts.

        Raises
        ------
        InvalidArgument
            If a text is not a string, or is empty or white space.
        """
        check_texts([claim])
        check_texts(passages)
        return np.array([one.row for one in self._read(claim, passages)[0]]).reshape(-1, 3)

    def conclude(self, claim: str, passages: Sequence[str]) -> Conclusion:
        """Say what all passages together amount to, independently of their order and overlaps.

        Raises
        ------
        InvalidArgument
            As for :meth:`judge`, and if there is no passage.
        """
        check_texts([claim])
        check_texts(passages or [""])
        found, scores = self._read(claim, passages)
        rows = np.array([one.row for one in found])
        if (at := self._known.get(claim_hash(claim))) is None:
            best = max(range(len(found)), key=lambda at: found[at].rank)
            row, (compares, held, _) = rows[best], found[best].rank
            against = (one.rank for one in found if one.row.argmax() == 1)
            # If another rule that shares as much of the claim contradicts it, the claim stays open.
            if row[0] > row[1] and any(one[0] == compares and one[1] >= _AS_MUCH * held for one in against):
                row = np.array([(1 - row[2]) / 2, (1 - row[2]) / 2, row[2]])
            return Conclusion(_three(row), best, found[best].start, found[best].end, rows)
        powers = self._pooled @ np.concatenate([[1.0], pooled(np.array([*scores.values()])), self._prior[at]])
        shares = np.exp(powers - powers.max())
        shares /= shares.sum()
        column = int(shares.argmax())
        best = int(rows[:, column].argmax()) if column < 2 else int(rows[:, 2].argmin())
        return Conclusion(_three(shares), best, found[best].start, found[best].end, rows)

    def _read(
        self, claim: str, passages: Sequence[str]
    ) -> tuple[list[_Read], dict[str, NDArray[np.float64]]]:
        """Read every passage; for a learnt claim, also score each distinct sentence once."""
        if (at := self._known.get(claim_hash(claim))) is None:
            return [self._by_norms(claim, passage) for passage in passages], {}
        cuts = [sentences(passage) or [(0, len(passage))] for passage in passages]
        texts = (passage[slice(*span)] for passage, cut in zip(passages, cuts, strict=True) for span in cut)
        scores = {text: self._scores(at, text) for text in dict.fromkeys(texts)}
        found = []
        for passage, cut in zip(passages, cuts, strict=True):
            of = np.array([scores[passage[start:end]] for start, end in cut]).clip(0, 1)
            most = int(of[:, 0].argmax())
            bears, against = of[most, 0], min(of[most])
            found.append(_Read(np.array([bears - against, against, 1 - bears]), *cut[most]))
        return found, scores

    def _by_norms(self, claim: str, passage: str) -> _Read:
        found = read(claim, passage, lambda word: float(self._idf[_place(word)]))
        bears = 1 / (1 + math.exp(-(self._slope * found.held + self._level)))
        supports = {Said.MEETS: bears, Said.BREAKS: 0.0, Said.UNSETTLED: bears / 2}[found.said]
        return _Read(np.array([supports, bears - supports, 1 - bears]), found.start, found.end, found.rank)

    def _scores(self, at: int, sentence: str) -> NDArray[np.float64]:
        """Return how far a sentence bears on a learnt requirement and speaks against it: from 0 to 1."""
        places, values = _vector(sentence)
        if not len(places):
            return np.zeros(2)
        weighted = values * self._idf[places]
        found = self._terms[at][:, places] @ weighted
        return np.asarray(found * self._scale[at] / np.linalg.norm(weighted))

    def covered(self, claim: str, sentence: str) -> float:
        """Return the share of a claim's words that a sentence contains, weighted by rarity; bearing was learnt from it.

        A claim is judged by the share of stems that :func:`~carag.evaluation.regulatory.norms.read` finds.
        """
        rarity = {word: float(self._idf[_place(word)]) for word in _words(claim)}
        held = {*_words(sentence)}
        # Summed exactly, because the order of a set differs between processes.
        whole = math.fsum(rarity.values())
        return math.fsum(weight for word, weight in rarity.items() if word in held) / max(whole, 1e-9)


def claim_hash(claim: str) -> str:
    """Hash a claim so that case and white space do not matter."""
    return hashlib.sha256(" ".join(claim.lower().split()).encode()).hexdigest()


def pooled(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Reduce the scores of a claim's sentences, ``(n, 2)``, to the best ones and the sums of the best of each kind."""
    padded = np.vstack([scores, np.zeros((5, 2))])
    bears, against = padded.T
    order = np.argsort(-bears, kind="stable")
    best, worst, good = (np.sort(one)[::-1] for one in (bears, against, bears - against))
    return np.array(
        [
            *(best[0], best[1], best[:5].sum()),
            *(worst[0], worst[1], worst[:4].sum()),
            *(good[0], good[1], good[:4].sum()),
            (2 * against - bears)[order[:3]].sum(),
        ]
    )


def term_counts(text: str) -> Counter[int]:
    """Count the terms of a text by number: its words, and each pair of adjacent words."""
    words = _words(text)
    pairs = [f"{one} {other}" for one, other in pairwise(words)]
    return Counter(_place(term) for term in (*words, *pairs))


@lru_cache(maxsize=_CACHED)
def _vector(text: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    counts = sorted(term_counts(text).items())
    places = np.array([place for place, _ in counts], np.int64)
    return places, np.array([1 + math.log(count) for _, count in counts])


@lru_cache(maxsize=_CACHED)
def _words(text: str) -> tuple[str, ...]:
    """Return the words of a text in lower case, small numbers as digits, and ``n't`` as a separate word."""
    plain = re.sub(r"(?<=n)['\u2019]t\b", " not", text.lower())
    return tuple(_NUMBERS.get(word, word.replace(",", "")) for word in _WORD.findall(plain))


def _place(term: str) -> int:
    return zlib.crc32(term.encode()) & ((1 << BITS) - 1)


def _three(row: NDArray[np.float64]) -> tuple[float, float, float]:
    one, two, three = row.tolist()
    return one, two, three
