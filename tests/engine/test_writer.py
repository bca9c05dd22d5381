"""One writer stores what any profile labels."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
BRINGS = {"put_metadata", "vectors_of"}


def test_one_module_embeds_and_stores_what_is_brought() -> None:
    """Filings and a firm's own documents: no second place has batches, counts and transactions of its own."""
    found = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "carag" / "engine").rglob("*.py")
        if path.name != "collection.py"  # asks the store for the vectors that it has
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in BRINGS
    }
    assert {"carag/engine/writer.py"} == found
