"""An engine whose rows are in a backend: the same answers, what is closed is closed, and every record names it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from carag import Engine, Session
from carag.audit import Outcome, Record, Verdict, verify_receipt
from carag.audit.auditor.describe import describe_record
from carag.backends import NativeBackend
from carag.engine.backup import back_up, restore
from carag.errors import BackendFault, BackendUnavailable, Incomplete, InvalidArgument
from carag.index import Plan
from carag.retrieval import ConfidenceGate
from tests.backends.lying import Lie, Lying
from tests.engine.documents import DIM, QUESTION, Clock, Counting, document, ids
from tests.loaded import loaded

if TYPE_CHECKING:
    from collections.abc import Callable

script = loaded(Path(__file__).parents[2] / "scripts" / "verify_receipt.py", "scripts.verify_receipt")
REVIEW = Session(role="compliance", purpose="review")
READER = Session(role="public", purpose="read")


def opened(store: Path, backend: Any = None, **settings: Any) -> Engine:
    return Engine.open(
        store,
        profile="generic",
        embedder=Counting(),
        clock=Clock(),
        gate=ConfidenceGate(-1),
        backend=backend,
        **settings,
    )


def filled(engine: Engine, count: int = 12) -> None:
    engine.add([document(number, bits=["INTERNAL"] if number % 3 else []) for number in range(count)])


def found(engine: Engine, session: Session) -> list[tuple[str, float]]:
    result = engine.retrieve(QUESTION, session, 8)
    return [(passage.chunk_id, passage.similarity) for passage in result.passages]


@pytest.mark.parametrize("ranker", ["fused-1", "dense", "dense+mmr-0.7-20"])
def test_passages_are_those_of_the_index(tmp_path: Path, ranker: str) -> None:
    """In the same order, with the same similarities to the last bit, whatever the session may know."""
    backend = NativeBackend(DIM)
    with (
        opened(tmp_path / "here", ranker=ranker) as here,
        opened(tmp_path / "there", backend, ranker=ranker) as there,
    ):
        filled(here)
        filled(there)
        for session in (REVIEW, READER):
            assert found(here, session) == found(there, session)
            assert found(there, session)
        hidden = [one.retrieve(QUESTION, REVIEW, 8).withheld.hidden for one in (here, there)]
        assert hidden[0] == hidden[1]


def test_a_record_names_the_backend_and_verifies_with_both(tmp_path: Path) -> None:
    """Its name, collection, epoch, words and place; no number of rows. A receipt verifies, and altered it does not."""
    backend = NativeBackend(DIM, collection="office")
    with opened(tmp_path / "store", backend) as engine:
        filled(engine)
        receipt = engine.retrieve(QUESTION, READER).receipt
        state = backend.state()
        named = Record.parse(receipt.record).event.index.backend
        assert (state.backend, "office", state.epoch) == (named.name, named.collection, named.epoch)
        assert state.dictionary == named.dictionary.hex()
        assert ((state.shards[0].id, state.shards[0].at),) == named.shards
        assert {
            "name": state.backend,
            "collection": "office",
            "epoch": state.epoch,
            "words": state.dictionary,
            "shards": [{"shard": state.shards[0].id, "at": state.shards[0].at}],
        } == describe_record(Record.parse(receipt.record))["index"]["backend"]
        whole = receipt.to_bytes()
        for data, verdict in (
            (whole, Verdict.VERIFIED),
            (whole.replace(b"office", b"Office"), Verdict.FAILED),
        ):
            assert verdict is verify_receipt(data, engine.vkey).verdict
        (tmp_path / "receipt.json").write_bytes(whole)
        assert 0 == script.main([str(tmp_path / "receipt.json"), "--key", engine.vkey])


def test_a_store_is_opened_over_its_own_rows(tmp_path: Path) -> None:
    """Not without them, nor over those of another store or collection; and it can take them back."""
    own, other = NativeBackend(DIM, collection="own"), NativeBackend(DIM, collection="other")
    with opened(tmp_path / "store", own) as engine:
        filled(engine)
        before, epoch = ids(engine, REVIEW), own.state().epoch
    with opened(tmp_path / "store", own) as engine:
        assert (before, epoch) == (ids(engine, REVIEW), own.state().epoch)
    with pytest.raises(
        InvalidArgument, match="are in native, collection own; name that backend with backend="
    ):
        opened(tmp_path / "store")
    with pytest.raises(InvalidArgument, match="collection other was named"):
        opened(tmp_path / "store", other)
    with pytest.raises(InvalidArgument, match="rows from a store other than"):
        opened(tmp_path / "second", own)
    with opened(tmp_path / "store", "native") as engine:
        assert before == ids(engine, REVIEW)
    with opened(tmp_path / "store") as engine:
        engine.add([document("more")])
    with opened(tmp_path / "store", own) as engine:
        assert before | {"d/more"} == ids(engine, REVIEW)
    with opened(tmp_path / "store", "native"):
        pass
    with opened(tmp_path / "store", other) as engine:
        assert before | {"d/more"} == ids(engine, REVIEW)


def test_a_restored_store_has_no_part_in_the_rows_of_the_original(tmp_path: Path) -> None:
    """Its index is made here, and the original's collection is another's to it."""
    own = NativeBackend(DIM, collection="own")
    with opened(tmp_path / "store", own) as engine:
        filled(engine)
        before = ids(engine, REVIEW)
    back_up(tmp_path / "store", tmp_path / "data", keys=tmp_path / "keys")
    restore(tmp_path / "data", tmp_path / "keys", tmp_path / "copy")
    with pytest.raises(InvalidArgument, match="rows from a store other than"):
        opened(tmp_path / "copy", own)
    with opened(tmp_path / "copy") as engine:
        assert before == ids(engine, REVIEW)


def test_a_backend_that_lost_its_rows_gets_them_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is at an earlier epoch than the store noted."""
    with opened(tmp_path / "store", NativeBackend(DIM)) as engine:
        filled(engine)
        before = ids(engine, REVIEW)
    with opened(tmp_path / "store", NativeBackend(DIM)) as engine:
        assert before == ids(engine, REVIEW)
        engine._collection.check()
    assert "writing all labels again" in caplog.text


class Failing:
    """A backend that fails at one of its changes: before it, or after it was done."""

    def __init__(self, backend: NativeBackend, at: int, *, done: bool) -> None:
        self._backend, self._left, self._done = backend, at, done

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._backend, name)
        return self._change(found) if name in ("add", "relabel", "delete") else found

    def _change(self, change: Callable[..., Any]) -> Callable[..., Any]:
        def made(*given: Any, **named: Any) -> Any:
            self._left -= 1
            if self._left >= 0:
                return change(*given, **named)
            if self._done:
                change(*given, **named)
            raise BackendUnavailable("it is away")

        return made


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("at", range(5))
def test_a_change_that_was_not_confirmed_is_made_whole(tmp_path: Path, at: int, done: bool) -> None:
    """Whichever call fails, nothing half is found meanwhile, and opening the store again completes it."""
    backend = NativeBackend(DIM)
    with opened(tmp_path / "store", Failing(backend, at, done=done)) as engine:
        versions = [document(0), document(0, text="Branches report later.")]
        made = 0
        try:
            for version in versions:
                engine.add([version, document(version.text)])
                made += 1
        except BackendUnavailable:
            try:
                texts = {one.text for one in engine.retrieve(QUESTION, REVIEW, 100).passages}
            except BackendUnavailable:
                texts = set()
            assert len({one.text for one in versions} & texts) <= 1
    with opened(tmp_path / "store", backend) as engine:
        engine._collection.check()
        texts = {one.text for one in engine.retrieve(QUESTION, REVIEW, 100).passages}
        last = versions[min(made, 1)].text
        assert {last} == texts & {one.text for one in versions}


@pytest.mark.parametrize("lie", [lie for lie in Lie if lie is not Lie.STALE])
def test_of_a_lie_no_text_leaves(tmp_path: Path, lie: Lie) -> None:
    """It is refused, the failure is on record, or what is found is the truth."""
    backend = NativeBackend(DIM)
    with opened(tmp_path / "store", backend) as engine:
        filled(engine)
        truth = found(engine, READER)
    rows = backend.get(range(100))
    with opened(tmp_path / "store", Lying(backend, lie, np.random.default_rng(0), rows)) as engine:
        for _ in range(10):
            try:
                assert truth == found(engine, READER)
            except (BackendFault, Incomplete) as error:
                event = engine.log.record(engine.log.size - 1).event
                code = {BackendFault: "BACKEND_FAULT", Incomplete: "INCOMPLETE"}[type(error)]
                assert (Outcome.ERROR, code) == (event.outcome, event.why)


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ({"plans": frozenset({Plan.GRAPH})}, "an exact plan"),
        ({"read_your_writes": False}, "read_your_writes"),
        ({"atomic_batches": False}, "atomic_batches"),
    ],
)
def test_a_backend_that_promises_too_little_is_refused_at_start(
    tmp_path: Path, missing: dict[str, Any], said: str
) -> None:
    """Nothing is noted, and nothing is written to it."""
    backend = NativeBackend(DIM)
    backend.capabilities = backend.capabilities._replace(**missing)
    with pytest.raises(InvalidArgument, match=said):
        opened(tmp_path / "store", backend)
    assert 0 == backend.state().epoch
    with opened(tmp_path / "store") as engine:
        filled(engine)


def test_a_url_of_no_backend_is_refused_without_being_shown(tmp_path: Path) -> None:
    """What follows the scheme may hold a password."""
    for url in ("oracle://me:secret@host", "secret"):
        with pytest.raises(InvalidArgument, match="there is no backend of vectors") as error:
            opened(tmp_path / "store", url)
        assert "secret" not in str(error.value)
