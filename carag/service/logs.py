"""Write a service's log as lines of JSON or text, with an allow-list of keys, so that no content gets into it."""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TextIO

from carag.audit import RecordKind
from carag.errors import type_and_place
from carag.service.metrics import OPERATIONS
from carag.visible import logger, visible_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


_logger = logger(__name__)

EVENTS: Final = frozenset(
    {
        "ANCHORED",
        "ANCHOR_CONTRADICTS",
        "ANCHOR_MISSED",
        "ANCHOR_UNRECORDED",
        "ANCHOR_WINDOW",
        "CLOSED",
        "ERROR",
        "KEYS_UNAVAILABLE",
        "OPENED",
        "RECORD",
        "REQUEST",
        "SERVING",
        "SLOT_TOO_SHORT",
    }
)
"""Events of CARAG's lines; a line without a code of its own is ``OTHER``, and ``at`` tells these apart."""
_OTHER: Final = "OTHER"
_FOREIGN: Final = "FOREIGN"
_CODE: Final = re.compile(r"[A-Z][A-Z0-9_]{0,63}", re.ASCII)
_PLACE: Final = re.compile(r"[\w.<>-]{1,100}:\d+", re.ASCII)
_ERROR: Final = re.compile(r"\w{1,100}( at [\w.<>-]{1,100}:\d+)?", re.ASCII)
_LOGGER: Final = re.compile(r"[\w.]{1,200}", re.ASCII)
_OPERATIONS: Final = frozenset(OPERATIONS) | {kind.value for kind in RecordKind}


def _is_number(value: object) -> bool:
    return type(value) is int and value >= 0


def _among(names: frozenset[str]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and value in names


def _of_form(form: re.Pattern[str]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and form.fullmatch(value) is not None


KEYS: Final[Mapping[str, Callable[[object], bool]]] = {
    "time": lambda _: True,
    "level": _among(frozenset(logging.getLevelNamesMapping())),
    "logger": _of_form(_LOGGER),
    "event": _among(EVENTS | {_OTHER, _FOREIGN}),
    "at": _of_form(_PLACE),
    "operation": _among(_OPERATIONS),
    "status": _is_number,
    "ms": _is_number,
    "record": _is_number,
    "code": _of_form(_CODE),
    "error": _of_form(_ERROR),
}
"""Every key that a line may have, with the check of its value; a value that fails becomes ``other``."""
_OWN: Final = ("operation", "status", "ms", "record", "code", "error")
"""Keys that CARAG's own modules pass as ``extra``; those of other packages are not read."""


class Lines(logging.Formatter):
    """Write a log record as one line.

    - ``form``: ``"json"``, or ``"text"``, which also contains CARAG's own messages.
    """

    def __init__(self, form: str) -> None:
        super().__init__()
        self._is_json = form == "json"

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; the message of a foreign record is never formatted."""
        found = _facts(record)
        if self._is_json:
            return json.dumps(found, separators=(",", ":"))
        told = found["event"]
        if told != _FOREIGN:
            return f"{found['time']} {record.name}: {visible_line(record.getMessage())}"
        rest = " ".join(str(found[key]) for key in ("level", "at", "error") if key in found)
        return f"{found['time']} {found['logger']}: {told} {rest}"


@contextmanager
def shown(form: str, stream: TextIO | None = None) -> Iterator[None]:
    """Write the log to a stream, by default standard error: CARAG's from INFO up, everything else from WARNING up.

    Warnings, and errors that end a thread or cannot be caught, are written the same way: Python itself would print them
    with their messages.
    """
    handler, root, ours = _Handler(stream or sys.stderr), logging.getLogger(), logging.getLogger("carag")
    handler.setFormatter(Lines(form))
    levels = root.level, ours.level
    hooks = threading.excepthook, sys.unraisablehook
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    ours.setLevel(logging.INFO)
    logging.captureWarnings(True)
    threading.excepthook = sys.unraisablehook = _unhandled
    try:
        yield
    finally:
        threading.excepthook, sys.unraisablehook = hooks
        logging.captureWarnings(False)
        root.removeHandler(handler)
        root.setLevel(levels[0])
        ours.setLevel(levels[1])


class _Handler(logging.StreamHandler[TextIO]):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Skip the line: logging's default would print the message and its arguments."""


def _facts(record: logging.LogRecord) -> dict[str, Any]:
    is_ours = record.name.split(".")[0] == "carag"
    given = {key: getattr(record, key, None) for key in _OWN} if is_ours else {}
    if record.exc_info and record.exc_info[1] is not None:
        given["error"] = type_and_place(record.exc_info[1])
    at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    found = {
        "time": at.replace("+00:00", "Z"),
        "level": record.levelname,
        "logger": record.name,
        "event": getattr(record, "event", _OTHER) if is_ours else _FOREIGN,
        "at": f"{record.filename}:{record.lineno}",
        **{key: value for key, value in given.items() if value is not None},
    }
    return {key: value if KEYS[key](value) else "other" for key, value in found.items()}


def _unhandled(said: Any) -> None:
    """Log an uncaught error by type and place; the arguments of both hooks have the same attributes."""
    error = said.exc_value
    place = "Exception" if error is None else type_and_place(error)
    _logger.error("uncaught: %s", place, extra={"event": "ERROR", "error": place})
