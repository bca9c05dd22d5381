"""Read JSON Lines: one strict JSON object per line, each line bounded."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar

from carag.errors import CorruptFile, InvalidArgument
from carag.limits import quoted, shown
from carag.readers.facts import check_facts
from carag.readers.outcome import Content, too_large

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from os import PathLike

    from carag.readers.packed import Unpacked


MAX_LINE: Final = 1 << 26
"""Greatest number of bytes of one line."""
LEFT_OUT: Final = "left out: no text, number or list of texts"
"""The value of a fact that is left out because it is nested. This text is stored, so it must not change."""
_Parsed = TypeVar("_Parsed")
_BOM: Final = b"\xef\xbb\xbf"


def lines_of(stream: IO[bytes] | Unpacked) -> Iterator[tuple[int, bytes | None]]:
    """Yield each line that is not blank with its number; None for a line longer than ``MAX_LINE``."""
    for number, line in bounded_lines(stream.readline, MAX_LINE):
        bare = line.removeprefix(_BOM) if line and number == 1 else line
        if bare is None or bare.strip():
            yield number, bare


def bounded_lines(read: Callable[[int], bytes], most: int) -> Iterator[tuple[int, bytes | None]]:
    """Yield each line that is not blank with its number; None for a line of more than ``most`` bytes.

    ``read`` is like a file's ``readline``: it returns the next line up to a number of bytes, and nothing at the end.
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


def parsed_lines(
    path: str | PathLike[str], most: int, parse: Callable[[int, bytes | None], _Parsed]
) -> tuple[list[_Parsed], bytes]:
    """Return what ``parse`` makes of each line that is not blank, given its number, and the SHA-256 of the file.

    Raises ``InvalidArgument`` if the file cannot be read, or names the line for which ``parse`` raises that or
    ``CorruptFile``. A line of more than ``most`` bytes is None.
    """
    digest, named = hashlib.sha256(), shown(str(path))
    found: list[_Parsed] = []
    try:
        stream = Path(path).open("rb")  # noqa: SIM115 - closed by the with below
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the path
        raise InvalidArgument(f"cannot read {named}: {error}; want a JSON Lines file") from error
    with stream:

        def read(most: int) -> bytes:
            digest.update(line := stream.readline(most))
            return line

        for number, line in bounded_lines(read, most):
            try:
                found.append(parse(number, line))
            except (InvalidArgument, CorruptFile) as error:
                raise InvalidArgument(f"{named}, line {number}: {error}") from None
    return found, digest.digest()


def strict_json(text: str) -> Any:
    """Parse JSON with unique keys and finite numbers.

    Raises ``CorruptFile`` if an object repeats a key, which RFC 8259, section 4, leaves undefined, or a number is NaN
    or infinite. Raises ``ValueError`` or ``RecursionError`` if the text is not JSON, or is nested too deep for Python;
    the caller knows what was wanted.
    """
    return json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)


def content_of_row(line: bytes | None, *, leaves_out: Callable[[str], bool] | None = None) -> Content:
    """Return the document in a line: its fields ``id`` and ``text``, and the rest as metadata.

    ``leaves_out`` tells by its name whether a nested field may be left out. The name stays among the facts, because it
    may be a misspelling of a field that a rule reads. Raises ``CorruptFile`` if the line is not such a row.
    """
    row = row_of(line)
    text = row.pop("text", None)
    if not isinstance(text, str):
        raise CorruptFile("the field 'text' is missing or not a string; want the document's text")
    if "id" not in row:
        raise CorruptFile(
            "the field 'id' is missing; state one, because line numbers change when lines are added"
        )
    nested = [name for name in row if leaves_out is not None and _is_nested(row[name]) and leaves_out(name)]
    return Content(text, facts=check_facts(row | dict.fromkeys(nested, LEFT_OUT)), left_out=(*nested,))


def row_of(line: bytes | None) -> dict[str, Any]:
    """Return the fields of a line, without those that are null.

    Raises ``CorruptFile`` if the line is not a JSON object, or repeats a field.
    """
    if line is None:
        raise too_large(f"the line has more than {MAX_LINE} bytes; split the document")
    try:
        row = strict_json(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise CorruptFile(f"byte {error.start + 1} of the line is not UTF-8; want UTF-8") from None
    except RecursionError:
        raise CorruptFile("the JSON is nested too deep; want metadata fields that are not nested") from None
    except ValueError as error:
        raise CorruptFile(f"the line is not JSON ({error}); want one JSON object per line") from None
    if not isinstance(row, dict):
        raise CorruptFile(f"the line is a JSON {type(row).__name__}; want one JSON object per line")
    return {name: value for name, value in row.items() if value is not None}


def _is_nested(value: object) -> bool:
    if isinstance(value, list):
        return not all(isinstance(item, str) for item in value)
    return isinstance(value, dict)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise CorruptFile(f"the key {quoted(twice)} occurs twice in one object; want it once")
    return found


def _no_number(word: str) -> Any:
    raise CorruptFile(f"{word} is not a valid number; write null for an unknown one")
