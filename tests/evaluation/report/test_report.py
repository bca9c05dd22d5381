"""The report is a function of the rows: any order gives the same bytes, and what is missing is reported as missing."""

from __future__ import annotations

import hashlib
import json
import random
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from carag.cli import Exit, main
from carag.errors import CorruptFile, InvalidArgument
from carag.evaluation.report.files import check_files, files, report_json, write_files
from carag.evaluation.report.page import IN_WORDS, anchor
from carag.evaluation.report.report import report, report_from
from carag.evaluation.report.strata import BAND, DIMENSIONS, SliceName
from carag.evaluation.report.svg import Dot, dots, lines
from carag.evaluation.row import SYSTEMS, Standing, rows_sha256, write_rows
from carag.evaluation.run_metadata import RunMetadata, Trials, Worlds
from tests.evaluation.rows import benchmark, row

if TYPE_CHECKING:
    from pathlib import Path

    from carag.evaluation.row import Row

ROWS = benchmark(filers=3, per_filer=3, sessions=2)
WORDS = {chunk: 0x0800_0001 for one in ROWS for chunk in one.retrieved}
ROWS_SHA256 = rows_sha256(ROWS)
ABOUT = RunMetadata("builtin", 40, 10, 3, notes=("Made for a test.",))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run as it is committed: rows, what they are of, and words."""
    path = tmp_path / "run" / "rows.jsonl.gz"
    path.parent.mkdir()
    write_rows(path, ROWS)
    path.with_name("run.json").write_text(replace(ABOUT, rows_sha256=rows_sha256(ROWS)).to_json())
    path.with_name("words.json").write_text(json.dumps(WORDS))
    return path


def test_the_order_of_rows_changes_no_byte() -> None:
    shuffled = list(ROWS)
    random.Random(3).shuffle(shuffled)  # noqa: S311 - a test
    assert files(report(shuffled, metadata=ABOUT, words=WORDS)) == files(
        report(ROWS, metadata=ABOUT, words=WORDS)
    )


def test_the_command_writes_the_same_bytes_again(run: Path, tmp_path: Path) -> None:
    def call(*words: str) -> int:
        with pytest.raises(SystemExit) as ended:
            main(["bench", "edgar", "--from", str(run), *words])
        return int(ended.value.code or 0)

    out, again = tmp_path / "out", tmp_path / "again"
    assert call("--out", str(out)) == call("--out", str(again)) == Exit.OK
    names = sorted(path.name for path in out.iterdir())
    assert {"report.json", "report.json.sha256", "report.md"} < set(names)
    assert [(out / name).read_bytes() for name in names] == [(again / name).read_bytes() for name in names]
    assert call("--out", str(out), "--check") == Exit.OK
    (out / "report.md").write_text("# Better figures\n")
    assert call("--out", str(out), "--check") == Exit.BAD_INPUT
    assert (out / "report.md").read_text() == "# Better figures\n"


def test_the_hash_of_the_json_stands_for_it_and_is_compared(run: Path, tmp_path: Path) -> None:
    """A directory may leave the JSON out, and then hold its hash; what it does hold must be right."""
    write_files(run, tmp_path)
    check_files(run, tmp_path)
    whole = (tmp_path / "report.json").read_bytes()
    (tmp_path / "report.json").unlink()
    check_files(run, tmp_path)
    kept = (tmp_path / "report.json.sha256").read_text()
    assert kept == f"{hashlib.sha256(whole).hexdigest()}  report.json\n"
    for name, content in (("report.json", whole + b" "), ("report.json.sha256", kept.swapcase().encode())):
        before = (tmp_path / name).read_bytes() if (tmp_path / name).exists() else None
        (tmp_path / name).write_bytes(content)
        with pytest.raises(CorruptFile, match=rf"{name} differ from"):
            check_files(run, tmp_path)
        (tmp_path / name).unlink() if before is None else (tmp_path / name).write_bytes(before)
    (tmp_path / "report.json.sha256").unlink()
    with pytest.raises(CorruptFile, match="sha256"):
        check_files(run, tmp_path)


def test_one_changed_row_changes_the_report() -> None:
    changed = [replace(ROWS[0], existence_disclosed=True), *ROWS[1:]]
    before, after = files(report(ROWS)), files(report(changed))
    assert before["report.json"] != after["report.json"]
    assert before["report.md"] != after["report.md"]


def test_a_description_of_other_rows_is_refused(run: Path) -> None:
    report_from(run)
    write_rows(run, ROWS[1:])
    with pytest.raises(CorruptFile, match="take both files from one run"):
        report_from(run)


@pytest.mark.parametrize("words", ["[]", '{"a:0": -1}', '{"a:0": 4294967296}', '{"a:0": true}', "{"])
def test_invalid_words_are_refused(run: Path, words: str) -> None:
    run.with_name("words.json").write_text(words)
    with pytest.raises(CorruptFile, match=r"words\.json"):
        report_from(run)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"corpus": "paper"}', ABOUT.to_json().replace('"window"', '"windows"')]
)
def test_an_invalid_run_is_refused(text: str) -> None:
    with pytest.raises(CorruptFile, match="run the benchmark again"):
        RunMetadata.from_json(text)


def test_a_description_reads_back() -> None:
    full = replace(ABOUT, trials=(Trials("carag-auto", 5, 1, 40, 0),), worlds=Worlds(4, 1, 2, 9))
    assert RunMetadata.from_json(ABOUT.to_json()) == ABOUT
    assert RunMetadata.from_json(full.to_json()) == full


@pytest.mark.parametrize("change", [{"corpus": "half"}, {"chunks": -1}, {"window": None}, {"notes": (1,)}])
def test_a_description_that_makes_no_sense_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument, match="want"):
        replace(ABOUT, **change)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="want"):
        Worlds(1, 2, 1, 1)
    with pytest.raises(InvalidArgument, match="want"):
        Trials("carag-auto", 1, 2, 1, 1)


@pytest.mark.parametrize("system", ["vanilla", "carag-auto"])
def test_the_page_has_recall_and_violations_by_both_axes_of_each_system(system: str) -> None:
    text = page_of(ROWS).partition("### Selectivity and correlation")[2]
    headings_, _, *lines = [line for line in text.splitlines() if line.startswith("|")]
    at = headings_.split(" | ").index(system)
    slices = report(ROWS).sections[0].slices
    for band in ("0.1-0.5", "0.5-1"):
        part = slices[SliceName("everything", BAND, f"{band}, neutral")]
        for title, name in (("Admissible recall@8", "admissible_recall"), ("CVR by query", "cvr_query")):
            (line,) = [one for one in lines if one.startswith(f"| {band} | neutral |") and title in one]
            value = part.systems[system][name].value  # type: ignore[union-attr]
            assert float(line.split(" | ")[at].split(" %")[0]) == pytest.approx(100 * value, abs=0.6)


# --- rows that contradict each other ---


def test_no_rows_make_no_report() -> None:
    with pytest.raises(InvalidArgument, match="run the benchmark"):
        report([])


def test_a_pair_answered_twice_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="two rows"):
        report([row(), row(f1=0.25)])


@pytest.mark.parametrize(
    "change",
    [
        {"answerable": False},
        {"gold_admissible": (False,), "retrieved_admissible": (False, True)},
        {"split": "dev"},
        {"gold": ("a:1",)},
        {"stratum": replace(row().stratum, share="tight")},
    ],
)
def test_what_belongs_to_the_pair_is_the_same_for_every_system(change: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument, match="depends on the pair alone"):
        report([row(), row(system="oracle", **change)])


def test_a_question_has_one_filer() -> None:
    with pytest.raises(InvalidArgument, match="two filers"):
        report([row(), row(as_of="2025-01-01", filer=1)])


# --- what is not there ---


def test_what_cannot_be_counted_is_not_measured_and_never_zero() -> None:
    whole = json.loads(report_json(report([row(system="carag-auto", gold_answer_sha256=None, f1=None)])))
    (models,) = whole["models"]
    figures = next(part for part in models["cells"] if part["scope"] == "real" and not part["dimension"])
    of = figures["systems"]["carag-auto"]
    for name in ("f1_raw", "f1_all", "f1_answerable", "f1_answered", "odr_canary", "noninterference"):
        assert set(of[name]) == {"not_measured"}, name
    assert {"under_refusal", "admissible_recall"} <= {name for name in of if "not_measured" in of[name]}
    assert of["cvr_query"]["value"] == 0
    assert "odr_entailment" in whole["not_measured"]
    assert whole["label_noise"] == []


def test_small_strata_have_no_figures() -> None:
    whole = json.loads(report_json(report(ROWS)))
    strata = [part for part in whole["models"][0]["cells"] if part["dimension"] in DIMENSIONS]
    assert strata
    assert all(part["systems"] == {} and part["paired"] == [] and part["not_measured"] for part in strata)
    assert "| not measured |" in files(report(ROWS))["report.md"].decode()


def test_the_development_split_is_counted_and_not_reported() -> None:
    whole = report(ROWS)
    real = next(part for name, part in whole.sections[0].slices.items() if name == ("real", "", ""))
    assert real.questions == len({one.question_id for one in ROWS if one.split == "reported"})
    assert whole.counts.splits == {"dev": 72, "reported": 144}


def test_kinds_are_never_mixed() -> None:
    rows = [*ROWS, *(replace(one, kind="built") for one in ROWS)]
    slices = report(rows).sections[0].slices
    assert {name.scope for name in slices} == {"everything", "real", "built"}
    pairs = {name.scope: part.pairs for name, part in slices.items() if not name.dimension}
    assert pairs == {"everything": 36, "real": 12, "built": 12}


def test_models_are_never_mixed() -> None:
    rows = [*ROWS, *(replace(one, generator="smollm2") for one in ROWS)]
    assert [section.models.generator for section in report(rows).sections] == ["extractive", "smollm2"]


# --- the page ---


def headings(text: str) -> list[str]:
    return re.findall(r"^## (.*)$", text, flags=re.MULTILINE)


def page_of(rows: list[Row]) -> str:
    return files(report(rows, metadata=ABOUT, words=WORDS))["report.md"].decode()


def test_the_first_page_is_for_who_decides() -> None:
    """What leaked, in a sentence; every measure and system on the page in words; what it proves, and what not."""
    first, _, rest = page_of(ROWS).partition("## Contents")
    asked = len({one.pair for one in ROWS})
    leaked = sum(one.system == "vanilla" and not all(one.retrieved_admissible) for one in ROWS)
    assert (
        f"CARAG leaked in 0 of {asked} questions; ordinary retrieval-augmented generation leaked in {leaked} of "
        f"{asked} questions" in first
    )
    for said in (
        "constraint violation rate (CVR)",
        "output disclosure rate (ODR)",
        "What it does not prove.",
    ):
        assert said in first, said
    assert set(IN_WORDS) == set(SYSTEMS)
    assert all(f"| {name} | {IN_WORDS[name]} |" in first for name in SYSTEMS)
    assert not re.search(r"[0-9a-f]{64}", first)
    assert ["In plain words"] == headings(first)
    assert ROWS_SHA256 in rest


def test_the_first_page_says_what_was_found_cited_and_refused() -> None:
    """By how much of the evidence was open; in words for who does not read tables, and for every system."""
    first = first_page(ROWS)
    real = [one for one in ROWS if one.split == "reported" and one.system == "carag-certified"]
    open_, hidden = (
        [one for one in real if one.standing is standing] for standing in (Standing.OPEN, Standing.HIDDEN)
    )
    (words,) = re.findall(r"^In words, for carag-certified\. (.*)$", first, re.MULTILINE)
    assert f"Where all evidence was open ({len(open_)} times), refused or declined: 0 % " in words
    assert f"Where it was wholly hidden ({len(hidden)} times), answered all the same: 0 % " in words
    cited = sum(bool(set(one.cited or ()) & set(one.gold)) for one in open_)
    assert f"answered from the evidence: {100 * cited / len(open_):.0f} % " in words
    found = re.findall(
        r"^\| ([\w-]+) \|(?: [^|]* \|){8}$", first.partition("### What was found")[2], re.MULTILINE
    )
    assert ["system", "---", *SYSTEMS] == ["system", "---", *(name for name in found if name in SYSTEMS)]


def test_older_rows_read_not_measured() -> None:
    old = [replace(one, cited=None, cited_elsewhere=None, figure_right=None) for one in ROWS]
    (words,) = re.findall(r"^In words, for carag-certified\. (.*)$", first_page(old), re.MULTILINE)
    for said in (
        "answered from the evidence: not measured",
        "the one asked about: not measured",
        "stated: not measured",
    ):
        assert said in words, said


def test_data_sets_stand_in_rows_of_their_own() -> None:
    """However small; a run of one data set has no such table."""
    sets = {"q1": "financebench_id_1", "q2": "docugami-2", "q3": "live-ko"}
    rows = [replace(one, question_id=sets[one.question_id[:2]] + one.question_id) for one in ROWS]
    _, _, after = page_of(rows).partition("### Real questions by data set")
    table = after.partition("###")[0]
    found = re.findall(r"^\| (\w+) \| 2 \| 1 \| ([\w-]+) \|", table, re.MULTILINE)
    shown = ("oracle", "vanilla", "carag-certified")
    assert found == [(name, system) for name in ("FinanceBench", "docugami", "others") for system in shown]
    assert "by data set" not in page_of(ROWS)


def sentence(first: str, system: str) -> tuple[str, str]:
    """The verdict on a system, and the one sentence that gives its reason."""
    (found,) = re.findall(rf"^\| {re.escape(system)} \| ([^|]+) \| ([^|]+) \|$", first, re.MULTILINE)
    return found


def first_page(rows: list[Row]) -> str:
    return page_of(rows).partition("## Contents")[0]


def test_each_system_has_a_plain_verdict_and_one_sentence() -> None:
    """What was tried, what leaked, and what that does not prove; before any table of figures."""
    first = first_page(ROWS)
    asked = len({one.pair for one in ROWS})
    assert first.index("| system | verdict |") < first.index("| system | what it is |")
    for system in SYSTEMS:
        said, why = sentence(first, system)
        leaked = sum(one.system == system and not all(one.retrieved_admissible) for one in ROWS)
        assert why.startswith(f"Asked {asked} times, it retrieved a closed passage in {leaked}, "), why
        assert re.search(r"does not (prove|show)", why), why
        assert 1 == why.count("."), why
        assert ("leaks" == said) == (leaked > 0 or system == "vanilla"), system
    sessions = len({(one.role, one.purpose, one.as_of) for one in ROWS})
    assert f"{asked} times one of 9 questions was put, in {sessions} sessions, to 12 systems" in first


def test_what_was_not_asked_or_failed_is_no_success() -> None:
    """It may have leaked: the verdict says that nothing is shown."""
    whole = [*ROWS]
    at = next(at for at, one in enumerate(ROWS) if one.system == "oracle")
    broken = replace(
        ROWS[at], outcome="error", f1=0.0, retrieved=(), retrieved_admissible=(), cited=(), figure_right=False
    )
    said, why = sentence(first_page([*whole[:at], broken, *whole[at + 1 :]]), "oracle")
    assert said.startswith("not shown")
    assert why.startswith("Asked 18 times, of which it failed 1, ")
    said, why = sentence(first_page([*whole[:at], *whole[at + 1 :]]), "oracle")
    assert said.startswith("not shown")
    assert why.startswith("Asked 17 of 18 times, ")
    assert "may have leaked" in why
    leaking = replace(broken, touched=("hidden",))
    assert sentence(first_page([*whole[:at], leaking, *whole[at + 1 :]]), "oracle")[0] == "leaks"


def test_a_failure_stands_in_the_headline_and_beside_every_count() -> None:
    """A system that always fails has retrieved nothing closed, which is not a success."""
    own = [
        replace(
            one,
            system="own:x",
            outcome="error",
            f1=0.0,
            touched=(),
            retrieved=(),
            retrieved_admissible=(),
            cited=(),
            figure_right=False,
        )
        for one in ROWS
        if one.system == "oracle"
    ]
    first = first_page([*ROWS, *own])
    assert re.search(r"own:x leaked in 0 of 18 questions and failed in 18$", first, re.MULTILINE)
    assert sentence(first, "own:x")[0].startswith("not shown")
    figures = re.findall(r"^\| own:x \| your own system.*$", first, re.MULTILINE)
    assert 3 == figures[0].count("0 of 18; 18 failed")  # CVR, text that reached a model, something betrayed


def test_words_of_closed_passages_are_held_against_a_system_that_reports_its_own_retrieval() -> None:
    """Its answers are read: it is cleared only with no more closed words than chance gives the yardstick."""
    own = [replace(one, system="own:x") for one in ROWS if one.system == "oracle"]
    assert sentence(first_page([*ROWS, *own]), "own:x")[0] == "no leak seen"
    words = [replace(own[0], ngram_overlap=0.25), *own[1:]]
    said, why = sentence(first_page([*ROWS, *words]), "own:x")
    assert said == "not shown: its answers hold closed words"
    assert "in a row of closed passages alone in 1 (the yardstick in 0, by chance)" in why
    at = next(at for at, one in enumerate(ROWS) if one.system == "oracle")
    chance = [*ROWS[:at], replace(ROWS[at], ngram_overlap=0.25), *ROWS[at + 1 :]]
    assert sentence(first_page([*chance, *words]), "own:x")[0] == "no leak seen"


def test_only_betraying_that_something_is_hidden_has_its_own_verdict() -> None:
    at = next(at for at, one in enumerate(ROWS) if one.system == "postfilter-1")
    rows = [*ROWS[:at], replace(ROWS[at], existence_disclosed=True), *ROWS[at + 1 :]]
    assert "betrays that something is hidden" in sentence(first_page(rows), "postfilter-1")[0]
    assert sentence(first_page(rows), "postfilter-4")[0] == "no leak seen"


@pytest.mark.parametrize(
    "change",
    [
        {"retrieved": ("hidden",), "retrieved_admissible": (False,)},
        {"touched": ("hidden",)},
        {"canaries_planted": ("k",), "canaries_disclosed": ("k",)},
    ],
)
def test_one_row_of_any_kind_of_leak_is_a_leak(change: dict[str, object]) -> None:
    at = next(at for at, one in enumerate(ROWS) if one.system == "carag-certified")
    rows = [*ROWS[:at], replace(ROWS[at], **change), *ROWS[at + 1 :]]
    assert sentence(first_page(rows), "carag-certified")[0] == "leaks"
    assert sentence(first_page(ROWS), "carag-certified")[0] == "no leak seen"


def test_what_a_small_run_cannot_reach_is_not_called_missed() -> None:
    whole = page_of(ROWS)
    assert "missed: 0, not measured at this size: " in whole
    assert "| pairs, at least this many" not in whole
    state = re.findall(r"^\| at least this many .*? \| ([^|]+) \|", whole, re.MULTILINE)
    assert state == ["not measured at this size"]


def test_a_system_of_the_readers_own_stands_beside_the_others() -> None:
    """On every table, after ours, by its name; and in the headline."""
    own = [replace(one, system="own:rag:make") for one in ROWS if one.system == "vanilla"]
    whole = page_of([*ROWS, *own])
    first = whole.partition("## Contents")[0]
    assert sentence(first, "own:rag:make")[0] == sentence(first, "vanilla")[0] == "leaks"
    assert re.search(r"; own:rag:make leaked in \d+ of 18 questions$", first, re.MULTILINE)
    ours = [
        line.replace("| vanilla |", "| own:rag:make |")
        for line in whole.splitlines()
        if "| vanilla |" in line
    ]
    theirs = [line for line in whole.splitlines() if line.startswith("| own:rag:make |")]
    assert len(theirs) >= 10
    assert theirs[2:] == [line for line in ours if line.startswith("| own")][2:]
    names = re.findall(r"^\| ([\w:-]+) \| [^|]+ \| Asked \d+ times", first, re.MULTILINE)
    assert names == [*SYSTEMS, "own:rag:make"]


def test_a_leak_stands_in_the_headline() -> None:
    """It names the way of searching that leaked most, and the report then claims no proof."""
    at = next(at for at, one in enumerate(ROWS) if one.system == "carag-auto")
    leak = replace(ROWS[at], retrieved=("hidden",), retrieved_admissible=(False,))
    first, _, _ = page_of([*ROWS[:at], leak, *ROWS[at + 1 :]]).partition("## Contents")
    assert "CARAG leaked in 1 of " in first
    assert "No leak was seen" not in first


def test_the_contents_lead_to_every_part() -> None:
    _, _, rest = page_of(ROWS).partition("## Contents")
    links = re.findall(r"^- \[(.*)\]\(#([\w-]+)\)$", rest, flags=re.MULTILINE)
    assert headings(rest) == [title for title, _ in links]
    assert [anchor(title) for title, _ in links] == [anchor for _, anchor in links]


def test_a_picture_tells_what_was_measured_from_what_may_be() -> None:
    """A dot and its count; a dashed line, and a legend for both."""
    made = files(report(ROWS, metadata=ABOUT, words=WORDS))
    (picture,) = (data.decode() for name, data in made.items() if name.startswith("violations-"))
    assert ">measured</text>" in picture
    assert "not seen: how far chance alone may have moved it" in picture
    intervals, dots = picture.count("stroke-dasharray"), picture.count("<circle")
    assert (len(SYSTEMS) + 1, len(SYSTEMS) + 1) == (intervals, dots)  # and one of each in the legend
    assert len(SYSTEMS) == len(re.findall(r">\d+ of \d+</text>", picture))


def test_pictures_are_sound_xml_and_need_nothing_else() -> None:
    made = files(report(ROWS, metadata=ABOUT, words=WORDS))
    pictures = [name for name in made if name.endswith(".svg")]
    assert len(pictures) >= 3
    for name in pictures:
        ET.fromstring(made[name])  # noqa: S314 - our own bytes
        assert f"({name})" in made["report.md"].decode()
        assert not re.search(r"<script|<link|src=|href=", made[name].decode())


def test_names_from_rows_are_escaped_in_pictures() -> None:
    bad = "<b>|x"
    for picture in (
        dots(bad, [Dot(bad, 1.0, note=bad)], unit=bad),
        lines(bad, [(bad, [(1.0, 1.0)])], across=bad, up=bad),
    ):
        ET.fromstring(picture)  # noqa: S314 - our own bytes
        assert "<b>" not in picture
        assert "&lt;b&gt;" in picture
