"""Read the rows of an index that is there already: one function for each kind, which writes nothing to it."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

from carag.errors import CaragError, CorruptFile, InvalidArgument, type_and_place
from carag.extras import require
from carag.limits import quoted
from carag.readers.json_rows import lines_of
from carag.readers.json_rows import row_of as fields_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


_AT_ONCE: Final = 2000
"""Rows asked for at a time."""
_LOCAL: Final = 20_000
"""Points asked of Qdrant's local mode at a time, because it goes through all of them each time."""
_WANTED: Final = (
    "postgresql://ACCOUNT@HOST/DATABASE?table=NAME, chroma:FOLDER, qdrant:FOLDER, qdrant://HOST:PORT/COLLECTION, "
    "lancedb:FOLDER or faiss:FILE?rows=FILE"
)


class Wanted(NamedTuple):
    """The names of the fields of a row that a source does not keep apart itself."""

    id: str = "id"
    text: str = "text"
    vector: str = "vector"


class Row(NamedTuple):
    """A row as it is; what is missing is None."""

    id: Any
    text: str | None
    vector: Any
    """An array or list of numbers."""
    metadata: dict[str, Any]
    """Every other field, by name."""


class Source(NamedTuple):
    """What holds rows."""

    name: str
    """What it is, such as ``postgres:public.chunks@1f3a9c02``, where a hash stands for the place."""
    rows: Iterator[Row]
    """Each row once, in any order; a bounded number of them is in memory."""


@contextmanager
def source_of(address: str, wanted: Wanted) -> Iterator[Source]:
    """Open what an address names, to be read only; for a folder, ``?name=`` chooses among several collections.

    Raises
    ------
    InvalidArgument
        If the address is not valid, or what it names cannot be read. The message does not quote the address, which may
        hold a password.
    MissingExtra
        If the package that reads it is not installed.

    Examples
    --------
    >>> with source_of("oracle://me:secret@host", Wanted()):
    ...     pass
    Traceback (most recent call last):
    carag.errors.InvalidArgument: nothing can be adopted from 'oracle'; want postgresql://ACCOUNT@HOST/...
    """
    scheme, colon, rest = address.partition(":")
    if not colon or scheme not in _SOURCES:
        raise InvalidArgument(
            f"nothing can be adopted from {quoted(scheme) if colon else 'this address'}; want {_WANTED}"
        )
    read, extra = _SOURCES[scheme]
    require(f"adopting from {scheme}", extra)
    place, _, query = rest.partition("?")
    asked = {name: values[-1] for name, values in parse_qs(query).items()}
    is_server = rest.startswith("//")
    if not is_server and not Path(place).exists():
        raise InvalidArgument(f"{quoted(place)} is not there; want {_WANTED}")
    last = asked.get("table") or asked.get("name") or Path(place).resolve().name
    rows = read(address if is_server else Path(place), asked, wanted)
    name = f"{extra}:{last}@{_mark(address if is_server else str(Path(place).resolve()))}"
    try:
        with closing(rows):
            yield Source(name, rows)
    except (CaragError, OSError):
        raise
    except Exception as error:
        # Its own message could hold an address, or rows of the source.
        raise InvalidArgument(
            f"the source cannot be read: {type_and_place(error)}; want {_WANTED}"
        ) from error


def _mark(place: str) -> str:
    """Tell places apart whose collections have one name; an account and its password are no part of it."""
    parts = urlsplit(place)
    told = f"{parts.hostname}:{parts.port}{parts.path}" if parts.netloc else place
    return hashlib.sha256(told.encode()).hexdigest()[:8]


def _pgvector(address: Any, asked: dict[str, str], wanted: Wanted) -> Iterator[Row]:
    """Read a table in one transaction that can only read."""
    import psycopg

    from carag.postgres.address import taken_out
    from carag.postgres.connection import connected, described

    url, _ = taken_out(address, "table")
    parts = asked.get("table", "").split(".")
    if not all(parts):
        raise InvalidArgument("the address names no table; add ?table=NAME or ?table=SCHEMA.NAME")
    select = psycopg.sql.SQL("SELECT * FROM {}").format(psycopg.sql.Identifier(*parts))
    try:
        with (
            closing(connected(url, {"default_transaction_read_only": "on"}, autocommit=False)) as db,
            db.cursor("adopting", row_factory=psycopg.rows.dict_row) as cursor,
        ):
            cursor.itersize = _AT_ONCE
            cursor.execute(select)
            for fields in cursor:
                row = _row_of(fields, wanted)
                yield row._replace(vector=json.loads(row.vector)) if isinstance(row.vector, str) else row
    except psycopg.Error as error:
        raise InvalidArgument(f"the table cannot be read: {described(error, url)}") from None


def _chroma(folder: Any, asked: dict[str, str], _: Wanted) -> Iterator[Row]:
    """Read a folder that a ``PersistentClient`` made."""
    import chromadb

    with _copied(folder) as place:
        client = chromadb.PersistentClient(place, settings=chromadb.Settings(anonymized_telemetry=False))
        name = _chosen(asked, [one.name for one in client.list_collections()])
        # Without an embedding function, which would be loaded, or downloaded.
        collection = client.get_collection(name, embedding_function=None)
        for start in range(0, collection.count(), _AT_ONCE):
            include = ["embeddings", "documents", "metadatas"]
            some = collection.get(limit=_AT_ONCE, offset=start, include=include)
            several = zip(some["ids"], some["documents"], some["embeddings"], some["metadatas"], strict=True)
            yield from (Row(id_, text, vector, dict(stated or {})) for id_, text, vector, stated in several)


def _qdrant(place: Any, asked: dict[str, str], wanted: Wanted) -> Iterator[Row]:
    """Read a collection of a server, or of a folder that the client's local mode made."""
    from qdrant_client import QdrantClient

    from carag.backends.qdrant import connected_to

    is_local = isinstance(place, Path)
    with _copied(place) if is_local else nullcontext(place) as where:
        client, name = (QdrantClient(path=where), None) if is_local else connected_to(where)
        with closing(client):
            name = name or _chosen(asked, [one.name for one in client.get_collections().collections])
            limit, after, is_last = _LOCAL if is_local else _AT_ONCE, None, False
            while not is_last:
                points, after = client.scroll(name, limit=limit, offset=after, with_vectors=True)
                for point in points:
                    fields, vector = dict(point.payload or {}), point.vector
                    own = vector.get(wanted.vector) if isinstance(vector, dict) else vector
                    yield Row(point.id, fields.pop(wanted.text, None), own, fields)
                is_last = after is None


def _lancedb(folder: Any, asked: dict[str, str], wanted: Wanted) -> Iterator[Row]:
    """Read a table ``NAME.lance`` of a folder, in which reading changes nothing."""
    import lancedb

    name = _chosen(asked, [one.stem for one in folder.glob("*.lance")])
    table = lancedb.connect(str(folder)).open_table(name)
    for batch in table.search().limit(None).to_batches(batch_size=_AT_ONCE):
        # As arrays: a Python number for each component would take most of the time.
        vectors = [one.values for one in batch.column(wanted.vector)]
        for fields, vector in zip(batch.drop_columns([wanted.vector]).to_pylist(), vectors, strict=True):
            values = None if vector is None else vector.to_numpy(zero_copy_only=False)
            yield _row_of(fields, wanted)._replace(vector=values)


def _faiss(file: Any, asked: dict[str, str], wanted: Wanted) -> Iterator[Row]:
    """Read an index, and the file of which line n belongs to the n-th vector; what is compressed, as it comes back."""
    import faiss

    if "rows" not in asked:
        raise InvalidArgument(
            "the address names no file of texts; add ?rows=FILE.jsonl, one line for each vector"
        )
    index, texts, count = faiss.read_index(str(file)), Path(asked["rows"]), 0
    if "IDMap" in type(index).__name__:  # ids of the caller's, which the lines state themselves
        index = faiss.downcast_index(index.index)
    if hasattr(index, "make_direct_map"):  # so that an inverted file finds a vector; in memory only
        index.make_direct_map()
    with texts.open("rb") as stream:
        for number, line in lines_of(stream):
            if count < index.ntotal:
                if count % _AT_ONCE == 0:
                    vectors = index.reconstruct_n(count, min(_AT_ONCE, index.ntotal - count))
                try:
                    yield _row_of(fields_of(line), wanted)._replace(vector=vectors[count % _AT_ONCE])
                except CorruptFile as error:
                    raise InvalidArgument(f"{texts.name}, line {number}: {error}") from None
            count += 1
    if count != index.ntotal:
        raise InvalidArgument(
            f"{texts.name} has {count} rows, and the index has {index.ntotal} vectors; want one line for each, in order"
        )


_SOURCES: Final[dict[str, tuple[Callable[[Any, dict[str, str], Wanted], Any], str]]] = {
    "postgresql": (_pgvector, "postgres"),
    "chroma": (_chroma, "chroma"),
    "qdrant": (_qdrant, "qdrant"),
    "qdrant+tls": (_qdrant, "qdrant"),
    "lancedb": (_lancedb, "lancedb"),
    "faiss": (_faiss, "faiss"),
}
"""What reads it, and the extra that this needs, by what an address begins with."""


def _row_of(fields: dict[str, Any], wanted: Wanted) -> Row:
    id_, text, vector = (fields.pop(name, None) for name in wanted)
    return Row(id_, text, vector, fields)


def _chosen(asked: dict[str, str], names: Sequence[str]) -> str:
    found = [one for one in names if one == asked.get("name", one)]
    if len(found) != 1:
        raise InvalidArgument(
            f"the source holds {', '.join(map(quoted, sorted(names)[:5])) or 'nothing'}; choose one with ?name="
        )
    return found[0]


@contextmanager
def _copied(folder: Path) -> Iterator[str]:
    """Lend a copy of a folder, for a client that writes into every folder that it opens."""
    with tempfile.TemporaryDirectory(prefix="carag-adopt-") as place:
        yield str(shutil.copytree(folder, Path(place) / folder.name))
