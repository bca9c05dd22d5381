"""The corpus room: documents in. EDGAR readers, labelling, events, chunking and the store."""

from __future__ import annotations

from carag.corpus.chunking import CHUNKER_VERSION, Chunk, chunk
from carag.corpus.door import problem_of
from carag.corpus.filing import Filing, FilingDocument
from carag.corpus.labelling import LABELLER_VERSION, Cause, Label, QuarantineCode, chunk_word, label
from carag.corpus.lifecycle import (
    FilingFacts,
    StateBits,
    StateSpan,
    bears_on_others,
    state_bits,
    state_history,
)
from carag.corpus.metadata_only import (
    KnownFacts,
    facts_of_metadata,
    facts_of_text,
    is_metadata_only,
    quarantine_of,
    readings,
    united,
)
from carag.corpus.readers import ReadKind, ReadOutcome, read_filings, total_bytes
from carag.corpus.store import CorpusStore
from carag.corpus.values import Counts, StoredChunk, StoredFiling, StoredLabel, content_hash

__all__ = [
    "CHUNKER_VERSION",
    "LABELLER_VERSION",
    "Cause",
    "Chunk",
    "CorpusStore",
    "Counts",
    "Filing",
    "FilingDocument",
    "FilingFacts",
    "KnownFacts",
    "Label",
    "QuarantineCode",
    "ReadKind",
    "ReadOutcome",
    "StateBits",
    "StateSpan",
    "StoredChunk",
    "StoredFiling",
    "StoredLabel",
    "bears_on_others",
    "chunk",
    "chunk_word",
    "content_hash",
    "facts_of_metadata",
    "facts_of_text",
    "is_metadata_only",
    "label",
    "problem_of",
    "quarantine_of",
    "read_filings",
    "readings",
    "state_bits",
    "state_history",
    "total_bytes",
    "united",
]
