"""Read JSON Lines: one strict JSON object a line, each line bounded."""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING, Any, Final

from carag.errors import CorruptFile
from carag.limits import quoted
from carag.readers.facts import check_facts
from carag.readers.outcome import Content, ProblemKind, Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["content_of_row", "lines_of", "row_of"]

MAX_LINE: Final = 1 << 26
"""Greatest number of bytes of one line."""
_BOM: Final = b"\xef\xbb\xbf"


def lines_of(stream: IO[bytes]) -> Iterator[tuple[int, bytes | None]]:
    """Yield the lines that are not blank with their numbers, and None for one longer than ``MAX_LINE``."""
    number = 0
    while line := stream.readline(MAX_LINE + 1):
        number += 1
        if number == 1:
            line = line.removeprefix(_BOM)
        if len(line) <= MAX_LINE:
            if line.strip():
                yield number, line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(MAX_LINE + 1)
        yield number, None


def content_of_row(line: bytes | None) -> Content:
    r"""Return the document that a line holds: its fields ``id`` and ``text``, and the rest as metadata.

    Raises
    ------
    CorruptFile
        If it is no such row.

    Examples
    --------
    >>> content_of_row(b'{"id": "a", "text": "Body", "year": 2024, "note": null}').facts
    {'id': 'a', 'year': 2024}
    """
    row = row_of(line)
    text = row.pop("text", None)
    if not isinstance(text, str):
        raise CorruptFile("no text in the field 'text'; want one")
    if "id" not in row:
        raise CorruptFile("no field 'id'; want one, because a line's number changes when lines are added")
    return Content(text, facts=check_facts(row))


def row_of(line: bytes | None) -> dict[str, Any]:
    """Return the fields that a line states; one that is null is not stated.

    Raises
    ------
    CorruptFile
        If it is no JSON object, or states a field twice.
    """
    if line is None:
        raise Unreadable(ProblemKind.TOO_LARGE, f"the line has more than {MAX_LINE} bytes; want fewer")
    try:
        row = json.loads(line.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_number)
    except UnicodeDecodeError as error:
        raise CorruptFile(f"byte {error.start + 1} of the line is not UTF-8; want UTF-8") from None
    except RecursionError:
        raise CorruptFile("JSON nested too deep; want metadata fields that are not nested") from None
    except ValueError as error:
        raise CorruptFile(f"no JSON ({error}); want one JSON object a line") from None
    if not isinstance(row, dict):
        raise CorruptFile(f"JSON of type {type(row).__name__}; want one JSON object a line")
    return {name: value for name, value in row.items() if value is not None}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse duplicate keys: JSON does not define which value counts (RFC 8259, section 4)."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise CorruptFile(f"the key {quoted(name)} stands twice in one object; want it once")
        found[name] = value
    return found


def _no_number(word: str) -> Any:
    raise CorruptFile(f"{word} is no number; want null where none is known")
