"""CARAG's engine: documents shared with persons, and a session for each search."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import carag
from carag.evaluation.attack import Answer, Document, Where

if TYPE_CHECKING:
    from collections.abc import Sequence


class target:  # noqa: N801 - the factory that a command names
    """A store with the generic profile, which embeds with WordLlama."""

    def __init__(self) -> None:
        self._home = tempfile.TemporaryDirectory()
        self._texts: dict[str, str] = {}
        store = Path(self._home.name) / "store"
        self._engine = carag.Engine.open(store, profile="generic", embedder="wordllama")

    def add(self, documents: Sequence[Document]) -> None:
        """Add documents; those of the same ids are replaced."""
        self._texts |= {one.id: one.text for one in documents}
        made = [
            carag.Document(
                id=one.id,
                text=one.text,
                bits=(),
                allow=[f"user:{name}" for name in one.audience],
                metadata={"department": ",".join(sorted(one.audience))},
            )
            for one in documents
        ]
        self._engine.add(made)

    def search(self, query: str, k: int, as_whom: str | None) -> list[tuple[str, float]]:
        """Retrieve in the session of a reader; without one, in a session of which nothing is known."""
        return self._found(query, k, as_whom, None)

    def search_where(self, query: str, k: int, as_whom: str, where: Where) -> list[tuple[str, float]]:
        """Retrieve with a narrowing of the caller's; none can be negated."""
        if where.negated:
            raise NotImplementedError("no narrowing can be negated")
        return self._found(query, k, as_whom, {"department": sorted(where.names)})

    def _found(self, query: str, k: int, whom: str | None, where: Any) -> list[tuple[str, float]]:
        found = self._engine.retrieve(query, _session(whom), k, where=where)
        return [(one.accession_number, one.similarity) for one in found.passages]

    def relabel(self, name: str, audience: frozenset[str]) -> None:
        """Add the same text again, for others."""
        self.add([Document(name, self._texts[name], audience)])

    def delete(self, ids: Sequence[str]) -> None:
        """Erase documents."""
        self._engine.erase(list(ids), basis="GDPR_17_1_D", by="officer", approver="chief")

    def get(self, name: str, as_whom: str) -> Any:
        """Explain the document's passage, which tells whether the reader may see it."""
        said = self._engine.explain(f"{name}:00000", _session(as_whom))
        return said.outcome.value, said.why, len(said.reasons)

    def ask(self, question: str, as_whom: str) -> Answer:
        """Ask; the answer quotes."""
        said = self._engine.ask(question, _session(as_whom))
        return Answer(str(said), [one.accession_number for one in said.citations])

    def files(self) -> list[Path]:
        """Return the store's files."""
        return [one for one in Path(self._home.name).rglob("*") if one.is_file()]

    def close(self) -> None:
        """Close the store, and remove it."""
        self._engine.close()
        self._home.cleanup()


def _session(whom: str | None) -> carag.Session:
    return carag.Session(
        role="public", purpose="read", principals=frozenset([f"user:{whom}"] if whom else [])
    )
