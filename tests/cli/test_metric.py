"""``carag metric run``: sessions are judged by a corpus, what a reader may not use stays hidden, all is on record."""

from __future__ import annotations

import hashlib
import json
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest

from carag import Engine
from carag.audit import Evaluation
from carag.cli import Exit
from carag.cli.app import run
from carag.engine.evaluations import Evaluations
from carag.evaluation.regulatory import RegulatoryMetric
from tests.evaluation.own_store import CANARY, a_store, written

if TYPE_CHECKING:
    from pathlib import Path

RULES = {
    "logs.md": "Providers shall keep the logs of their systems for six months at the least.",
    "soup.txt": "The canteen serves soup on every Monday of the year.",
}
TURNS = [
    {
        "session_id": "good",
        "assistant_id": "bot",
        "qa_id": "1",
        "query": "How long are logs kept?",
        "assistant": "Providers shall keep the logs of their systems for six months.",
    },
    {
        "session_id": "far off",
        "assistant_id": "bot",
        "qa_id": "1",
        "query": "Zebra?",
        "assistant": "Xylophone <script>alert(1)</script> quartz.",
    },
]
WORDS = ("--embedder", "wordllama", "--reranker", "cosine", "--variant", "paper")


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    folder = tmp_path / "rules"
    folder.mkdir()
    for name, text in RULES.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def turns(tmp_path: Path) -> Path:
    return written(tmp_path / "turns.jsonl", TURNS)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return a_store(tmp_path / "store")


def measured(*words: object) -> int:
    return run(["metric", "run", *map(str, words), *WORDS])


def evaluations(store: Path) -> list[tuple[int, Evaluation]]:
    with Engine.open(store) as engine:
        log = engine._log
        events = [(at, log.record(at).event) for at in range(log.size)]
    return [(at, event) for at, event in events if isinstance(event, Evaluation)]


def test_a_folder_needs_no_store_and_the_sessions_are_those_of_the_schema(
    rules: Path, turns: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert measured(rules, turns, "--json") == Exit.OK
    said = capsys.readouterr()
    good, far = (RegulatoryMetric.model_validate(one) for one in json.loads(said.out))
    assert (good.verdict, good.compliance_score, good.n_interactions) == ("COMPLIANT", 1.0, 1)
    chunk = good.interactions[0].retrieved_chunks[0]
    assert (chunk.source, chunk.verdict) == ("logs.md", "SUPPORTS")
    assert RULES["logs.md"][chunk.start : chunk.end] == chunk.text
    assert (far.verdict, far.coverage) == ("IRRELEVANT", 0.0)
    assert "not on record" in said.err


def test_the_result_is_on_record_by_its_hash(rules: Path, turns: Path, store: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert measured(rules, turns, "--store", store, "--jsonl", out) == Exit.OK
    [(_, event)] = evaluations(store)
    assert (event.suite, event.passed) == ("regulatory-metric", True)
    assert event.result == hashlib.sha256(out.read_bytes()).digest()
    assert event.thresholds == {
        "top_k": 10,
        "similarity_threshold_millionths": 300_000,
        "contradiction_threshold_millionths": 600_000,
        "compliance_threshold_millionths": 500_000,
    }


def test_another_setting_is_another_suite_on_record(rules: Path, turns: Path, store: Path) -> None:
    for more in ((), ("--compliance", "0.4"), ("--bayesian",), ("--bayesian", "--seed", "1")):
        assert measured(rules, turns, "--store", store, *more) == Exit.OK
    assert len({event.suite_hash for _, event in evaluations(store)}) == 4


def test_a_store_is_read_as_its_reader_may(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who may not read the secret is judged without it, and nothing of it is printed."""
    turn = {**TURNS[0], "query": "What will the board buy?", "assistant": "The board will buy Lumen Works."}
    asked = written(tmp_path / "asked.jsonl", [turn])
    page = tmp_path / "page.html"
    for (role, purpose), sees in {("employee", "work"): False, ("counsel", "advise"): True}.items():
        options = ("--role", role, "--purpose", purpose, "--html", page, "--json")
        assert measured(store, asked, *options) == Exit.OK
        said = capsys.readouterr()
        assert (CANARY in said.out, CANARY in page.read_text()) == (sees, sees)
        assert "record" in said.err
    assert [event.suite for _, event in evaluations(store)] == ["corpus-read", "regulatory-metric"] * 2


def test_a_refusal_is_on_record_and_nothing_else(
    store: Path, turns: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert measured(store, turns, "--role", "stranger", "--purpose", "work") == Exit.REFUSED
    assert capsys.readouterr().out == ""
    with Engine.open(store) as engine:
        assert engine._log.record(engine._log.size - 1).event.outcome.value == "refuse"
    assert evaluations(store) == []


class _Anchors(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name == "href":
                self.links.append(str(value))
            elif name == "id":
                self.places.append(str(value))


def test_every_verdict_of_the_page_leads_to_its_passage(rules: Path, turns: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert measured(rules, turns, "--html", page) == Exit.OK
    read = _Anchors()
    read.feed(page.read_text())
    assert len(read.places) == len(set(read.places))
    assert {link[1:] for link in read.links} <= set(read.places)
    assert any(re.fullmatch("s0t0p0", place) for place in read.places)
    assert "script" not in read.tags


def test_by_default_sentences_are_judged_in_three_ways(
    rules: Path, turns: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also when an assistant contradicts a figure: the page leads from the sentence to what it contradicts."""
    wrong = {
        **TURNS[0],
        "session_id": "bad",
        "assistant": "Providers shall keep the logs of their systems for two months.",
    }
    turns.write_text(turns.read_text() + json.dumps(wrong) + "\n")
    page = tmp_path / "page.html"
    assert (
        run(
            [
                "metric",
                "run",
                str(rules),
                str(turns),
                "--embedder",
                "wordllama",
                "--html",
                str(page),
                "--json",
            ]
        )
        == Exit.OK
    )
    good, far, bad = (RegulatoryMetric.model_validate(one) for one in json.loads(capsys.readouterr().out))
    assert [one.verdict.value for one in (good, far, bad)] == ["COMPLIANT", "IRRELEVANT", "NON_COMPLIANT"]
    (claim,) = bad.interactions[0].claims
    assert (claim.verdict, claim.source) == ("CONTRADICTS", "logs.md")
    assert RULES["logs.md"][claim.evidence_start : claim.evidence_end] == RULES["logs.md"]
    read = _Anchors()
    read.feed(page.read_text())
    assert {link[1:] for link in read.links} <= set(read.places)
    assert "s2t0p0" in {link[1:] for link in read.links}


BAD: dict[str, tuple[tuple[str, ...], str]] = {
    "a variant misspelt": (
        ("--variant", "papers"),
        "there is no variant 'papers'; want one of paper, reference",
    ),
    "a reranker for stance": (("--variant", "stance", "--reranker", "cosine"), "want stance-head, onnx:DIR"),
    "a judge for paper": (("--reranker", "stance-head"), "only the variant stance takes a judge"),
    "an unknown embedder": (("--embedder", "minilmm"), "there is no embedder 'minilmm'"),
    "a role alone": (("--role", "employee"), "give both --role and --purpose"),
    "a reader of a folder": (("--role", "employee", "--purpose", "work"), "is a folder, which is public"),
    "a threshold": (("--similarity", "1.5"), "similarity_threshold is 1.5; want a number from 0 to 1"),
    "an overlap": (("--chunk-overlap", "1000"), "want an overlap of at least 0 and less than the size"),
    "a place": (("--html", "nowhere/page.html"), "nowhere is not a writable directory"),
    "a label": (("--label", "entailment"), "applies only to the reranker onnx:DIR"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_options_are_refused(
    name: str, rules: Path, turns: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options, why = BAD[name]
    assert run(["metric", "run", str(rules), str(turns), *WORDS, *options]) == Exit.BAD_INPUT
    said = capsys.readouterr()
    assert (said.out, why in said.err) == ("", True), said.err


def test_a_store_must_say_who_reads_it_and_has_its_own_log(
    store: Path, turns: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = a_store(tmp_path / "other")
    assert measured(store, turns) == Exit.BAD_INPUT
    assert (
        measured(store, turns, "--store", other, "--role", "employee", "--purpose", "work") == Exit.BAD_INPUT
    )
    said = capsys.readouterr().err
    assert "name the role" in said
    assert "in its own log" in said
    assert evaluations(store) == evaluations(other) == []


def test_a_file_that_cannot_be_read_ends_the_run(
    rules: Path, turns: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A regulation missing in silence would make everything compliant with it."""
    (rules / "latin.txt").write_bytes(b"\xe4\xf6\xfc")
    assert measured(rules, turns) == Exit.BAD_INPUT
    assert "latin.txt: broken: byte 1 is not valid utf-8" in capsys.readouterr().err


def test_what_cannot_be_written_on_record_is_not_shown(
    store: Path,
    turns: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from carag.errors import AuditUnavailable

    def fails(*_: Any, **__: Any) -> None:
        raise AuditUnavailable("the disk is full")

    monkeypatch.setattr(Evaluations, "record", fails)
    out, page = tmp_path / "out.jsonl", tmp_path / "page.html"
    options = ("--role", "employee", "--purpose", "work", "--jsonl", out, "--html", page)
    assert measured(store, turns, *options) == Exit.INTERNAL
    assert (capsys.readouterr().out, out.exists(), page.exists()) == ("", False, False)


STANCE = ("--variant", "stance", "--embedder", "wordllama")


@pytest.mark.parametrize(
    ("said", "verdict", "code"),
    [
        ("We keep the logs of our systems for one day.", "NON_COMPLIANT", Exit.OK),
        ("We keep the logs of our systems for a year.", "COMPLIANT", Exit.OK),
        ("We keep the logs of our systems in seven locked rooms.", "NO_VERDICT", Exit.CANNOT_TELL),
    ],
)
def test_what_nothing_decides_has_no_verdict_and_an_exit_code_of_its_own(
    rules: Path,
    store: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    said: str,
    verdict: str,
    code: Exit,
) -> None:
    """The passage to read is named, the record does not say that it passed, and the score is not that of compliance."""
    asked = written(tmp_path / "asked.jsonl", [{**TURNS[0], "assistant": said}])
    out, page = tmp_path / "out.jsonl", tmp_path / "page.html"
    options = ("--store", store, "--jsonl", out, "--html", page)
    assert run(["metric", "run", *map(str, (rules, asked, *options)), *STANCE]) == code
    (line,) = out.read_text().splitlines()
    found = RegulatoryMetric.model_validate_json(line)
    assert (found.verdict, found.compliance_score >= 0.5) == (verdict, verdict == "COMPLIANT")
    [(_, event)] = evaluations(store)
    assert event.passed == (verdict == "COMPLIANT")
    printed = capsys.readouterr().out
    assert ("no verdict on turn 1 of good: read logs.md" in printed) == (verdict == "NO_VERDICT")
    assert f'class="{verdict}"' in page.read_text()
    for shown in (printed, page.read_text()):
        assert "Agreement of stance with experts: kappa" in " ".join(shown.split())
