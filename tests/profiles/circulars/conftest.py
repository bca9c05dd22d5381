"""The invented circulars of ``data/circulars`` in a store, which the tests of this folder only read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from carag import Engine
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DATA = ROOT / "data" / "circulars"
NOW = datetime(2026, 11, 2, tzinfo=UTC)


def opened(home: Path, profile: str = "circulars") -> Engine:
    return Engine.open(home, profile=profile, embedder="wordllama", clock=lambda: NOW)


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with opened(tmp_path_factory.mktemp("circulars")) as engine:
        report = engine.ingest(DATA)
        assert (report.added, report.problems, report.quarantined) == (6, [], {})
        yield engine
