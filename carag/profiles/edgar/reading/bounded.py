"""Read files within limits of size, growth and nesting.

Sizes are checked while reading, so a maliciously large file costs no more than the limit. The figures about real files
are from 4,758 filings, 3,441 headers and 78,626 rows of an index.
"""

from __future__ import annotations

import math
import zlib
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Final

from carag.errors import CorruptFile, InvalidArgument
from carag.limits import INT64, check_text, quoted
from carag.readers.json_rows import bounded_lines, strict_json
from carag.readers.packed import Unpacked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


MAX_LINE: Final = 1 << 25
"""Greatest number of bytes in one line: 22 times the longest real row (1,468,433)."""
MAX_FILE: Final = 1 << 28
"""Greatest number of decompressed bytes in a file that is read whole: one filing, or one filer's submissions. A file
that is read line by line may have any size."""
MAX_NESTING: Final = 32
"""Greatest depth of nested JSON arrays and objects; real rows have 4."""

READ_ERRORS: Final = (OSError, EOFError, zlib.error, UnicodeDecodeError)
"""Exceptions other than CorruptFile that reading a damaged file may raise."""


class Source:
    """A file being read, decompressed if its name ends in ``.gz``."""

    def __init__(self, raw: IO[bytes], stream: IO[bytes] | Unpacked) -> None:
        self._raw = raw
        self._stream = stream

    @property
    def position(self) -> int:
        """Bytes of the file read so far, before decompression."""
        return self._raw.tell()

    def whole(self) -> bytes:
        """Return the content.

        Raises ``CorruptFile`` if the content is larger than ``MAX_FILE``.
        """
        content = b"".join(iter(lambda: self._read(MAX_LINE), b""))
        if self._stream.read(1):
            raise CorruptFile(
                f"has more than {MAX_FILE} bytes; want one filing, or one filer's submissions, per file"
            )
        return content

    def lines(self) -> Iterator[tuple[int, bytes | None]]:
        """Yield each line that is not blank with its number; None for a line longer than ``MAX_LINE``."""
        return bounded_lines(self._stream.readline, MAX_LINE)

    def _read(self, size: int) -> bytes:
        return self._stream.read(min(size, MAX_FILE - self._stream.tell()))


@contextmanager
def opened(file: Path) -> Iterator[Source]:
    """Open a file for reading within the limits."""
    with file.open("rb") as raw:
        if file.suffix.lower() == ".gz":
            with Unpacked(raw, file.stat().st_size, free=MAX_LINE) as stream:
                yield Source(raw, stream)
        else:
            yield Source(raw, raw)


def line_text(line: bytes | None) -> str:
    """Decode a line from a source.

    Raises ``CorruptFile`` if the line was longer than ``MAX_LINE``.
    """
    if line is None:
        raise CorruptFile(f"the line has more than {MAX_LINE} bytes; want one filing per line")
    return line.decode("utf-8")


def load_json(text: str) -> Any:
    """Parse strict JSON: valid Unicode strings, finite numbers of at most 64 bits, unique keys.

    Raises ``CorruptFile`` if the text is not such JSON, or is nested deeper than ``MAX_NESTING``.

    Examples
    --------
    >>> load_json('{"form": "10-K", "form": "S-1"}')
    Traceback (most recent call last):
    carag.errors.CorruptFile: the key 'form' occurs twice in one object; want it once
    """
    try:
        value = strict_json(text)
    except RecursionError:
        raise CorruptFile(_TOO_DEEP) from None
    except ValueError as error:
        raise CorruptFile(f"the text is not JSON ({error}); want one JSON object") from error
    _check_values(value)
    return value


_TOO_DEEP: Final = f"the JSON is nested more than {MAX_NESTING} deep; want one or two levels per filing"


def _check_values(value: Any) -> None:
    level, depth = [value], 0
    while level:
        if depth > MAX_NESTING:
            raise CorruptFile(_TOO_DEEP)
        below: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                below += one
                below += one.values()
            elif isinstance(one, list):
                below += one
            elif isinstance(one, str):
                _check_string(one)
            elif (isinstance(one, float) and not math.isfinite(one)) or (
                isinstance(one, int) and not -INT64 <= one < INT64
            ):
                raise CorruptFile(
                    f"{quoted(one)} does not fit in 64 bits; want a number such as a CIK or a year"
                )
        level, depth = below, depth + 1


def _check_string(value: str) -> None:
    try:
        check_text("a string", value)
    except InvalidArgument as error:
        raise CorruptFile(str(error)) from None
