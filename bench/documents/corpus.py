"""Make short documents of a firm under the generic profile, and an embedder that costs next to nothing."""

from __future__ import annotations

import hashlib
import random
import time
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final

import numpy as np

from carag import Document

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


DIM: Final = 32
"""Length of the vectors: small, so that storing and opening are not measured through their bytes."""
_WORDS: Final = (
    *("branch", "report", "ledger", "audit", "risk", "policy", "notice", "payment", "client", "transfer"),
    *("review", "limit", "margin", "credit", "desk", "trade", "order", "approval", "committee", "memo"),
)
_CLASSES: Final = ("public", "internal", "confidential", "secret")
_DEPARTMENTS: Final = ("treasury", "lending", "legal", "personnel", "research")


def documents(first: int, count: int, *, seed: int) -> Iterator[Document]:
    """Make documents number ``first`` and on, of 200 to 400 characters: each is the same in every run of a seed."""
    for number in range(first, first + count):
        draw = random.Random(f"{seed}/{number}")  # noqa: S311
        size = draw.randint(200, 400)
        text = f"Memo {number}. {' '.join(draw.choices(_WORDS, k=70))}"[: size - 1].rstrip() + "."
        yield Document(
            id=f"memo/{number}",
            text=text,
            facts={
                "classification": draw.choice(_CLASSES),
                "personal_data": draw.random() < 0.1,
                "department": draw.choice(_DEPARTMENTS),
            },
            metadata={"title": f"Memo {number}", "author": f"author {draw.randrange(500)}"},
            entities=draw.sample(range(1, 2001), draw.randint(0, 2)),
            public_at=date(2020, 1, 1) + timedelta(days=draw.randrange(1500)),
        )


class Hashed:
    """An embedder of one's own: the bytes of a text's hash as a vector; ``seconds`` and ``cpu`` keep what it took."""

    name = "hashed"
    dim = DIM
    fingerprint = "hashed-1"
    remote = False

    def __init__(self) -> None:
        self.seconds = self.cpu = 0.0

    def embed_documents(self, texts: list[str]) -> NDArray[np.float32]:
        """Return a unit vector for each text."""
        began, cpu = time.perf_counter(), time.process_time()
        hashes = b"".join(hashlib.shake_128(text.encode()).digest(self.dim) for text in texts)
        vectors = np.frombuffer(hashes, np.int8).astype(np.float32).reshape(-1, self.dim) + 0.5
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        self.seconds += time.perf_counter() - began
        self.cpu += time.process_time() - cpu
        return vectors

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a question."""
        vector: NDArray[np.float32] = self.embed_documents([text])[0]
        return vector
