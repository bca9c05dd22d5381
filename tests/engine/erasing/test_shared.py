"""Holds, what is due and reports are told alike from a shared store, whichever engine placed or asks."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from carag import Engine
from carag.audit import release_hold
from tests.engine.erasing.test_holds import PEOPLE, memo

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sharing import SharedServer


def test_a_shared_store_is_held_by_whichever_engine(sharing: SharedServer, tmp_path: Path) -> None:
    schema = sharing.shared(tmp_path / "one")
    with Engine.open(tmp_path / "one", profile="generic", embedder="wordllama") as engine:
        metadata = {"department": "desk"}
        engine.add(
            [
                memo(1, text="Ana Ruiz asked.", erase_after=date(2020, 1, 1), metadata=metadata),
                memo(2, text="Nobody asked.", erase_after=date(2900, 1, 1), entities=[7], allow=["user:ana"]),
            ]
        )
    sharing.joined(tmp_path / "two", tmp_path / "one", schema)
    with Engine.open(tmp_path / "one") as one, Engine.open(tmp_path / "two") as other:
        holds = one.erasures.holds
        seqs = [
            holds.place("M-1", **given).seq
            for given in ({"entity": 7}, {"where": {"department": "desk"}}, {"words": ["ana ruiz"]})
        ]
        held = {"memo/1": (seqs[1], seqs[2]), "memo/2": (seqs[0],)}
        assert other.erasures.holds.on(["memo/1", "memo/2"]) == held
        assert [(one.document, one.held) for one in other.erasures.due()] == [("memo/1", (seqs[1], seqs[2]))]
        for seq in seqs[1:]:
            release_hold(other.log, seq, **PEOPLE)
        assert holds.on(["memo/1", "memo/2"]) == {"memo/2": (seqs[0],)}
        found = other.erasures.report(["Ana Ruiz", "ana"], role="auditor", actor="eve", why="DRILL")
        assert [one.id for one in found.documents] == ["memo/1"]
        assert [tuple(one) for one in found.lists] == [("memo/2", "allow", "user:ana")]
