"""A service's client in the place of the engine: the same documents from every adapter, and none without a record."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("jwt")

from carag import AsyncClient, Client, Session
from carag.errors import AuditUnavailable, InvalidArgument
from tests.adapters.faces import QUESTION, Own
from tests.adapters.test_conformance import ADAPTERS, CELLS, NAMES, SESSIONS, VALUES, K, questions
from tests.service.conftest import EC_KEY, jwk, token
from tests.service.test_client import Served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from carag import Engine
    from tests.adapters.faces import Face

GRANTED = [cell for cell in CELLS if "unknown" not in cell]
EVERYBODY = "\n".join(
    f'[[grant]]\ngroup = "{role}"\ncells = ["{role}/{purpose}"]' for role, purpose in GRANTED
)
GRANTED_SESSIONS = [one for one in SESSIONS if one.role != "unknown"]


def served(engine: Engine, files: Path) -> Served:
    """The engine behind a socket, for an issuer whose groups are the roles."""
    (files / "grants.toml").write_text(f"schema = 1\n\n{EVERYBODY}\n")
    (files / "jwks.json").write_text(json.dumps({"keys": [jwk(EC_KEY, "e", "ES256")]}))
    home = engine._collection.store.path.parent
    return Served(engine, home, files, rate=10_000, burst=10_000, concurrency_each=16, max_k=400)


@pytest.fixture
def client(engine: Engine, tmp_path: Path) -> Iterator[Client]:
    running = served(engine, tmp_path)
    with Client(running.url, token=token(sub="bo", groups=[role for role, _ in GRANTED])) as opened:
        yield opened
    running.stop()


def same_as_the_engine(faces: list[Face], engine: Engine, client: Client, pairs: int) -> None:
    own, found = Own(), 0
    for number, (question, session) in enumerate(
        itertools.islice(zip(questions(), itertools.cycle(GRANTED_SESSIONS), strict=False), pairs)
    ):
        k = 1 + number % 12
        wanted = [row[:3] for row in own.ask({"engine": engine, "session": session, "k": k}, question)]
        for face in faces:
            made = face.make(client=client, session=session, k=k)
            rows = asyncio.run(face.await_(made, question)) if number % 4 == 0 else face.ask(made, question)
            assert wanted == [row[:3] for row in rows], (face, question, session)
            found += len(rows)
    assert found > pairs * len(faces)


def test_ids_order_scores_and_text_are_the_engines(face: Face, engine: Engine, client: Client) -> None:
    """They pass through a socket, a token and JSON; one of the faces is the client itself."""
    same_as_the_engine([face], engine, client, 24)


@pytest.mark.full
def test_of_a_thousand_pairs_none_differs(
    engine: Engine, client: Client, named: Callable[[str], Face]
) -> None:
    """The client and every adapter over it agree with the engine."""
    same_as_the_engine([named(name) for name in ("engine", *ADAPTERS)], engine, client, 1000)


@pytest.mark.parametrize("name", ADAPTERS)
def test_no_hostile_call_widens_what_comes_out(
    name: str, engine: Engine, client: Client, named: Callable[[str], Face]
) -> None:
    """Though the token would grant more: the session that server code bound chooses among its cells."""
    employee = Session(role="employee", purpose="work")
    may = {one.chunk_id for one in engine.retrieve(QUESTION, employee, 400).passages}
    made = named(name).make(client=client, session=employee, k=K)
    doors, random_ = named(name).doors(made), random.Random(11)  # noqa: S311
    for number in range(60):
        door = [*doors][number % len(doors)]
        given = {one: random_.choice(VALUES) for one in random_.sample(NAMES, random_.choice((1, 2, 4)))}
        try:
            ids = doors[door](given)
        except Exception:  # noqa: BLE001, S112 - a call that raises gives nothing
            continue
        assert len(ids) <= K, (door, given)
        assert {*ids} <= may, (door, given)


def test_no_document_comes_from_a_dead_log(
    face: Face, dying: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is the engine's own, over HTTP too."""
    running = served(dying, tmp_path)
    try:
        with Client(running.url, token=token(groups=["public"])) as client:
            made = face.make(client=client, session=Session(role="public", purpose="read"), k=8)
            assert 1 == len(face.ask(made, QUESTION))

            def dead(_: object) -> None:
                raise AuditUnavailable("the disk is gone")

            with monkeypatch.context() as broken:
                broken.setattr(dying._log._backend, "append", dead)
                with pytest.raises(AuditUnavailable):
                    face.ask(made, QUESTION)
                with pytest.raises(AuditUnavailable):
                    asyncio.run(face.await_(made, QUESTION))
    finally:
        running.stop()


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_client_that_must_be_awaited_is_refused(name: str, named: Callable[[str], Face]) -> None:
    """Adapters await in a thread of their own, and would take the coroutine for a result."""
    client = AsyncClient("http://127.0.0.1:9", token=token())
    with pytest.raises(InvalidArgument, match=r"carag\.Client"):
        named(name).make(client=client, session=Session(role="public", purpose="read"))
