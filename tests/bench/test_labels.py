"""The label audit counts what it says: its table, its bounds, and the comparison on filings made for it."""

from __future__ import annotations

import csv
import importlib
import json
from pathlib import Path

import pytest

from carag.errors import InvalidArgument
from carag.policy import PolicyBit, PolicyTable

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "bench" / "labels" / "audited.csv"
JURISDICTIONS = {PolicyBit.J_US, PolicyBit.J_EU, PolicyBit.J_UK, PolicyBit.J_CA, PolicyBit.J_OTHER}


@pytest.fixture(scope="module", autouse=True)
def checkout():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        yield


def module(name):
    return importlib.import_module(f"bench.labels.{name}")


# --- the committed table ---


def test_the_table_has_what_was_promised():
    rows = module("table").read_table(TABLE)
    assert len(rows) >= 300
    assert sum(row.document == "DEF 14A" for row in rows) >= 40
    measured = {bit for bit in PolicyBit if any(bit in row.true for row in rows)}
    assert set(PolicyBit) - measured == {PolicyBit.PD_SPECIAL, PolicyBit.CONF_TREAT}
    assert all(any(row.verdict(bit) is False for row in rows) for bit in PolicyBit)
    assert all((row.true | row.unclear) & JURISDICTIONS for row in rows)


def test_the_table_holds_facts_and_no_passages():
    with TABLE.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert all(len(row["sha256"]) == 12 and int(row["sha256"], 16) >= 0 for row in rows)
    assert all(int(row["end"]) - int(row["start"]) <= 1500 for row in rows)
    reasons = [row["reason"] for row in rows]
    assert max(len(reason) for reason in reasons) <= module("table").LONGEST_REASON
    assert all('"' not in reason and "“" not in reason for reason in reasons)  # nothing is quoted


GOOD = {
    "accession": "0000000001-24-000001", "document": "8-K", "place": "0", "start": "0", "end": "9",
    "sha256": "0" * 12, "true": "J_US LATE", "unclear": "EGC", "causes": "LATE a-1", "basis": "", "reason": "why",
}  # fmt: skip


def written(path, *rows, columns=None):
    with path.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, columns or list(GOOD))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_a_row_is_read_as_it_stands(tmp_path):
    (one,) = module("table").read_table(written(tmp_path / "t.csv", GOOD))
    assert one.causes == ((PolicyBit.LATE, "a-1"),)
    assert [one.verdict(bit) for bit in (PolicyBit.J_US, PolicyBit.EGC, PolicyBit.FPI)] == [True, None, False]


@pytest.mark.parametrize(
    "slip",
    [
        {"true": "J_USA"},
        {"unclear": "J_US"},
        {"start": "9"},
        {"place": "-1"},
        {"end": "nine"},
        {"causes": "AMENDED a-1"},
        {"reason": ""},
        {"reason": "x" * 241},
        {"accession": ""},
    ],
)
def test_a_slip_in_a_row_is_refused_with_its_row(tmp_path, slip):
    path = written(tmp_path / "t.csv", {**GOOD, "start": "10", "end": "19"}, GOOD | slip)
    with pytest.raises(InvalidArgument, match="row 3"):
        module("table").read_table(path)


def test_a_passage_judged_twice_and_a_missing_column_are_refused(tmp_path):
    with pytest.raises(InvalidArgument, match="twice"):
        module("table").read_table(written(tmp_path / "t.csv", GOOD, GOOD))
    rest = {name: value for name, value in GOOD.items() if name != "causes"}
    with pytest.raises(InvalidArgument, match="columns"):
        module("table").read_table(written(tmp_path / "t.csv", rest, columns=list(rest)))


# --- the comparison ---

ANNUAL = "0000000001-24-000001"
AMENDMENT = "0000000001-24-000002"
RELEASE = "0000000001-24-000003"
LETTER = "0000000001-24-000004"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """An annual report, its amendment with statements, a release of results, and a letter never released."""
    row = {"cik": 1, "business_state": "NY", "period": "2023-12-31"}
    rows = [
        {"accession": ANNUAL, "form": "10-K", "text": "Item 1. Business. We sell.", "filed": "2024-03-01"},
        {
            "accession": AMENDMENT, "form": "10-K/A", "text": "Restated.", "filed": "2024-04-01",
            "documents": [{"type": "10-K/A"}, {"type": "EX-32"}],
        },
        {
            "accession": RELEASE, "form": "8-K", "text": "Item 2.02 Results of Operations\nRevenue was $5.",
            "filed": "2024-05-01", "items": ["2.02"],
        },
        {"accession": LETTER, "form": "CORRESP", "text": "Dear staff.", "filed": "2024-06-03"},
    ]  # fmt: skip
    path = tmp_path_factory.mktemp("data") / "filings.jsonl"
    path.write_text("".join(json.dumps(row | one) + "\n" for one in rows), encoding="utf-8")
    return path


def judged(data, accession, true, *, unclear="", causes="", start=0, sha256=None):
    table, sample = module("table"), module("sample")
    text = next(
        row["text"]
        for line in data.read_text(encoding="utf-8").splitlines()
        if (row := json.loads(line))["accession"] == accession
    )
    return table.Audited(
        accession=accession,
        document="",
        place=0,
        start=start,
        end=len(text),
        sha256=sha256 or sample.fingerprint(text),
        true=frozenset(PolicyBit[name] for name in true.split()),
        unclear=frozenset(PolicyBit[name] for name in unclear.split()),
        causes=tuple(
            (PolicyBit[name], cause) for name, cause in [one.split() for one in causes.split(";") if one]
        ),
        basis="",
        reason="made for the test",
    )


def cells():
    text = """
schema = 1
[[cell]]
role = "buyer"
purpose = "invest"
regulation = "none"
may_know_existence = false
past = "none"
masks = [{ forbidden = ["SUPERSEDED", "LATE", "EGC"] }]
"""
    return PolicyTable.from_toml(text).cells


def test_agreement_is_no_error(data):
    compare = module("compare")
    truth = [
        judged(data, ANNUAL, "J_US FS_AUDITED AMENDED SUPERSEDED"),
        judged(data, AMENDMENT, "J_US FS_AUDITED"),
        judged(data, RELEASE, "J_US FS_UNAUDITED FURNISHED MATERIAL"),
    ]
    labelled = compare.label_audited(truth, data)
    result = compare.compare(labelled, cells())
    assert (labelled.lost, result.errors) == ((), [])
    assert result.bits[PolicyBit.SUPERSEDED].positives == 1
    assert result.bits[PolicyBit.SUPERSEDED].negatives == 2
    count = result.cells["buyer / invest"]
    assert (count.hidden, count.shown, count.under, count.over) == (1, 2, 0, 0)


def test_each_kind_of_disagreement_is_counted_as_what_it_is(data):
    compare = module("compare")
    audited = [
        judged(data, ANNUAL, "J_US FS_AUDITED AMENDED"),  # ours adds SUPERSEDED
        judged(data, RELEASE, "J_US FS_UNAUDITED FURNISHED LATE", unclear="MATERIAL", causes="LATE unread-1"),
        judged(data, AMENDMENT, "J_US FS_AUDITED EGC", causes=f"EGC {ANNUAL}"),
    ]
    result = compare.compare(compare.label_audited(audited, data), cells())
    assert {(bit.name, one.accession, read) for bit, one, read in result.errors} == {
        ("SUPERSEDED", ANNUAL, True), ("LATE", RELEASE, False), ("EGC", AMENDMENT, True),
    }  # fmt: skip
    superseded, late, material = (result.bits[PolicyBit[n]] for n in ("SUPERSEDED", "LATE", "MATERIAL"))
    assert (superseded.added, superseded.missed) == (1, 0)
    assert (late.added, late.missed, late.missed_unread) == (0, 1, 1)
    assert (material.unclear, material.positives, material.negatives) == (1, 0, 2)
    count = result.cells["buyer / invest"]
    assert (count.under, count.under_unread, count.over, count.quarantined) == (2, 1, 1, 0)


def test_quarantine_hides_and_is_named(data):
    compare = module("compare")
    labelled = compare.label_audited([judged(data, LETTER, "J_US PRIV2PUB")], data)
    count = compare.compare(labelled, cells()).cells["buyer / invest"]
    assert labelled.quarantined == {"LETTER_RELEASE_UNKNOWN": 1}
    assert (count.shown, count.over, count.quarantined) == (1, 1, 1)


def test_a_passage_that_moved_is_found_and_one_that_changed_is_reported(data):
    compare = module("compare")
    moved = judged(data, ANNUAL, "J_US", start=3)
    changed = judged(data, RELEASE, "J_US", sha256="f" * 12)
    gone = judged(data, RELEASE, "J_US", start=1)
    gone = type(gone)(
        **{name: getattr(gone, name) for name in gone.__slots__} | {"accession": "no-such-filing"}
    )
    labelled = compare.label_audited([moved, changed, gone], data)
    assert set(labelled.words) == {moved}
    assert set(labelled.lost) == {changed, gone}


def test_the_report_says_what_is_not_established(data):
    compare, report = module("compare"), module("audit_report")
    labelled = compare.label_audited([judged(data, ANNUAL, "J_US FS_AUDITED AMENDED")], data)
    text = report.report(compare.compare(labelled, cells()), labelled, [])
    lines = {line.split(" | ")[0].strip("| "): line for line in text.splitlines() if line.startswith("| ")}
    assert "not established" in lines["AMENDED"]
    assert "not measured" in lines["CONF_TREAT"]
    assert f"| SUPERSEDED | set | false | {ANNUAL}" in text
    assert "1 unexplained" in text


def test_a_second_reading_explains_what_it_names_and_no_more(data, tmp_path):
    compare, report, second = module("compare"), module("audit_report"), module("second_reading")
    labelled = compare.label_audited([judged(data, ANNUAL, "J_US FS_AUDITED AMENDED")], data)
    result = compare.compare(labelled, cells())
    row = {
        "bit": "SUPERSEDED", "ours": "set", "accession": ANNUAL, "document": "", "fault": "rule", "explanation": "so",
    }  # fmt: skip
    for slip, counted in (
        ({}, "1 rule"),
        ({"ours": "clear"}, "1 unexplained"),
        ({"accession": RELEASE}, "1 unexplained"),
        ({"bit": "LATE"}, "1 unexplained"),
        ({"document": "10-Q"}, "1 unexplained"),
    ):
        known = second.read_explanations(written(tmp_path / "e.csv", row | slip, columns=list(row)))
        assert counted in report.report(result, labelled, known)


@pytest.mark.parametrize("slip", [{"bit": "NONE"}, {"ours": "true"}, {"fault": "luck"}, {"explanation": ""}])
def test_a_slip_in_an_explanation_is_refused(tmp_path, slip):
    row = {
        "bit": "LATE",
        "ours": "set",
        "accession": "",
        "document": "",
        "fault": "rule",
        "explanation": "so",
    } | slip
    with pytest.raises(InvalidArgument, match="row 2"):
        module("second_reading").read_explanations(written(tmp_path / "e.csv", row, columns=list(row)))


def test_the_committed_explanations_are_well_formed():
    assert module("second_reading").read_explanations(TABLE.with_name("explained.csv"))
