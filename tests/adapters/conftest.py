"""A store with documents of every kind, and the adapters that the conformance suite drives."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from carag import Document, Engine
from tests.adapters.faces import FACES, Face
from tests.engine.documents import Counting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# Read when the frameworks are imported, which is in the fixtures below.
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2", "HAYSTACK_CONTENT_TRACING_ENABLED"):
    os.environ.pop(name, None)

KINDS = [(), ("INTERNAL",), ("CONFIDENTIAL",), ("SECRET",), ("PERSONAL",), ("DRAFT",), ("LEGAL", "INTERNAL")]


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A store of 70 documents, ten of each kind; its embedder gives every text its own direction."""
    with Engine.open(tmp_path_factory.mktemp("store"), profile="generic", embedder=Counting()) as opened:
        opened.add(
            Document(
                id=f"d/{number}", text=f"Branches report on day {number}.", bits=KINDS[number % len(KINDS)]
            )
            for number in range(70)
        )
        yield opened


@pytest.fixture
def dying(tmp_path: Path) -> Iterator[Engine]:
    """A store of one public document, whose log a test kills."""
    with Engine.open(tmp_path / "dying", profile="generic", embedder=Counting()) as opened:
        opened.add([Document(id="d/0", text="Branches report on day 0.", bits=())])
        yield opened


@pytest.fixture(params=sorted(FACES))
def face(request: pytest.FixtureRequest) -> Face:
    return face_named(request.param)


@pytest.fixture
def named() -> Callable[[str], Face]:
    return face_named


def face_named(name: str) -> Face:
    """Return an adapter; a missing framework skips the test, and fails it in CI."""
    try:
        return FACES[name]()
    except ImportError as error:
        if os.environ.get("CARAG_REQUIRE_ADAPTERS"):
            raise
        pytest.skip(f"{name} is not installed: {error}")
