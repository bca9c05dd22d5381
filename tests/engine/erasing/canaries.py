"""Documents with marks that a scan finds again in files: words, titles, ids, names of files and people, vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from carag import Document
from carag.retrieval import headed
from tests.engine.documents import Counting
from tests.remains import remains

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray


def canary(number: int, **changes: object) -> Document:
    """A document of which every part is its own."""
    return Document(
        **{
            "id": f"dossier-{number:04d}-qzx/file-{number:04d}.md",
            "text": f"The applicant wexqu{number:04d}rd asked for a loan of {7000 + number} euros.",
            "bits": (),
            "metadata": {"title": f"Application of Qyvlast{number:04d}n"},
            "allow": [f"user:zyvonne{number:04d}", "group:clerks"],
            **changes,
        }
    )


def marks(number: int) -> dict[str, bytes]:
    """What a file must not hold after the document was erased, by what it is."""
    one = canary(number)
    vector = np.array(Counting().embed_query(headed(one.text, str(one.metadata["title"]))), np.float32)
    return {
        "text": f"wexqu{number:04d}rd".encode(),
        "title": f"Qyvlast{number:04d}n".encode(),
        "title as a term": f"qyvlast{number:04d}n".encode(),
        "id": f"dossier-{number:04d}-qzx".encode(),
        "file": f"file-{number:04d}.md".encode(),
        "person": f"zyvonne{number:04d}".encode(),
        **vector_marks(vector),
    }


def vector_marks(vector: NDArray[np.float32]) -> dict[str, bytes]:
    """A vector as stores and indexes keep it: of unit length, in halves, and in eight bits a coordinate."""
    unit = (vector.astype(np.float64) / np.linalg.norm(vector.astype(np.float64))).astype(np.float32)
    codes = np.rint(unit * (np.float32(127) / np.abs(unit).max())).astype(np.int64) + 128
    return {
        "unit vector": unit.tobytes(),
        "half vector": unit.astype(np.float16).tobytes(),
        "eight-bit vector": codes.astype(np.uint8).tobytes(),
    }


def found(home: Path, wanted: Mapping[int, Mapping[str, bytes]]) -> set[tuple[int, str]]:
    """Return which marks of which documents stand in any file below a folder."""
    there = remains((mark for each in wanted.values() for mark in each.values()), home)
    return {(number, what) for number, each in wanted.items() for what, mark in each.items() if mark in there}


def kinds(seen: Iterable[tuple[int, str]]) -> set[str]:
    return {what for _, what in seen}
