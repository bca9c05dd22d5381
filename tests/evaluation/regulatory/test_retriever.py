"""Passages of a turn: one lookup for the query and one for the response, each passage once, the nearest first."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.evaluation.regulatory import DocumentRetriever, Embedder, Settings
from tests.evaluation.regulatory.fakes import Held, Toward

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from carag.evaluation.regulatory import RegulatoryDocument

EAST, NORTH = (1.0, 0.0), (0.0, 1.0)


def loaded(
    cosines: Mapping[str, float],
    *documents: str | RegulatoryDocument,
    queries: Mapping[str, Sequence[float]] | None = None,
    **changed: Any,
) -> DocumentRetriever:
    """A retriever over documents at stated cosines from the direction east."""
    held = Held(*(documents or cosines))
    found = DocumentRetriever(Toward(cosines, queries), Settings(**changed))
    found.load_corpus(held.load_documents(), held.decision)
    return found


def shown(found: Sequence[Any]) -> list[tuple[str, float]]:
    return [(one.chunk.text, round(one.similarity, 6)) for one in found]


@pytest.mark.parametrize("variant", ["paper", "reference"])
def test_a_similarity_at_the_threshold_is_similar_enough(variant: str) -> None:
    cosines = {"above": 0.75, "at": 0.5, "below": 0.499, "opposite": -1.0}
    held = loaded(cosines, similarity_threshold=0.5, variant=variant)
    assert shown(held.retrieve("any")) == [("above", 0.75), ("at", 0.5)]


def test_the_threshold_is_0_3_unless_another_is_set() -> None:
    assert shown(loaded({"near": 0.31, "far": 0.29}).retrieve("any")) == [("near", 0.31)]


def test_a_passage_found_twice_stands_once_with_its_greater_similarity() -> None:
    """``one`` lies east, ``both`` between, ``two`` north; the query looks east and the response north."""
    cosines = {"one": 1.0, "both": 0.8, "two": 0.0}
    held = loaded(cosines, queries={"Q": EAST, "A": NORTH})
    assert shown(held.retrieve("Q")) == [("one", 1.0), ("both", 0.8)]
    assert shown(held.retrieve("A")) == [("two", 1.0), ("both", 0.6)]
    assert shown(held.retrieve_merged("Q", "A")) == [("one", 1.0), ("two", 1.0), ("both", 0.8)]
    assert shown(held.retrieve_merged("A", "Q")) == [("two", 1.0), ("one", 1.0), ("both", 0.8)]


def test_windows_of_equal_text_in_two_documents_are_two_passages() -> None:
    held = loaded({"same": 1.0}, "same", "same")
    assert [(one.name, one.similarity) for one in held.retrieve_merged("Q", "A")] == [
        (("d0", 0), 1.0),
        (("d1", 0), 1.0),
    ]


@pytest.mark.parametrize(("variant", "wanted"), [("paper", 10), ("stance", 10), ("reference", 20)])
def test_the_paper_judges_ten_passages_and_the_package_ten_a_lookup(variant: str, wanted: int) -> None:
    east = {f"e{n}": 1 - n / 100 for n in range(15)}
    north = {f"n{n}": sqrt(1 - (1 - n / 100) ** 2) for n in range(15)}  # 1 - n / 100 from north
    held = loaded({**east, **north}, queries={"Q": EAST, "A": NORTH}, variant=variant)
    merged = held.retrieve_merged("Q", "A")
    assert len(merged) == wanted
    assert len(held.retrieve("Q")) == len(held.retrieve("A")) == 10
    assert [one.similarity for one in merged] == sorted((one.similarity for one in merged), reverse=True)
    if variant != "reference":  # the five best of each: no passage left out is nearer than one that stays
        assert {one.chunk.text for one in merged} == {f"{side}{n}" for side in "en" for n in range(5)}


@given(
    st.lists(st.integers(-100, 100).map(lambda n: n / 100), min_size=1, max_size=12),
    st.integers(1, 6),
    st.sampled_from([0.0, 0.3, 0.5]),
    st.sampled_from(["paper", "reference"]),
)
def test_what_is_found_is_the_best_of_all_by_arithmetic(
    cosines: list[float], top_k: int, threshold: float, variant: str
) -> None:
    by_text = {f"t{n}": one for n, one in enumerate(cosines)}
    held = loaded(
        by_text,
        queries={"Q": EAST, "A": NORTH},
        top_k=top_k,
        similarity_threshold=threshold,
        variant=variant,
    )
    tolerance = 1e-4 if variant == "reference" else 1e-6
    best: dict[str, float] = {}
    for of in (lambda cosine: cosine, lambda cosine: sqrt(1 - cosine**2)):
        values = sorted((of(one) for one in cosines), reverse=True)[:top_k]
        for text, cosine in by_text.items():
            if of(cosine) >= threshold and of(cosine) >= values[-1]:
                best[text] = max(best.get(text, 0), of(cosine))
    merged = held.retrieve_merged("Q", "A")
    assert len({one.name for one in merged}) == len(merged) <= (top_k if variant == "paper" else 2 * top_k)
    for one in merged:
        assert one.chunk.text in best
        assert one.similarity <= best[one.chunk.text] + tolerance
    wanted = sorted(best.values(), reverse=True)[: min(len(best), top_k)]
    assert [one.similarity for one in merged][: len(wanted)] == pytest.approx(wanted, abs=tolerance)


@pytest.mark.parametrize("variant", ["paper", "reference"])
def test_of_passages_that_are_equally_near_the_first_of_the_corpus_are_judged(variant: str) -> None:
    held = loaded({f"t{n}": 0.75 for n in range(9)}, top_k=3, variant=variant)
    assert [one.chunk.text for one in held.retrieve_merged("Q", "A")] == ["t0", "t1", "t2"]


def test_queries_are_embedded_as_queries_and_documents_as_documents() -> None:
    embedder = Toward({"x": 1.0})
    held = Held("x")
    retriever = DocumentRetriever(embedder, Settings())
    retriever.load_corpus(held.load_documents(), held.decision)
    retriever.retrieve("Q")
    assert embedder.seen == ["x"]


def test_a_query_without_direction_finds_nothing() -> None:
    for nothing in ((0.0, 0.0), (1e-300, 0.0)):
        for variant in ("paper", "reference"):
            assert loaded({"x": 1.0}, queries={"": nothing}, variant=variant).retrieve("") == []


# --- embedders that return invalid vectors ---


class Gives(Embedder):
    """Gives the arrays it is made with."""

    def __init__(self, documents: Any, query: Any = ((1.0, 0.0),)) -> None:
        self._documents, self._query = documents, query

    def encode(self, sentences: list[str]) -> Any:
        return self._documents

    def encode_query(self, sentences: list[str]) -> Any:
        return self._query


NO_VECTORS = {
    "NaN": [[float("nan"), 1.0]],
    "infinity": [[float("inf"), 1.0]],
    "too great for 32 bits": [[1e300, 1.0]],
    "two rows for one text": [[1.0, 0.0], [0.0, 1.0]],
    "a flat row": [1.0, 0.0],
    "no columns": [[]],
    "rows of two lengths": [[1.0], [1.0, 2.0]],
    "texts": [["1", "0"]],
    "nothing": None,
    "complex numbers": [[1j, 0]],
}


@pytest.mark.parametrize("variant", ["paper", "reference"])
@pytest.mark.parametrize("came", NO_VECTORS.values(), ids=NO_VECTORS)
def test_an_invalid_vector_is_refused_by_the_name_of_its_embedder(came: Any, variant: str) -> None:
    held = Held("x")
    retriever = DocumentRetriever(Gives(came), Settings(variant=variant))  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"the embedder 'Gives' returned"):
        retriever.load_corpus(held.load_documents(), held.decision)
    assert len(retriever) == 0
    retriever = DocumentRetriever(Gives([[1.0, 0.0]], came), Settings(variant=variant))  # type: ignore[arg-type]
    retriever.load_corpus(held.load_documents(), held.decision)
    with pytest.raises(InvalidArgument, match=r"the embedder 'Gives' returned"):
        retriever.retrieve("Q")


@pytest.mark.parametrize("variant", ["paper", "reference"])
def test_a_query_of_other_dimensions_is_refused(variant: str) -> None:
    held = Held("x")
    retriever = DocumentRetriever(Gives([[1.0, 0.0]], [[1.0, 0.0, 0.0]]), Settings(variant=variant))  # type: ignore[arg-type]
    retriever.load_corpus(held.load_documents(), held.decision)
    with pytest.raises(InvalidArgument, match="returned 3 dimensions for a query and 2 for passages"):
        retriever.retrieve("Q")


def test_the_reference_takes_products_for_cosines_and_refuses_long_vectors() -> None:
    held = Held("x")
    retriever = DocumentRetriever(Gives([[2.0, 0.0]]), Settings(variant="reference"))  # type: ignore[arg-type]
    retriever.load_corpus(held.load_documents(), held.decision)
    with pytest.raises(InvalidArgument, match=r"product is 2, .*; want vectors of length 1"):
        retriever.retrieve("Q")
    retriever = DocumentRetriever(Gives([[2.0, 0.0]]), Settings())  # our own index makes them unit vectors
    retriever.load_corpus(held.load_documents(), held.decision)
    assert [one.similarity for one in retriever.retrieve("Q")] == [1.0]


def test_a_search_is_refused_before_a_corpus_is_loaded() -> None:
    with pytest.raises(InvalidArgument, match="no corpus is loaded"):
        DocumentRetriever(Toward({}), Settings()).retrieve("Q")


@pytest.mark.parametrize("documents", [(), ("",), (" \n", "\t")])
def test_a_corpus_without_text_is_refused(documents: tuple[str, ...]) -> None:
    held = Held(*documents)
    with pytest.raises(InvalidArgument, match="contains no text that public/read may read"):
        DocumentRetriever(Toward({}), Settings()).load_corpus(held.load_documents(), held.decision)
