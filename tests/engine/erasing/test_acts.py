"""What an erased document did to others by its acts stays, and the names that it used do not."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import pytest

from carag import Document, Engine
from carag.labelling.document import Act, ActKind
from tests.engine.documents import Counting
from tests.engine.erasing.canaries import found

if TYPE_CHECKING:
    from pathlib import Path

TWO = {"basis": "GDPR_17_1_D", "by": "officer", "approver": "chief"}
OLD = Document(id="old-qzw", text="Branches report daily.", bits=(), names=["Circular qzx 1"])
NEW = Document(
    id="new-qzy",
    text="Branches report weekly.",
    bits=(),
    acts=[
        Act(ActKind.REPLACES, "Circular qzx 1"),
        Act(ActKind.WITHDRAWS, "also"),
        Act(ActKind.AMENDS, "Letter qzz"),
    ],
)
ALSO = Document(id="also", text="Branches report.", bits=())
MARKS = {0: {one: one.encode() for one in ("old-qzw", "Circular qzx", "new-qzy", "Letter qzz")}}


def labels(engine: Engine, chunk_id: str) -> list[tuple[int, int, int]]:
    """What holds of a passage now: its words, each from when to when."""
    history = engine.contents.label_history(chunk_id)
    assert history is not None
    return [(one.word, one.valid_from, one.valid_to) for one in history.labels if one.known_to is None]


@pytest.mark.parametrize("order", [*permutations((OLD, NEW, ALSO))])
def test_what_an_erased_document_acted_on_stays_as_it_was(
    tmp_path: Path, order: tuple[Document, ...]
) -> None:
    """In every order of arrival, and when what it acted on is given again."""
    with Engine.open(tmp_path, profile="circulars", embedder=Counting()) as engine:
        for one in order:
            engine.add([one])
        before = [labels(engine, f"{one.id}:00000") for one in (OLD, ALSO)]
        engine.erase([NEW.id], **TWO)
        for one in (OLD, ALSO):
            engine.add([Document(id=one.id, text="Another text.", bits=(), names=one.names)])
            engine.add([one])
        after = [labels(engine, f"{one.id}.v3:00000") for one in (OLD, ALSO)]
        assert after == before
        assert before[0] != before[1]


@pytest.mark.parametrize("at_once", [True, False])
def test_no_name_in_an_act_is_left(tmp_path: Path, *, at_once: bool) -> None:
    """That of an erased document, and that of one that was never given."""
    with Engine.open(tmp_path, profile="circulars", embedder=Counting()) as engine:
        engine.add([OLD, NEW, ALSO])
        assert found(tmp_path, MARKS) == {(0, one) for one in MARKS[0]}
        for ids in ([OLD.id, NEW.id],) if at_once else ([NEW.id], [OLD.id]):
            engine.erase(ids, **TWO)
        assert not found(tmp_path, MARKS)


def test_a_document_with_the_id_of_an_erased_one_is_a_new_one(tmp_path: Path) -> None:
    """No act on the former document concerns it."""
    with Engine.open(tmp_path, profile="circulars", embedder=Counting()) as engine:
        engine.add([NEW, ALSO])
        withdrawn = labels(engine, "also:00000")
        for id_ in (NEW.id, ALSO.id):
            engine.erase([id_], **TWO)
        engine.add([ALSO])
        assert labels(engine, "also:00000") != withdrawn
