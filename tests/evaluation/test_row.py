"""A row says what it says in one way, and nothing that contradicts itself."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import CorruptFile, InvalidArgument
from carag.evaluation.row import (
    SYSTEMS,
    UNSTATED,
    Row,
    Standing,
    Stratum,
    is_own,
    read_rows,
    system_order,
    write_rows,
)
from tests.evaluation.rows import PLAIN, few_rows, row, sha

if TYPE_CHECKING:
    from pathlib import Path


@given(few_rows())
def test_a_line_reads_back_as_the_row_it_was(rows: list[Row]) -> None:
    for one in rows:
        assert Row.from_json(one.to_json()) == one
        assert "\n" not in one.to_json()


@given(few_rows())
def test_a_file_is_the_same_bytes_in_whatever_order(rows: list[Row]) -> None:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as home:
        plain, packed = Path(home, "rows.jsonl"), Path(home, "rows.jsonl.gz")
        write_rows(plain, rows)
        write_rows(packed, rows[::-1])
        assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
        assert read_rows(plain) == read_rows(packed) == sorted(rows, key=Row.to_json)
        before = packed.read_bytes()
        write_rows(packed, rows)
        assert packed.read_bytes() == before


@pytest.mark.parametrize(
    "change",
    [
        {"question_id": ""},
        {"question_id": 7},
        {"filer": -1},
        {"filer": True},
        {"filer": "320193"},
        {"system": "carag"},
        {"split": "test"},
        {"kind": "adversary:"},
        {"kind": "adversary:Two Words"},
        {"as_of": "yesterday"},
        {"as_of": ""},
        {"retrieved": ["a:0", "a:1"]},
        {"retrieved": ("a:0", "a:0")},
        {"retrieved_admissible": (True,)},
        {"retrieved_admissible": (1, 1)},
        {"gold_admissible": ()},
        {"touched": ("a:0",)},
        {"outcome": "answered"},
        {"outcome": "decline"},  # with an F1 above 0
        {"answer_sha256": None},
        {"answer_sha256": sha("x").upper()},
        {"answer_tokens": 1.0},
        {"gold_answer_sha256": None},  # with an F1
        {"f1": None},  # with a gold answer
        {"f1": 1.5},
        {"f1": 0.12345},
        {"f1": float("nan")},
        {"f1": True},
        {"answerable": 1},
        {"stratum": Stratum("wide", "0-0.1", "neutral")},
        {"stratum": Stratum("loose", "", "neutral")},
        {"canaries_disclosed": ("k",)},
        {"ngram_overlap": 1.01},
        {"ngram_overlap": None},
        {"existence_disclosed": None},
        {"latency_ms": {"embed": 1.0, "retrieve": 1.0, "generate": 1.0}},
        {"latency_ms": {**PLAIN.latency_ms, "total": -1.0}},
        {"latency_ms": {**PLAIN.latency_ms, "total": float("inf")}},
        {"cost_usd": -0.1},
        {"seed": -1},
        {"cited": ["a:0"]},
        {"cited": ("a:0", "a:0")},
        {"cited": ("a:0",), "outcome": "decline", "f1": 0.0},
        {"cited_elsewhere": ("a:0",)},  # and not cited
        {"figure_right": 1},
        {"figure_right": True, "outcome": "decline", "f1": 0.0},
        {"figure_right": True, "gold_answer_sha256": None, "f1": None},
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(change: dict[str, object]) -> None:
    contradicts = change in ({"outcome": "decline"}, {"gold_answer_sha256": None})
    field = "f1" if contradicts else next(iter(change))
    with pytest.raises(InvalidArgument, match=f"^{field} is .*; want"):
        row(**change)


def test_a_row_of_an_earlier_run_keeps_its_bytes() -> None:
    """It lacks the fields that were added later; its published hash must stay that of the row that is read."""
    old = PLAIN.to_json()
    assert not {"cited", "cited_elsewhere", "figure_right"} & set(json.loads(old))
    assert Row.from_json(old).to_json() == old
    new = row(cited=("a:0",), cited_elsewhere=(), figure_right=False)
    assert {"cited", "cited_elsewhere", "figure_right"} <= set(json.loads(new.to_json()))
    assert Row.from_json(new.to_json()) == new


@pytest.mark.parametrize(
    ("change", "standing"),
    [
        ({}, Standing.OPEN),
        ({"gold_admissible": (False,), "answerable": False}, Standing.HIDDEN),
        ({"gold": ("a:0", "b:0"), "gold_admissible": (False, True), "answerable": False}, Standing.PARTLY),
        ({"gold": ("a:0", "b:0"), "gold_admissible": (False, True)}, Standing.OPEN),  # either of two holds it
        ({"gold": (), "gold_admissible": (), "answerable": False}, Standing.UNKNOWN),
        ({"stratum": Stratum(UNSTATED, "0-0.1", "near"), "answerable": False}, Standing.UNKNOWN),
    ],
    ids=str,
)
def test_how_much_evidence_is_open_is_told_from_the_gold(
    change: dict[str, object], standing: Standing
) -> None:
    assert row(**change).standing is standing


def spoilt(**change: object) -> str:
    return json.dumps(json.loads(PLAIN.to_json()) | change, sort_keys=True, separators=(",", ":"))


@pytest.mark.parametrize(
    "line",
    [
        "",
        "null",
        "[]",
        PLAIN.to_json()[:-1],
        PLAIN.to_json().replace('"seed":0', '"seed":0,"text":"Net sales"'),
        PLAIN.to_json().replace('"seed":0,', ""),
        PLAIN.to_json().replace(",", ", "),
        PLAIN.to_json().replace('"seed":0', '"seed":00'),
        PLAIN.to_json().replace("0.5,", "0.50,"),
        " " + PLAIN.to_json(),
        spoilt(stratum={"share": "loose"}),
        spoilt(stratum=None),
        spoilt(retrieved="a:0"),
        spoilt(seed=None),
        spoilt(cited=None),  # a field that was added later is left out and not null
    ],
    ids=range(15),
)
def test_any_other_spelling_is_corrupt(line: str) -> None:
    with pytest.raises(CorruptFile):
        Row.from_json(line)


def test_a_file_cut_off_is_noticed_and_the_line_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    write_rows(path, [row(), row(system="oracle")])
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(CorruptFile, match="cut off"):
        read_rows(path)
    path.write_bytes(whole.replace(b'"filer":320193', b'"filer":-1', 2))
    with pytest.raises(CorruptFile, match="line 1"):
        read_rows(path)
    packed = tmp_path / "rows.jsonl.gz"
    write_rows(packed, [row()])
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(CorruptFile):
        read_rows(packed)


def test_a_row_has_no_place_for_text() -> None:
    """Every field is an id, a hash, a number, a flag or one of a few words: no answer, question or passage."""
    known = set(json.loads(PLAIN.to_json()))
    assert known & {"answer", "question", "text", "prompt", "passages", "gold_answer"} == set()


@given(st.text(max_size=12) | st.from_regex(r"own:[A-Za-z0-9_.:-]{1,101}", fullmatch=True))
def test_a_system_is_one_of_ours_or_begins_with_own(name: str) -> None:
    """No name of a stranger's system can be taken for one of ours, or break a table, a path or a line."""
    if name in SYSTEMS or (is_own(name) and name.startswith("own:")):
        assert Row.from_json(row(system=name).to_json()).system == name
        assert not set("|\n\t/\\ <>&") & set(name)
    else:
        with pytest.raises(InvalidArgument, match="system is"):
            row(system=name)
    assert not (name in SYSTEMS and is_own(name))


@pytest.mark.parametrize(
    "name", ["own:", "own:a b", "own:a|b", "own:\n", "own:é", "Own:a", "oracle ", "own:" + "a" * 101]
)
def test_a_system_with_another_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument, match="system is"):
        row(system=name)


def test_ours_come_first_in_their_order_then_the_users_own_by_name() -> None:
    assert sorted(["own:b", *reversed(SYSTEMS), "own:a"], key=system_order) == [*SYSTEMS, "own:a", "own:b"]
