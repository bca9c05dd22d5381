"""Make filings, passages and vectors for a store, and read all that it holds past its methods."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from carag.labelling.labelled import LabelledDocument, LabelledPassage
from carag.policy import VERSION_WORD

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from carag.store.store import CorpusStore

DIM = 4


def a_filing(number: str = "0000000001-25-000001", **changes: Any) -> LabelledDocument:
    return replace(
        LabelledDocument(
            document_id=number,
            form="10-K",
            company="Mill & Co.",
            filed="2025-05-09",
            content_hash="ab" * 32,
            facts={"form": "10-K", "sics": ["3674"], "accepted": None},
            causes={"J_US": "business address OH"},
            public_at_source="acceptance",
        ),
        **changes,
    )


def some_chunks(*texts: str, word: int = VERSION_WORD | 1) -> list[LabelledPassage]:
    return [
        LabelledPassage(
            document="10-K", start=9 * n, end=9 * n + len(text), text=text, word=word, public_at=1000 + n
        )
        for n, text in enumerate(texts)
    ]


def some_vectors(count: int, dim: int = DIM) -> NDArray[np.float32]:
    return np.arange(1, count * dim + 1, dtype=np.float32).reshape(count, dim)


def put(store: CorpusStore, filing: LabelledDocument, *texts: str) -> list[int]:
    keys = store.put(filing, some_chunks(*texts), some_vectors(len(texts))).keys
    assert keys.dtype == np.int64
    return [int(key) for key in keys]


TABLES = [
    "meta",
    "filings",
    "filing_ciks",
    "entity_sets",
    "chunks",
    "changes",
    "labels",
    "vectors",
    "embedded",
    "group_changes",
    "groups",
    "memberships",
    "audiences",
    "principals",
    "document_audiences",
    "label_audiences",
    "erased",
    "erased_labels",
]


def contents(store: CorpusStore) -> dict[str, list[Any]]:
    with store._reading() as sql:
        found = {table: sql.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES}  # noqa: S608
    return {table: sorted(rows, key=repr) for table, rows in found.items()}
