"""An engine with anchors returns no answer whose record no anchor will ever confirm."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from carag import Engine, Session
from carag.audit.anchors import Evidence, Standing, Window
from carag.errors import AnchorUnavailable, AuditUnavailable

if TYPE_CHECKING:
    from pathlib import Path

SESSION = Session(role="stranger", purpose="invest")


class Ledger:
    """An anchor in memory that can be down."""

    kind, place, down = "ledger", "memory", False

    def submit(self, submission):
        if self.down:
            raise AnchorUnavailable("it is down")
        return Evidence(self.kind, self.place, submission.checkpoint, submission.now)

    def confirm(self, evidence, keys):
        return evidence.check_signed(keys)


@pytest.fixture(scope="module")
def founded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("anchored") / "store"
    with Engine.open(path, embedder="wordllama") as engine:
        assert engine.anchoring.exposure().standing is Standing.NO_ANCHOR
    return path


@pytest.fixture
def store(founded: Path, tmp_path: Path) -> Path:
    return shutil.copytree(founded, tmp_path / "store")


def test_answers_are_anchored_when_the_engine_closes(store: Path) -> None:
    """Opened, asked, closed: what was asked is known outside."""
    with Engine.open(store, anchors=[Ledger()]) as engine:
        engine.ask("Anything?", SESSION)
        assert engine.anchoring.exposure().standing is Standing.OPEN
    with Engine.open(store, anchors=[Ledger()]) as engine:
        assert engine.anchoring.exposure().standing is Standing.COVERED


def test_past_the_window_nothing_leaves(store: Path) -> None:
    """With every anchor down, answers stop at the window and not before; without anchors they never do."""
    ledger = Ledger()
    with Engine.open(store, anchors=[ledger], window=Window(records=2)) as engine:
        ledger.down = True
        for _ in range(2):
            engine.ask("Anything?", SESSION)
        with pytest.raises(AuditUnavailable, match="not confirmed by any anchor"):
            engine.ask("Anything?", SESSION)
        assert engine.anchoring.exposure().records == 2
    with Engine.open(store) as engine:
        engine.ask("Anything?", SESSION)
