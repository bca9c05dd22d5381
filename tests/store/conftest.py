"""Open an empty store for each test of the room."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from carag.store.store import CorpusStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CorpusStore]:
    with CorpusStore.open(tmp_path / "corpus.db") as opened:
        yield opened
