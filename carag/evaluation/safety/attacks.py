"""The adversaries' part of a run: in a copy of the corpus, one engine asked while its store changes."""

from __future__ import annotations

import shutil
import threading
from typing import TYPE_CHECKING

from carag.engine import Engine
from carag.evaluation.cases.adversaries import attacked_pairs, plan_attacks, write_amendments, write_planted
from carag.evaluation.cases.ground_truth import World
from carag.evaluation.row import ORACLE
from carag.evaluation.systems.systems import Systems

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from pathlib import Path

    from carag.evaluation.cases.adversaries import Attack
    from carag.evaluation.cases.pairs import Pair
    from carag.evaluation.models import Models
    from carag.evaluation.systems.runner import Asker

__all__ = ["attack"]


def attack(
    store: Path,
    world: World,
    pairs: list[Pair],
    models: Models,
    asker: Asker,
    *,
    count: int,
    names: Sequence[str],
    scratch: Path,
) -> dict[str, int]:
    """Plant filings in a copy of a store and ask for what they hide; return the words of its chunks.

    Parameters
    ----------
    count : int
        Companies attacked.
    scratch : Path
        Made, and deleted at the end.
    """
    attacks = plan_attacks(world, pairs, count=count, seed=asker.seed)
    if not attacks:
        return {}
    now = world.now
    asker.say(f"attacking {len(attacks)} companies")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    shutil.copytree(store, scratch / "store", ignore=shutil.ignore_patterns("*.lock"))
    write_planted(attacks, scratch / "planted.jsonl")
    write_amendments(attacks, scratch / "amendments.jsonl")
    with Engine.open(scratch / "store", create=False, embedder=models.embedder) as engine:
        engine.ingest(scratch / "planted.jsonl")
    _relabel_while_asked(scratch, attacks, pairs, models, asker, now)
    planted = World.open(scratch / "store", now=now)
    rest = attacked_pairs(planted, attacks, models.embedder, pairs)
    with Systems(scratch / "store", planted, models, seed=asker.seed, names=names) as systems:
        asker.ask(planted, rest, systems, names, models.generator.name)
    words = planted.words()
    planted.store.close()
    shutil.rmtree(scratch)
    return words


def _relabel_while_asked(
    scratch: Path, attacks: list[Attack], pairs: list[Pair], models: Models, asker: Asker, now: datetime
) -> None:
    """Ask one engine about the planted reports while they are superseded, and keep what it says afterwards.

    Its warm state is that of before: what it hands out after the amendment is on record is judged by the labels of
    after.
    """
    store = scratch / "store"
    before = World.open(store, now=now)
    asked = [
        pair
        for pair in attacked_pairs(before, attacks, models.embedder, pairs)
        if pair.kind == "adversary:relabel"
    ]
    with Systems(store, before, models, seed=asker.seed, names=(ORACLE, "carag-certified")) as systems:
        news = threading.Thread(target=systems.engine.ingest, args=(scratch / "amendments.jsonl",))
        news.start()
        while True:
            for pair in asked:
                systems.engine.ask(pair.question.text, pair.session)
            if not news.is_alive():
                break
        news.join()
        after = World.open(store, now=now)
        systems.world = after
        again = [
            pair
            for pair in attacked_pairs(after, attacks, models.embedder, pairs)
            if pair.kind == "adversary:relabel"
        ]
        asker.ask(after, again, systems, ("carag-certified",), models.generator.name)
        after.store.close()
    before.store.close()
