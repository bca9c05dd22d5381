"""Check the values of a record's fields. Each function returns the value or raises InvalidArgument."""

from __future__ import annotations

import re
from typing import Any, Final

from carag.audit.tlog.encoding import MAX_INTEGER as MAX_INTEGER
from carag.errors import InvalidArgument
from carag.limits import check_label, quoted

DIGEST_SIZE: Final = 32
"""Bytes of a SHA-256 digest."""
MILLION: Final = 1_000_000
"""Millionths in one: records hold no floats."""
_KEY: Final = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)
_CODE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/@-]{0,63}", re.ASCII)


def label(name: str, value: Any) -> Any:
    check_label(name, value)
    return value


def integer(name: str, value: Any, low: int, high: int = MAX_INTEGER) -> Any:
    if type(value) is int and low <= value <= high:
        return value
    if isinstance(value, bool) or not hasattr(value, "__index__") or not low <= value.__index__() <= high:
        raise InvalidArgument(f"{name} is {quoted(value)}; want an integer in {low}..{high}")
    return value


def code(name: str, value: Any) -> Any:
    if not (isinstance(value, str) and _CODE.fullmatch(value)):
        raise InvalidArgument(
            f"{name} is {quoted(value)}; want a code of up to 64 letters, digits and _.:/@-"
        )
    return value


def key(name: str, value: Any) -> Any:
    if not (isinstance(value, str) and _KEY.fullmatch(value)):
        raise InvalidArgument(
            f"{name} is {quoted(value)}; want a name of up to 64 lower-case letters, digits and _"
        )
    return value


def digest(name: str, value: Any, size: int = DIGEST_SIZE) -> Any:
    if not (isinstance(value, bytes) and len(value) == size):
        raise InvalidArgument(f"{name} is {quoted(value)}; want {size} bytes")
    return value


def member(kind: Any, value: object) -> Any:
    try:
        return kind(value)
    except ValueError as error:
        allowed = ", ".join(member.value for member in kind)
        raise InvalidArgument(
            f"{quoted(value)} is not a valid {kind.__name__}; want one of {allowed}"
        ) from error
