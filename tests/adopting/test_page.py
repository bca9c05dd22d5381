"""The page on adopting an index does what it shows, where FAISS is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.test_docs import DOCS, Shell, blocks, follow

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("faiss", reason="pip install faiss-cpu")


def test_the_page_does_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From an empty directory, to the letter."""
    monkeypatch.setattr(
        "tests.test_docs.blocks",
        lambda page: [one._replace(why=None) for one in blocks(page)],
    )
    home = tmp_path / "home"
    home.mkdir()
    follow(DOCS / "how-to" / "adopt-an-index.md", Shell(home))
    assert (home / "store" / "corpus.db").exists()
