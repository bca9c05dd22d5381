"""What the store says of one passage to a session: whether it is open, and how it came to its bits.

Whoever may not know that a passage exists learns it neither from what is said here nor from the steps it takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.corpus.metadata_only import is_metadata_only
from carag.policy import bit_names

if TYPE_CHECKING:
    from carag.corpus.store import CorpusStore
    from carag.corpus.values import StoredChunk, StoredLabel
    from carag.policy import Decision

__all__ = ["causes", "is_open"]


def is_open(store: CorpusStore, chunk_id: str, decision: Decision) -> bool:
    """Say whether a chunk is admissible, by the same steps for a hidden one and for one that is not there."""
    label = store.label_at_or_after(chunk_id, as_of=decision.as_of, known_at=decision.known_at)
    return label is not None and (_admits(decision, label) & (label.chunk_id == chunk_id))


def causes(store: CorpusStore, chunk: StoredChunk, decision: Decision) -> tuple[str, ...]:
    """Say how the chunk's filing earned the bits that this chunk has, which filings set the others, and its time."""
    filing = store.filing(chunk.accession_number, version=chunk.version)
    held = bit_names(chunk.word)
    own = (f"{bit}: {name}: {rule}" for bit, name, rule in filing.causes["bits"] if bit in held)
    state = (f"{bit}: set by {_named(store, number, decision)}" for bit, number in chunk.causes)
    return (*own, *state, f"public at: {filing.public_at_source}")


def _named(store: CorpusStore, accession_number: str, decision: Decision) -> str:
    """Name a filing to whoever may know of it, and say where it is known by its facts alone.

    Its text might clear the doubt; but a filing of which this session may see no passage may be one that is hidden.
    """
    if not decision.may_know_existence:
        keys = store.filing_labels(accession_number, known_at=decision.known_at).tolist()
        labels = store.labels_as_of(keys, decision.as_of, known_at=decision.known_at)
        if not any(_admits(decision, label) for label in labels):
            return "a later filing"
    facts = store.facts_of(accession_number)
    alone = facts is not None and is_metadata_only(facts)
    return f"{accession_number}, known by its facts alone" if alone else accession_number


def _admits(decision: Decision, label: StoredLabel) -> bool:
    return decision.admits(label.word, label.public_at, entity=label.subjects, expires_at=label.expires_at)
