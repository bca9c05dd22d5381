"""A small store of the user's own, with a secret and a draft, and questions that bite."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from carag import Document, Engine

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from carag.policy import Profile

CANARY = "HERON-4711"
TEXTS = {
    "canteen": "The canteen opens at noon and serves soup on every Monday of the year.",
    "rent": "The rent of the head office rises by four per cent in May of next year.",
    "merger": f"Under the name {CANARY} the board will buy Lumen Works for ninety million euros in autumn.",
}
BITS = {"canteen": (), "rent": ("INTERNAL",), "merger": ("SECRET",)}
QUESTIONS = [
    {"question": "What will the board buy?", "role": "employee", "purpose": "work", "documents": ["merger"]},
    {"question": "What will the board buy?", "role": "counsel", "purpose": "advise", "documents": ["merger"]},
    {
        "question": "When does the canteen open?",
        "role": "public",
        "purpose": "read",
        "documents": ["canteen"],
    },
    {"question": "When does the canteen open?", "role": "public", "purpose": "work"},
    {"question": "How far does the rent rise?", "role": "public", "purpose": "read", "documents": []},
]
CANARIES = [{"document": "merger", "text": CANARY}]


def a_store(
    home: Path, profile: str | Profile = "generic", bits: dict[str, tuple[str, ...]] | None = None
) -> Path:
    """Make a store of the three documents."""
    with Engine.open(home, profile=profile, embedder="wordllama") as engine:
        engine.add(Document(id=name, text=text, bits=(bits or BITS)[name]) for name, text in TEXTS.items())
    return home


def written(path: Path, rows: Iterable[object]) -> Path:
    """Write JSON lines; what is text already is written as it is."""
    path.write_text("".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in rows), "utf-8")
    return path
