"""Embedders and clocks that tests write themselves."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta

import numpy as np

DIM = 8


class Counting:
    """An embedder with the four attributes that one must have; it counts the texts that it is given."""

    name, dim = "counting", DIM

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        assert type(texts) is list
        self.texts += texts
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Any direction will do, if it is the text's own."""
        digest = np.frombuffer(hashlib.sha256(text.encode()).digest(), np.uint8)[:DIM]
        return (digest.astype(float) - 127.5).tolist()


class Clock:
    """A clock that moves when it is told to, and by a second each time that it is read."""

    def __init__(self, now: datetime = datetime(2026, 1, 5, 9, tzinfo=UTC)) -> None:
        self.now = now

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now

    def pass_(self, **time: float) -> None:
        self.now += timedelta(**time)
