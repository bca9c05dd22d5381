"""kill -9 at any stage of a run, or at any time: the next run leaves what an undisturbed one leaves, nothing twice."""

from __future__ import annotations

import random
import shutil
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.engine.documents import Counting
from tests.engine.freshness.folders import circular, clause, held, opened, sound, written
from tests.warm import Child

if TYPE_CHECKING:
    from carag import Engine

ROOT = Path(__file__).parents[3]

STAGES = {
    "before the note of the folder": "carag.engine.freshness:Source.found",
    "after the note of the folder": "carag.engine.contents:Contents._ingest_documents",
    "before a batch is embedded": "carag.engine.collection:Collection.vectors_of",
    "before the transaction": "carag.store.store:CorpusStore.writing",
    "in it, before the passages": "carag.store._transaction:Transaction.put",
    "in it, before the vectors are named": "carag.store._rows:insert_embedded",
    "in it, before the labels": "carag.store._transaction:Transaction.relabel",
    "in it, before it is committed": "carag.store._transaction:Transaction.check_settled",
    "before the state": "carag.engine.state:StoreState.refresh",
    "before the index": "carag.engine.collection:Collection._follow",
    "before the index is saved": "carag.engine.rows:KeptFile._save",
    "before the record": "carag.engine.recorder:Recorder.ingested",
    "after the record": "carag.engine.configuration:ConfigurationLog.recorded",
    "before what vanished is told": "carag.engine.freshness:Source.vanished",
    "before it is withdrawn": "carag.engine.contents:Contents.remove",
    "before the store is closed": "carag.engine.collection:Collection.close",
}

CHILD = """
import importlib, os, signal, sys
import carag.engine.writer
from tests.engine.freshness.folders import opened
store, folder, where, times = sys.argv[1:]
carag.engine.writer._EMBED_BATCH = 4  # store often, so that a kill has something to tear
if where:
    module, _, name = where.partition(":")
    owner = importlib.import_module(module)
    *outer, name = name.split(".")
    for one in outer:
        owner = getattr(owner, one)
    own, left = getattr(owner, name), [int(times)]
    def killed(*given, **more):
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        return own(*given, **more)
with opened(store) as engine:
    if where:
        setattr(owner, name, killed)
    print("open", flush=True)
    engine.sync(folder, remove_vanished=True)
print("done", flush=True)
"""


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that is up to its folder, and the folder as it is the next night: edited, renamed, gone and new."""
    home = tmp_path_factory.mktemp("begun")
    folder = written(home / "folder", 6)
    with opened(home / "store") as engine:
        engine.sync(folder)
    for number in (0, 1):
        path = folder / f"c{number}.md"
        path.write_text(path.read_text().replace(clause(number, 3), f"{clause(number, 3)} It is amended."))
    (folder / "c2.md").rename(folder / "d2.md")
    (folder / "c3.md").unlink()
    (folder / "c9.md").write_text(circular(9))
    return home


@pytest.fixture(scope="module")
def undisturbed(begun: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    home = shutil.copytree(begun / "store", tmp_path_factory.mktemp("undisturbed") / "store")
    with opened(home) as engine:
        engine.sync(begun / "folder", remove_vanished=True)
        return left_by(engine)


def left_by(engine: Engine) -> Any:
    """All that a store holds and finds, but for when it was known."""
    store = engine._collection.store
    vectors = [
        *store._snapshot("SELECT sha256, vector FROM embedded JOIN vectors USING (key) ORDER BY sha256")
    ]
    return store.documents.counts(), [*store.labels.snapshot()], held(engine), vectors


def child(begun: Path, store: Path, where: str, times: int) -> Child:
    return Child(CHILD, store, begun / "folder", where, times)


def finished_by_the_next(begun: Path, store: Path, undisturbed: Any) -> None:
    embedder = Counting()
    with opened(store, embedder) as engine:
        engine.sync(begun / "folder", remove_vanished=True)
        sound(engine)
        engine._log.verify()
        assert undisturbed == left_by(engine)
        size = engine._log.size
        again = engine.sync(begun / "folder")
        assert (again.vanished, again.added, again.changed, again.unchanged) == ([], 0, 0, 6)
        assert size == engine._log.size
    assert len(embedder.texts) == len(set(embedder.texts))


SEVERAL = {"before a batch is embedded": 3, "before the transaction": 3, "before the state": 2}
SEVERAL["in it, before it is committed"] = 3  # the last is the withdrawal's
FEW = {"in it, before it is committed", "before the record"}


@pytest.mark.parametrize(
    ("stage", "times"),
    [
        pytest.param(stage, times, marks=[] if times == 1 and stage in FEW else pytest.mark.release)
        for stage in STAGES
        for times in range(1, SEVERAL.get(stage, 1) + 1)
    ],
)
def test_a_run_that_is_killed_at_a_stage_is_finished_by_the_next(
    begun: Path, undisturbed: Any, tmp_path: Path, stage: str, times: int
) -> None:
    """What is compared: passages, labels, texts, vectors, counts; the log verifies, and a third run does nothing."""
    store = shutil.copytree(begun / "store", tmp_path / "store")
    with child(begun, store, STAGES[stage], times) as one:
        said = one.stdout.read()
    assert (said, one.returncode) == ("open\n", -signal.SIGKILL)
    finished_by_the_next(begun, store, undisturbed)


@pytest.mark.release
@pytest.mark.parametrize("seed", range(12))
def test_a_run_that_is_killed_at_any_time_is_finished_by_the_next(
    begun: Path, undisturbed: Any, tmp_path: Path, seed: int
) -> None:
    """Two kills, each within 0.3 seconds of the run's begin."""
    store = shutil.copytree(begun / "store", tmp_path / "store")
    chance = random.Random(seed)  # noqa: S311 - a test's choice
    for _ in range(2):
        with child(begun, store, "", 0) as one:
            assert one.stdout is not None
            assert one.stdout.readline() == "open\n"
            time.sleep(chance.uniform(0, 0.3))
            one.kill()
    finished_by_the_next(begun, store, undisturbed)
