"""Claims about how erasures are measured (``bench/erasing``): attackers who guess right, and scans that find."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag import Engine, Index
from carag.engine.erasing import documents
from tests.engine.documents import Counting, document
from tests.engine.erasing.canaries import canary, found, marks
from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
FIGURES = st.lists(st.integers(-3, 3), min_size=1, max_size=30)
SOME = st.binary(min_size=8, max_size=20)


@pytest.fixture(scope="module")
def erasing() -> Iterator[Callable[[str], Any]]:
    """``erasing("drift")`` imports ``bench.erasing.drift``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT)
        yield lambda name: importlib.import_module(f"bench.erasing.{name}")


@given(had=FIGURES, never=FIGURES)
def test_the_area_under_the_curve_is_the_share_of_pairs_in_order(
    erasing: Any, had: list[int], never: list[int]
) -> None:
    """A tie counts half."""
    wanted = np.mean([(a > b) + (a == b) / 2 for a in had for b in never])
    assert erasing("drift").auc(np.array(had), np.array(never)) == pytest.approx(wanted)


@pytest.mark.parametrize(("shift", "least", "most"), [(0.0, 0.35, 0.65), (3.0, 0.9, 1.0)])
def test_training_finds_what_is_there_and_nothing_else(
    erasing: Any, shift: float, least: float, most: float
) -> None:
    drift, draw = erasing("drift"), np.random.default_rng(1)
    had, never = draw.standard_normal((2, 200, 15))
    had[:, 4] -= shift
    auc, low, high = drift.interval(*drift.learnt(had, never))
    assert least <= auc <= most
    assert low <= auc <= high


def test_equal_answers_give_an_attacker_exactly_a_half(erasing: Any) -> None:
    drift = erasing("drift")
    same = np.random.default_rng(2).standard_normal((40, 15))
    assert drift.interval(*drift.learnt(same, same))[0] == 0.5


def test_an_index_that_erased_answers_as_one_that_never_had_the_rows(erasing: Any) -> None:
    """On every plan, to the last bit; and what was only deleted does not."""
    drift, peers = erasing("drift"), erasing("peers")

    class Deleted(peers.Carag):  # type: ignore[misc,name-defined]
        def erase(self, ids: Any) -> None:
            self._index.delete(ids)

    rows = list(drift.measured(peers.Carag, pairs=examples(5, least=2)))
    assert len(rows) == len(peers.Carag.views)
    assert all(row["same"] == row["pairs"] and row["trained"] == (0.5, 0.5, 0.5) for row in rows)
    assert any(row["same"] < row["pairs"] for row in drift.measured(Deleted, pairs=2))


@given(
    marks=st.lists(SOME, min_size=1, max_size=5),
    parts=st.lists(SOME, max_size=5),
    taken=st.sets(st.integers(0, 4)),
)
def test_a_scan_finds_exactly_the_marks_that_stand_in_a_file(
    erasing: Any, marks: list[bytes], parts: list[bytes], taken: set[int]
) -> None:
    content = b"".join([*parts, *(marks[one % len(marks)] for one in taken)])
    assert erasing("files").standing(marks, content) == {one for one in marks if one in content}


@pytest.mark.parametrize("kind", ["Store", "Carag"])
def test_no_file_keeps_an_erased_vector_and_the_scan_would_see_it(erasing: Any, kind: str) -> None:
    files = erasing("files")
    (row,) = files.measured(getattr(files, kind))
    assert (row["before"], row["after"]) == (1.0, 0.0)


def test_an_erasure_in_many_turns_writes_the_files_again_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rebuilding the graph is nearly all that an erasure costs; the next opening finds nothing left to do."""
    rebuilt = list[int]()
    consolidate = Index.consolidate
    monkeypatch.setattr(documents, "MAX_ERASED_DOCUMENTS", 2)
    monkeypatch.setattr(Index, "consolidate", lambda index: (rebuilt.append(len(index)), consolidate(index)))
    with Engine.open(tmp_path, profile="generic", embedder=Counting()) as engine:
        engine.add([*map(canary, range(5)), *map(document, range(9))])
        report = engine.erase(
            [canary(one).id for one in range(5)], basis="GDPR_17_1", by="officer", approver="chief"
        )
        assert (len(report.receipts), rebuilt) == (3, [9])
        assert not found(tmp_path, {one: marks(one) for one in range(5)})
    with Engine.open(tmp_path, embedder=Counting()):
        assert rebuilt == [9]


def test_the_page_is_that_of_the_committed_results_and_the_goals_are_met(erasing: Any) -> None:
    main, report = erasing("__main__"), erasing("report")
    drift, files, cost = (
        main._read(main.HERE / "results" / f"{one}.jsonl") for one in ("drift", "files", "cost")
    )
    assert (main.HERE / "RESULTS.md").read_text("utf-8") == report.report(drift, files, cost)
    exact = [row for row in drift if row["index"] in ("carag, exact", "carag, certified")]
    assert len(exact) == 2
    assert all(row[guess][0] <= report.MOST_AUC for row in exact for guess in ("untrained", "trained"))
    assert all(row["after"] == 0 for row in files if row["index"].startswith("carag"))
