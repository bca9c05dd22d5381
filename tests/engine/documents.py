"""Make documents, an embedder and a clock for an engine, and ask it which documents a session finds."""

from __future__ import annotations

import hashlib
import math
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from carag import Document, Engine, Session

DIM = 8
COMPLIANCE = Session(role="compliance", purpose="surveil")
QUESTION = "When do branches report?"
DAY = datetime(2025, 1, 1, tzinfo=UTC)


def document(number: int | str = 0, /, **changes: Any) -> Document:
    return Document(
        **{"id": f"d/{number}", "text": f"Branches report on day {number}.", "bits": (), **changes}
    )


def at(day: int) -> datetime:
    return DAY + timedelta(days=day)


def ids(engine: Engine, session: Session = COMPLIANCE) -> set[str]:
    """The documents that a session finds."""
    return {passage.accession_number for passage in engine.retrieve(QUESTION, session, 400).passages}


class Counting:
    """An embedder with the four attributes that one must have; it keeps count of the texts that it is given."""

    name, dim = "counting", DIM

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.batches: list[int] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        assert type(texts) is list
        self.texts += texts
        self.batches.append(len(texts))
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Any direction will do, if it is the text's own."""
        digest = np.frombuffer(hashlib.sha256(text.encode()).digest(), np.uint8)[:DIM]
        return (digest.astype(float) - 127.5).tolist()


class Angles:
    """An embedder by which a question such as "q 0.37" has cosine 0.37 with what is open, and more with the secret."""

    name, dim, fingerprint = "angles", 2, "1"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[0.0, 1.0] if "secret" in text else [1.0, 0.0] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        cosine = float(text.split()[-1])
        return [cosine, math.sqrt(1 - cosine * cosine)]


class Clock:
    """A clock that moves when it is told to, and by a second each time that it is read."""

    def __init__(self, now: datetime = datetime(2026, 1, 5, 9, tzinfo=UTC)) -> None:
        self.now = now

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now

    def pass_(self, **time: float) -> None:
        self.now += timedelta(**time)
