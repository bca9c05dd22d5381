"""Every adapter gives what the engine gives to the session that server code bound, and nothing to any other."""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
import logging
import pickle
import random
import socket
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from carag import Session
from carag.errors import AuditUnavailable, InvalidArgument, Refused
from tests.adapters.faces import QUESTION, Own

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from carag import Engine
    from tests.adapters.faces import Face

ADAPTERS = ("haystack", "langchain", "llamaindex")
EMPLOYEE = Session(role="employee", purpose="work", subject="ana-7731")
CELLS = [
    ("public", "read"),
    ("employee", "work"),
    ("counsel", "advise"),
    ("compliance", "review"),
    ("unknown", "x"),
]
SESSIONS = [
    *(Session(role=role, purpose=purpose) for role, purpose in CELLS),
    *(Session(role=role, purpose=purpose, subject="bo", restricted={7}) for role, purpose in CELLS),
]
K = 5
NAMES = (
    *("session", "role", "purpose", "subject", "engine", "client", "source", "owner", "binding", "_binding"),
    *("filter", "filters", "where", "search_kwargs", "search_type", "namespace", "collection", "metadata"),
    *(
        "k",
        "top_k",
        "fetch_k",
        "limit",
        "n_results",
        "similarity_top_k",
        "score_threshold",
        "ids",
        "run_manager",
    ),
    *(
        "policy",
        "mask",
        "required",
        "forbidden",
        "as_of",
        "known_at",
        "strict",
        "sink",
        "admin",
        "run_id",
        "config",
    ),
)
VALUES: tuple[Any, ...] = (
    *("compliance", "review", "*", "", "8", "role=compliance", "<script>", None, True, False),
    *(10**9, 2**63, -1, 0, 1, 5, 6, 400, 401, 1.5, float("inf"), float("nan")),
    *(
        {"role": "compliance", "purpose": "review"},
        {"$or": [{}, {}]},
        {"operator": "OR", "conditions": []},
        {},
    ),
    *([], ["compliance"], Session(role="compliance", purpose="review"), lambda *_: True),
)


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here opens a connection; the pair of sockets of an event loop does not count."""

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket.socket, "connect_ex", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)


def questions() -> Iterator[str]:
    return (f"When do branches report, for the {number}th time?" for number in itertools.count())


def same_as_the_engine(faces: list[Face], engine: Engine, pairs: int) -> None:
    own, found, records = Own(), 0, set()
    for number, (question, session) in enumerate(zip(questions(), itertools.cycle(SESSIONS), strict=False)):
        if number == pairs:
            break
        bound = {"engine": engine, "session": session, "k": 1 + number % 12}
        wanted = [row[:3] for row in own.ask(bound, question)]
        for face in faces:
            made = face.make(**bound)
            rows = asyncio.run(face.await_(made, question)) if number % 4 == 0 else face.ask(made, question)
            assert wanted == [row[:3] for row in rows], (face, question, session)
            assert not {row.record for row in rows} & records  # each answer has its own
            records |= {row.record for row in rows}
            found += len(rows)
    assert found > pairs * len(faces)  # more than one each, refusals included


def test_ids_order_scores_and_text_are_the_engines(face: Face, engine: Engine) -> None:
    """This holds where the session is refused, too; awaited and not."""
    same_as_the_engine([face], engine, 40)


@pytest.mark.release
def test_of_a_thousand_pairs_none_differs(engine: Engine, named: Callable[[str], Face]) -> None:
    """Pairs of question and session, in all adapters."""
    same_as_the_engine([named(name) for name in ADAPTERS], engine, 1000)


def attacked(face: Face, engine: Engine, calls: int) -> None:
    """Call every door with hostile parameters; no call returns what the session may not use."""
    may = {one.chunk_id for one in engine.retrieve(QUESTION, EMPLOYEE, 400).passages}
    everything = engine.retrieve(QUESTION, Session(role="compliance", purpose="review"), 400).passages
    assert K < len(may) < len(everything)
    made = face.make(engine=engine, session=EMPLOYEE, k=K)
    doors, random_ = face.doors(made), random.Random(7)  # noqa: S311
    for door, call in doors.items():  # each leads somewhere
        ids = call({})
        assert K == len(ids), door
        assert {*ids} <= may, door
    widened, refused = [], 0
    for number in range(calls):
        door = [*doors][number % len(doors)]
        given = {name: random_.choice(VALUES) for name in random_.sample(NAMES, random_.choice((1, 1, 2, 4)))}
        try:
            ids = doors[door](given)
        except Exception:  # noqa: BLE001 - a call that raises gives nothing
            refused += 1
            continue
        if len(ids) > K or not {*ids} <= may:
            widened.append((door, given))
    assert [] == widened
    assert refused > calls / 10


@pytest.mark.parametrize("name", ADAPTERS)
def test_no_hostile_call_widens_what_comes_out(
    name: str, engine: Engine, named: Callable[[str], Face]
) -> None:
    """Roles, filters, sessions and numbers in every parameter that a framework lets through."""
    attacked(named(name), engine, 240)


@pytest.mark.full
@pytest.mark.parametrize(("name", "calls"), [("haystack", 3334), ("langchain", 3333), ("llamaindex", 3333)])
def test_of_ten_thousand_hostile_calls_none_widens(
    name: str, calls: int, engine: Engine, named: Callable[[str], Face]
) -> None:
    """10,000 calls over the three together."""
    attacked(named(name), engine, calls)


def test_a_model_may_fill_no_more_than_the_question(engine: Engine, named: Callable[[str], Face]) -> None:
    """In Haystack also a number up to the component's own; no parameter names a session, a role or a filter."""
    bound = {"engine": engine, "session": EMPLOYEE, "k": K}
    from_langchain = pytest.importorskip("langchain_core.tools").create_retriever_tool
    tool = from_langchain(named("langchain").make(**bound), "search", "Search.")
    assert {"query"} == set(tool.args)
    component_tool = pytest.importorskip("haystack.tools").ComponentTool
    tool = component_tool(named("haystack").make(**bound), name="search", description="Search.")
    assert {"query", "top_k"} == set(tool.parameters["properties"])
    retriever_tool = pytest.importorskip("llama_index.core.tools").RetrieverTool
    tool = retriever_tool.from_defaults(named("llamaindex").make(**bound))
    assert {"input"} == set(tool.metadata.get_parameters_dict()["properties"])


@pytest.mark.parametrize("name", ADAPTERS)
class TestEach:
    """What holds for each adapter."""

    @pytest.fixture
    def one(self, name: str, named: Callable[[str], Face]) -> Face:
        return named(name)

    def test_it_is_made_by_server_code_or_not_at_all(self, one: Face, engine: Engine) -> None:
        """It needs one source, a valid session and a valid number; no default session exists."""

        class Calls:
            ask = retrieve = explain = staticmethod(lambda *_: None)

        class Half:
            ask = staticmethod(lambda *_: None)

        wrong: list[dict[str, Any]] = [
            {},
            {"engine": engine},
            {"session": EMPLOYEE},
            {"engine": engine, "client": Calls(), "session": EMPLOYEE},
            {"client": Half(), "session": EMPLOYEE},
            {"engine": engine, "session": None},
            {"engine": engine, "session": "compliance"},
            {"engine": engine, "session": {"role": "compliance", "purpose": "review"}},
            *({"engine": engine, "session": EMPLOYEE, "k": k} for k in (0, -1, True, "8", 1.5, None)),
            {"engine": engine, "session": EMPLOYEE, "strict": "no"},
        ]
        for given in wrong:
            with pytest.raises(InvalidArgument):
                one.make(**given)
        for unknown in ("filter", "filters", "role", "search_kwargs", "tags", "metadata", "callback_manager"):
            with pytest.raises(TypeError, match=unknown):
                one.make(engine=engine, session=EMPLOYEE, **{unknown: None})

    def test_a_client_serves_as_an_engine_does(self, one: Face, engine: Engine) -> None:
        """Any object with the three calls will do; it is given the bound session and the number."""

        class Client:
            seen: list[Any] = []  # noqa: RUF012
            ask, explain = engine.ask, engine.explain

            def retrieve(self, question: str, session: Session, k: int = 8) -> Any:
                self.seen.append((question, session, k))
                return engine.retrieve(question, session, k)

        made = one.make(client=Client(), session=EMPLOYEE, k=3)
        rows = one.ask(made, QUESTION)
        assert [row[:3] for row in rows] == [
            row[:3] for row in Own().ask({"engine": engine, "session": EMPLOYEE, "k": 3}, QUESTION)
        ]
        assert [(QUESTION, EMPLOYEE, 3)] == Client.seen

    def test_a_refusal_is_empty_or_raises_as_chosen(self, one: Face, engine: Engine) -> None:
        """Either way it is on record, and its receipt goes to the sink."""
        unknown = Session(role="unknown", purpose="work")
        sunk: list[Any] = []
        assert [] == one.ask(one.make(engine=engine, session=unknown, sink=sunk.append), QUESTION)
        strict = one.make(engine=engine, session=unknown, sink=sunk.append, strict=True)
        with pytest.raises(Refused, match="UNKNOWN_ROLE") as caught:
            one.ask(strict, QUESTION)
        with pytest.raises(Refused, match="UNKNOWN_ROLE"):
            asyncio.run(one.await_(strict, QUESTION))
        assert "UNKNOWN_ROLE" == caught.value.code
        assert 3 == len({found.receipt.seq for found in sunk})
        assert {"refuse"} == {found.outcome.value for found in sunk}

    def test_nothing_admissible_is_empty_and_no_error(self, one: Face, dying: Engine) -> None:
        """Fewer documents than asked for are an answer, strict or not."""
        dying.remove(["d/0"])
        public = Session(role="public", purpose="read")
        assert [] == one.ask(one.make(engine=dying, session=public, strict=True), QUESTION)

    def test_a_sink_that_fails_lets_nothing_out(self, one: Face, engine: Engine) -> None:
        """An application that keeps receipts never loses one."""

        def full(_: object) -> None:
            raise OSError("no space left on the device")

        with pytest.raises(OSError, match="no space"):
            one.ask(one.make(engine=engine, session=EMPLOYEE, sink=full), QUESTION)

    def test_no_document_comes_from_a_dead_log(
        self, one: Face, dying: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The error is the engine's own, awaited or not."""
        made = one.make(engine=dying, session=Session(role="public", purpose="read"))
        assert 1 == len(one.ask(made, QUESTION))

        def dead(_: object) -> None:
            raise AuditUnavailable("the disk is gone")

        monkeypatch.setattr(dying._log._backend, "append", dead)
        with pytest.raises(AuditUnavailable):
            one.ask(made, QUESTION)
        with pytest.raises(AuditUnavailable):
            asyncio.run(one.await_(made, QUESTION))

    @pytest.mark.parametrize(
        "again",
        [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))],  # noqa: S301
        ids=["copy", "deepcopy", "pickle"],
    )
    def test_a_copy_is_bound_to_nothing(self, one: Face, engine: Engine, again: Callable[[Any], Any]) -> None:
        """It refuses, awaited or not; the original goes on."""
        made = one.make(engine=engine, session=EMPLOYEE, k=2)
        copied = again(made)
        with pytest.raises(Refused, match="is a copy or was unpickled"):
            one.ask(copied, QUESTION)
        with pytest.raises(Refused, match="is a copy or was unpickled"):
            asyncio.run(one.await_(copied, QUESTION))
        assert 2 == len(one.ask(made, QUESTION))
        del made
        with pytest.raises(Refused):
            one.ask(copied, QUESTION)

    def test_nothing_that_is_written_names_the_session(
        self, one: Face, engine: Engine, caplog: pytest.LogCaptureFixture
    ) -> None:
        """No pickle, repr, dump, log or error does."""
        secret = Session(role="employee", purpose="work", subject="ana-7731", restricted={424242})
        with caplog.at_level(logging.DEBUG):
            made = one.make(engine=engine, session=secret)
            one.ask(made, QUESTION)
        written = [repr(made), str(made), str(pickle.dumps(made)), caplog.text, *_dumps(made)]
        with pytest.raises(Refused) as caught:
            one.ask(copy.deepcopy(made), QUESTION)
        written += [str(caught.value), repr(caught.value)]
        for text in written:
            for word in (
                "ana-7731",
                "employee",
                "424242",
                "Session(",
                str(engine._collection.store.path.parent),
            ):
                assert word not in text, text

    def test_documents_hold_what_is_documented_and_no_more(self, one: Face, engine: Engine) -> None:
        """Metadata goes to prompts, traces and caches."""
        made = one.make(engine=engine, session=EMPLOYEE, k=1)
        (document,) = _documents(made)
        metadata = getattr(document, "metadata", None) or document.meta
        assert set(metadata) == {
            *("chunk_id", "document_id", "version", "source", "similarity", "word"),
            *("carag.record", "carag.understood"),
        }
        assert json.loads(json.dumps(metadata)) == metadata


def _documents(made: Any) -> list[Any]:
    for name in ("invoke", "retrieve", "run"):
        if hasattr(made, name):
            found = getattr(made, name)(QUESTION)
            return list(found["documents"] if isinstance(found, dict) else found)
    raise AssertionError(made)


def _dumps(made: Any) -> list[str]:
    """Everything that a framework writes about a retriever."""
    found = [
        json.dumps(getattr(made, name)(), default=str)
        for name in ("to_dict", "model_dump")
        if hasattr(made, name)
    ]
    if hasattr(made, "model_dump"):
        from langchain_core.load import dumps

        found += [dumps(made), made.model_dump_json(), json.dumps(made.to_json(), default=str)]
    return found


@pytest.mark.release
def test_filings_and_past_days_are_the_engines_too(face: Face, small_corpus: Path, tmp_path: Path) -> None:
    """This holds over the corpus that ships, for every cell without an allow-list, today and as of a past day."""
    from carag import Engine
    from tests.engine.documents import Counting

    with Engine.open(tmp_path, embedder=Counting()) as engine:
        engine.ingest(small_corpus)
        cells = [one for one in engine.profile.table.cells if one.allow_list == "none"]
        found = 0
        for cell, as_of, number in itertools.product(cells, (None, date(2024, 6, 1)), range(3)):
            session = Session(role=cell.role, purpose=cell.purpose, as_of=as_of)
            bound = {"engine": engine, "session": session, "k": 8}
            wanted = [row[:3] for row in Own().ask(bound, f"What is owed, and to whom? {number}")]
            rows = face.ask(face.make(**bound), f"What is owed, and to whom? {number}")
            assert wanted == [row[:3] for row in rows]
            found += len(rows)
        assert found > 100
