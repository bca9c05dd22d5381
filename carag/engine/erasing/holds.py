"""Place legal holds on documents, and tell which holds forbid to erase a document.

What a hold covers is sealed in the log, in the record that placed it. A hold on ids covers these documents; one on an
entity or on metadata also what is added later. One on words covers the documents that had them when it was placed. If
it cannot be told what a hold covers, it covers every document.
"""

from __future__ import annotations

import getpass
import json
from typing import TYPE_CHECKING, Any

from carag.audit import place_hold
from carag.audit.records.custody import NO_RECORDS
from carag.engine.erasing.mentions import Mentions, mentioning
from carag.errors import InvalidArgument
from carag.limits import quoted
from carag.policy import Where, in_one_form

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from carag.audit import AuditLog, Receipt
    from carag.audit.private.store import HoldRow
    from carag.engine.collection import Collection


class DocumentHolds:
    """The legal holds on a store's documents; two people release one with :func:`carag.audit.release_hold`."""

    def __init__(self, collection: Collection, log: AuditLog) -> None:
        self._collection = collection
        self._documents = collection.store.documents
        self._log = log

    def place(
        self,
        matter: str,
        *,
        by: str | None = None,
        ids: Iterable[str] = (),
        words: Iterable[str] = (),
        entity: int | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> Receipt:
        """Forbid erasing documents, on record, until two people release the hold that the receipt's record placed.

        The record commits to the person and to what is held. Raises InvalidArgument, and places nothing, if an id is
        not in the store, no document has the words, or ``where`` does not fit.

        Parameters
        ----------
        matter : str
            A code such as ``"MATTER-2026-17"``.
        by : str, optional
            The person who places it; by default the account that runs this process.
        ids : iterable of str
            The documents.
        words : iterable of str
            Or the documents in whose text or facts one of these stands, as whole words, at this time.
        entity, where
            Or the documents that are about this entity, with this metadata (as in :meth:`carag.Engine.ask`), or both,
            whenever they are added.

        Examples
        --------
        >>> import tempfile, carag
        >>> memo = carag.Document(id="memo/7", text="Ana asked for a loan.", bits=())
        >>> with carag.Engine.open(tempfile.mkdtemp(), embedder="wordllama") as engine:
        ...     _ = engine.add([memo])
        ...     placed = engine.erasures.holds.place("MATTER-7", by="counsel", words=["loan"])
        ...     engine.erasures.holds.on(["memo/7"]) == {"memo/7": (placed.seq,)}
        True
        """
        with self._collection.store.turn():
            said = self._stated([*ids], [*words], entity, where)
            text = json.dumps(said, ensure_ascii=False, sort_keys=True)
            return place_hold(self._log, matter, actor=by or getpass.getuser(), documents=text)

    def on(self, ids: Sequence[str]) -> dict[str, tuple[int, ...]]:
        """Return, by the id of each document that is held, the records that placed the holds in force."""
        held: dict[str, tuple[int, ...]] = {}
        for row in self._log.private.held():
            for one in self._covered(row, ids):
                held[one] = (*held.get(one, ()), row.placed)
        return held

    def _stated(
        self, ids: list[str], words: list[str], entity: int | None, where: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        given = [bool(ids), bool(words), entity is not None or bool(where)]
        if sum(given) != 1:
            raise InvalidArgument(
                "a hold on documents names ids, or words, or an entity and metadata; give one of the three"
            )
        if ids:
            known = self._documents.content_hashes(ids)
            if unknown := [one for one in ids if one not in known]:
                raise InvalidArgument(
                    f"document {quoted(unknown[0])} is not in the store; nothing was held: correct the id"
                )
            return {"ids": sorted(known)}
        if words:
            found = mentioning(self._collection.store, Mentions(words))
            if not found:
                raise InvalidArgument(
                    "no document has these words; nothing was held, and documents that are added later would not be: "
                    "hold them by entity or metadata"
                )
            return {"ids": sorted(found), "words": words}
        narrowed = Where.of(where, self._collection.profile.vocabulary.metadata, stated={})
        return {"entity": entity, "where": json.loads(narrowed.text)}

    def _covered(self, row: HoldRow, ids: Sequence[str]) -> Iterable[str]:
        if row.holder is not None:
            return ()  # the values of a person
        if (row.first, row.last) != NO_RECORDS:
            return ids if row.first is None else ()
        opened = self._log.private.openings(row.placed)
        if "targets" not in opened:
            return ids
        said = json.loads(opened["targets"].value)
        return {*said["ids"]}.intersection(ids) if "ids" in said else self._matching(ids, **said)

    def _matching(self, ids: Sequence[str], entity: int | None, where: Mapping[str, Any]) -> Iterable[str]:
        kinds = self._collection.profile.vocabulary.metadata
        wanted = Where.of(where, kinds, stated={})
        about = [(one, *stated) for one, stated in self._documents.about(ids)]
        unread = set[str]()
        for one, facts in self._documents.versions(ids):
            stated = facts.get("metadata", {})
            try:
                fields = {name: in_one_form(name, stated.get(name), kind) for name, kind in kinds.items()}
            except InvalidArgument:
                unread.add(one)
                continue
            known = {name: value for name, value in fields.items() if value is not None}
            about.append((one, facts.get("entities", ()), known))
        return unread | {
            one
            for one, entities, metadata in about
            if (entity is None or entity in entities) and wanted.admits(metadata)
        }
