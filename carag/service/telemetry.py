"""Describe each request in one OpenTelemetry span, with an allow-list of attributes and of their values."""

from __future__ import annotations

import re
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from carag.audit import Access, Outcome
from carag.audit.receipts.receipt import open_envelope
from carag.audit.records.record import Record
from carag.audit.tlog.encoding import MAX_INTEGER
from carag.errors import InvalidArgument
from carag.service.metrics import OPERATIONS
from carag.service.problems import TITLES

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from carag.policy import PolicyTable


_METHODS: Final = frozenset({"GET", "POST"})
_OTHER_METHOD: Final = "_OTHER"
"""How the semantic conventions for HTTP write an unknown method."""
_K: Final = (1, 5, 10, 20, 50, 100, 200, 400)
"""Upper bounds of the passages asked for: the exact number could tell two people apart."""
_PLANS: Final = frozenset({"exact", "graph", "scan", "certified"})
"""The same as :class:`carag.index.Plan`, without importing it; a test compares them."""


class _Names:
    """Model names, which an operator configured and records state; they never come from a request."""

    _FORM: Final = re.compile(r"[\w.:/@+-]{1,100}", re.ASCII)

    def __contains__(self, value: object) -> bool:
        return isinstance(value, str) and self._FORM.fullmatch(value) is not None


ALLOWED: Final[Mapping[str, Container[object]]] = {
    "http.request.method": _METHODS | {_OTHER_METHOD},
    "http.response.status_code": range(100, 600),
    "carag.operation": frozenset(OPERATIONS),
    "carag.code": frozenset(TITLES),
    "carag.outcome": frozenset(one.value for one in Outcome),
    "carag.record": range(MAX_INTEGER + 1),
    "carag.role": frozenset(),
    "carag.purpose": frozenset(),
    "carag.plan": frozenset(),
    "carag.k": frozenset(_K),
    "carag.embedder": _Names(),
    "carag.generator": _Names(),
}
"""Every attribute that a span may have, with its values. The values of role and purpose are the policy table's; a plan
may be several of its values joined by ``/``.
"""
_OTHER: Final = "other"
"""Stands for a value that is not listed."""


def attribute(name: str, value: object, table: PolicyTable | None = None) -> str | int:
    """Return the value for an attribute: the given one if it is allowed, else ``other``.

    - ``name``: one of :data:`ALLOWED`.
    - ``table``: the table whose roles and purposes are allowed; without one, none are allowed.

    Raises InvalidArgument if there is no such attribute.
    """
    if name not in ALLOWED:
        raise InvalidArgument(f"there is no attribute {name}; want one of ALLOWED")
    if type(value) is int and value in ALLOWED[name]:
        return value
    if type(value) is str and not isinstance(
        ALLOWED[name], range
    ):  # a range would be searched number by number
        if name == "carag.plan":
            is_allowed = _PLANS.issuperset(value.split("/"))
        elif table is not None and name in {"carag.role", "carag.purpose"}:
            is_allowed = value in (table.roles if name == "carag.role" else table.purposes)
        else:
            is_allowed = value in ALLOWED[name]
        if is_allowed:
            return value
    return _OTHER


@contextmanager
def request(method: str, traceparent: str | None) -> Iterator[None]:
    """Open the span of one request, which :func:`note` describes, within the trace that its header names.

    Only the two ids and the flags of that trace are used (W3C Trace Context): ``tracestate`` and ``baggage`` are free
    text, and are not read.
    """
    tracer = _tracer()
    if tracer is None:
        yield
        return
    from opentelemetry.trace import SpanKind
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier = {} if traceparent is None else {"traceparent": traceparent}
    with tracer.start_as_current_span(
        "request",
        context=TraceContextTextMapPropagator().extract(carrier),
        kind=SpanKind.SERVER,
        record_exception=False,  # its message may contain content
        set_status_on_exception=False,
    ):
        note({"http.request.method": method if method in _METHODS else _OTHER_METHOD})
        yield


def note(facts: Mapping[str, object], table: PolicyTable | None = None) -> None:
    """Set attributes on the current request's span, each through :func:`attribute`, except those that are None."""
    span = _recording()
    if span is None:
        return
    from opentelemetry.trace import StatusCode

    found = {name: attribute(name, value, table) for name, value in facts.items() if value is not None}
    span.set_attributes(found)
    if "carag.operation" in found:
        span.update_name(str(found["carag.operation"]))
    if found.get("http.response.status_code", 0) in range(500, 600):
        span.set_status(StatusCode.ERROR, str(found.get("carag.code", "INTERNAL")))


def describe(found: Mapping[str, Any], table: PolicyTable, k: int | None) -> None:
    """Set attributes on the current request's span from its record, as far as :data:`ALLOWED` has them.

    - ``found``: an answer, retrieval or explanation as :mod:`carag.service.wire` writes it.
    - ``k``: how many passages were asked for.
    """
    if _recording() is None:
        return
    event = Record.parse(open_envelope(found["receipt"].encode()).record.encode()).event
    if not isinstance(event, Access):
        return
    models, index = event.models, event.index
    facts = {
        "carag.outcome": event.outcome.value,
        "carag.record": found["record"],
        "carag.role": event.role,
        "carag.purpose": event.purpose,
        "carag.plan": None if index is None else index.plan or None,
        "carag.k": None if k is None else next((bound for bound in _K if k <= bound), None),
        "carag.embedder": models.embed,
        "carag.generator": models.generate,
    }
    note(facts, table)


@cache
def _tracer() -> Any:
    try:
        from opentelemetry.trace import get_tracer
    except ImportError:
        return None
    return get_tracer("carag.service")


def _recording() -> Any:
    """Return the current span if it is being recorded."""
    if _tracer() is None:
        return None
    from opentelemetry.trace import get_current_span

    span = get_current_span()
    return span if span.is_recording() else None
