"""Every test of the command line runs in a directory and with settings of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def own_settings(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``carag init`` writes into the current directory, and ``carag`` reads what lies there."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.chdir(home)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    for name in ("CONFIG", "STORE", "EMBEDDER", "GENERATOR", "RANKER", "RERANKER"):
        monkeypatch.delenv(f"CARAG_{name}", raising=False)
    return home
