"""Go's reader of tiles, over HTTP, makes and accepts every proof of the log, and no false one.

Without Go this is skipped; with ``CARAG_REQUIRE_GO``, as in ``.ci/run``, that is a failure.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from carag.audit import Recovery
from tests.audit.go_judge import built
from tests.service.conftest import token
from tests.service.test_client import Served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from carag import Engine

SIZE = 1100


@pytest.fixture
def go(tmp_path: Path) -> Callable[..., list[bool]]:
    return built(tmp_path)


@pytest.fixture
def notes(engine: Engine) -> dict[int, str]:
    """Every checkpoint of the growing log by size, as its users keep them."""
    found = {engine.log.size: engine.log.checkpoint()}
    while engine.log.size < SIZE:
        engine.log.append(Recovery("DRILL"))
        found[engine.log.size] = engine.log.checkpoint()
    return found


@pytest.fixture
def served(engine: Engine, home: Path, files: Path) -> Iterator[Served]:
    running = Served(engine, home, files)
    yield running
    running.stop()


@pytest.mark.release
def test_a_thousand_random_proofs_from_the_tiles_hold(
    go: Callable[..., list[bool]], notes: dict[int, str], engine: Engine, served: Served
) -> None:
    """Of inclusion and consistency, half against the served checkpoint, half against a kept one."""
    dice, log = random.Random(7), engine.log  # noqa: S311
    there: dict[str, Any] = {"url": f"{served.url}/log", "token": token()}
    proofs: list[dict[str, Any]] = []
    for number in range(1000):
        old, size = sorted((dice.choice([*notes]), dice.choice([*notes])))
        under = {"text": notes[size]} if number % 2 else {}
        if number % 4 < 2:
            seq = dice.randrange(size)
            proofs.append(
                {"kind": "prove", "seq": seq, "record": log.record(seq).to_bytes(), **under, **there}
            )
        else:
            proofs.append({"kind": "extend", "old": notes[old], **under, **there})
    assert [] == [proof for proof, held in zip(proofs, go(proofs, log.vkey), strict=True) if not held]
    lies = [
        {**one, "seq": one["seq"] ^ 1} if one["kind"] == "prove" else {**one, "url": f"{served.url}/nowhere"}
        for one in dice.sample(proofs, 100)
    ]
    other = {**proofs[0], "record": proofs[0]["record"].replace(b"DRILL", b"DRILM") + b" "}
    assert not any(go([*lies, other, {**proofs[0], "token": "a.b.c"}], log.vkey))
