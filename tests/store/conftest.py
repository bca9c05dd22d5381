"""Open an empty store for each test of the room; the laws of a store are held over a file and over PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from carag.store.store import CorpusStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from carag.store.postgres import PostgresStore
    from tests.sharing import SharedServer

OVER_BOTH = {"test_store", "test_by_label", "test_label_history", "test_groups"}
"""The modules whose tests run over PostgreSQL, too."""
OF_A_FILE = {
    "test_a_full_disk_loses_nothing",
    "test_a_text_is_read_of_passages_alone",
    "test_both_are_one_statement",
    "test_no_table_is_read_whole",
}
"""Those among them that reach into the file."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.module.__name__.rpartition(".")[2] in OVER_BOTH:
        is_of_a_file = metafunc.function.__name__ in OF_A_FILE
        places = ["file"] if is_of_a_file else ["file", "postgres"]
        metafunc.parametrize("place", places, indirect=True)


@pytest.fixture(autouse=True)
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a test's stores are: in the postgres case every path is a schema of its own."""
    if getattr(request, "param", "file") == "file":
        return
    server: SharedServer = request.getfixturevalue("sharing")
    schemas: dict[Path, str] = {}
    stores: dict[Path, PostgresStore] = {}

    def opened(path: Path, *, create: bool = True, timeout: float = 5.0, **more: Any) -> CorpusStore:
        if path not in schemas:
            free = next((one for one, store in stores.items() if store._closed), None)
            if free is None:
                schemas[path] = server.a_corpus()
            else:  # a law opens hundreds, one after another
                del stores[free]
                schemas[path] = server.emptied(schemas[free])
        else:
            assert path in stores, "its schema was given to another store"
        stores[path] = server.opened(schemas[path], path, **more)
        return stores[path]

    monkeypatch.setattr(CorpusStore, "open", opened)


@pytest.fixture
def store(place: None, tmp_path: Path) -> Iterator[CorpusStore]:
    with CorpusStore.open(tmp_path / "corpus.db") as opened:
        yield opened
