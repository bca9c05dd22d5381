"""The engine has parts; names and keywords of 0.3.0 answer as before, and say what takes their place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from carag import Engine
from carag.engine.engine import _MOVED
from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from pathlib import Path


def opened(home: Path, **settings: Any) -> Engine:
    return Engine.open(home, profile="generic", embedder="wordllama", **settings)


def test_names_that_moved_answer_as_before(tmp_path: Path) -> None:
    """Each gives what its part gives, with a DeprecationWarning that names the part."""
    with opened(tmp_path) as engine:
        for name, now in _MOVED.items():
            with pytest.warns(DeprecationWarning, match=rf"Engine\.{now.removesuffix('()')}"):
                assert getattr(engine, name) == eval(f"engine.{now}", {"engine": engine})  # noqa: S307 - our table
        with pytest.raises(AttributeError, match="nothing"):
            engine.nothing  # type: ignore[attr-defined]  # noqa: B018 - the access is the test


def test_what_is_accepted_is_said_in_one_way_or_the_older_one(tmp_path: Path) -> None:
    """``accept_labels=True`` means ``accept={"labels"}``, with a warning; any other word or keyword is refused."""
    opened(tmp_path, accept={"labels"}).close()
    with pytest.warns(DeprecationWarning, match="accept={'labels'}"):
        opened(tmp_path, accept_labels=True).close()
    for wrong in ({"anything"}, "labels"):
        with pytest.raises(InvalidArgument, match="gate, labels, lost_values, policy"):
            opened(tmp_path, accept=wrong)
    for name in ("accept_anything", "anything", "gate_accept"):
        with pytest.raises(TypeError, match=name):
            opened(tmp_path, **{name: True})
