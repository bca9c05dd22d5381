"""Claims about passages that repeat each other less."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import carag.profiles
from carag.errors import InvalidArgument
from carag.index import Index, TextIndex
from carag.policy import NEVER, Mask, Policy, PolicyBit, Profile, Search, policy_word
from carag.retrieval import Catalogue, ranker_by_name
from carag.retrieval.ranking import DENSE, FUSED, Dense, Diverse, Question, Ranked, Wider, diversity_of
from carag.store.store import CorpusStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

OPEN = [Search(Policy(Mask()), NEVER - 1)]


class Told:
    """A ranker that finds what it is given."""

    name, fingerprint = "told", None

    def __init__(
        self, keys: Sequence[int], scores: Sequence[float], about: frozenset[int] | None = None
    ) -> None:
        self._keys, self._scores, self._about = list(keys), list(scores), about
        self.wanted: list[int] = []

    def rank(
        self,
        index: Index,
        words: TextIndex,
        question: Question,
        searches: Sequence[Search],
        k: int,
        *,
        exact_limit: int | None,
        wider: Wider | None = None,
    ) -> Ranked:
        assert wider is None
        self.wanted.append(k)
        return Ranked(
            self._keys[:k], self._scores[:k], self._scores[:k], "told", len(self._keys), about=self._about
        )


def index_of(vectors: NDArray[np.float32], words: Sequence[int] | None = None) -> Index:
    index = Index(vectors.shape[1])
    index.add(vectors, words or [policy_word(0)] * len(vectors))
    return index


def ask(ranker: Diverse, index: Index, k: int) -> list[int]:
    return ranker.rank(
        index, TextIndex(), Question("?", np.zeros(index.dim, np.float32)), OPEN, k, exact_limit=None
    ).keys


def plainly(
    vectors: NDArray[np.float32],
    scores: Sequence[float],
    relevance: float,
    k: int,
    about: frozenset[int] | None,
) -> list[int]:
    """Maximal marginal relevance as its paper states it, one row after the other."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    left, chosen = list(range(len(scores))), []

    def worth(row: int) -> tuple[bool, float, int]:
        alike = max((float(unit[row] @ unit[one]) for one in chosen), default=0.0)
        merit = relevance * scores[row] - (1 - relevance) * alike
        return about is None or row in about, round(merit, 5), -row

    while left and len(chosen) < k:
        best = max(left, key=worth)
        chosen.append(best)
        left.remove(best)
    return chosen


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.3, 0.5, 0.7, 1.0]), st.booleans())
def test_it_chooses_what_the_paper_says(seed: int, relevance: float, is_about: bool) -> None:
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(1, 24))
    vectors = rng.normal(size=(rows, 8)).astype(np.float32)
    scores = sorted(rng.random(rows).tolist(), reverse=True)
    about = frozenset(np.flatnonzero(rng.random(rows) < 0.5).tolist()) if is_about else None
    k = int(rng.integers(1, 12))
    with index_of(vectors) as index:
        found = ask(Diverse(Told(range(rows), scores, about), relevance, rows), index, k)
    assert plainly(vectors, scores, relevance, k, about) == found


def test_of_two_that_say_the_same_the_second_gives_way() -> None:
    vectors = np.eye(4, dtype=np.float32)[[0, 0, 1]]
    with index_of(vectors) as index:
        told = Told([0, 1, 2], [0.9, 0.9, 0.5])
        assert [0, 2] == ask(Diverse(told, 0.7, 20), index, 2)
        assert [0, 1] == ask(Diverse(told, 1.0, 20), index, 2)
    assert [20, 20] == told.wanted


def test_what_the_question_names_comes_before_what_differs() -> None:
    """A generator reads the first passages, those about it; a passage about another must not be among them."""
    vectors = np.eye(4, dtype=np.float32)[[0, 0, 1]]
    with index_of(vectors) as index:
        told = Told([0, 1, 2], [1.9, 1.9, 0.5], frozenset({0, 1}))
        assert [0, 1, 2] == ask(Diverse(told, 0.1, 3), index, 3)


def test_more_are_asked_for_than_it_chooses_from() -> None:
    vectors = np.eye(4, dtype=np.float32)
    with index_of(vectors) as index:
        told = Told(range(4), [0.4, 0.3, 0.2, 0.1])
        assert [0, 1, 2, 3] == sorted(ask(Diverse(told, 0.7, 1), index, 4))
    assert [4] == told.wanted


def test_hidden_rows_move_nothing() -> None:
    """What is chosen from, and what it is compared with, is admissible."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(400, 16)).astype(np.float32)
    hidden = rng.random(400) < 0.5
    words = [policy_word(PolicyBit.MATERIAL if one else 0) for one in hidden]
    search = [Search(Policy(Mask(forbidden=PolicyBit.MATERIAL)), NEVER - 1)]
    question = Question("?", rng.normal(size=16).astype(np.float32))
    ranker, kept = Diverse(Dense(), 0.5, 20), np.flatnonzero(~hidden)
    with index_of(vectors, words) as both, Index(16) as alone:
        alone.add(vectors[kept], [words[at] for at in kept], keys=kept)
        found, wanted = (
            ranker.rank(one, TextIndex(), question, search, 6, exact_limit=None) for one in (both, alone)
        )
    assert found == wanted
    assert 6 == len(found.keys)


def test_its_name_says_all_and_makes_it_again(tmp_path: Path) -> None:
    with CorpusStore.open(tmp_path / "corpus.db") as store:
        catalogue = Catalogue(store, Profile.open("edgar"))
        for name in ("fused-1+mmr-0.7-20", "dense+mmr-0.25-6", "dense+mmr-1-20"):
            assert name == ranker_by_name(name, catalogue).name
        assert (
            ranker_by_name(FUSED, catalogue).fingerprint
            == ranker_by_name(f"{FUSED}+mmr-0.5-9", catalogue).fingerprint
        )
    assert (FUSED, 0.7, 20) == diversity_of(f"{FUSED}+mmr-0.7-20")
    assert diversity_of(DENSE) is None


@pytest.mark.parametrize(
    "name", ["dense+mmr", "dense+mmr-1.5-20", "dense+mmr-0.7-0", "dense+mmr-0.7", "x+mmr-0.7-2"]
)
def test_another_name_is_refused(tmp_path: Path, name: str) -> None:
    with CorpusStore.open(tmp_path / "corpus.db") as store, pytest.raises(InvalidArgument):
        ranker_by_name(name, Catalogue(store, Profile.open("edgar")))


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ("", FUSED),
        ("relevance = 0.7\n", f"{FUSED}+mmr-0.7-20"),
        ("relevance = 0.5\nfetch = 9\n", f"{FUSED}+mmr-0.5-9"),
    ],
)
def test_a_profile_asks_for_it_by_two_keys(tmp_path: Path, lines: str, wanted: str) -> None:
    """By ``relevance`` and ``fetch`` of its ``reading.toml``; without them its ranker is the fused one alone."""
    shipped = Path(carag.profiles.__file__).with_name("generic")
    for name in ("profile.toml", "roles.toml", "reading.toml"):
        text = (shipped / name).read_text("utf-8").replace('name = "generic"', 'name = "own"')
        (tmp_path / name).write_text(text + lines * (name == "reading.toml"), "utf-8")
    with CorpusStore.open(tmp_path / "corpus.db") as store:
        assert wanted == ranker_by_name(None, Catalogue(store, Profile.open(tmp_path))).name


@pytest.mark.parametrize(
    ("relevance", "fetch", "why"),
    [
        *((one, 20, "weight on relevance is") for one in (-0.1, 1.1, 0.125)),
        *((0.7, one, "rows to choose from") for one in (0, 10_000)),
    ],
)
def test_what_no_name_can_say_is_refused(relevance: float, fetch: int, why: str) -> None:
    with pytest.raises(InvalidArgument, match=why):
        Diverse(Dense(), relevance, fetch)
