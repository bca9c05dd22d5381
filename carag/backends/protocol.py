"""The contract of a vector backend, which stores rows, searches them, and states as data what it can promise.

A backend knows keys, vectors, words, times, entities, audiences and epochs. It never holds text or policy logic:
:class:`carag.backends.Checked` compiles a policy to the words that it admits, and trusts no answer.

Every change is an epoch. A row holds from the epoch that brought it until before the one that ended it, ``[e0, e1)``. A
reader takes the epoch first and asks for what holds at it; a writer moves the epoch last, once every write is
confirmed. So no reader sees half a change, however many machines there are.
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


class Capabilities(NamedTuple):
    """What a backend can promise; a deployment that needs more is refused at start."""

    plans: frozenset[Plan]
    """The plans that it runs; ``certified`` only if a search reads nothing but admissible rows."""
    exact_count: bool
    """Whether the count of admissible rows that a search reports is exact, at its own epoch."""
    read_your_writes: bool
    """Whether a search that begins after a change was confirmed sees it, from any connection."""
    atomic_batches: bool
    """Whether no search ever sees a part of a batch."""
    replay_by_epoch: bool
    """Whether an earlier epoch can be asked again."""
    recall: float | None
    """Least mean recall@10 of the ``graph`` plan in the conformance suite; None without that plan."""
    most_words: int
    """Most words in one search."""
    server_side_policy: bool
    """Whether the server itself can hide rows from an account, as a second barrier."""


class ShardState(NamedTuple):
    """The state of one part of a backend when it answered."""

    id: str
    at: str
    """Its position in the engine's own terms: a snapshot, a position in a log, a sequence number."""
    rows: int
    """Number of live rows that it holds."""


class IndexState(NamedTuple):
    """The rows that a search covered, as a record describes the index."""

    backend: str
    """Kind and version, such as ``"postgresql 18.6, pgvector 0.8.6"``."""
    collection: str
    """The collection's name; never an address or a credential."""
    epoch: int
    words: tuple[int, ...]
    """Every word of a live row at the epoch, ascending."""
    shards: tuple[ShardState, ...]

    @property
    def dictionary(self) -> str:
        """SHA-256 over the words, four bytes each, big-endian, in hexadecimal."""
        return hashlib.sha256(b"".join(word.to_bytes(4, "big") for word in self.words)).hexdigest()


class Rows(NamedTuple):
    """Rows as columns."""

    keys: NDArray[np.int64]
    """(n,) 0 or more, without duplicates."""
    vectors: NDArray[np.float32]
    """(n, dim) of unit length, as :meth:`carag.Index.add` keeps them."""
    words: NDArray[np.uint32]
    """(n,)"""
    public_at: NDArray[np.uint32]
    """(n,) minutes since 1970-01-01T00:00Z."""
    expires_at: NDArray[np.uint32]
    """(n,) minutes since 1970-01-01T00:00Z."""
    entities: NDArray[np.uint32]
    """(n,) the number of the entity, or set of entities, that a row is about; 0 for none."""
    audiences: NDArray[np.uint32]
    """(n,) the number of the audience that a row is for; 0 for everybody."""


class Admitted(NamedTuple):
    """A policy compiled at an epoch: what a backend is asked for.

    A row is admissible if its word is in ``words``, ``public_at <= as_of``, ``alive_at < expires_at``, and the policy's
    lists admit its entity and its audience. A word unknown at the epoch is not listed, and is therefore closed.
    """

    words: tuple[int, ...]
    """Ascending; never empty: if no word is admitted, no backend is asked."""
    as_of: int
    """Minutes since 1970-01-01T00:00Z."""
    alive_at: int
    """Minutes since 1970-01-01T00:00Z, ``as_of`` or later."""
    allow_entities: tuple[int, ...] | None
    """The only entities that a row may have, ascending; None means any. Never empty."""
    deny_entities: tuple[int, ...]
    """Entities that a row must not have, ascending."""
    audiences: tuple[int, ...] | None
    """The only audiences that a row may have, ascending, 0 for everybody among them; None means any."""
    policy: Policy
    """The policy itself, for a backend that tests words by their bits."""


class Found(NamedTuple):
    """A backend's answer, with everything needed to check it."""

    keys: NDArray[np.int64]
    """(nq, k) nearest first, then -1."""
    scores: NDArray[np.float32]
    """(nq, k) cosine similarity, as the backend computes it."""
    rows: Rows
    """The distinct rows in ``keys``, in any order, as the backend holds them at the epoch."""
    admissible: int
    """Number of admissible rows at the epoch."""
    plan: Plan
    """The plan that ran, never ``AUTO``."""
    state: IndexState
    """The state at the epoch that was asked for."""


class VectorBackend(Protocol):
    """A place to store rows and search them.

    Changes name a ``batch``: repeating a batch changes nothing and returns as the first time, so a writer that was
    killed can repeat whatever may not have arrived. A change returns when the next search, from any connection, sees
    all of the change. Every method may raise :class:`~carag.errors.BackendUnavailable`, and then no change is partly
    visible.
    """

    @property
    def capabilities(self) -> Capabilities:
        """What the backend promises."""
        ...

    def add(self, rows: Rows, *, batch: str) -> IndexState:
        """Add rows; a key of a live row is refused with InvalidArgument, and nothing is added."""
        ...

    def relabel(self, keys: Sequence[int], words: Sequence[int], *, batch: str) -> IndexState:
        """Give rows new words, all at one epoch; an unknown key is refused, and nothing is changed."""
        ...

    def delete(self, keys: Sequence[int], *, batch: str) -> IndexState:
        """Delete rows, all at one epoch; an unknown key is refused, and nothing is deleted."""
        ...

    def search(
        self, queries: NDArray[np.float32], k: int, admitted: Admitted, *, plan: Plan, at: int | None = None
    ) -> Found:
        """Find the ``k`` nearest admissible rows for each query, at an epoch, by default the last.

        Queries are (nq, dim) of unit length. An unknown plan is refused with InvalidArgument, an epoch that is gone
        with BackendUnavailable.
        """
        ...

    def count(self, admitted: Admitted, *, at: int | None = None) -> int:
        """Count exactly the admissible rows at an epoch, by default the last."""
        ...

    def get(self, keys: Sequence[int], *, at: int | None = None) -> Rows:
        """Read rows by key as of an epoch, in any order; keys without a live row are left out."""
        ...

    @property
    def beyond(self) -> tuple[str, ...]:
        """Codes of what may still hold deleted rows after :meth:`purge`, such as a server's journal."""
        ...

    def purge(self) -> None:
        """Ask the server to free what deleted rows took, and return when it has, as far as it can tell."""
        ...

    def state(self) -> IndexState:
        """Read the last epoch, and what is known at it."""
        ...

    def close(self) -> None:
        """Close connections; idempotent."""
        ...


@runtime_checkable
class LoadingBackend(VectorBackend, Protocol):
    """A backend that accepts any number of rows block by block, invisibly, and shows them all at one epoch.

    A *load* is a stream of rows with the name of a batch. Its rows belong to the next epoch, which nothing asks for
    before :meth:`publish`. A load outlives the process that wrote it, and another process continues at :meth:`loaded`.
    A collection takes one load at a time, and no other change while a load is open.
    """

    def loaded(self, batch: str) -> int | None:
        """Return how many rows of a load are written; None if only publishing is left.

        Raises InvalidArgument if another load is open.
        """
        ...

    def load(self, rows: Rows, *, batch: str, begin: int, end: int) -> None:
        """Write the rows of a load between two positions of its stream, and return once they are confirmed.

        Positions count rows of the stream. Rows already written are skipped; a gap, a partial overlap and a key of a
        live row are refused with InvalidArgument. The first block opens the load.
        """
        ...

    def count_loaded(self, batch: str) -> int:
        """Count the stored rows of an open load."""
        ...

    def get_loaded(self, keys: Sequence[int], *, batch: str) -> Rows:
        """Read rows of an open load by key, in any order; unknown keys are left out."""
        ...

    def publish(self, batch: str) -> IndexState:
        """Turn an open load into an epoch, so that the next search sees all of it; repeating this changes nothing."""
        ...

    def unload(self) -> None:
        """Discard the open load, if any, whatever its name, and remove its rows."""
        ...


@runtime_checkable
class GraphBackend(VectorBackend, Protocol):
    """A backend with the plan ``graph`` once its graph is built."""

    def build_graph(self, *, memory_mb: int | None = None) -> None:
        """Build the graph over all rows; rows added later enter it. Writers wait meanwhile.

        Parameters
        ----------
        memory_mb : int, optional
            Megabytes for the build, by default the server's own limit. What does not fit is built more slowly.

        Raises
        ------
        InvalidArgument
            If there are no rows, or the server does not accept that much memory.
        """
        ...
