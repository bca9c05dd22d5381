"""No path returns an answer or a passage before its record is durable."""

from __future__ import annotations

import shutil
import threading
from typing import TYPE_CHECKING, Any

import pytest

import carag
from carag import Engine, Outcome, Session
from carag.audit import Begin, Recovery
from carag.engine.requests import Requests
from carag.errors import AuditUnavailable, CorruptFile, InvalidArgument, ModelUnavailable
from carag.generation import Draft
from carag.limits import MAX_QUESTION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SESSION = Session(role="compliance", purpose="surveil", subject="ana@bank.example")
QUESTION = "What royalty rate does Lumenfield pay the Cardew Institute on net sales of LMF-204?"


class Scripted:
    """A generator that quotes its first passage, from this machine or from another."""

    name = "scripted"
    fingerprint = "0" * 64

    def __init__(self, *, remote: bool = False, fail: bool = False) -> None:
        self.remote, self.fail = remote, fail
        self.seen: list[int] = []
        self.log: Any = None

    def generate(self, question: str, passages: Any, withheld: Any) -> Draft:
        self.seen.append(self.log.size)
        if self.fail:
            raise ModelUnavailable("the model is down")
        return Draft(f"{passages[0].text} [1]", (0,))


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, ingested: Path) -> Iterator[Engine]:
    with Engine.open(shutil.copytree(ingested, tmp_path_factory.mktemp("durable") / "store")) as opened:
        yield opened


@pytest.fixture
def passage(engine: Engine) -> Any:
    return engine.retrieve(QUESTION, SESSION).passages[0]


def paths(passage: Any) -> dict[str, Callable[[Engine], Any]]:
    """Every public way to text; ``tests/engine/test_engine.py`` checks that there is no other."""
    return {
        "ask": lambda engine: engine.ask(QUESTION, SESSION),
        "retrieve": lambda engine: engine.retrieve(QUESTION, SESSION),
        "explain": lambda engine: engine.explain(passage.chunk_id, SESSION),
        "refused": lambda engine: engine.ask(QUESTION, Session(role="stranger", purpose="invest")),
    }


class Held:
    """The log's store, whose commit waits until it is let go, or fails then."""

    def __init__(self, engine: Engine, monkeypatch: pytest.MonkeyPatch, *, fail: bool) -> None:
        self.reached, self.go = threading.Event(), threading.Event()
        evidence = engine._log._backend
        append = evidence.append

        def held(batch: Any) -> None:
            self.reached.set()
            assert self.go.wait(60)
            if fail:
                raise AuditUnavailable("the disk is gone")
            append(batch)

        monkeypatch.setattr(evidence, "append", held)


@pytest.mark.parametrize("path", ["ask", "retrieve", "explain", "refused"])
def test_nothing_returns_while_the_commit_is_held(
    engine: Engine, passage: Any, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call is still waiting when everything but the commit is done, and returns what it recorded after it."""
    held, results = Held(engine, monkeypatch, fail=False), list[Any]()
    caller = threading.Thread(target=lambda: results.append(paths(passage)[path](engine)))
    size = engine._log.size
    caller.start()
    assert held.reached.wait(60)
    caller.join(0.2)
    assert caller.is_alive()
    assert (results, engine._log.size) == ([], size)
    held.go.set()
    caller.join(60)
    assert results[0].receipt.seq == size == engine._log.size - 1


@pytest.mark.parametrize("path", ["ask", "retrieve", "explain", "refused"])
def test_no_error_carries_what_was_not_recorded(
    engine: Engine, passage: Any, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in its words, not in what led to it, not in the variables of any frame it passed through."""
    held = Held(engine, monkeypatch, fail=True)
    held.go.set()
    with pytest.raises(AuditUnavailable) as caught:
        paths(passage)[path](engine)
    seen = [text for link in chain(caught.value) for text in (str(link), repr(link.args), *variables(link))]
    assert len(seen) > 2
    assert not any(passage.text in text or passage.text[:60] in text for text in seen)


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error, and all that led to it."""
    links = [error]
    while links:
        link = links.pop()
        if link is not None:
            yield link
            links += [link.__cause__, link.__context__]


def variables(error: BaseException) -> Iterator[str]:
    """All variables of CARAG's frames, in full."""
    trace = error.__traceback__
    while trace is not None:
        if "/carag/" in trace.tb_frame.f_code.co_filename:
            yield from (repr(value) for value in trace.tb_frame.f_locals.values())
        trace = trace.tb_next


def test_the_text_would_be_found_in_a_frame(
    engine: Engine, passage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search above finds passages where they are: in the frames of the method itself."""
    held = Held(engine, monkeypatch, fail=True)
    held.go.set()
    monkeypatch.setattr(Requests, "on_record", Requests.on_record.__wrapped__)  # type: ignore[attr-defined]
    with pytest.raises(AuditUnavailable) as caught:
        engine.retrieve(QUESTION, SESSION)
    assert any(passage.text[:60] in text for text in variables(caught.value))


# --- what fails on the way ---


def _raising(error: BaseException) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> Any:
        raise error

    return fail


FAILING: dict[str, Callable[[Engine], tuple[object, str, Any]]] = {
    "the embedder": lambda engine: (engine._collection.embedder, "embed_query", _raising(ValueError("no"))),
    "the search": lambda engine: (engine.requests.retriever, "_gather", _raising(MemoryError())),
    "the proof": lambda engine: (engine._collection.state, "prove", _raising(CorruptFile("altered"))),
    "the generator": lambda engine: (
        engine.requests.guarded.generator,
        "generate",
        _raising(RecursionError()),
    ),
    "the answer's text": lambda engine: (
        engine.requests.guarded.generator,
        "generate",
        lambda _, passages, __: Draft(f"it says\ud800 [1]. {passages[0].text} [1]", (0,)),
    ),
}


@pytest.mark.parametrize("part", FAILING)
def test_whatever_fails_is_on_record_and_carries_no_passage_out(
    engine: Engine, passage: Any, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For every kind of error: one record of it, and no frame that held a passage or an answer."""
    size = engine._log.size
    monkeypatch.setattr(*FAILING[part](engine))
    with pytest.raises(Exception) as caught:  # noqa: PT011 - any kind
        engine.ask(QUESTION, SESSION)
    assert (Outcome.ERROR, size + 1) == (engine._log.record(size).event.outcome, engine._log.size)  # type: ignore[union-attr]
    seen = [text for link in chain(caught.value) for text in (str(link), *variables(link))]
    assert not any(passage.text[:60] in text for text in seen)
    assert any("raised in" in note for note in caught.value.__notes__)


UNRECORDABLE = {
    "a subject": lambda: (QUESTION, Session(role="compliance", purpose="surveil", subject="ana\ud800")),
    "a subclass of Session": lambda: (
        QUESTION,
        type("Other", (Session,), {})(role="compliance", purpose="surveil"),
    ),
    "no text": lambda: (7, SESSION),
    "nothing": lambda: ("", SESSION),
    "white space": lambda: (" \n\t", SESSION),
    "too much": lambda: ("a" * (MAX_QUESTION + 1), SESSION),
    "half of a surrogate pair": lambda: ("a\ud800", SESSION),
    "a NUL": lambda: ("a\0", SESSION),
}
REMOVABLE = {"half of a surrogate pair", "a NUL"}


@pytest.mark.parametrize("path", ["ask", "retrieve", "explain"])
@pytest.mark.parametrize("what", UNRECORDABLE)
def test_what_no_record_can_hold_is_refused_before_anything_is_searched(
    engine: Engine, path: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No embedding, no search, no look at the store, no call of the generator, no record."""
    for owner, name in (
        (engine._collection.embedder, "embed_query"),
        (engine.requests.retriever, "retrieve"),
        (engine.requests.guarded, "answer"),
        (engine._collection.store.labels, "at_or_after"),
    ):
        monkeypatch.setattr(owner, name, _raising(AssertionError(f"{name} was called")))
    size = engine._log.size
    with pytest.raises(InvalidArgument, match="remove it" if what in REMOVABLE else "want"):
        getattr(engine, path)(*UNRECORDABLE[what]())
    assert size == engine._log.size


def test_a_question_may_have_lines_and_the_length_that_is_stated(engine: Engine) -> None:
    """8,192 characters, line breaks and tabs among them, are searched and on record."""
    question = "Who sold?\n\tAnd when?\n".ljust(MAX_QUESTION, "x")
    assert 8192 == len(question)
    assert 1 == len(engine.retrieve(question, SESSION, 1).passages)


# --- before text goes to a model on another machine ---


@pytest.fixture
def store(tmp_path: Path, ingested: Path) -> Iterator[Callable[..., Engine]]:
    """Open a copy of a store with the generator given."""
    home, opened = shutil.copytree(ingested, tmp_path / "store"), list[Engine]()

    def open_with(generator: Scripted) -> Engine:
        for earlier in opened:
            earlier.close()
        one = Engine.open(home, generator=generator)
        generator.log = one._log
        opened.append(one)
        return one

    yield open_with
    for one in opened:
        one.close()


@pytest.mark.parametrize("fail", [False, True])
def test_a_remote_model_is_called_after_its_begin_record(store: Callable[..., Engine], fail: bool) -> None:
    """The record is there when the model is called, and the request's own record names it, also if it fails."""
    generator = Scripted(remote=True, fail=fail)
    engine = store(generator)
    size = engine._log.size
    if fail:
        with pytest.raises(ModelUnavailable):
            engine.ask(QUESTION, SESSION)
    else:
        assert engine.ask(QUESTION, SESSION).outcome is carag.Outcome.ANSWER
    assert generator.seen == [size + 1]
    begin, access = engine._log.record(size), engine._log.record(size + 1)
    assert isinstance(begin.event, Begin)
    assert access.event.begun == size  # type: ignore[union-attr]
    assert begin.event.policy == access.event.policy  # type: ignore[union-attr]
    assert engine._log._backend.unended() == ()


def test_a_model_here_needs_no_begin(store: Callable[..., Engine]) -> None:
    """One record an answer, as before."""
    generator = Scripted()
    engine = store(generator)
    size = engine._log.size
    engine.ask(QUESTION, SESSION)
    assert (generator.seen, engine._log.size) == ([size], size + 1)
    assert engine._log.record(size).event.begun is None  # type: ignore[union-attr]


def test_without_a_begin_record_nothing_is_sent(
    store: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it cannot be made durable, the model is not called."""
    generator = Scripted(remote=True)
    engine = store(generator)
    Held(engine, monkeypatch, fail=True).go.set()
    with pytest.raises(AuditUnavailable):
        engine.ask(QUESTION, SESSION)
    assert generator.seen == []


@pytest.mark.parametrize("ask", [Engine.ask, Engine.retrieve])
def test_a_question_is_embedded_elsewhere_after_its_begin_record(
    store: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch, ask: Callable[..., Any]
) -> None:
    """One begin record a request, before the question leaves; a remote generator after it needs no second."""
    generator = Scripted(remote=True)
    engine = store(generator)
    embedder, size, seen = engine._collection.embedder, engine._log.size, list[int]()
    embed = embedder.embed_query

    def elsewhere(text: str) -> Any:
        seen.append(engine._log.size)
        return embed(text)

    monkeypatch.setattr(type(embedder), "remote", True)
    monkeypatch.setattr(embedder, "embed_query", elsewhere)
    found = ask(engine, QUESTION, SESSION)
    assert seen == [size + 1]
    assert isinstance(engine._log.record(size).event, Begin)
    assert (found.receipt.seq, engine._log.record(size + 1).event.begun) == (size + 1, size)  # type: ignore[union-attr]
    assert engine._log._backend.unended() == ()


def test_a_call_cut_short_is_on_record_at_the_next_opening(store: Callable[..., Engine]) -> None:
    """The process died while the model had the question: the begin has no end, and a recovery record says so."""
    generator = Scripted(remote=True)
    engine = store(generator)
    size = engine._log.size

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    generator.generate = die  # type: ignore[method-assign, assignment]
    with pytest.raises(KeyboardInterrupt):
        engine.ask(QUESTION, SESSION)
    engine = store(Scripted())
    assert engine._log.record(size + 1).event == Recovery("UNENDED_BEGINS", (size,))
