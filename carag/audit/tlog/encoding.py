"""Encode canonical JSON (RFC 8785) and base64: each value has one byte string, whose hash identifies the value.

The JSON is the part of RFC 8785 (JCS) that a record needs: objects with ASCII snake_case keys, arrays,
strings, integers below 2**53 and null, nested at most 16 deep. There are no floats and no booleans, so
``json.dumps`` with sorted keys and no spaces writes the RFC's bytes.

Every reader of :mod:`carag.audit` decodes, encodes again and compares, so that bytes that do not come back unchanged (a
duplicate key, a space, stray base64 bits) are refused without listing such cases.
"""

from __future__ import annotations

import base64
import binascii
import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

from carag.errors import CorruptFile, InvalidArgument
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


Json: TypeAlias = "int | str | Sequence[Json] | Mapping[str, Json] | None"

MAX_INTEGER: Final = (1 << 53) - 1
"""The largest integer that every JSON reader reads exactly (RFC 8785 section 3.2.2.3)."""

MAX_NESTING: Final = 16
"""Greatest nesting of objects and arrays; records and receipts have at most six levels."""

_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)
_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")


def encode(value: Json) -> bytes:
    r"""Write a value as canonical JSON.

    Raises InvalidArgument if the value has no canonical form: a float, a boolean, a large integer, a lone surrogate, an
    odd key, too deep a nesting.

    Examples
    --------
    >>> encode({"t": "a\n", "s": [1, None]})
    b'{"s":[1,null],"t":"a\\n"}'
    """
    _check(value)
    text = _ENCODER.encode(value)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidArgument(
            f"a string has a lone surrogate, which UTF-8 cannot carry: {error.reason}"
        ) from error


def decode(data: bytes) -> Any:
    """Read canonical JSON; CorruptFile for bytes that do not encode to themselves."""
    value = load(data)
    try:
        again = encode(value)
    except (InvalidArgument, RecursionError) as error:
        raise CorruptFile(f"not canonical JSON: {error}") from error
    if again != data:
        raise CorruptFile(
            "not canonical JSON: spaces, key order, a repeated key or another spelling of a value"
        )
    return value


def load(data: bytes) -> Any:
    """Read JSON without checking that it is canonical, for callers that compare the bytes themselves."""
    try:
        text = data.decode("utf-8")
        value, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError) as error:
        raise CorruptFile(f"not JSON as in records: {error}") from error
    if end != len(text):
        raise CorruptFile(f"not JSON as in records: {len(text) - end} characters after the value")
    return value


def b64url(data: bytes) -> str:
    """Encode as base64url without padding (RFC 4648 section 5), as records do."""
    return binascii.b2a_base64(data, newline=False).translate(_URL_SAFE, b"=").decode("ascii")


def unb64url(text: object, size: int) -> bytes:
    """Decode the canonical base64url form of ``size`` bytes; CorruptFile for anything else."""
    if isinstance(text, str) and text.isascii():
        try:
            data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except binascii.Error:
            data = b""
        if len(data) == size and b64url(data) == text:
            return data
    raise CorruptFile(f"want {size} bytes in unpadded base64url, got {quoted(text)}")


def b64(data: bytes) -> str:
    """Encode as standard base64 with padding (RFC 4648 section 4), as the C2SP formats do."""
    return base64.b64encode(data).decode("ascii")


def unb64(text: str) -> bytes:
    """Decode standard base64 in its canonical form; CorruptFile for anything else."""
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (ValueError, binascii.Error) as error:
        raise CorruptFile(f"not base64: {quoted(text)}") from error
    if b64(data) != text:
        raise CorruptFile(f"not the canonical base64 spelling: {quoted(text)}")
    return data


def _no_float(text: str) -> NoReturn:
    raise ValueError(f"numbers must be integers, got {text}")


_DECODER: Final = json.JSONDecoder(
    parse_float=_no_float, parse_constant=_no_float
)  # created once: a log has millions of records


def _check(value: object, depth: int = 0) -> None:
    if depth >= MAX_NESTING and isinstance(value, (dict, list, tuple)):
        raise InvalidArgument(f"canonical JSON is nested at most {MAX_NESTING} deep")
    if isinstance(value, dict):
        for key in value:
            if not _is_key(key):
                raise InvalidArgument(f"keys are ASCII snake_case, got {quoted(key)}")
        values: Iterable[object] = value.values()
    elif isinstance(value, (list, tuple)):
        values = value
    else:
        values = (value,)
    for item in values:
        kind = type(item)  # fast path: nearly all values have these types, and every record is checked here
        if kind is str or item is None or (kind is int and -MAX_INTEGER <= item <= MAX_INTEGER):  # type: ignore[operator]
            continue
        if isinstance(item, (dict, list, tuple)):
            _check(item, depth + 1)
        elif isinstance(item, (bool, float)):
            raise InvalidArgument(f"canonical JSON has neither floats nor booleans, got {quoted(item)}")
        elif isinstance(item, int):
            if abs(item) > MAX_INTEGER:
                raise InvalidArgument(f"want integers within +-(2**53 - 1), got {item}")
        elif not isinstance(item, str):
            raise InvalidArgument(f"canonical JSON cannot hold a {type(item).__name__}")


@lru_cache(maxsize=1024)
def _is_key(key: object) -> bool:
    return isinstance(key, str) and key.isascii() and key.isidentifier() and key.islower()
