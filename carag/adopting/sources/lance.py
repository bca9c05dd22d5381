"""Read a table of LanceDB from its folder, in which reading changes nothing."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from carag.adopting.sources.port import AT_ONCE, Opened, Row, chosen

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from carag.adopting.sources.port import Wanted


@contextmanager
def opened(folder: Path, asked: str, wanted: Wanted) -> Iterator[Opened]:
    """Open a folder with tables ``NAME.lance``."""
    import lancedb

    name = chosen(asked, [one.stem for one in folder.glob("*.lance")])
    yield Opened(f"lancedb:{name}", _rows(lancedb.connect(str(folder)).open_table(name), wanted))


def _rows(table: Any, wanted: Wanted) -> Iterator[Row]:
    for batch in table.search().limit(None).to_batches(batch_size=AT_ONCE):
        at = batch.schema.get_field_index(wanted.vector)
        # As an array: a Python number for each component would take most of the time.
        vectors = batch.column(at) if at >= 0 else [None] * batch.num_rows
        rest = batch.drop_columns([wanted.vector]) if at >= 0 else batch
        for fields, vector in zip(rest.to_pylist(), vectors, strict=True):
            id_, text = (fields.pop(name, None) for name in wanted[:2])
            values = None if vector is None else vector.values
            yield Row(id_, text, None if values is None else values.to_numpy(zero_copy_only=False), fields)
