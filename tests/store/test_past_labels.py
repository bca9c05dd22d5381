"""The whole history of a passage's labels, on both time axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from carag import Engine
from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from pathlib import Path

LATER = "9990000102-24-000021.txt"
CHUNK = "9990000102-24-000005:00000"


def test_a_history_keeps_what_was_known_and_says_what_changed_it(tmp_path: Path, small_corpus: Path) -> None:
    """Before the amendment came in one label, without end; after it that one is closed and two stand in its place."""
    first = tmp_path / "first"
    first.mkdir()
    for path in small_corpus.iterdir():
        if path.name != LATER and path.suffix == ".txt":
            (first / path.name).write_bytes(path.read_bytes())
    with Engine.open(tmp_path / "store", embedder="wordllama") as engine:
        engine.ingest(first)
        before = engine.contents.label_history(CHUNK)
        engine.ingest(small_corpus)
        after = engine.contents.label_history(CHUNK)
        assert before is not None
        assert after is not None
        (one,) = before.labels
        assert (None, 2**32 - 1, ()) == (one.known_to, one.valid_to, one.causes)
        closed, *opened = after.labels
        assert one == closed._replace(known_to=None)
        assert {closed.known_to} == {label.known_from for label in opened}
        assert [one.valid_from, opened[1].valid_from] == [label.valid_from for label in opened]
        assert opened[0].valid_to == opened[1].valid_from
        assert ("AMENDED", LATER.removesuffix(".txt")) in opened[1].causes
        assert "10-K" == after.filing.form
        assert after.filing.accession_number == after.filing.document_id == CHUNK.partition(":")[0]
        assert engine.contents.label_history("nothing:00000") is None
        assert engine.contents.counts().chunks > 200
    with pytest.raises(InvalidArgument, match="closed"):
        engine.contents.label_history(CHUNK)
