"""What the report asks of a cell and of the policy tax."""

from __future__ import annotations

import json

import pytest

MILLION, LARGE, WIDE, TEXT = "mixture-1m-128", "mixture-200k-384", "mixture-26k-1024", "text-26k-384"


@pytest.mark.parametrize(
    ("name", "share", "neutral", "anti", "corr"),
    [
        *((MILLION, share, 1.7, 3.0, 2.0) for share in (1.0, 0.5, 0.2)),
        *((MILLION, share, 4.0, 4.0, 2.0) for share in (0.1, 0.05)),
        (MILLION, 0.01, 3.0, 3.0, 3.0),
        (LARGE, 1.0, 1.2, 1.2, 1.2),
        *((LARGE, share, 4.0, 3.0, 1.5) for share in (0.5, 0.2)),
        *((LARGE, share, 3.0, 3.0, 2.0) for share in (0.1, 0.05)),
        (LARGE, 0.01, 3.0, 3.0, 3.0),
        (WIDE, 1.0, 2.5, 2.5, 2.5),
        *((WIDE, share, 4.0, 3.0, 1.5) for share in (0.5, 0.2)),
        *((WIDE, share, 3.0, 3.0, 1.5) for share in (0.1, 0.05)),
        (WIDE, 0.01, 1.5, 1.5, 1.5),
        *((TEXT, share, 1.5, 1.5, 1.5) for share in (1.0, 0.5, 0.2, 0.1, 0.05, 0.01)),
        *((name, share, 1.2, 1.2, 1.2) for name in (MILLION, TEXT) for share in (0.001, 0.0001, 0.0)),
        ("glove-119k-50", 0.5, 1.0, 1.0, 1.0),
    ],
)
def test_goals_are_those_that_were_set(bench, name, share, neutral, anti, corr):
    """By set, share and correlation; a set without goals is never to be behind."""
    results = bench("results")
    slow = results.Reached("peer", 5_000)
    for correlation, wanted in (("neutral", neutral), ("anti", anti), ("corr", corr)):
        key = results.CellKey("word", -share, correlation)
        assert wanted == results.goal(name, key, "avx512_popcnt", slow)
        assert wanted == results.goal(name, key, "avx512", None)


@pytest.mark.parametrize(
    ("name", "variant", "kernel", "qps", "wanted"),
    [
        (MILLION, "word", "avx512", 5_001, 1.2),
        (MILLION, "session", "avx512", 900, 3.2),
        (MILLION, "word", "avx2", 900, 3.2),
        (MILLION, "session", "avx2", 900, 2.56),
        (MILLION, "session", "avx512", 5_001, 1.0),
        ("glove-119k-50", "session", "avx2", 900, 1.0),
    ],
)
def test_goals_give_way_and_never_below_the_peer(bench, name, variant, kernel, qps, wanted):
    """1.2 where the call is the cost, 0.8 of it all for a session, and for a kernel without AVX-512; 1 at least."""
    results = bench("results")
    key = results.CellKey(variant, -0.1, "neutral")
    assert wanted == results.goal(name, key, kernel, results.Reached("peer", qps))


@pytest.mark.parametrize(("share", "wanted"), [(0.5, 0.55), (0.1, 0.55), (0.05, 0.75), (0.01, 0.75)])
def test_the_tax_has_goals(bench, share, wanted):
    """0.55 from a tenth of the rows up, 0.75 below, 0.9 with a view."""
    assert wanted == bench("tax").tax_goal(share)
    assert bench("tax").VIEW_GOAL == 0.9


def row_of(bench, engine, qps, **other):
    """A row of the results file, of a cell of which half of the rows are admissible."""
    row = dict.fromkeys(bench("run").Row.__dataclass_fields__)
    row |= {
        "set": "mixture-1m-128",
        "rows": 1_000_000,
        "dim": 128,
        "variant": "word",
        "share": 0.5,
        "bits": 32,
    }
    row |= {
        "correlation": "neutral",
        "effort": 16,
        "phase": "rounds",
        "n": 200,
        "recall": 1.0,
        "recall_p1": 1.0,
    }
    row |= {"recall_zero": 0, "short": 0, "violations": 0, "p50_us": 1e6 / qps, "p99_us": 2e6 / qps}
    row |= {"engine": engine, "is_peer": not engine.startswith("carag"), "qps": qps, "policy_us": 1.0}
    return (
        row | {"p95_us": 1e6 / qps, "admissible": 5e5, "qps_rounds": [qps], "seed": 7, "commit": "x"} | other
    )


def written(path, rows, kernel="avx512"):
    """A results file of one machine."""
    machine = {
        "kind": "machine",
        "cpu": "a processor",
        "kernel": kernel,
        "processors": 2,
        "python": "3",
        "versions": {},
        "commit": "c",
        "load": 0.1,
    }
    machine["settings"] = {"policy_inside": True}
    records = [machine, *({"kind": "cell", **row, "build_seconds": 1, "bytes_per_row": 1} for row in rows)]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


GOOD = {"carag": 4_000, "hnswlib-native": 2_000}


@pytest.mark.parametrize(
    ("engine", "change", "met"),
    [
        ("carag", {}, True),
        ("carag", {"recall": 0.98}, False),
        ("carag", {"recall_p1": 0.8}, False),
        ("carag", {"violations": 1}, False),
        ("carag", {"short": 1}, False),
        ("hnswlib-native", {"qps": 2_900}, False),
        ("faiss-hnsw", {"qps": 4_001}, False),
    ],
)
def test_a_cell_meets_its_goal_until_something_breaks_it(bench, tmp_path, engine, change, met):
    """Each change alone is told, and counts in the page's section."""
    rows = {name: row_of(bench, name, qps) for name, qps in GOOD.items()}
    rows.setdefault(engine, row_of(bench, engine, 1)).update(change)
    results = bench("results").read([written(tmp_path / "rows", rows.values())])
    ((cell,),) = results.cells.values()
    assert met == cell.met
    assert f"{int(met)} of 1" in bench("report").summary(results)
    assert ("Missed: word 50 %" in bench("report").report(results)) is not met


def test_a_narrow_kernel_is_a_table_of_its_own(bench, tmp_path):
    """Rows of a kernel without AVX-512 stand beside the others, with goals of their own and the processor's name."""
    rows = [row_of(bench, name, qps) for name, qps in GOOD.items()]
    paths = [written(tmp_path / kernel, rows, kernel) for kernel in ("avx512", "avx2")]
    results = bench("results").read(paths)
    assert ["mixture-1m-128", "mixture-1m-128, avx2"] == list(results.cells)
    assert [1.7, 1.36] == [cells[0].goal for cells in results.cells.values()]
    text = bench("report").report(results)
    assert "a processor, kernel avx2, commit" in text


def test_the_tax_with_a_narrow_kernel_is_named_so(bench, tmp_path):
    rows = [row_of(bench, name, qps) for name, qps in GOOD.items()]
    paths = [written(tmp_path / kernel, rows, kernel) for kernel in ("avx512", "avx2")]
    for path in paths:
        with path.open("a") as lines:
            lines.write(json.dumps({"kind": "tax", "set": "mixture-1m-128", "share": 0.5}) + "\n")
    assert [record["set"] for record in bench("results").read(paths).others] == [
        "mixture-1m-128",
        "mixture-1m-128, avx2",
    ]
