"""Explain why a passage is admissible or hidden, without revealing to a session what it may not know to exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.audit import Outcome
from carag.engine.recorder import Finding
from carag.errors import InvalidArgument
from carag.policy import bit_names, explained

if TYPE_CHECKING:
    from carag.policy import Decision
    from carag.store.store import CorpusStore
    from carag.store.values import StoredChunk


def explain(store: CorpusStore, chunk_id: str, decision: Decision) -> Finding:
    """Say which rules hide a passage, which bits it carries and where they come from; never its text."""
    if not (_is_open(store, chunk_id, decision) or decision.may_know_existence):
        return _nothing_to_explain(chunk_id)
    try:
        chunk = store.chunk(chunk_id, as_of=decision.as_of, known_at=decision.known_at)
    except InvalidArgument:  # there is no such passage, which a session that may know is told
        return _nothing_to_explain(chunk_id)
    hidden = decision.reasons_for(chunk)
    verdict = "hidden from" if hidden else "admissible for"
    return Finding(
        Outcome.ANSWER,
        "HIDDEN" if hidden else "ADMISSIBLE",
        f"{chunk.chunk_id} is {verdict} {decision.role}/{decision.purpose}",
        reasons=tuple(explained(reason, decision, chunk.subjects) for reason in hidden),
        causes=_causes(store, chunk, decision),
        regulation=decision.regulation,
    )


def _nothing_to_explain(chunk_id: str) -> Finding:
    """Decline in the same words for a hidden passage and an absent one, so that they cannot be told apart."""
    text = f"there is nothing this session may know about {chunk_id}"
    return Finding(Outcome.DECLINE, "NOTHING_TO_EXPLAIN", text)


def _is_open(store: CorpusStore, chunk_id: str, decision: Decision) -> bool:
    label = store.labels.at_or_after(chunk_id, as_of=decision.as_of, known_at=decision.known_at)
    return label is not None and (decision.admits_labelled(label) & (label.chunk_id == chunk_id))


def _causes(store: CorpusStore, chunk: StoredChunk, decision: Decision) -> tuple[str, ...]:
    """Name the rule behind each bit of the passage's document, those that set the others, and its time's source."""
    document = store.documents.document(chunk.document_id, version=chunk.version)
    held = bit_names(chunk.word, decision.policy.flags)
    own = (f"{bit}: {name}: {rule}" for bit, name, rule in document.causes["bits"] if bit in held)
    state = (f"{bit}: set by {_named(store, id_, decision)}" for bit, id_ in chunk.causes)
    return (*own, *state, f"public at: {document.public_at_source}")


def _named(store: CorpusStore, document_id: str, decision: Decision) -> str:
    """Name a document to a session that may know of it, and say if its text is not known."""
    if not decision.may_know_existence:
        keys = store.labels.of_document(document_id, known_at=decision.known_at).tolist()
        labels = store.labels.as_of(keys, decision.as_of, known_at=decision.known_at)
        if not any(decision.admits_labelled(label) for label in labels):
            return "a later filing"
    alone = not store.documents.document(document_id).version
    return f"{document_id}, known by its facts alone" if alone else document_id
