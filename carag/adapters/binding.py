"""Bind an engine and a session to one object in a framework, so that no copy, pickle or model can reach them."""

from __future__ import annotations

import asyncio
import inspect
import weakref
from typing import TYPE_CHECKING, Any, Final, Protocol

from carag.audit import Outcome
from carag.errors import InvalidArgument, Refused
from carag.limits import quoted
from carag.policy import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.engine import Answer, Explanation, Retrieval
    from carag.retrieval import Passage


UNBOUND: Final[Any] = object()
"""Takes the place of a session in an object loaded from a file; such an object refuses to run."""
_CALLS: Final = ("ask", "retrieve", "explain")


class Source(Protocol):
    """What an adapter asks: a :class:`carag.Engine`, or a client with the same calls."""

    def ask(self, question: str, session: Session) -> Answer:
        """Answer a question."""

    def retrieve(self, question: str, session: Session, k: int = 8) -> Retrieval:
        """Find evidence."""

    def explain(self, chunk_id: str, session: Session) -> Explanation:
        """Explain why a chunk is admissible or hidden."""


class Binding:
    """An engine and a session, bound to the one object that server code made.

    Frameworks copy, pickle and trace the objects they are given. A binding serves its owner alone; a copied or loaded
    binding is bound to nothing, and refuses. Its only public attributes are ``k`` and ``strict``.

    Parameters
    ----------
    owner : object
        The object that asks.
    client : Source, optional
        Instead of an engine: anything with the engine's ``ask``, ``retrieve`` and ``explain``.
    k : int
        Passages for one question; a call may ask for fewer, not for more.
    strict : bool
        Whether a refusal raises ``Refused``; by default it is an empty result.
    sink : callable, optional
        Takes each result, with its receipt, before any document is returned; the only place where the number of an
        empty result's record appears.

    Raises
    ------
    InvalidArgument
        Unless exactly one of engine and client, a session, and a valid ``k`` are given.

    Examples
    --------
    >>> import tempfile, carag
    >>> class Mine:
    ...     pass
    >>> with carag.Engine.open(tempfile.mkdtemp(), profile="generic", embedder="wordllama") as engine:
    ...     mine, session = Mine(), carag.Session(role="public", purpose="read")
    ...     binding = Binding(mine, engine=engine, session=session)
    ...     binding.retrieve(mine, "Anything?").why
    'NO_ADMISSIBLE_EVIDENCE'
    """

    __slots__ = ("_owner", "_session", "_sink", "_source", "k", "strict")

    def __init__(
        self,
        owner: object,
        *,
        engine: Source | None = None,
        client: Source | None = None,
        session: Session | None,
        k: int = 8,
        strict: bool = False,
        sink: Callable[[Retrieval], object] | None = None,
    ) -> None:
        self._owner: Callable[[], object] = _no_owner
        if session is UNBOUND:
            return
        self._owner = weakref.ref(owner)
        self._source = a_source(engine, client)
        self._session = a_session(session)
        if type(k) is not int or k < 1:
            raise InvalidArgument(f"k is {quoted(k)}; want a number of passages, 1 or more")
        if not isinstance(strict, bool):
            raise InvalidArgument(f"strict is {quoted(strict)}; want True or False")
        self.k, self.strict, self._sink = k, strict, sink

    def __reduce__(self) -> tuple[Callable[[], Binding], tuple[()]]:
        return unbound, ()  # `copy` and `pickle` call this, so they reach neither engine nor session

    def retrieve(self, owner: object, question: str, k: int | None = None) -> Retrieval:
        """Retrieve for the owner.

        Raises
        ------
        Refused
            ``UNBOUND`` if the caller is not the owner; if strict, also when the session is refused, with its code.
        InvalidArgument
            If ``k`` is not in 1 to the binding's own, or the engine refuses the question.
        AuditUnavailable
            If the record cannot be written.
        """
        if self._owner() is not owner:
            raise Refused(
                "UNBOUND",
                f"this {type(owner).__name__} is a copy or was unpickled, so it has no engine and no session; "
                f"construct a new {type(owner).__name__} with session= and either engine= or client=",
            )
        if k is None:
            k = self.k
        elif type(k) is not int or not 1 <= k <= self.k:
            raise InvalidArgument(f"k is {quoted(k)}; want 1 to {self.k}, the limit set by server code")
        found = self._source.retrieve(question, self._session, k)
        if self._sink is not None:
            self._sink(found)
        if self.strict and found.outcome is Outcome.REFUSE:
            raise Refused(
                found.why, f"the session may search nothing: {found.why}, record {found.receipt.seq}"
            )
        return found

    async def aretrieve(self, owner: object, question: str, k: int | None = None) -> Retrieval:
        """Await :meth:`retrieve`, which runs in a thread."""
        return await asyncio.to_thread(self.retrieve, owner, question, k)


def unbound() -> Binding:
    """Return the binding of a copied or loaded object: bound to nothing."""
    return Binding(None, session=UNBOUND)


def metadata_of(found: Retrieval, passage: Passage) -> dict[str, Any]:
    """Return the metadata of a document, which may end up in prompts, traces and caches.

    It therefore holds only the number of the receipt and what the question was understood to name, and nothing of the
    session.
    """
    return {
        "chunk_id": passage.chunk_id,
        "document_id": passage.document_id,
        "version": passage.version,
        "source": passage.source,
        "similarity": passage.similarity,
        "word": passage.word,
        "carag.record": found.receipt.seq,
        "carag.understood": found.understood,
    }


def a_source(engine: Source | None, client: Source | None) -> Source:
    """Return the one given; InvalidArgument if none or both are given, it lacks a call, or its calls are awaited."""
    source = engine if client is None else client
    if source is None or (engine is not None and client is not None):
        raise InvalidArgument("want exactly one of engine= and client=")
    if absent := [name for name in _CALLS if not callable(getattr(source, name, None))]:
        raise InvalidArgument(
            f"a {type(source).__name__} has no {', '.join(absent)}; want a carag.Engine or a carag.Client"
        )
    if any(inspect.iscoroutinefunction(getattr(source, name, None)) for name in (*_CALLS, "close")):
        raise InvalidArgument(
            f"the calls of a {type(source).__name__} must be awaited; want a carag.Engine or a carag.Client, which "
            "an awaited adapter calls in a thread"
        )
    return source


def a_session(session: object) -> Session:
    """Return the session; anything else is an InvalidArgument, because no session is assumed by default."""
    if type(session) is not Session:  # a subclass could answer differently each time it is read
        raise InvalidArgument(
            f"session is a {type(session).__name__}; want a carag.Session that server code made"
        )
    return session


def _no_owner() -> object:
    return _no_owner  # a function, which owns no binding
