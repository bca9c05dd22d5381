"""Settings every room's tests share."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

from tests import canary
from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.postgres import PostgresRun
    from tests.sharing import SharedServer

# Machines are noisy: a slow example is no failure. CI repeats the same examples on every run.
settings.register_profile(
    "carag", max_examples=examples(100), deadline=None, derandomize=bool(os.environ.get("CI"))
)
settings.load_profile("carag")

ROOT = Path(__file__).parents[1]
FRAMEWORKS = ("dspy", "haystack", "langchain_core", "langgraph", "llama_index", "mcp")


def pytest_configure(config: pytest.Config) -> None:
    """Fail whatever tells content in a log, span, metric or problem (``tests/canary.py``)."""
    canary.pytest_configure(config)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real filings and questions, named by ``CARAG_SHARED_DATA``; they do not ship with the project."""
    path = os.environ.get("CARAG_SHARED_DATA")
    if not path or not Path(path, "edgar").is_dir():
        pytest.skip("CARAG_SHARED_DATA names no directory with real filings")
    return Path(path)


@pytest.fixture(scope="session")
def small_corpus() -> Path:
    """The corpus that ships with the project."""
    return ROOT / "data" / "corpus"


@pytest.fixture(scope="session")
def ingested(tmp_path_factory: pytest.TempPathFactory, small_corpus: Path) -> Path:
    """A store with the small corpus, never opened by a test itself."""
    from carag import Engine

    path = tmp_path_factory.mktemp("ingested") / "store"
    with Engine.open(path, embedder="wordllama") as engine:
        engine.ingest(small_corpus)
    return path


@pytest.fixture(scope="session")
def postgres_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresRun]:
    """The PostgreSQL server of this run, which its processes share."""
    from tests.postgres import PostgresRun

    own = tmp_path_factory.getbasetemp()
    with PostgresRun.joined(own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) as run:
        yield run


@pytest.fixture(scope="session")
def sharing(postgres_run: PostgresRun) -> SharedServer:
    """A PostgreSQL database for stores that several processes share."""
    from tests.sharing import SharedServer

    return SharedServer(postgres_run.database())


@pytest.fixture
def ended_spans() -> Iterator[list[Any]]:
    """Spans in the order they end, during this test alone.

    A provider of OpenTelemetry never lets go of a processor, and the SDK's own warn of every later span once shut
    down: this one falls silent.
    """
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    from opentelemetry.trace import get_tracer_provider, set_tracer_provider

    found: list[Any] = []
    is_over = False

    class Processor(sdk.SpanProcessor):  # type: ignore[misc, name-defined]
        def on_end(self, span: Any) -> None:
            if not is_over:
                found.append(span)

    if not isinstance(get_tracer_provider(), sdk.TracerProvider):
        set_tracer_provider(sdk.TracerProvider())
    get_tracer_provider().add_span_processor(Processor())  # type: ignore[attr-defined]
    yield found
    is_over = True


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Iterator[None]:
    """Take no examples from test modules: an import that fails would skip the whole module, and not fail."""
    found = yield
    return [
        one
        for one in found
        if not (file_path.is_relative_to(ROOT / "tests") and isinstance(one, DoctestModule))
    ]


@pytest.hookimpl(tryfirst=True)  # before tests are deselected by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the claims about real filings, which take minutes, and skip the recipes where a framework is missing."""
    for item in items:
        if "shared_data" in getattr(item, "fixturenames", ()):
            item.add_marker("release")
        if item.path.name == "use-in-a-framework.md" and not os.environ.get("CARAG_REQUIRE_ADAPTERS"):
            absent = [one for one in FRAMEWORKS if find_spec(one) is None]
            item.add_marker(pytest.mark.skipif(bool(absent), reason=f"not installed: {', '.join(absent)}"))
