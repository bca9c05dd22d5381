"""What a target is: two methods that it must have, and those that it may have."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

OPTIONAL: Final = ("search_where", "relabel", "delete", "get", "ask", "files", "close")
"""Methods that a target may have. A check that needs a missing one is reported as not tried."""
DIM: Final = 256


@dataclass(frozen=True, slots=True)
class Document:
    """A planted document; ``audience`` names those who may see it, and if it is empty, no one may."""

    id: str
    text: str
    audience: frozenset[str]


@dataclass(frozen=True, slots=True)
class Where:
    """A caller's own filter: one of ``names`` is in a document's audience; if ``negated``, none of them is."""

    names: frozenset[str]
    negated: bool = False


class Found(NamedTuple):
    """What a search shows a caller beside its hits."""

    hits: Iterable[tuple[str, float | None]]
    """Ids of documents, best first, each with its score, or with None where the target shows none."""
    total: int | None = None
    """How many documents the target says there are for the question."""
    suggestions: Sequence[str] | None = None
    """Words that the target suggests, such as completions, corrections or facets."""


class Answer(NamedTuple):
    """A text, and the ids of the documents that it cites, or None where the target shows none."""

    text: str
    citations: Sequence[str] | None = None


class Target(Protocol):
    """A retrieval system under test.

    Beside these two methods, it may have any of the following. What a method raises counts as its reply, which is how
    a target refuses.

    - ``search_where(query, k, as_whom, where)``: as ``search``, with a filter that the caller chooses (:class:`Where`).
    - ``relabel(id, audience)``: give a document another audience, in force from the next search on.
    - ``delete(ids)``: remove documents; needed for the planted ones to be gone in the end.
    - ``get(id, as_whom)``: return one document to a reader, as any object, or raise.
    - ``ask(question, as_whom)``: answer with a text, or with an :class:`Answer`.
    - ``files()``: write everything out, with what a deletion needs to be final, and return the paths of all files.
    - ``close()``: called at the end.
    - ``people``: two names, for a target that does not know the names made up for the test.

    Examples
    --------
    >>> class Open:
    ...     def __init__(self):
    ...         self.rows = {}
    ...     def add(self, documents):
    ...         self.rows |= {one.id: vector_of(one.text) for one in documents}
    ...     def search(self, query, k, as_whom):
    ...         near = {name: float(row @ vector_of(query)) for name, row in self.rows.items()}
    ...         return sorted(near.items(), key=lambda hit: -hit[1])[:k]
    >>> from carag.evaluation.attack import attack
    >>> report = attack(Open(), "an open one")
    >>> [one.check for one in report.outcomes if one.findings][:3]
    ['closed', 'forgotten', 'unknown']
    """

    def add(self, documents: Sequence[Document]) -> object:
        """Insert documents, or replace those with the same ids; a search that follows finds them."""

    def search(self, query: str, k: int, as_whom: str | None) -> Found | Iterable[tuple[str, float | None]]:
        """Return up to ``k`` documents that ``as_whom`` may see, best first; None: the caller named no one."""


def vector_of(text: str, dim: int = DIM) -> NDArray[np.float32]:
    """Embed a text as the sum of a fixed random vector for each of its words, for targets that want vectors.

    Parameters
    ----------
    text : str
    dim : int

    Returns
    -------
    (dim,) float32
        Of unit length; the first unit vector for a text without words.

    Examples
    --------
    >>> same, other = vector_of("a red fox") @ vector_of("Red fox"), vector_of("a red fox") @ vector_of("blue")
    >>> vector_of("red").shape, bool(same > 0.6 > other)
    ((256,), True)
    """
    total = np.zeros(dim)
    for word in text.lower().split():
        total += _vector_of_word(word.strip(".,:;?![]"), dim)
    if not total.any():
        total[0] = 1.0
    return (total / np.linalg.norm(total)).astype(np.float32)


@cache
def _vector_of_word(word: str, dim: int) -> NDArray[np.float64]:
    seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")
    return np.random.default_rng(seed).standard_normal(dim)
