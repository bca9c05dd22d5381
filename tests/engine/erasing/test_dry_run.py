"""A dry run tells what an erasure would do, exactly, and does nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from carag import Engine, Session
from carag.audit import place_hold, verify_erasure
from carag.errors import InvalidArgument, Refused
from tests.engine.documents import Counting
from tests.engine.erasing.canaries import canary

if TYPE_CHECKING:
    from pathlib import Path

SESSION = Session(role="employee", purpose="work", principals=["group:clerks"])
TWO = {"by": "officer", "approver": "chief"}


@pytest.mark.parametrize("basis", ["GDPR_17_1", "GDPR_17_1_D"])
def test_what_is_told_is_what_is_done(tmp_path: Path, basis: str) -> None:
    """Documents, passages, answers that go, and answers that stay and why; then the documents are still there."""
    with Engine.open(tmp_path, profile="generic", embedder=Counting()) as engine:
        engine.add(map(canary, (1, 2)))
        seqs = [
            engine.ask("Who asked for a loan of 7001 euros, question 1?", SESSION).receipt.seq
            for _ in range(3)
        ]
        place_hold(engine.log, "MATTER-1", actor="counsel", records=(seqs[1], seqs[1]))
        ids = [canary(number).id for number in (1, 2)]
        size, root = engine.log.size, engine._collection.state.root
        told = engine.erase(ids, basis=basis, dry_run=True, **TWO)
        assert (engine.log.size, engine._collection.state.root) == (size, root)
        assert not told.receipts + told.statements
        assert {one.document_id for one in engine.retrieve("Who asked for a loan?", SESSION, 9).passages} >= {
            *ids
        }
        done = engine.erase(ids, basis=basis, **TWO)
        assert done[1:-1] == told[1:-1]
        assert done.documents == 2
        assert seqs[1] in done.kept
        assert bool(done.answers) is (basis == "GDPR_17_1_D")
        assert ["hold" in why for why in done.reasons] == [seq == seqs[1] for seq in done.kept]


def test_a_dry_run_refuses_what_an_erasure_refuses(tmp_path: Path) -> None:
    """So that what it tells can be done."""
    with Engine.open(tmp_path, profile="generic", embedder=Counting()) as engine:
        engine.add([canary(1)])
        for ids, two in (
            (["another"], TWO),
            ([], TWO),
            ([canary(1).id], {"by": "chief", "approver": "Chief"}),
            ([canary(1).id], {"by": "chief"}),
        ):
            with pytest.raises(InvalidArgument):
                engine.erase(ids, basis="GDPR_17_1", dry_run=True, **two)


def test_each_statement_shows_its_document_and_no_other(tmp_path: Path) -> None:
    """More documents than one record names: each statement goes with its own receipt."""
    with Engine.open(tmp_path, profile="generic", embedder=Counting()) as engine:
        engine.add(map(canary, range(501)))
        ids = [canary(number).id for number in range(501)]
        done = engine.erase(ids, basis="GDPR_17_1", **TWO)
        vkey = engine.log.vkey
    assert [one.id for one in done.statements] == ids
    receipts = {one.seq: one.to_bytes() for one in done.receipts}
    assert len(receipts) == 2
    for said in (done.statements[0], done.statements[499], done.statements[500]):
        verdicts = {
            seq: verify_erasure(data, said.to_bytes(), vkey).verdict for seq, data in receipts.items()
        }
        assert {seq for seq, one in verdicts.items() if one.value == "verified"} == {said.record}


def test_a_dry_run_refuses_what_is_held_without_a_record(tmp_path: Path) -> None:
    with Engine.open(tmp_path, profile="generic", embedder=Counting()) as engine:
        engine.add([canary(1)])
        place_hold(engine.log, "MATTER-1", actor="counsel")
        size = engine.log.size
        for dry_run, more in ((True, 0), (False, 1)):
            with pytest.raises(Refused, match="a legal hold covers document"):
                engine.erase([canary(1).id], basis="GDPR_17_1_D", dry_run=dry_run, **TWO)
            assert engine.log.size == size + more
