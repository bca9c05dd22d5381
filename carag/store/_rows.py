"""Write and read one document as rows: SQL statements that run inside the caller's transaction."""

from __future__ import annotations

import json
from itertools import count
from operator import index as as_int
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from carag.errors import CorruptFile, InvalidArgument, StoreLocked
from carag.labelling.canonical_json import canonical_json
from carag.labelling.labelled import stated_of
from carag.limits import ERASED
from carag.policy import QUARANTINE, TOMBSTONE
from carag.store._audiences import JOINED, STATED, audience_of
from carag.store._entity_sets import about, number_of
from carag.store.values import Counts, StoredChunk, StoredDocument, StoredLabel, hash_of_text

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from carag.labelling.labelled import LabelledDocument, LabelledPassage

AT_ONCE: Final = 256
"""Greatest number of keys or hashes in one statement."""
SELECT_DOCUMENT: Final = """
    SELECT accession_number, version, form, company, filed, content_hash, facts, causes, public_at_source,
           quarantine_code, quarantine_text,
           (SELECT json_group_array(cik) FROM filing_ciks WHERE filing_ciks.filing = filings.filing)
    FROM filings"""
SELECT_DESCRIBED: Final = """
    SELECT filing, accession_number, form, company, filed, json_extract(facts, '$.period'),
           json_extract(facts, '$.ciks'), json_extract(facts, '$.metadata')
    FROM filings WHERE version > 0 AND filing > ? ORDER BY filing"""
"""Version 0 has no text. Statements of other sources, which may later be united with a row, are in ``$.stated``."""
SELECT_FIELDS: Final = """
    SELECT filing, accession_number, form, company, filed, json_extract(facts, '$.period'),
           json_extract(facts, '$.language'), json_extract(facts, '$.metadata')
    FROM filings WHERE filing IN (SELECT value FROM json_each(?)) ORDER BY filing"""
INSERT_DOCUMENT: Final = """
    INSERT INTO filings (filing, accession_number, version, form, company, filed, content_hash, facts, causes,
                         public_at_source, quarantine_code, quarantine_text, history)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '')"""
SELECT_CHUNK: Final = f"""
    SELECT label, chunk_id, accession_number, version, document, start_offset, end_offset, text, labels.word,
           valid_to, labels.entity, entity_sets.ciks, entity_sets.metadata, labels.causes, text_sha256, form, company,
           filed, json_extract(facts, '$.metadata'), key, filing,
           {STATED}, valid_from, known_to
    FROM labels JOIN chunks USING (key) JOIN filings USING (filing)
         LEFT JOIN entity_sets ON labels.entity = entity_sets.number
         {JOINED}"""  # noqa: S608 - constants
SELECT_LABEL: Final = f"""
    SELECT label, chunk_id, labels.word, valid_to, labels.entity, entity_sets.ciks, entity_sets.metadata,
           {STATED}, valid_from, known_to
    FROM labels JOIN chunks USING (key)
         LEFT JOIN entity_sets ON labels.entity = entity_sets.number
         {JOINED}"""  # noqa: S608 - constants
SELECT_LABEL_AT_OR_AFTER: Final = f"""{SELECT_LABEL}
    WHERE known_from <= ? AND key = coalesce(
        (SELECT key FROM chunks WHERE chunk_id >= ? ORDER BY chunk_id LIMIT 1), (SELECT min(key) FROM chunks))
    ORDER BY valid_from"""  # noqa: S608 - a constant
"""Labels of a passage or else of the next passage by id; after the last passage, those of the first."""
INSERT_CHUNK: Final = """
    INSERT INTO chunks (key, chunk_id, filing, document, start_offset, end_offset, word, public_at,
                        expires_at, entity, text_sha256, text)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""


def supersede(sql: sqlite3.Connection, ids: Iterable[str]) -> dict[str, tuple[int, int]]:
    """End the current versions of documents; return the row and version of each that had one, by its id."""
    found = sql.execute(
        "SELECT accession_number, filing, version FROM current_filings "
        "WHERE accession_number IN (SELECT CAST(value AS TEXT) FROM json_each(?))",
        (json.dumps(list(ids)),),
    ).fetchall()
    sql.executemany(
        "UPDATE filings SET superseded_by_version = version + 1 WHERE filing = ?",
        [(filing,) for _, filing, _ in found],
    )
    return {id_: (row, version) for id_, row, version in found}


def insert_documents(sql: sqlite3.Connection, documents: Iterable[tuple[LabelledDocument, int]]) -> range:
    first = sql.execute("SELECT coalesce(max(filing) + 1, 1) FROM filings").fetchone()[0]
    rows, ciks = [], []
    for row, (one, version) in enumerate(documents, start=first):
        id_ = one.document_id
        rows.append(
            (
                *(row, id_, version, one.form, one.company, one.filed, one.content_hash),
                canonical_json(one.facts, f"facts of document {id_}"),
                canonical_json(one.causes, f"causes of document {id_}"),
                one.public_at_source,
                *(one.quarantine or (None, None)),
            )
        )
        ciks += [(as_int(cik), row) for cik in dict.fromkeys(one.ciks)]
    sql.executemany(INSERT_DOCUMENT, rows)
    sql.executemany("INSERT INTO filing_ciks (cik, filing) VALUES (?, ?)", ciks)
    return range(first, first + len(rows))


def add_metadata(sql: sqlite3.Connection, document: LabelledDocument) -> int:
    """Store the facts of a document without its text, in its current version if there is one; return its row.

    Facts that quarantine the document take effect at once; the caller has to update its passages' labels.
    """
    row = sql.execute(
        "SELECT filing, version, quarantine_code FROM current_filings WHERE accession_number = ?",
        (document.document_id,),
    ).fetchone()
    if row is None:
        return insert_documents(sql, [(document, 0)]).start
    number, version, was_quarantined = row
    facts = canonical_json(document.facts, f"facts of document {document.document_id}")
    quarantine = document.quarantine or (None, None)
    sql.execute(
        "UPDATE filings SET facts = ?, quarantine_code = coalesce(?, quarantine_code), "
        "quarantine_text = coalesce(?, quarantine_text) WHERE filing = ?",
        (facts, *quarantine, number),
    )
    if version == 0:
        sql.execute("UPDATE filings SET content_hash = ? WHERE filing = ?", (document.content_hash, number))
    if document.quarantine and not was_quarantined:
        sql.execute("UPDATE chunks SET word = word | ? WHERE filing = ?", (QUARANTINE, number))
        sql.execute("UPDATE filings SET history = '' WHERE filing = ?", (number,))
    ciks = ((as_int(cik), number) for cik in document.ciks)
    sql.executemany("INSERT INTO filing_ciks (cik, filing) VALUES (?, ?) ON CONFLICT DO NOTHING", ciks)
    return int(number)


def insert_chunks(sql: sqlite3.Connection, chunks: Sequence[tuple[int, str, LabelledPassage]]) -> range:
    first = sql.execute("SELECT coalesce(max(key) + 1, 0) FROM chunks").fetchone()[0]
    keys = range(first, first + len(chunks))
    numbers: dict[Any, int] = {}
    for _, _, chunk in chunks:
        if (one := _about(chunk)) not in numbers:
            numbers[one] = number_of(sql, chunk.subjects, chunk.metadata)
    rows = (
        (
            *(key, chunk_id, filing, c.document, as_int(c.start), as_int(c.end), as_int(c.word)),
            *(as_int(c.public_at), as_int(c.expires_at), numbers[_about(c)], hash_of_text(c.text), c.text),
        )
        for key, (filing, chunk_id, c) in zip(keys, chunks, strict=True)
    )
    sql.executemany(INSERT_CHUNK, rows)
    return keys


def _about(chunk: LabelledPassage) -> tuple[object, ...]:
    return chunk.subjects, *sorted(chunk.metadata.items())


def chunk_ids(document_id: str, version: int) -> Iterator[str]:
    prefix = document_id if version == 1 else f"{document_id}.v{version}"
    return (f"{prefix}:{ordinal:05d}" for ordinal in count())


def insert_vectors(sql: sqlite3.Connection, keys: range, vectors: NDArray[np.float32]) -> None:
    little_endian = vectors.astype("<f4", order="C", copy=False)
    sql.executemany(
        "INSERT INTO vectors (key, vector) VALUES (?, ?)",
        ((key, vector.tobytes()) for key, vector in zip(keys, little_endian, strict=True)),
    )


def insert_embedded(sql: sqlite3.Connection, keys: range, hashes: Sequence[bytes]) -> None:
    """Record the text of each key's vector by its hash; a text that already has a vector keeps that vector."""
    sql.executemany(
        "INSERT INTO embedded (sha256, key) VALUES (?, ?) ON CONFLICT DO NOTHING",
        zip(hashes, keys, strict=True),
    )


def vectors_of(
    sql: sqlite3.Connection, hashes: Iterable[bytes], path: Path
) -> dict[bytes, NDArray[np.float32]]:
    wanted, found = [*dict.fromkeys(hashes)], dict[bytes, bytes]()
    for start in range(0, len(wanted), AT_ONCE):
        some = wanted[start : start + AT_ONCE]
        marks = ", ".join("?" * len(some))
        query = f"SELECT sha256, vector FROM embedded JOIN vectors USING (key) WHERE sha256 IN ({marks})"  # noqa: S608
        found.update(sql.execute(query, some))
    length = dim(sql)
    if any(len(vector) != 4 * (length or 0) for vector in found.values()):
        raise CorruptFile(f"{path}: vectors differ in length; restore a backup, or ingest into a new store")
    return {one: np.frombuffer(vector, "<f4").astype(np.float32) for one, vector in found.items()}


def counts(sql: sqlite3.Connection) -> Counts:
    filings, metadata_only = sql.execute(
        "SELECT count(*) FILTER (WHERE version > 0), count(*) FILTER (WHERE version = 0 AND content_hash <> '') "
        "FROM current_filings"
    ).fetchone()
    chunks = sql.execute("SELECT count(*) FROM chunks JOIN current_filings USING (filing)").fetchone()[0]
    quarantined = sql.execute(
        "SELECT quarantine_code, count(*) FROM current_filings "
        "WHERE quarantine_code IS NOT NULL GROUP BY quarantine_code ORDER BY quarantine_code"
    ).fetchall()
    return Counts(filings, chunks, dict(quarantined), metadata_only)


def dim(sql: sqlite3.Connection) -> int | None:
    row = sql.execute("SELECT length(vector) / 4 FROM vectors LIMIT 1").fetchone()
    return None if row is None else int(row[0])


def check_dim(sql: sqlite3.Connection, vectors: NDArray[np.float32]) -> None:
    if len(vectors) and (stored := dim(sql)) not in (None, vectors.shape[1]):
        raise InvalidArgument(
            f"vectors have {vectors.shape[1]} dimensions, the store's have {stored}; use the embedder that "
            "wrote it, or ingest into a new store"
        )


def raise_epoch(sql: sqlite3.Connection) -> None:
    sql.execute("UPDATE meta SET value = CAST(CAST(value AS BIGINT) + 1 AS TEXT) WHERE name = 'epoch'")


def holding(found: Sequence[tuple[Any, ...]], as_of: int | None, known_at: int) -> tuple[Any, ...]:
    """Choose the label that holds at a minute, among one passage's labels in order of time.

    This is the first label if none holds yet, and the last if no minute is given. Only labels open at ``known_at``
    count; without any, the labels that were open last. The last two columns of a row are valid_from and known_to.
    """
    labels = [row for row in found if row[-1] is None or row[-1] > known_at]
    if not labels:
        last = max(row[-1] for row in found)
        labels = [row for row in found if row[-1] == last]
    if as_of is None:
        return labels[-1]
    return next((row for row in reversed(labels) if row[-2] <= as_of), labels[0])


def open_at(known_at: int | None) -> str:
    """Return the SQL condition that a label is open, or was open at the instant ``:u``."""
    if known_at is None:
        return "known_to IS NULL"
    return "known_from <= :u AND (known_to IS NULL OR known_to > :u)"


def open_labels(
    sql: sqlite3.Connection, passages: Iterable[int], path: Path, *, known_at: int
) -> list[tuple[int, StoredLabel]]:
    query = f"{SELECT_LABEL} WHERE key IN (SELECT value FROM json_each(:keys)) AND {open_at(known_at)}"  # noqa: S608
    found = sql.execute(query, {"keys": json.dumps(list(passages)), "u": known_at}).fetchall()
    return [(row[0], stored_label(row, path, known_at=known_at)) for row in found]


def stored_document(row: tuple[Any, ...], path: Path) -> StoredDocument:
    id_, version, form, company, filed, digest, facts, causes, source, code, text, ciks = row
    try:
        return StoredDocument(
            document_id=id_,
            version=version,
            form=form,
            company=company,
            filed=filed,
            content_hash=digest,
            facts=json.loads(facts),
            causes=json.loads(causes),
            public_at_source=source,
            quarantine=None if code is None else (code, text),
            ciks=tuple(json.loads(ciks)),
        )
    except ValueError as error:
        raise CorruptFile(
            f"{path}: document {id_} was changed by another program ({error}); restore a backup"
        ) from error


def stored_label(row: tuple[Any, ...], path: Path, *, known_at: int | None) -> StoredLabel:
    """Read a row of :data:`SELECT_LABEL`; the word carries the tombstone as in :func:`stored_chunk`."""
    _, chunk_id, word, until, entity, ciks, metadata, shared, since, known_to = row
    try:
        ciks, metadata = about(entity, ciks, metadata)
        audience = audience_of(shared)
    except ValueError as error:
        raise changed(path, chunk_id, error) from error
    return StoredLabel(chunk_id, word_of(word, known_to, known_at), since, until, ciks, metadata, audience)


def stored_chunk(row: tuple[Any, ...], path: Path, *, known_at: int | None) -> StoredChunk:
    """Read a row of :data:`SELECT_CHUNK`, and check that the text has the stored hash.

    The word carries the tombstone if the label was closed by ``known_at`` or, if that is None, if it was ever closed.
    """
    label, chunk_id, document_id, version, document, start, end, text, word, until, entity = row[:11]
    ciks, metadata, causes, text_sha256, form, company, filed, stated, passage, filing, shared = row[11:22]
    since, known_to = row[22:]
    try:
        ciks, metadata = about(entity, ciks, metadata)
        chunk = StoredChunk(
            key=label,
            chunk_id=chunk_id,
            document_id=document_id,
            version=version,
            document=document,
            start=start,
            end=end,
            text=text,
            word=word_of(word, known_to, known_at),
            public_at=since,
            expires_at=until,
            entity=entity,
            subjects=ciks,
            metadata=metadata,
            causes=tuple((bit, by) for bit, by in json.loads(causes)),
            form=form,
            company=company,
            filed=filed,
            stated=stated_of(stated and json.loads(stated), company, form, filed),
            text_sha256=hash_of_text(text),
            number=passage,
            filing=filing,
            audience=audience_of(shared),
        )
    except ValueError as error:
        raise changed(path, chunk_id, error) from error
    if chunk.text_sha256 != text_sha256:
        if chunk_id.startswith(ERASED):
            raise StoreLocked("a passage was erased while it was being read; ask again")
        raise CorruptFile(f"{path}: the text of {chunk_id} was changed by another program; restore a backup")
    return chunk


def word_of(word: int, known_to: int | None, known_at: int | None) -> int:
    """Return the word of a label, with the tombstone if the label is closed, or was closed at an instant."""
    is_closed = known_to is not None and (known_at is None or known_to <= known_at)
    return word | TOMBSTONE if is_closed else word


def changed(path: Path, chunk_id: str, error: ValueError) -> CorruptFile:
    return CorruptFile(
        f"{path}: a label of {chunk_id} was changed by another program ({error}); restore a backup"
    )
