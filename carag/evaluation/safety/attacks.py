"""Attack a copy of the store: plant filings, ask for what they hide, and supersede some while the engine is asked."""

from __future__ import annotations

import shutil
import threading
from typing import TYPE_CHECKING

from carag.engine import Engine
from carag.evaluation.cases.adversaries import attacked_pairs, plan_attacks, write_amendments, write_planted
from carag.evaluation.cases.ground_truth import GroundTruth
from carag.evaluation.row import ORACLE
from carag.evaluation.searched import Searched
from carag.evaluation.systems.systems import Systems

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from pathlib import Path

    from carag.evaluation.cases.adversaries import AttackedCompany
    from carag.evaluation.cases.pairs import Pair
    from carag.evaluation.models import Models
    from carag.evaluation.systems.own import OwnSystem
    from carag.evaluation.systems.runner import Runner


def attack(
    store: Path,
    truth: GroundTruth,
    pairs: list[Pair],
    models: Models,
    runner: Runner,
    *,
    count: int,
    names: Sequence[str],
    own: Sequence[OwnSystem] = (),
    searched: Searched | None = None,
    scratch: Path,
) -> dict[str, int]:
    """Plant filings in a copy of a store and ask for what they hide; return the words of its chunks.

    ``count`` companies are attacked. The systems in ``own`` are built again over the copy, which is searched where
    ``searched`` says. ``scratch`` is a directory that is made, and deleted at the end.
    """
    attacks = plan_attacks(truth, pairs, count=count, seed=runner.seed)
    if not attacks:
        return {}
    now, searched = truth.now, searched or Searched()
    runner.say(f"attacking {len(attacks)} companies")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    shutil.copytree(store, scratch / "store", ignore=shutil.ignore_patterns("*.lock"))
    write_planted(attacks, scratch / "planted.jsonl")
    write_amendments(attacks, scratch / "amendments.jsonl")
    home = scratch / "store"
    with Engine.open(home, create=False, embedder=models.embedder, **searched.settings(home)) as engine:
        engine.ingest(scratch / "planted.jsonl")
    _relabel_while_asked(scratch, attacks, pairs, models, runner, now, searched)
    planted = GroundTruth.open(home, now=now)
    rest = attacked_pairs(planted, attacks, models.embedder, pairs)
    with Systems(home, planted, models, seed=runner.seed, names=names, own=own, searched=searched) as systems:
        runner.ask(planted, rest, systems, systems.names, models.generator.name)
    words = planted.words()
    planted.store.close()
    shutil.rmtree(scratch)
    return words


def _relabel_while_asked(
    scratch: Path,
    attacks: list[AttackedCompany],
    pairs: list[Pair],
    models: Models,
    runner: Runner,
    now: datetime,
    searched: Searched,
) -> None:
    """Ask one engine about the planted reports while they are superseded, and score what it answers afterwards."""
    store = scratch / "store"
    before = GroundTruth.open(store, now=now)
    asked = [
        pair
        for pair in attacked_pairs(before, attacks, models.embedder, pairs)
        if pair.kind == "adversary:relabel"
    ]
    ours = (ORACLE, "carag-certified")
    with Systems(store, before, models, seed=runner.seed, names=ours, searched=searched) as systems:
        news = threading.Thread(target=systems.engine.ingest, args=(scratch / "amendments.jsonl",))
        news.start()
        while True:
            for pair in asked:
                systems.engine.ask(pair.question.text, pair.session)
            if not news.is_alive():
                break
        news.join()
        after = GroundTruth.open(store, now=now)
        systems.truth = after
        again = [
            pair
            for pair in attacked_pairs(after, attacks, models.embedder, pairs)
            if pair.kind == "adversary:relabel"
        ]
        runner.ask(after, again, systems, ("carag-certified",), models.generator.name)
        after.store.close()
    before.store.close()
