"""Read a file of FAISS and the JSON Lines with its texts: line n belongs to the n-th vector that was added."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from carag.adopting.sources.port import AT_ONCE, Opened, row_of
from carag.errors import CorruptFile, InvalidArgument
from carag.readers.json_rows import lines_of
from carag.readers.json_rows import row_of as fields_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.adopting.sources.port import Row, Wanted


@contextmanager
def opened(file: Path, asked: str, wanted: Wanted) -> Iterator[Opened]:
    """Open an index; vectors that it holds compressed are taken as it gives them back."""
    import faiss

    index = faiss.read_index(str(file))
    if "IDMap" in type(index).__name__:  # ids of the caller's, which the lines state themselves
        index = faiss.downcast_index(index.index)
    if hasattr(index, "make_direct_map"):  # so that an inverted file finds a vector; in memory only
        index.make_direct_map()
    rows = parse_qs(asked).get("rows", [])
    if len(rows) != 1:
        raise InvalidArgument(
            "the address names no file of texts; add ?rows=FILE.jsonl, one line for each vector"
        )
    yield Opened(f"faiss:{file.name}", _rows(index, Path(rows[0]), wanted))


def _rows(index: Any, file: Path, wanted: Wanted) -> Iterator[Row]:
    count = 0
    with file.open("rb") as stream:
        for number, line in lines_of(stream):
            if count < index.ntotal:
                if count % AT_ONCE == 0:
                    vectors = index.reconstruct_n(count, min(AT_ONCE, index.ntotal - count))
                try:
                    yield row_of(fields_of(line), wanted)._replace(vector=vectors[count % AT_ONCE])
                except CorruptFile as error:
                    raise InvalidArgument(f"{file.name}, line {number}: {error}") from None
            count += 1
    if count != index.ntotal:
        raise InvalidArgument(
            f"{file.name} has {count} rows, and the index has {index.ntotal} vectors; want one line for each, in order"
        )
