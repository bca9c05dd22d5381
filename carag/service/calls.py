"""What clients send to change a store, and how they read the answer: each call is defined once for both clients."""

from __future__ import annotations

import functools
import inspect
import secrets
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    Generic,
    NamedTuple,
    ParamSpec,
    Protocol,
    TypeVar,
    overload,
)

from carag.audit import Basis
from carag.engine.contents import read_text
from carag.errors import InvalidArgument
from carag.limits import check_label, check_text, quoted
from carag.policy.groups.reading import read_groups
from carag.policy.groups.statements import GroupImport
from carag.service import written
from carag.service.wire import JobBody, PolicyBody, receipt_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from os import PathLike

    from pydantic import BaseModel

    from carag.audit import Receipt
    from carag.engine.contents import GroupReport
    from carag.engine.erasing.documents import DueReport, ErasureReport
    from carag.engine.erasing.retention import Due
    from carag.engine.erasing.subject import SubjectReport
    from carag.engine.results import AddReport
    from carag.labelling.document import Document

_Given = ParamSpec("_Given")
_Kind = TypeVar("_Kind")
_Result = TypeVar("_Result")
_Result_co = TypeVar("_Result_co", covariant=True)
_FIRST_WAIT, _LONGEST_WAIT, _GROWTH = 0.1, 2.0, 1.5
"""Seconds between two looks at a job."""
ENDED: Final = ("done", "failed")
"""The last states of a job."""


class Call(NamedTuple, Generic[_Result]):
    """A request to a service: its path, and what reads the answer; without a body it is a GET.

    ``of_job`` makes the result of a job that has ended, for which the client then waits; ``hint`` is added to errors.
    """

    path: str
    read: Callable[[bytes], Any]
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = {}
    of_job: Callable[[JobBody], _Result] | None = None
    hint: str = ""


class Waiting:
    """The kind of client whose calls return results."""


class Awaited:
    """The kind of client whose calls are awaited."""


class Calls(Generic[_Kind]):
    """Calls of one kind of client."""

    _send: Callable[[Call[Any]], Any]


class _Sent(Protocol[_Given, _Result_co]):
    @overload
    def __get__(self, one: Calls[Waiting], kind: Any = None) -> Callable[_Given, _Result_co]: ...
    @overload
    def __get__(self, one: Calls[Awaited], kind: Any = None) -> Callable[_Given, Awaitable[_Result_co]]: ...


def sent(make: Callable[Concatenate[Any, _Given], Call[_Result]]) -> _Sent[_Given, _Result]:
    """Make a method of one that returns a call: it returns the result, or in an asynchronous client an awaitable."""

    @functools.wraps(make)
    def method(self: Any, *given: Any, **named: Any) -> Any:
        return self._send(make(self, *given, **named))

    stated = inspect.signature(make)
    result = str(stated.return_annotation).removeprefix("Call[").removesuffix("]")
    method.__signature__ = stated.replace(return_annotation=result)  # type: ignore[attr-defined]
    found: Any = method
    return found  # type: ignore[no-any-return]


class _Part(Calls[_Kind]):
    def __init__(self, send: Callable[[Call[Any]], Any]) -> None:
        self._send = send


class Holds(_Part[_Kind]):
    """What ``carag.Engine.erasures.holds`` has, over HTTP; the token must grant the duty ``admin``."""

    @sent
    def place(
        self,
        matter: str,
        *,
        by: str | None = None,
        ids: Iterable[str] = (),
        words: Iterable[str] = (),
        entity: int | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> Call[Receipt]:
        """Forbid erasing documents, on record, as ``carag.Engine.erasures.holds.place``; two people release it."""
        check_label("matter", matter)
        said = {"ids": _texts("ids", ids), "words": _texts("words", words), "where": conditions(where)}
        stated = {name: value for name, value in said.items() if value}

        def made(told: written.PlacedBody) -> Receipt:
            return receipt_of(told.receipt)

        return _once("hold", written.PlacedBody, made, by, matter=matter, entity=entity, **stated)

    @sent
    def on(self, ids: Iterable[str]) -> Call[dict[str, tuple[int, ...]]]:
        """Return, by the id of each document that is held, the records that placed the holds in force."""

        def made(told: written.HoldsBody) -> dict[str, tuple[int, ...]]:
            return {one: tuple(placed) for one, placed in told.held.items()}

        return Call("v1/held", reader(written.HoldsBody, made), {"ids": _texts("ids", ids)})


class Erasures(_Part[_Kind]):
    """What :attr:`carag.Engine.erasures` has, over HTTP; the token must grant the duty ``admin``."""

    @property
    def holds(self) -> Holds[_Kind]:
        """The legal holds on documents."""
        return Holds(self._send)

    @sent
    def due(self) -> Call[list[Due]]:
        """Return the documents that are due to be erased, those included that a hold or a duty keeps."""
        return Call("v1/due", reader(written.DueBody, written.due_of), {})

    @sent
    def erase_due(self, *, approver: str | None = None, by: str | None = None) -> Call[DueReport]:
        """Erase the documents that are due; persons and errors are as in :meth:`carag.Client.erase`."""
        return _once("erase-due", written.ErasedDueBody, written.erased_due_of, by, approver=approver)

    @sent
    def report(self, names: Iterable[str], *, why: str) -> Call[SubjectReport]:
        """Find where a person stands, on record; the token must grant the duty ``audit``, which is the role."""
        check_label("why", why)
        said = {"person": _texts("names", names), "why": why}
        return Call("v1/subject-report", reader(written.PersonBody, written.person_of), said)


class Contents(_Part[_Kind]):
    """What :attr:`carag.Engine.contents` has for groups, over HTTP."""

    @sent
    def import_groups(
        self, stated: str | PathLike[str] | GroupImport, *, by: str | None = None, dry_run: bool = False
    ) -> Call[GroupReport]:
        """Bring groups to what is stated, on record; a file is read here, and its days are the profile's.

        The token must grant the duty ``admin``. Raises InvalidArgument, and changes nothing, if anything in the file is
        not understood, a group would be inside itself, or is known under another spelling.
        """
        text = written.groups_text(stated) if isinstance(stated, GroupImport) else read_text(stated)
        if not isinstance(stated, GroupImport):
            read_groups(text, file=Path(stated).name)  # so that an error names the line
        return _once("groups", written.GroupReportBody, written.groups_of, by, groups=text, dry_run=dry_run)


class Writes(Calls[_Kind]):
    """The calls that change a store, and those about jobs, records and grants."""

    @property
    def erasures(self) -> Erasures[_Kind]:
        """Legal holds on documents, what is due to be erased, and reports on persons."""
        return Erasures(self._send)

    @property
    def contents(self) -> Contents[_Kind]:
        """Who is in which group."""
        return Contents(self._send)

    @sent
    def add(self, documents: Iterable[Document], *, by: str | None = None) -> Call[AddReport]:
        """Store documents as :meth:`carag.Engine.add` does, as a job, and wait for its end.

        The token must grant the duty ``operate``; ``by``, if given, must be its subject. If the connection is lost
        meanwhile, the error names the job, which goes on.

        Raises
        ------
        InvalidArgument
            If a document is not valid, names its bits by numbers, or the service does not take it; nothing is stored.
        Refused, AuditUnavailable, ModelUnavailable, ServiceUnavailable
            As for :meth:`ask`; ``TOKEN_DUTY`` without the duty.
        """
        call = _once("ingest", JobBody, same, by, documents=[written.document_json(one) for one in documents])
        return call._replace(of_job=written.added_of)

    @sent
    def remove(self, ids: Iterable[str], *, by: str | None = None) -> Call[int]:
        """Withdraw documents as :meth:`carag.Engine.remove` does, as a job; otherwise as :meth:`add`."""
        call = _once("ingest", JobBody, same, by, remove=_texts("ids", ids))
        return call._replace(of_job=lambda job: job.removed)

    @sent
    def job(self, job_id: str) -> Call[JobBody]:
        """Return the state of a job of the token's person, until a day after its end; errors as for :meth:`add`."""
        return job_call(job_id)

    @sent
    def erase(
        self,
        ids: Iterable[str],
        *,
        basis: Basis | str,
        approver: str | None = None,
        by: str | None = None,
        dry_run: bool = False,
    ) -> Call[ErasureReport]:
        """Erase documents for good, as :meth:`carag.Engine.erase` does.

        The token must grant the duty ``admin``; ``by``, if given, must be its subject. ``approver`` is the bearer token
        of a second person, which grants the same duty, and is needed unless the profile lets one person erase.

        Raises
        ------
        Refused
            ``LEGAL_HOLD``, ``RETENTION``, ``APPROVER_REQUIRED``, or a code that starts with ``TOKEN_``.
        InvalidArgument
            If an id is not in the store, or another argument is not valid; nothing is erased.
        AuditUnavailable, ServiceUnavailable
            As for :meth:`ask`. After a time limit, or if the connection is lost, the erasure may have been done.
        """
        if basis not in [*Basis]:
            raise InvalidArgument(f"basis is {quoted(basis)}; want one of {', '.join(Basis)}")
        said = {"ids": _texts("ids", ids), "basis": str(basis), "dry_run": dry_run, "approver": approver}
        return _once("erase", written.ErasureBody, written.erasure_of, by, **said)

    @sent
    def policy(self) -> Call[PolicyBody]:
        """Return the profile's name and the cells that the token grants; errors as for :meth:`ask`."""
        return Call("v1/policy", reader(PolicyBody, same))

    @sent
    def receipt(self, seq: int) -> Call[bytes]:
        """Return the file of the receipt of one of the person's own records; errors as for :meth:`ask`.

        It opens nothing and has no passages; :func:`carag.audit.verify_receipt` checks it.
        """
        if type(seq) is not int or seq < 0:
            raise InvalidArgument(f"seq is {quoted(seq)}; want the number of a record")
        return Call(f"v1/receipts/{seq}", lambda data: data.rstrip(b" "))

    @sent
    def checkpoint(self) -> Call[str]:
        """Return the log's newest signed checkpoint; errors as for :meth:`ask`."""
        return Call("log/checkpoint", lambda data: data.decode().rstrip(" "))


def job_call(id_: str) -> Call[JobBody]:
    """Ask for the state of a job."""
    if not (isinstance(id_, str) and id_.isalnum() and id_.isascii()):
        raise InvalidArgument(f"the id of a job is {quoted(id_)}; want the one that the service gave")
    hint = f"; the job is not affected: Client.job({id_!r}) tells its state"
    return Call(f"v1/jobs/{id_}", reader(JobBody, same), hint=hint)


def waits() -> Iterator[float]:
    """Yield the seconds to wait before each look at a job."""
    wait = _FIRST_WAIT
    while True:
        yield wait
        wait = min(wait * _GROWTH, _LONGEST_WAIT)


def reader(schema: type[BaseModel], made: Callable[[Any], _Result]) -> Callable[[bytes], _Result]:
    """Return what reads a body of JSON and makes a result of it."""
    return lambda data: made(schema.model_validate_json(data))


def same(said: _Result) -> _Result:
    """Return what was sent."""
    return said


def conditions(where: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return conditions on metadata in the form that JSON can hold; InvalidArgument if it has no such form."""
    if where is None:
        return None
    if not isinstance(where, Mapping):
        raise InvalidArgument(f'where is {quoted(where)}; want fields and values, as in {{"year": 2024}}')
    return {name: _plain(value) for name, value in where.items()}


def _plain(value: Any) -> Any:
    """Return a condition in the form that JSON can hold."""
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_plain(one) for one in value]
    if value is None or isinstance(value, str | int | float):
        return value
    raise InvalidArgument(
        f"where contains a {type(value).__name__}; want strings, numbers, dates and lists of them"
    )


def _once(
    path: str, schema: type[BaseModel], made: Callable[[Any], Any], by: str | None, **said: Any
) -> Call[Any]:
    """Make a call that the service does once, however often it arrives."""
    if by is not None:
        check_label("by", by)
    body = {name: value for name, value in {**said, "subject": by}.items() if value is not None}
    return Call(f"v1/{path}", reader(schema, made), body, {"Idempotency-Key": secrets.token_hex(16)})


def _texts(name: str, several: Iterable[str]) -> list[str]:
    if isinstance(several, str):
        raise InvalidArgument(f"{name} is {quoted(several)}; want several texts, such as a list")
    found = [*several]
    for one in found:
        check_text(name, one)
    return found
