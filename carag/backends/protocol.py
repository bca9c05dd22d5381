"""What a backend of vectors is: it stores rows and searches them, and states as data what it can promise.

A backend knows keys, vectors, words, times, entities and epochs. No text ever enters one, and no policy logic lives
in one: :class:`carag.backends.Checked` compiles a policy to the words that it admits, and believes nothing that comes
back.

Every change is an epoch. A row holds from the epoch that brought it until before the one that ended it, ``[e0, e1)``;
a reader takes the epoch first and asks for what holds at it; a writer moves the epoch last, once every write is
confirmed. So no reader sees half a change, on however many machines it was made.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from carag.index import Plan
    from carag.policy import Policy

__all__ = [
    "Admitted",
    "Capabilities",
    "Found",
    "GraphBackend",
    "IndexState",
    "LoadingBackend",
    "Rows",
    "ShardState",
    "VectorBackend",
]


class Capabilities(NamedTuple):
    """What a backend can promise; what a deployment asks for and it cannot do is refused at start."""

    plans: frozenset[Plan]
    """The plans that it runs. ``certified`` only where a search reads admissible rows alone."""
    exact_count: bool
    """Whether the number of admissible rows that a search reports is exact, and of its own epoch."""
    read_your_writes: bool
    """Whether a search that begins after a change was confirmed sees it, from any connection."""
    atomic_batches: bool
    """Whether no search sees a part of a batch."""
    replay_by_epoch: bool
    """Whether an earlier epoch can be asked again."""
    recall: float | None
    """Least mean recall@10 of the ``graph`` plan, measured by the conformance suite; None where there is none."""
    most_words: int
    """The greatest number of words that one search may name."""
    server_side_policy: bool
    """Whether the server itself can refuse rows to an account, as a second fence."""


class ShardState(NamedTuple):
    """Where one part of a backend stood when it answered."""

    id: str
    at: str
    """In its own terms: a snapshot, a position in its log, a sequence number."""
    rows: int
    """Live rows that it holds."""


class IndexState(NamedTuple):
    """Which rows a search was asked of; what a record says of the index."""

    backend: str
    """Its kind and version, such as ``"postgresql 18.6, pgvector 0.8.6"``."""
    collection: str
    """The name of the rows within it; never an address or a credential."""
    epoch: int
    words: tuple[int, ...]
    """Every word that a live row has at the epoch, ascending."""
    shards: tuple[ShardState, ...]

    @property
    def dictionary(self) -> str:
        """SHA-256 over the words, four bytes each, big-endian, in hexadecimal."""
        return hashlib.sha256(b"".join(word.to_bytes(4, "big") for word in self.words)).hexdigest()


class Rows(NamedTuple):
    """Rows, column by column."""

    keys: NDArray[np.int64]
    """(n,) 0 or more, none twice."""
    vectors: NDArray[np.float32]
    """(n, dim) of unit length, as :meth:`carag.Index.add` keeps them."""
    words: NDArray[np.uint32]
    """(n,)"""
    public_at: NDArray[np.uint32]
    """(n,) minutes since 1970-01-01T00:00Z."""
    expires_at: NDArray[np.uint32]
    """(n,) likewise."""
    entities: NDArray[np.uint32]
    """(n,) the number of the entity, or set of entities, that a row is about; 0 is none."""


class Admitted(NamedTuple):
    """A policy, compiled at an epoch: what a backend is asked for.

    A row is admissible if its word is one of ``words``, ``public_at <= as_of``, ``alive_at < expires_at``, and the
    lists of the policy admit its entity. A word that was not known at the epoch is not named, and so is closed.
    """

    words: tuple[int, ...]
    """Ascending; never empty: where no word is admitted no backend is asked."""
    as_of: int
    """Minutes since 1970-01-01T00:00Z."""
    alive_at: int
    """Likewise, ``as_of`` or later."""
    allow_entities: tuple[int, ...] | None
    """The only entities of a row, ascending; None: any. Never empty."""
    deny_entities: tuple[int, ...]
    """Entities that a row may not have, ascending."""
    policy: Policy
    """What was compiled, for a backend that tests words by their bits."""


class Found(NamedTuple):
    """What a backend found, with all that it takes to check it."""

    keys: NDArray[np.int64]
    """(nq, k) nearest first; -1 where there are no more."""
    scores: NDArray[np.float32]
    """(nq, k) cosine similarity, as the backend computes it."""
    rows: Rows
    """The distinct rows named in ``keys``, in any order, with what the backend holds of them at the epoch."""
    admissible: int
    """Number of admissible rows at the epoch."""
    plan: Plan
    """The plan that ran, ``AUTO`` never."""
    state: IndexState
    """Of the epoch that was asked."""


class VectorBackend(Protocol):
    """A place to store rows and search them.

    Changes name a ``batch``: the same batch again changes nothing and returns as if it had been the first time, so a
    writer that was killed may repeat what it is not sure of. They return when the next search, from any connection,
    sees the whole of the change. Every method may raise :class:`~carag.errors.BackendUnavailable`, and then no change
    is visible in part.
    """

    @property
    def capabilities(self) -> Capabilities:
        """What it can promise."""
        ...

    def add(self, rows: Rows, *, batch: str) -> IndexState:
        """Add rows; a key that a live row has is refused with InvalidArgument, and none is added."""
        ...

    def relabel(self, keys: Sequence[int], words: Sequence[int], *, batch: str) -> IndexState:
        """Give rows new words, all at one epoch; an unknown key is refused, and none is changed."""
        ...

    def delete(self, keys: Sequence[int], *, batch: str) -> IndexState:
        """Delete rows, all at one epoch; an unknown key is refused, and none is deleted."""
        ...

    def search(
        self, queries: NDArray[np.float32], k: int, admitted: Admitted, *, plan: Plan, at: int | None = None
    ) -> Found:
        """Find the ``k`` nearest admissible rows of each query, at an epoch; by default the last.

        Queries are (nq, dim) and of unit length. A plan that it does not have is refused with InvalidArgument, an epoch
        that is not any more with BackendUnavailable.
        """
        ...

    def count(self, admitted: Admitted, *, at: int | None = None) -> int:
        """Count exactly the admissible rows at an epoch; by default the last."""
        ...

    def get(self, keys: Sequence[int], *, at: int | None = None) -> Rows:
        """Read rows by key, those that are live at an epoch, in any order; unknown keys are left out."""
        ...

    def state(self) -> IndexState:
        """Read the last epoch, and what is known at it."""
        ...

    def close(self) -> None:
        """Give up connections; idempotent."""
        ...


@runtime_checkable
class LoadingBackend(VectorBackend, Protocol):
    """A backend that takes very many rows block by block, unseen, and shows them all at one epoch.

    A *load* is a stream of rows under the name of a batch. What is written of it belongs to the epoch that it makes,
    for which nobody asks before :meth:`publish`; it outlives the process that wrote it, and the next goes on from
    :meth:`loaded`. A collection takes one load at a time, and no other change while one is open.
    """

    def loaded(self, batch: str) -> int | None:
        """Return how many rows of a load are written; None once it is published, or nothing but that is left to do.

        Raises
        ------
        InvalidArgument
            If a load by another name is open.
        """
        ...

    def load(self, rows: Rows, *, batch: str, begin: int, end: int) -> None:
        """Write the rows of a load between two positions of its stream, and return once they are confirmed.

        Positions count the rows of the stream. What is written already is not written again; a gap, rows that overlap
        what is written, and a key that a live row has are refused with InvalidArgument. The first block opens the load.
        """
        ...

    def count_loaded(self, batch: str) -> int:
        """Count the rows that are there of an open load: what is stored, not what was confirmed."""
        ...

    def get_loaded(self, keys: Sequence[int], *, batch: str) -> Rows:
        """Read rows of an open load by key, in any order; unknown keys are left out."""
        ...

    def publish(self, batch: str) -> IndexState:
        """Make an epoch of an open load, so that the next search sees all of it; again, it changes nothing."""
        ...

    def unload(self) -> None:
        """Give up the load that is open, if one is, whatever its name: remove what was written of it."""
        ...


@runtime_checkable
class GraphBackend(VectorBackend, Protocol):
    """A backend that has the plan ``graph`` once its graph is built."""

    def build_graph(self, *, memory_mb: int | None = None) -> None:
        """Build the graph over all rows; those that are added later enter it. Writers wait meanwhile.

        Parameters
        ----------
        memory_mb : int, optional
            Megabytes in which a server may build it; by default its own limit. What does not fit is built slower.

        Raises
        ------
        InvalidArgument
            If there are no rows, or the memory is no whole number that the server takes.
        """
        ...
