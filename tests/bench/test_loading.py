"""The benchmark of loads measures what it says, and is the same stream each time."""

from __future__ import annotations

import numpy as np
import pytest

from bench import loading
from carag.backends import NativeBackend


def test_a_stream_is_the_same_again_and_of_unit_vectors() -> None:
    """In blocks of one size, the last of which is shorter."""
    one, other = (list(loading.stream(250, 8, 100)) for _ in range(2))
    assert [100, 100, 50] == [len(block.keys) for block in one]
    for ours, theirs in zip(one, other, strict=True):
        for column, again in zip(ours, theirs, strict=True):
            assert column.tobytes() == again.tobytes()
    lengths = np.concatenate([np.linalg.norm(block.vectors, axis=1) for block in one])
    assert np.allclose(lengths, 1)


def test_figures_are_of_what_was_loaded_and_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A backend that returns another row ends it."""
    backend = NativeBackend(8)
    monkeypatch.setattr(loading, "backend_by_url", lambda _: backend)
    monkeypatch.setattr(backend, "close", lambda: None)
    found = loading.measured("postgresql://host", 250, 8, 100)
    assert (250, 8, 100) == (found["rows"], found["dim"], found["block"])
    assert found["rows_s"] > 0
    assert found["peak_megabytes"]["before"] <= found["peak_megabytes"]["loaded"]
    read = backend.get

    def changed(keys, **at):
        rows = read(keys, **at)
        return rows._replace(words=rows.words + 1)

    monkeypatch.setattr(backend, "get", changed)
    with pytest.raises(SystemExit, match="not what was written"):
        loading.measured("postgresql://host", 250, 8, 100)
