"""A document that brings its vectors: checked before anything is stored, kept as they are, cut where they say."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from carag import Document, Engine, Session
from carag.errors import InvalidArgument
from carag.retrieval import AdoptedEmbedder

if TYPE_CHECKING:
    from pathlib import Path

DIM = 3
TEXTS = st.lists(st.text("ab\n é", min_size=1).filter(str.strip), min_size=1, max_size=4)


def brought(passages: list[str], vectors: Any = None, /, **changes: Any) -> Document:
    if vectors is None:
        vectors = np.ones((len(passages), DIM), np.float32)
    return Document.of_passages(passages, vectors, "angles", **{"id": "d", "bits": (), **changes})


@given(TEXTS, st.data())
def test_passages_come_back_as_they_were_given(passages: list[str], data: st.DataObject) -> None:
    """With their vectors, also through another process; a change of the caller's array changes nothing."""
    values = st.floats(0.5, 2, width=16)
    kind = data.draw(st.sampled_from([np.float16, np.float32]))
    vectors = data.draw(arrays(kind, (len(passages), DIM), elements=values))
    kept = vectors.astype(np.float32)
    made = brought(passages, vectors)
    vectors += 1
    for one in (made, pickle.loads(pickle.dumps(made))):  # noqa: S301 - our own
        assert one.passages == passages
        assert one.vectors.dtype == np.float32
        assert np.array_equal(one.vectors, kept)
        assert not one.vectors.flags.writeable


@pytest.mark.parametrize(
    ("vectors", "said"),
    [
        ([[1.0] * DIM], "are list; want an array of float32 or float16"),
        (np.ones((1, DIM)), "are float64; want an array of float32 or float16"),
        (np.ones((2, DIM), np.float32), "one row for each of 1 passages"),
        (np.ones(DIM, np.float32), "one row for each of 1 passages"),
        (np.ones((1, 0), np.float32), "one row for each of 1 passages"),
        (np.zeros((1, DIM), np.float32), "zero or not finite in rows"),
        (np.array([[1, np.nan, 1]], np.float32), "zero or not finite in rows"),
        (np.array([[1, np.inf, 1]], np.float16), "zero or not finite in rows"),
    ],
)
def test_vectors_that_cannot_be_compared_are_refused(vectors: Any, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        brought(["One."], vectors)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"embedded_by": None}, "embedded_by of document 'd'"),
        ({"vectors": None}, "given without vectors"),
        ({"cuts": [1]}, "the first of the cuts of document 'd' is not 0"),
        ({"cuts": [0, 9]}, "cuts of document 'd' hold 9"),
        ({"cuts": [0, 0]}, "passage 0 of document 'd' has no text"),
        ({"text": " "}, "passage 0 of document 'd' has no text"),
    ],
)
def test_what_belongs_to_vectors_is_refused_where_it_does_not_fit(changes: dict[str, Any], said: str) -> None:
    own = {
        "id": "d",
        "text": "One.",
        "bits": (),
        "vectors": np.ones((1, DIM), np.float32),
        "embedded_by": "angles",
    }
    with pytest.raises(InvalidArgument, match=said):
        Document(**{**own, **changes})


def test_a_store_keeps_what_is_brought_and_embeds_the_rest(tmp_path: Path) -> None:
    """Side by side in one call; the vectors of one are used for no other document with the same text."""
    told: list[str] = []

    def encode(text: str) -> list[float]:
        told.append(text)
        return [1, 0, 0]

    vectors = np.array([[0, 3, 4], [0, 1, 0]], np.float32)
    with Engine.open(
        tmp_path, profile="generic", embedder=AdoptedEmbedder("angles", DIM, encode=encode), ranker="dense"
    ) as engine:
        report = engine.add([brought(["Same.", "Other."], vectors), Document(id="e", text="Same.", bits=())])
        assert (report.added, report.chunks, report.embedded, report.reused, told) == (2, 3, 1, 0, ["Same."])
        assert engine.add([brought(["Same.", "Other."], vectors)]).unchanged == 1
        assert engine.add([brought(["Same.", "Other."], vectors + 1)]).changed == 1
        found = engine.retrieve("any", Session(role="public", purpose="read")).passages
        similar = {one.chunk_id.partition("/")[0]: one.similarity for one in found}
        wanted = [1, 1 / np.sqrt(1 + 16 + 25), 1 / np.sqrt(1 + 4 + 1)]
        assert np.allclose(sorted(similar.values()), sorted(wanted), atol=1e-6)


@pytest.mark.parametrize(
    ("embedder", "said"),
    [
        (
            AdoptedEmbedder("angles", DIM + 1),
            "have 3 components, and those of the store's embedder 'angles' have 4",
        ),
        (AdoptedEmbedder("other", DIM), "were made by 'angles', and the store's embedder is 'other'"),
    ],
)
def test_vectors_of_another_embedder_are_refused_and_nothing_is_stored(
    embedder: AdoptedEmbedder, said: str, tmp_path: Path
) -> None:
    with Engine.open(tmp_path, profile="generic", embedder=embedder) as engine:
        good = np.ones((1, embedder.dim), np.float32)
        fits = Document.of_passages(["One."], good, embedder.name, id="fits", bits=())
        with pytest.raises(InvalidArgument, match=said):
            engine.add([fits, brought(["Two."])])
        assert 0 == engine.contents.counts().filings


def test_a_stand_in_does_not_take_the_name_of_one_of_our_own_embedders() -> None:
    with pytest.raises(InvalidArgument, match="'minilm' is one of CARAG's own embedders"):
        AdoptedEmbedder("minilm", 384)
