"""Read JSON Lines: one strict JSON object a line, each line bounded."""

from __future__ import annotations

import json
from collections import Counter
from typing import IO, TYPE_CHECKING, Any, Final

from carag.errors import CorruptFile
from carag.limits import quoted
from carag.readers.facts import check_facts
from carag.readers.outcome import Content, ProblemKind, Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from carag.readers.packed import Unpacked

__all__ = ["bounded_lines", "content_of_row", "lines_of", "row_of", "strict_json"]

MAX_LINE: Final = 1 << 26
"""Greatest number of bytes of one line."""
LEFT_OUT: Final = "left out: no text, number or list of texts"
"""What stands as a fact in the place of a nested one that is left out."""
_BOM: Final = b"\xef\xbb\xbf"


def lines_of(stream: IO[bytes] | Unpacked) -> Iterator[tuple[int, bytes | None]]:
    """Yield the lines that are not blank with their numbers, and None for one longer than ``MAX_LINE``."""
    for number, line in bounded_lines(stream.readline, MAX_LINE):
        bare = line.removeprefix(_BOM) if line and number == 1 else line
        if bare is None or bare.strip():
            yield number, bare


def bounded_lines(read: Callable[[int], bytes], most: int) -> Iterator[tuple[int, bytes | None]]:
    """Yield the lines that are not blank with their numbers, and None for one of more than ``most`` bytes.

    Parameters
    ----------
    read : callable
        Returns the next line up to a number of bytes, and nothing at the end, as ``readline`` of a file does.
    most : int
    """
    number = 0
    while line := read(most + 1):
        number += 1
        if len(line) <= most:
            if line.strip():
                yield number, line
            continue
        while line and not line.endswith(b"\n"):
            line = read(most + 1)
        yield number, None


def strict_json(text: str) -> Any:
    """Parse JSON in which no key stands twice and every number is one.

    Raises
    ------
    CorruptFile
        If a key stands twice in an object, which RFC 8259, section 4, leaves undefined, or a number is NaN or infinite.
    ValueError, RecursionError
        If it is no JSON, or nested too deep for Python; the caller knows what was wanted.
    """
    return json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)


def content_of_row(line: bytes | None, *, leaves_out: Callable[[str], bool] | None = None) -> Content:
    r"""Return the document that a line holds: its fields ``id`` and ``text``, and the rest as metadata.

    Parameters
    ----------
    line : bytes, optional
    leaves_out : callable, optional
        Tells by its name whether a field that is an object, or a list of anything but texts, is left out. The fact then
        says so: its name stays, for it may be a slip of the pen in the name of one that a rule reads.

    Raises
    ------
    CorruptFile
        If it is no such row.

    Examples
    --------
    >>> content_of_row(b'{"id": "a", "text": "Body", "year": 2024, "note": null}').facts
    {'id': 'a', 'year': 2024}
    >>> content_of_row(b'{"id": "a", "text": "Body", "parts": [{"n": 1}]}', leaves_out="parts".__eq__).left_out
    ('parts',)
    """
    row = row_of(line)
    text = row.pop("text", None)
    if not isinstance(text, str):
        raise CorruptFile("no text in the field 'text'; want one")
    if "id" not in row:
        raise CorruptFile("no field 'id'; want one, because a line's number changes when lines are added")
    nested = [name for name in row if leaves_out is not None and _is_nested(row[name]) and leaves_out(name)]
    return Content(text, facts=check_facts(row | dict.fromkeys(nested, LEFT_OUT)), left_out=(*nested,))


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
        row = strict_json(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise CorruptFile(f"byte {error.start + 1} of the line is not UTF-8; want UTF-8") from None
    except RecursionError:
        raise CorruptFile("JSON nested too deep; want metadata fields that are not nested") from None
    except ValueError as error:
        raise CorruptFile(f"no JSON ({error}); want one JSON object a line") from None
    if not isinstance(row, dict):
        raise CorruptFile(f"JSON of type {type(row).__name__}; want one JSON object a line")
    return {name: value for name, value in row.items() if value is not None}


def _is_nested(value: object) -> bool:
    if isinstance(value, list):
        return not all(isinstance(item, str) for item in value)
    return isinstance(value, dict)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise CorruptFile(f"the key {quoted(twice)} stands twice in one object; want it once")
    return found


def _no_number(word: str) -> Any:
    raise CorruptFile(f"{word} is no number; want null where none is known")
