"""Asynchronous code waits for the engine, and its loop for nothing."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

from carag import Document, Engine, Session
from carag.audit import Verdict, verify_receipt

if TYPE_CHECKING:
    from pathlib import Path

WORK = Session(role="employee", purpose="work")


def test_each_twin_does_what_its_call_does(tmp_path: Path) -> None:
    """At once, and with a receipt each."""

    async def run(engine: Engine) -> list[Any]:
        report = await engine.aadd(
            [Document(id="memo", text="The canteen opens at noon.", bits=["INTERNAL"])]
        )
        assert report.added == 1
        return await asyncio.gather(
            *(engine.aretrieve("When?", WORK, 3) for _ in range(5)),
            *(engine.aask("When?", WORK) for _ in range(5)),
        )

    with Engine.open(tmp_path, profile="generic", embedder="wordllama") as engine:
        found = asyncio.run(run(engine))
        assert {one.passages[0].chunk_id for one in found} == {"memo:00000"}
        receipts = {one.receipt.to_bytes() for one in found}
        assert len(receipts) == 10
        assert {verify_receipt(one, engine.vkey).verdict for one in receipts} == {Verdict.VERIFIED}


def test_the_loop_goes_on_while_a_model_is_slow(tmp_path: Path) -> None:
    """The generator is let go by what runs in the loop meanwhile."""
    released = threading.Event()

    def slow(_question: str, _passages: object, _withheld: object) -> str:
        assert released.wait(20)
        return "At noon [1]."

    async def run(engine: Engine) -> str:
        asked = asyncio.create_task(engine.aask("When does the canteen open?", WORK))
        await asyncio.sleep(0.05)
        assert not asked.done()
        released.set()
        return (await asked).text

    with Engine.open(tmp_path, profile="generic", embedder="wordllama", generator=slow) as engine:
        engine.add([Document(id="memo", text="The canteen opens at noon every day.", bits=["INTERNAL"])])
        assert asyncio.run(run(engine)) == "At noon [1]."
