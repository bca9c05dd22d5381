"""Adapt the project's embedders and rerankers to the paper's interfaces, and check what your own return.

The paper's interfaces are :class:`Embedder` (``encode``, ``encode_query``) and :class:`Reranker` (``score``). Any
embedder or reranker that the rest of the package takes works here too, through :func:`as_embedder` and
:func:`as_reranker`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import numpy as np

from carag.errors import InvalidArgument
from carag.limits import quoted
from carag.retrieval import own_embedder, own_reranker
from carag.retrieval.model_files import fingerprint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from carag.retrieval import Embedder as HouseEmbedder
    from carag.retrieval import Reranker as HouseReranker


_GREATEST: Final = np.finfo(np.float32).max
"""Greatest entry of a vector, because the index keeps 32 bits."""


class _Named:
    """What a model states about itself."""

    name: str = ""
    """The name in records and messages; by default the name of the class."""
    fingerprint: str = ""
    """A hash of everything that its results depend on except the texts; by default, a hash of the name."""
    remote: bool = False
    """Whether texts leave this machine."""

    def __init_subclass__(cls) -> None:
        """Name a class that does not name itself; an inherited name would confuse it with its parent in records."""
        if isinstance(cls.name, str) and "name" not in vars(cls):
            cls.name = cls.__name__
        if isinstance(cls.fingerprint, str) and "fingerprint" not in vars(cls):
            cls.fingerprint = fingerprint("own", cls.name if isinstance(cls.name, str) else cls.__name__)


class Embedder(_Named, ABC):
    """Encodes texts as vectors; the paper's interface."""

    @abstractmethod
    def encode(self, sentences: list[str]) -> NDArray[np.floating[Any]]:
        """Return one row per text, ``(n, dim)``."""

    def encode_query(self, sentences: list[str]) -> NDArray[np.floating[Any]]:
        """Return one row per query; models that distinguish queries from documents override it."""
        return self.encode(sentences)


class Reranker(_Named, ABC):
    """Scores documents against a text, in [0, 1]; the paper's interface."""

    @abstractmethod
    def score(self, query: str, documents: list[str]) -> list[float]:
        """Return one score per document."""


class StanceJudge(Protocol):
    """Judges whether passages support a claim, contradict it, or say nothing about it."""

    @property
    def name(self) -> str:
        """A stable name for records."""
        ...

    @property
    def fingerprint(self) -> str:
        """A hash of everything that a verdict depends on except the texts."""
        ...

    @property
    def remote(self) -> bool:
        """Whether texts leave this machine."""
        ...

    def judge(self, claim: str, passages: Sequence[str]) -> NDArray[np.float64]:
        """Return ``(n, 3)`` probabilities: one row per passage, of SUPPORTS, CONTRADICTS and NEUTRAL."""
        ...


class _OfHouse(Embedder):
    def __init__(self, given: HouseEmbedder) -> None:
        self._given = given
        self.name, self.fingerprint, self.remote = given.name, given.fingerprint, given.remote

    def encode(self, sentences: list[str]) -> NDArray[np.floating[Any]]:
        return self._given.embed_documents(sentences)

    def encode_query(self, sentences: list[str]) -> NDArray[np.floating[Any]]:
        # A blank text has no direction, and is similar to nothing.
        nothing = np.zeros(self._given.dim, np.float32)
        return np.array([self._given.embed_query(one) if one.strip() else nothing for one in sentences])


class _RerankerOfHouse(Reranker):
    def __init__(self, given: HouseReranker) -> None:
        self._given = given
        self.name, self.fingerprint, self.remote = given.name, given.fingerprint, given.remote

    def score(self, query: str, documents: list[str]) -> list[float]:
        return list(self._given.rerank(query, documents)) if query.strip() else [0.0] * len(documents)


class CosineReranker(Reranker):
    """The cosine of an embedder's vectors as a reranker: a baseline, as it cannot tell agreement from its opposite.

    Vectors of documents are kept, so that a corpus is embedded once.

    Examples
    --------
    >>> from carag.retrieval import embedder_by_name
    >>> CosineReranker(embedder_by_name("wordllama")).score("Fees rise.", ["Fees rise.", "Trees."])[0]
    1.0
    """

    def __init__(self, embedder: object) -> None:
        self._embedder = as_embedder(embedder)
        self.name = f"cosine:{self._embedder.name}"
        self.fingerprint = fingerprint("cosine", self._embedder.fingerprint)
        self.remote = self._embedder.remote
        self._kept: dict[str, NDArray[np.float64]] = {}

    def score(self, query: str, documents: list[str]) -> list[float]:
        """Return cosines, with those below 0 as 0."""
        if not query.strip() or not documents:
            return [0.0] * len(documents)
        if new := [one for one in dict.fromkeys(documents) if one not in self._kept]:
            self._kept.update(zip(new, self._unit(new), strict=True))
        asked = self._unit([query])[0]
        cosines = np.array([self._kept[one] for one in documents]) @ asked
        return [float(round(one, 12)) for one in np.clip(cosines, 0, 1)]

    def _unit(self, texts: list[str]) -> NDArray[np.float64]:
        came = checked_vectors(self._embedder.name, self._embedder.encode(texts), len(texts))
        rows = came.astype(np.float64)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.where(lengths > 0, lengths, 1))


def as_embedder(given: object) -> Embedder:
    """Return an embedder under the paper's interface: one that has it, or any that :mod:`carag.retrieval` takes."""
    return given if isinstance(given, Embedder) else _OfHouse(own_embedder(given))


def as_reranker(given: object) -> Reranker:
    """Return a reranker under the paper's interface: one that has it, or any that :mod:`carag.retrieval` takes."""
    return given if isinstance(given, Reranker) else _RerankerOfHouse(own_reranker(given))


def as_judge(given: object) -> StanceJudge:
    """Return a judge of stance; InvalidArgument if the object lacks name, fingerprint, ``remote`` or ``judge``."""
    missing = [name for name in ("name", "fingerprint", "remote", "judge") if not hasattr(given, name)]
    if isinstance(given, type) or missing:
        raise InvalidArgument(
            f"the judge is {quoted(given)}; the variant stance wants an object with name, fingerprint, remote and "
            "judge(claim, passages), which returns probabilities of SUPPORTS, CONTRADICTS and NEUTRAL per passage"
        )
    return cast("StanceJudge", given)


def checked_vectors(name: str, came: Any, count: int) -> NDArray[np.floating[Any]]:
    """Return an embedder's output as ``(count, dim)`` finite numbers in its own precision, or raise InvalidArgument."""
    vectors = _numbers(f"the embedder {name!r}", came, (count, None))
    if not (np.abs(vectors) <= _GREATEST).all():  # which NaN is not
        raise InvalidArgument(
            f"the embedder {name!r} returned a number that is not finite in 32 bits; want unit vectors"
        )
    return vectors


def checked_scores(name: str, came: Any, count: int) -> list[float]:
    """Return a reranker's output as ``count`` numbers in [0, 1]; InvalidArgument if it is not."""
    scores = _numbers(f"the reranker {name!r}", came, (count,))
    if not ((scores >= 0) & (scores <= 1)).all():  # which NaN is not
        bad = next(float(one) for one in scores if not 0 <= one <= 1)
        raise InvalidArgument(
            f"the reranker {name!r} returned the score {quoted(bad)}; want numbers from 0 to 1, such as the sigmoid "
            "of a cross-encoder's logit"
        )
    return [float(one) for one in scores]


def checked_probabilities(name: str, came: Any, count: int) -> NDArray[np.float64]:
    """Return a judge's output as ``(count, 3)`` probabilities whose rows sum to 1; InvalidArgument if it is not."""
    rows = _numbers(f"the judge {name!r}", came, (count, 3)).astype(np.float64)
    if not ((rows >= 0) & (rows <= 1)).all() or not np.allclose(rows.sum(axis=1), 1, atol=1e-6):
        raise InvalidArgument(
            f"the judge {name!r} returned a row that is not a distribution; want the probabilities of SUPPORTS, "
            "CONTRADICTS and NEUTRAL, with the sum 1"
        )
    return rows


def _numbers(model: str, came: Any, shape: tuple[int | None, ...]) -> NDArray[np.floating[Any]]:
    """Return what a model returned as numbers of a shape, in which None is any length but 0."""
    want = f"numbers of shape ({', '.join('dim' if one is None else str(one) for one in shape)})"
    try:
        found = np.asarray(came)
    except ValueError as error:
        raise InvalidArgument(f"{model} returned no array ({error}); want {want}") from error
    fits = len(found.shape) == len(shape) and all(
        has == one or (one is None and has) for has, one in zip(found.shape, shape, strict=True)
    )
    if not fits or found.dtype.kind not in "fiu":
        raise InvalidArgument(f"{model} returned {found.dtype} of shape {found.shape}; want {want}")
    return found if found.dtype.kind == "f" else found.astype(np.float64)
