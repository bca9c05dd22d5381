"""Ask a service as if it were the engine: ``carag.Client`` and ``carag.AsyncClient``.

The calls have the engine's signatures and results, so a program moves from embedded to served by changing one line.
The token says who asks; the session's role and purpose choose among the cells that it grants. Other fields of the
session can only narrow it: a session that states what only a token may grant is refused before anything is sent.
"""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from pydantic import ValidationError

from carag.errors import (
    AuditUnavailable,
    AuthorizerUnavailable,
    CaragError,
    CorruptFile,
    InvalidArgument,
    ModelUnavailable,
    Refused,
    ServiceUnavailable,
)
from carag.limits import check_question, quoted
from carag.policy import Session
from carag.policy.session import Glass
from carag.service import calls
from carag.service.calls import Awaited, Call, Waiting, reader, sent
from carag.service.wire import (
    AnswerBody,
    BrokenGlassBody,
    ExplanationBody,
    RetrievalBody,
    answer_of,
    explanation_of,
    retrieval_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType, TracebackType

    from carag.engine import Answer, Explanation, Retrieval
    from carag.service.wire import JobBody

__all__ = ["AsyncClient", "Client"]

_Kind = TypeVar("_Kind")
_Result = TypeVar("_Result")

_MAX_ANSWER: Final = 64 << 20
"""Most bytes in an answer; the same limit as for a receipt."""
_TOKEN_ALONE: Final = (
    "as_of",
    "known_at",
    "principals",
    "deals",
    "wall_crossings",
    "audit_clients",
    "eu_transfer_basis",
    "legal_basis",
)
"""Fields of a session that only the token can set."""


class _Connection:
    def __init__(self, url: str, *, token: str | Callable[[], str], seconds: float = 90.0) -> None:
        if not isinstance(url, str) or not url.startswith(("http://", "https://")):
            raise InvalidArgument(
                f"url is {quoted(url)}; want the service's address, such as https://carag.example"
            )
        if not callable(token) and (
            not isinstance(token, str) or not token.isascii() or not token.isprintable()
        ):
            raise InvalidArgument(
                "token must be a printable ASCII string, or a function that returns one; pass the token that the "
                "issuer gave"
            )
        if not seconds > 0:
            raise InvalidArgument(f"seconds is {quoted(seconds)}; want more than 0")
        self.url = url.rstrip("/")
        self._token, self._seconds = token, seconds

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"  # the token is a secret

    def _headers(self, call: Call[Any]) -> dict[str, str]:
        token = self._token() if callable(self._token) else self._token
        return {"Authorization": f"Bearer {token}", **call.headers}

    def _request(self, call: Call[Any]) -> tuple[str, str]:
        return "GET" if call.body is None else "POST", f"{self.url}/{call.path}"


class _Questions(calls.Writes[_Kind]):
    @sent
    def ask(self, question: str, session: Session, *, where: Mapping[str, Any] | None = None) -> Call[Answer]:
        """Answer a question as :meth:`carag.Engine.ask` does.

        Raises
        ------
        InvalidArgument
            If the question, session or ``where`` is not valid, or the session states what only a token may grant.
        Refused
            With a code that starts with ``TOKEN_``.
        AuditUnavailable, AuthorizerUnavailable, ModelUnavailable
            As the engine raises them.
        ServiceUnavailable
            If the service cannot be reached, is busy, or gives an unknown answer.
        """
        return Call("v1/ask", reader(AnswerBody, answer_of), _asked(question, session, where))

    @sent
    def retrieve(
        self, question: str, session: Session, k: int = 8, *, where: Mapping[str, Any] | None = None
    ) -> Call[Retrieval]:
        """Return the best passages as :meth:`carag.Engine.retrieve` does; errors as for :meth:`ask`.

        The result cannot be passed to ``Engine.record_answer``.
        """
        body = _retrieved(question, session, k, where)
        return Call("v1/retrieve", reader(RetrievalBody, retrieval_of), body)

    @sent
    def explain(self, chunk_id: str, session: Session) -> Call[Explanation]:
        """Explain a chunk as :meth:`carag.Engine.explain` does; errors as for :meth:`ask`."""
        return Call("v1/explain", reader(ExplanationBody, explanation_of), _explained(chunk_id, session))

    @sent
    def break_glass(
        self,
        session: Session,
        *,
        purpose: str,
        reason: str,
        approver: str | None = None,
        minutes: int | None = None,
    ) -> Call[Session]:
        """Return the session in a cell that opens only so, as ``carag.Engine.break_glass`` does, until it ends.

        The token must grant that cell. The service forgets it when it ends or starts again. ``approver`` is the bearer
        token of a second person, which grants the same cell, and is needed where the cell asks for two.

        Raises
        ------
        Refused
            ``NOT_BREAK_GLASS``; ``APPROVER_REQUIRED``; or a code that starts with ``TOKEN_``.
        InvalidArgument
            If the session or another argument is not valid.
        AuditUnavailable, ServiceUnavailable
            As for :meth:`ask`; ``BREAK_GLASS_LIMIT`` if too many cells are open for the person.
        """
        body = _breaking(session, purpose, reason, approver, minutes)
        return Call("v1/break-glass", reader(BrokenGlassBody, partial(_broken, session)), body)


@cache
def _httpx() -> ModuleType:
    from carag.extras import require

    require("carag.Client", "client")
    import httpx

    return httpx  # type: ignore[no-any-return, unused-ignore] # typed only where it is installed


class Client(_Questions[Waiting], _Connection):
    """A service, asked as :class:`carag.Engine` is. Thread-safe.

    Parameters
    ----------
    url : str
        The service's address.
    token : str or callable
        The bearer token, or a function that returns one that is valid now.
    seconds : float
        Longest wait for a connection, and between two parts of an answer.

    Raises
    ------
    InvalidArgument
        If an argument is not valid.
    MissingExtra
        If httpx is not installed.

    Examples
    --------
    >>> Client("https://carag.example", token="eyJ...")
    Client('https://carag.example')
    """

    def __init__(self, url: str, *, token: str | Callable[[], str], seconds: float = 90.0) -> None:
        super().__init__(url, token=token, seconds=seconds)
        self._http = _httpx().Client(timeout=seconds, follow_redirects=False)

    def close(self) -> None:
        """Close the connections; idempotent."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _send(self, call: Call[_Result]) -> _Result:
        found = self._answer(call)
        if call.of_job is None:
            return found  # type: ignore[no-any-return]
        for wait in calls.waits():
            if found.state in calls.ENDED:
                break
            time.sleep(wait)
            found = self._answer(calls.job_call(found.id))
        return call.of_job(_done(found))

    def _answer(self, call: Call[Any]) -> Any:
        httpx = _httpx()
        try:
            with self._http.stream(
                *self._request(call), json=call.body, headers=self._headers(call)
            ) as answer:
                data = bytearray()
                for piece in answer.iter_bytes():
                    _add(data, piece)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _unreachable(self.url, error, call.hint) from None
        return _read(answer.status_code, bytes(data), call)


class AsyncClient(_Questions[Awaited], _Connection):
    """:class:`~carag.service.client.Client` for asynchronous code, with the same parameters and errors.

    Examples
    --------
    >>> AsyncClient("https://carag.example", token="eyJ...")
    AsyncClient('https://carag.example')
    """

    def __init__(self, url: str, *, token: str | Callable[[], str], seconds: float = 90.0) -> None:
        super().__init__(url, token=token, seconds=seconds)
        self._http = _httpx().AsyncClient(timeout=seconds, follow_redirects=False)

    async def close(self) -> None:
        """Close the connections; idempotent."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _send(self, call: Call[_Result]) -> _Result:
        found = await self._answer(call)
        if call.of_job is None:
            return found  # type: ignore[no-any-return]
        for wait in calls.waits():
            if found.state in calls.ENDED:
                break
            await asyncio.sleep(wait)
            found = await self._answer(calls.job_call(found.id))
        return call.of_job(_done(found))

    async def _answer(self, call: Call[Any]) -> Any:
        httpx = _httpx()
        try:
            async with self._http.stream(
                *self._request(call), json=call.body, headers=self._headers(call)
            ) as answer:
                data = bytearray()
                async for piece in answer.aiter_bytes():
                    _add(data, piece)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _unreachable(self.url, error, call.hint) from None
        return _read(answer.status_code, bytes(data), call)


def _asked(question: str, session: Session, where: Mapping[str, Any] | None) -> dict[str, Any]:
    check_question("question", question)
    stated = {} if where is None else {"where": calls.conditions(where)}
    return {"question": question, **_cell(session), **stated}


def _retrieved(question: str, session: Session, k: int, where: Mapping[str, Any] | None) -> dict[str, Any]:
    if type(k) is not int or not 1 <= k <= 400:
        raise InvalidArgument(f"k is {quoted(k)}; want 1 to 400, what one record can hold")
    return {**_asked(question, session, where), "k": k}


def _explained(chunk_id: str, session: Session) -> dict[str, Any]:
    check_question("chunk id", chunk_id)
    return {"chunk_id": chunk_id, **_cell(session)}


def _breaking(
    session: Session, purpose: str, reason: str, approver: str | None, minutes: int | None
) -> dict[str, Any]:
    check_question("reason", reason)
    said = {"purpose": purpose, "reason": reason, "approver": approver, "minutes": minutes}
    chosen = {name: value for name, value in _cell(session).items() if name in ("role", "subject")}
    return {**chosen, **{name: value for name, value in said.items() if value is not None}}


def _broken(session: Session, said: BrokenGlassBody) -> Session:
    return session.under(Glass(said.role, said.purpose, said.until, said.record, handle=said.glass))


def _cell(session: Session) -> dict[str, Any]:
    """Return what a request may say about a session: its cell, its subject, and what narrows it."""
    if type(session) is not Session:
        raise InvalidArgument(f"session is a {type(session).__name__}; want a carag.Session")
    unset = Session(role=session.role, purpose=session.purpose)
    if stated := [name for name in _TOKEN_ALONE if getattr(session, name) != getattr(unset, name)]:
        raise InvalidArgument(
            f"the session sets {', '.join(stated)}, which a service reads only from the token; ask the issuer to put "
            "them in the token's claim `carag`"
        )
    lists = [one for one in (session.allow_entities, session.narrowed_to) if one is not None]
    residency: Any = session.residency  # stored as a frozen set of flags
    places = [flag.name for flag in residency]
    narrow = {
        "allow_entities": sorted(frozenset.intersection(*lists)) if lists else None,
        "restricted": sorted(session.restricted),
        "watched": sorted(session.watched),
        "residency": sorted(places),
        "principals": None if session.acting_as is None else sorted(session.acting_as),
        "cooling_minutes": None if session.cooling is None else session.cooling // timedelta(minutes=1),
        "intents": list(session.intents),
        "conversation": session.conversation,
    }
    stated_by = {name: value for name, value in narrow.items() if value not in (None, [])}
    for name in ("allow_entities", "principals"):
        if narrow[name] == []:  # an empty list admits nothing, and so must be sent
            stated_by[name] = []
    found: dict[str, Any] = {"role": session.role, "purpose": session.purpose}
    if session.subject is not None:
        found["subject"] = session.subject
    if session.glass is not None and session.glass.handle is not None:
        found["glass"] = session.glass.handle
    return {**found, "narrow": stated_by} if stated_by else found


def _add(data: bytearray, piece: bytes) -> None:
    data += piece
    if len(data) > _MAX_ANSWER:
        raise ServiceUnavailable(
            f"the service's answer is longer than {_MAX_ANSWER} bytes; ask for fewer passages"
        )


def _unreachable(url: str, error: Exception, hint: str) -> ServiceUnavailable:
    return ServiceUnavailable(f"{url} cannot be reached ({type(error).__name__}); is it running?{hint}")


def _done(job: JobBody) -> JobBody:
    """Return a job that is done, or raise the error that ended it."""
    if job.code is not None:
        from carag.service.problems import TITLES

        raise _error(job.code, TITLES.get(job.code, (500, ""))[0], f"; job {job.id} failed")
    return job


def _read(status: int, data: bytes, call: Call[Any]) -> Any:
    """Read an answer, or raise the error that the service reported."""
    if status in (200, 202):
        try:
            return call.read(data)
        except (ValidationError, UnicodeDecodeError):
            raise ServiceUnavailable(
                "the answer is not from a CARAG service of this version; check the address"
            ) from None
    from carag.service.problems import ProblemBody

    try:
        problem = ProblemBody.model_validate_json(data)
    except ValidationError:
        raise ServiceUnavailable(
            f"the service answered {status} without saying why; its own log may say more"
        ) from None
    wanted = problem.wanted or dict.fromkeys(problem.at or (), "")
    where = (
        f" ({'; '.join(f'{one}: {said}' if said else one for one, said in wanted.items())})" if wanted else ""
    )
    raise _error(problem.code, status, where + call.hint)


def _error(code: str, status: int, more: str) -> CaragError:
    """Return the engine's error for a problem."""
    from carag.service.problems import TITLES

    code = code if code in TITLES else "INTERNAL"
    told = f"{TITLES[code][1]}{more} [{code}]"
    if kind := _ERRORS.get(code):
        return kind(told)
    if status in (401, 403):
        return Refused(code, told)
    return InvalidArgument(told) if status in (400, 413, 415, 422) else ServiceUnavailable(told)


_ERRORS: Final[dict[str, type[CaragError]]] = {
    "AUDIT_UNAVAILABLE": AuditUnavailable,
    "MODEL_UNAVAILABLE": ModelUnavailable,
    "AUTHORIZER_UNAVAILABLE": AuthorizerUnavailable,
    "STORE_CORRUPT": CorruptFile,
}
