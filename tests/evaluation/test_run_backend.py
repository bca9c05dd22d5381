"""A run over a backend: the same rows as over the index, an unchanged cache, and no secret in what is written."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from carag.backends import NativeBackend
from carag.backends.urls import in_collection
from carag.errors import BackendFault, Incomplete, InvalidArgument
from carag.evaluation.row import Row, read_rows
from carag.evaluation.run import Settings, run
from carag.evaluation.run_metadata import RunMetadata
from carag.evaluation.searched import Searched
from carag.store.store import CorpusStore
from tests.backends.lying import Lie, Lying
from tests.sizes import examples

if TYPE_CHECKING:
    from pathlib import Path

DIM = 256
ATTACKS = examples(1, least=0)
SYSTEMS = ("oracle", "carag-auto", "carag-certified")


def settings(cache: Path, **more) -> Settings:
    return Settings(
        size="small",
        cache=cache,
        embedder="wordllama",
        pairs=examples(8, least=4),
        built=1,
        attacks=ATTACKS,
        compared=2,
        worlds=1,
        trials=examples(200, least=100),
        fused_trials=5,
        systems=SYSTEMS,
        **more,
    )


def untimed(rows: list[Row]) -> list[Row]:
    made = [dataclasses.replace(row, latency_ms=dict.fromkeys(row.latency_ms)) for row in rows]
    return sorted(made, key=Row.to_json)


def ran(cache: Path, out: Path, searched: Searched) -> list[Row]:
    return untimed(read_rows(run(settings(cache), out, searched=searched)))


def test_the_rows_are_those_of_the_index(cache: Path, tmp_path: Path) -> None:
    """Rebuilt stores, random pairs and a release's attacks included; each store had its own backend."""
    here = ran(cache, tmp_path / "here", Searched())
    made: list[NativeBackend] = []

    def new() -> NativeBackend:
        made.append(NativeBackend(DIM))
        return made[-1]

    assert here == ran(cache, tmp_path / "there", Searched(new))
    assert any(row.canaries_planted for row in here) == bool(ATTACKS)
    assert 2 + ATTACKS == len(made)  # the corpus, the world without what is hidden, and the attacked copy
    about = [RunMetadata.from_json((tmp_path / one / "run.json").read_bytes()) for one in ("here", "there")]
    assert [[0, 0, 0]] * 2 == [[trial.violating for trial in one.trials] for one in about]
    assert about[0].worlds == about[1].worlds
    assert "CARAG's systems search in native, file format 3" in about[1].notes
    (store,) = cache.glob("*/store/corpus.db")
    with CorpusStore.open(store, create=False) as kept:
        assert kept.meta_get("backend") is None


def test_a_backend_that_lies_ends_the_run(cache: Path, tmp_path: Path) -> None:
    """Otherwise a row would be scored that no engine could have shown."""

    def new() -> Lying:
        backend = NativeBackend(DIM)
        return Lying(backend, Lie.COUNT, np.random.default_rng(0), backend.get([]))

    with pytest.raises((BackendFault, Incomplete)):
        ran(cache, tmp_path / "out", Searched(new))


def test_settings_name_only_the_kind_of_backend(tmp_path: Path) -> None:
    """An address may contain a password; a run over another kind of backend is a different run."""
    url = "postgresql://me:hush@db.example/vectors"
    said = json.dumps(settings(tmp_path, backend=url).identity())
    assert "postgresql" in said
    assert "hush" not in said
    assert "backend" not in settings(tmp_path).identity()


def test_every_store_gets_its_own_collection(tmp_path: Path) -> None:
    """On the same server as the one that was named; asked again, the same collection."""
    stores = [tmp_path / name for name in ("one", "two")]
    for store in stores:
        store.mkdir()
        CorpusStore.open(store / "corpus.db", create=True).close()
    searched = Searched.beside("redis://node-1,node-2/filings")
    first, second, again = (searched.settings(store)["backend"] for store in (*stores, stores[0]))
    assert first == again != second
    assert first.startswith("redis://node-1,node-2/bench")
    assert {} == Searched.beside(None).settings(stores[0]) == Searched.beside("native").settings(stores[0])


def test_your_own_store_is_searched_where_it_is(tmp_path: Path) -> None:
    """Its rows are already in the collection that was named."""
    searched = Searched.already(tmp_path, "redis://node/filings")
    assert {"backend": "redis://node/filings"} == searched.settings(tmp_path)


@pytest.mark.parametrize("url", ["redis://a/x", "postgresql://a/b", "milvus://a:1"])
def test_another_collection_is_on_the_same_server(url: str) -> None:
    """And only its name differs."""
    one, two = in_collection(url, "one"), in_collection(url, "two")
    assert one.replace("one", "two") == two == in_collection(one, "two")


def test_an_unknown_backend_is_refused_before_anything_is_asked(cache: Path, tmp_path: Path) -> None:
    """As by the engine."""
    with pytest.raises(InvalidArgument, match="there is no backend of vectors 'oracle'"):
        run(settings(cache, backend="oracle://host/x"), tmp_path / "out")
