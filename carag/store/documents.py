"""Read what a store holds about documents: their facts, the hashes of their content, how many there are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument
from carag.limits import quoted
from carag.store import _rows as rows
from carag.store._entity_sets import about
from carag.store._label_history import linked_facts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from typing import Any

    from carag.store._entity_sets import About
    from carag.store.values import Counts, Reading, Snapshot, StoredDocument


_NAMED: Final = "accession_number IN (SELECT CAST(value AS TEXT) FROM json_each(?))"
"""That a document is one of some ids, as JSON."""


class StoredDocuments:
    """The documents of a :class:`~carag.store.store.CorpusStore`, by id."""

    def __init__(self, path: Path, reading: Reading, snapshot: Snapshot) -> None:
        self._path = path
        self._reading = reading
        self._snapshot = snapshot

    def document(self, document_id: str, *, version: int | None = None) -> StoredDocument:
        """Return a document's current version, or the given one; InvalidArgument if it is unknown."""
        wanted = "superseded_by_version IS NULL" if version is None else "version = :version"
        query = f"{rows.SELECT_DOCUMENT} WHERE accession_number = :id AND {wanted}"
        with self._reading() as sql:
            row = sql.execute(query, {"id": document_id, "version": version}).fetchone()
        if row is None:
            which = "" if version is None else f" in version {version}"
            raise InvalidArgument(
                f"there is no document {quoted(document_id)}{which} in {self._path}; check its id"
            )
        return rows.stored_document(row, self._path)

    def described(self, *, after: int = 0) -> Iterator[tuple[Any, ...]]:
        """Stream the columns of ``SELECT_DESCRIBED`` of every document with text and a row number above ``after``."""
        return self._snapshot(rows.SELECT_DESCRIBED, (after,))

    def fields(self, numbers: Iterable[int]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Stream number and stated fields of documents by their numbers: metadata, id, language, and a filing's own."""
        for number, id_, form, company, filed, period, language, stated in self._snapshot(
            rows.SELECT_FIELDS, (json.dumps(list(numbers)),)
        ):
            own = {"id": id_, "form": form, "company": company, "filed": filed, "period": period}
            metadata = json.loads(stated) if stated else {}
            # Metadata may state what the columns do for filings, but no other id.
            filing = {name: value for name, value in own.items() if value}
            yield number, {**metadata, **filing, **({"language": language} if language else {})}

    def quarantined(self, after: str, limit: int) -> list[tuple[str, str, str]]:
        """Return id, code and explanation of documents in quarantine after an id, in the order of ids."""
        query = (
            "SELECT accession_number, quarantine_code, quarantine_text FROM current_filings "
            "WHERE quarantine_code IS NOT NULL AND accession_number > ? ORDER BY accession_number LIMIT ?"
        )
        with self._reading() as sql:
            return [(id_, code, text) for id_, code, text in sql.execute(query, (after, limit)).fetchall()]

    def passages(self) -> Iterator[tuple[str, bytes]]:
        """Stream the id of every passage, those of superseded versions included, and the SHA-256 of its text."""
        return self._snapshot("SELECT chunk_id, text_sha256 FROM chunks", ())

    def texts(self) -> Iterator[tuple[int, str, int, int, str]]:
        """Stream row number, id, start, end and text of every passage, those of earlier versions included, in order."""
        return self._snapshot(
            "SELECT filing, accession_number, start_offset, end_offset, text FROM chunks JOIN filings USING (filing) "
            "ORDER BY filing, key",
            (),
        )

    def stated(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Stream id and facts of every version of every document, without who may see it."""
        query = "SELECT accession_number, company, facts FROM filings ORDER BY filing"
        for id_, company, text in self._snapshot(query, ()):
            facts = {name: one for name, one in json.loads(text).items() if name != "audience"}
            yield id_, {**facts, "company": company}

    def audiences(self) -> Iterator[tuple[str, str]]:
        """Stream id and audience, as text, of every version of every document that is not for everybody."""
        query = (
            "SELECT DISTINCT accession_number, stated FROM document_audiences JOIN filings USING (filing) "
            "JOIN audiences ON number = audience ORDER BY accession_number, stated"
        )
        return self._snapshot(query, ())

    def content_hash(self, document_id: str) -> str | None:
        """Return the content hash of a document's current version, or None if it is not stored."""
        return self.content_hashes([document_id]).get(document_id)

    def content_hashes(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the content hashes of the given documents that are stored, by id."""
        query = f"SELECT accession_number, content_hash FROM current_filings WHERE {_NAMED}"  # noqa: S608
        with self._reading() as sql:
            return dict(sql.execute(query, (json.dumps(list(ids)),)).fetchall())

    def facts_of(self, document_id: str) -> dict[str, Any] | None:
        """Return the facts of a document's current version, or None if it is not stored."""
        query = "SELECT facts FROM current_filings WHERE accession_number = ?"
        with self._reading() as sql:
            row = sql.execute(query, (document_id,)).fetchone()
        return None if row is None else dict(json.loads(row[0]))

    def versions(self, ids: Iterable[str]) -> list[tuple[str, dict[str, Any]]]:
        """Return the id and the facts of every version of some documents."""
        query = f"SELECT accession_number, facts FROM filings WHERE {_NAMED} ORDER BY filing"  # noqa: S608
        with self._reading() as sql:
            found = sql.execute(query, (json.dumps(list(ids)),)).fetchall()
        return [(id_, json.loads(facts)) for id_, facts in found]

    def facts_in(self, numbers: Iterable[int]) -> list[dict[str, Any]]:
        """Return the facts of documents by their numbers, each in one version."""
        query = "SELECT facts FROM filings WHERE filing IN (SELECT value FROM json_each(?)) ORDER BY filing"
        with self._reading() as sql:
            found = sql.execute(query, (json.dumps(list(numbers)),)).fetchall()
        return [json.loads(facts) for (facts,) in found]

    def about(self, ids: Iterable[str]) -> list[tuple[str, About]]:
        """Return the id of some documents and what their passages are about, those of earlier versions included."""
        query = (
            "SELECT DISTINCT accession_number, entity, ciks, metadata FROM chunks JOIN filings USING (filing) "  # noqa: S608
            f"LEFT JOIN entity_sets ON number = entity WHERE {_NAMED}"
        )
        with self._reading() as sql:
            found = sql.execute(query, (json.dumps(list(ids)),)).fetchall()
        return [(id_, about(*stated)) for id_, *stated in found]

    def due(self, minute: int) -> dict[str, int]:
        """Return, by id, since when each document is due to be erased that was due by a minute."""
        query = "SELECT accession_number, facts FROM current_filings WHERE facts LIKE ? ORDER BY filing"
        with self._reading() as sql:
            found = sql.execute(query, ('%"erase_after":%',)).fetchall()
        since = {id_: json.loads(facts).get("erase_after") for id_, facts in found}
        return {id_: due for id_, due in since.items() if due is not None and due <= minute}

    def linked_facts(self, document_id: str) -> list[dict[str, Any]]:
        """Return the facts of a document and of all that share a CIK, a name or an act with it."""
        with self._reading() as sql:
            return linked_facts(sql, document_id)

    def counts(self) -> Counts:
        """Count documents, passages, and quarantined documents by reason."""
        with self._reading() as sql:
            return rows.counts(sql)
