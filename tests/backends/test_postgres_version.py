"""Which versions of pgvector are taken, without a server."""

from __future__ import annotations

import pytest

from carag.backends.postgres.place import check_version
from carag.errors import BackendUnavailable


@pytest.mark.parametrize(
    ("version", "is_warned"),
    [("0.8.0", True), ("0.8.6", True), ("0.8.7", False), ("0.8.10", False), ("0.9", False)],
)
def test_a_version_with_a_known_hole_is_warned_of(version, is_warned, caplog):
    """At connection and before a graph is built: pgvector below 0.8.7 can write beyond a buffer there."""
    check_version(version)
    assert is_warned == any(version in record.getMessage() for record in caplog.records)
    with pytest.raises(BackendUnavailable, match="want 0"):
        check_version("0.7.4")
