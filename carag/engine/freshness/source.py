"""Remember which documents a folder gave, to tell those that vanished from it from those of other origin."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from carag.labelling.canonical_json import canonical_json

if TYPE_CHECKING:
    from pathlib import Path

    from carag.engine.freshness.still import Still
    from carag.store.store import CorpusStore


class Source:
    """What a store knows about a folder: by id, the file that each of its documents was in.

    A withdrawn document is cleared from it by the following run, so a killed run forgets nothing.
    """

    def __init__(self, store: CorpusStore, path: Path) -> None:
        self._store = store
        self._name = (
            f"source_{hashlib.sha256(str(path.resolve()).encode('utf-8', 'surrogateescape')).hexdigest()}"
        )

    def known(self) -> dict[str, str]:
        """Return the ids, with their files, of the documents that it gave and that are not known to be withdrawn."""
        return dict(json.loads(self._store.meta_get(self._name) or "{}"))

    def found(self, still: Still) -> None:
        """Note what it gives now, in addition to what it gave."""
        self._keep(self.known() | still.places)

    def vanished(self, still: Still) -> list[str]:
        """Return the ids that it gave and no longer gives, except those that an unreadable file may hold."""
        known = self.known()
        gone = {id_ for id_ in known if id_ not in still.places}
        removed = {
            id_ for id_ in gone if (self._store.documents.facts_of(id_) or {"removed": True})["removed"]
        }
        self._keep({id_: file for id_, file in known.items() if id_ not in removed})
        return sorted(id_ for id_ in gone - removed if not still.hides(known[id_]))

    def _keep(self, places: dict[str, str]) -> None:
        if places != self.known():
            self._store.meta_set(self._name, canonical_json(places, "what a folder gave"))
