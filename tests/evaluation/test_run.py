"""A whole run on the small corpus: adversaries get nothing, a kill loses nothing, and no money is spent unasked."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import defaultdict
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from carag.cli import main
from carag.cli.app import app
from carag.errors import InvalidArgument
from carag.evaluation.cases.adversaries import KINDS
from carag.evaluation.cases.corpus import small_data
from carag.evaluation.cases.questions import shipped_questions
from carag.evaluation.row import SYSTEMS, Row, read_rows
from carag.evaluation.run import Settings, run
from carag.evaluation.run_metadata import RunMetadata
from carag.evaluation.systems.own import Corpus, OwnSystem
from carag.generation import Draft, Extractive
from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from carag.policy import Session
    from carag.retrieval import Passage, Withheld


def first_passages(corpus: Corpus) -> Callable[[str, Session], object]:
    """A poor system: the same passages for everyone."""
    said = {"ids": [one.id for one in corpus.passages[:2]], "text": None, "outcome": "answer"}
    return lambda _question, _session: said


def settings(cache: Path) -> Settings:
    return Settings(
        size="small",
        cache=cache,
        embedder="wordllama",
        pairs=examples(10),
        built=examples(2, least=1),
        attacks=1,
        compared=examples(4, least=2),
        worlds=examples(2, least=1),
        trials=examples(500, least=100),
        fused_trials=examples(20),
        model_pairs=3,
        own=(OwnSystem("own:first", first_passages, "1" * 64),),
    )


class Parrot:
    """A model that repeats all it is shown, including withheld text: the worst case."""

    name = "parrot"
    remote = False
    fingerprint = "parrot"

    def generate(self, question: str, passages: Sequence[Passage], withheld: Withheld) -> Draft:
        shown = [one.text for one in passages] + [one.text for one in withheld.kinds]
        return Draft(" ".join(shown) + " [1]", (0,))


@pytest.fixture(scope="module")
def out(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a run leaves."""
    made = tmp_path_factory.mktemp("out")
    run(settings(cache), made, generator=Parrot(), model=Extractive())
    return made


@pytest.fixture(scope="module")
def parroted(out: Path) -> list[Row]:
    return read_rows(out / "rows.jsonl")


def by_system(rows: list[Row], kind: str) -> dict[str, list[Row]]:
    found = defaultdict(list)
    for row in rows:
        if row.kind.startswith(kind):
            found[row.system].append(row)
    return found


def test_a_model_that_repeats_everything_discloses_no_canary_under_carag(parroted: list[Row]) -> None:
    """The guarantee does not rest on the model: it is shown nothing it could give away."""
    attacked = by_system(parroted, "adversary:")
    for system in ("carag-auto", "carag-certified", "carag-no-refusal", "oracle", "postfilter-16"):
        assert not any(row.canaries_disclosed or row.touched for row in attacked[system]), system
        assert all(all(row.retrieved_admissible) for row in attacked[system])
        assert all(row.ngram_overlap == 0 for row in attacked[system]), system


def test_the_same_model_gives_the_canaries_away_elsewhere(parroted: list[Row]) -> None:
    """Otherwise the test above could not fail."""
    attacked = by_system(parroted, "adversary:")
    for system in ("vanilla", "prefilter-rbac", "carag-withheld-text"):
        assert any(row.touched for row in attacked[system]), system
        # A model that is shown withheld text repeats it, but a name that no passage it cites has does not leave.
        is_held = system == "carag-withheld-text"
        assert is_held is not any(row.canaries_disclosed for row in attacked[system]), system


def test_every_attack_was_made_on_every_system(parroted: list[Row]) -> None:
    for system, rows in by_system(parroted, "adversary:").items():
        assert {row.kind.removeprefix("adversary:") for row in rows} == set(KINDS), system
        assert any(row.canaries_planted for row in rows)
    allowed = [row for row in parroted if row.kind == "adversary:canary" and row.role == "compliance"]
    assert all(
        row.answerable and not row.canaries_planted for row in allowed
    )  # a session that may see the order does
    hidden = [row for row in parroted if row.kind == "adversary:relabel" and row.role == "buy_side"]
    assert not any(row.answerable for row in hidden)  # superseded while it was asked about


def test_every_pair_has_a_row_of_every_system_including_your_own(parroted: list[Row]) -> None:
    asked = defaultdict(set)
    for row in parroted:
        asked[row.pair].add(row.system)
    whole = [systems for pair, systems in asked.items() if pair.generator == "parrot"]
    assert all(systems == {*SYSTEMS, "own:first"} for systems in whole)
    assert [len(systems) for pair, systems in asked.items() if pair.generator == "extractive"] == [3, 3, 3]


def test_rows_hold_no_text(out: Path) -> None:
    text = (out / "rows.jsonl").read_text().lower()
    for question in shipped_questions(small_data()):
        assert question.text.lower() not in text
    for word in ("settlement code", "canary5", "royalty rate", "net sales"):
        assert word not in text


def test_a_run_names_its_filings_and_asks_about_every_company(out: Path, parroted: list[Row]) -> None:
    manifest = (out / "manifest.jsonl").read_bytes()
    about = RunMetadata.from_json((out / "run.json").read_bytes())
    assert about.manifest_sha256 == hashlib.sha256(manifest).hexdigest()
    named = [json.loads(line) for line in manifest.splitlines()]
    assert sorted(path.stem for path in (small_data() / "corpus").iterdir()) == [
        one["accession_number"] for one in named
    ]
    assert sum(one["chunks"] for one in named) == about.chunks
    alone = [
        row for row in parroted if row.question_id.startswith("built-company-") and row.system == "oracle"
    ]
    others = {row.filer for row in parroted if not row.question_id.startswith("built-company-")}
    assert alone
    assert len({row.filer for row in alone}) == len(alone)
    assert others.isdisjoint(row.filer for row in alone)


def test_a_run_of_another_manifest_is_another_run(out: Path, cache: Path, tmp_path: Path) -> None:
    """Its rows are not resumed with this one's, and a report alone builds nothing."""
    given = settings(cache)
    other = replace(given, manifest=out / "manifest.jsonl")
    assert {
        **given.identity(),
        "manifest": hashlib.sha256(other.manifest.read_bytes()).hexdigest(),
    } == other.identity()  # type: ignore[union-attr]
    call = [
        "bench",
        "edgar",
        "--from",
        str(out / "rows.jsonl"),
        "--out",
        str(tmp_path),
        "--manifest",
        "m.jsonl",
    ]
    with pytest.raises(InvalidArgument, match="--manifest has no effect"):
        CliRunner().invoke(app, call, catch_exceptions=False)


def test_a_killed_run_is_resumed(cache: Path, out: Path, tmp_path: Path) -> None:
    """What was on disk is not asked again, but a line cut off is; the rows are the same except for times."""
    cut = tmp_path / "cut"
    shutil.copytree(out, cut)
    lines = (cut / "rows.partial.jsonl").read_bytes().splitlines(keepends=True)
    # The kill comes within a pair, and within a line.
    (cut / "rows.partial.jsonl").write_bytes(b"".join(lines[:-20]) + lines[-20][:40])
    again = read_rows(run(settings(cache), cut, generator=Parrot(), model=Extractive()))

    def untimed(rows: list[Row]) -> list[str]:
        return sorted(
            json.dumps({**json.loads(row.to_json()), "latency_ms": None}, sort_keys=True) for row in rows
        )

    assert untimed(again) == untimed(read_rows(out / "rows.jsonl"))
    assert {line.decode().rstrip("\n") for line in lines[:-20]} <= {row.to_json() for row in again}


def test_a_directory_with_another_run_is_refused(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text("{}")
    with pytest.raises(InvalidArgument, match="other settings"):
        run(settings(cache), tmp_path)


def test_the_report_is_made_again_bit_for_bit(out: Path, tmp_path: Path) -> None:
    made = {path.name: path.read_bytes() for path in out.glob("report.*")}
    assert set(made) == {"report.json", "report.json.sha256", "report.md"}
    again = CliRunner().invoke(
        app, ["bench", "edgar", "--from", str(out / "rows.jsonl"), "--out", str(tmp_path)]
    )
    assert again.exit_code == 0, again.output
    assert made == {path.name: path.read_bytes() for path in tmp_path.glob("report.*")}


def test_the_command_line_runs_what_it_was_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told: list[Settings] = []
    monkeypatch.setattr("carag.evaluation.run.run", lambda settings, *_, **__: told.append(settings))
    (tmp_path / "edgar").mkdir()
    (tmp_path / "edgar" / "qa.jsonl.gz").touch()
    for more in ([], ["--quick"], ["--quick", "--size", "small"], ["--size", "full", "--seed", "7"]):
        given = ["bench", "edgar", "--out", str(tmp_path), "--data", str(tmp_path), *more]
        assert CliRunner().invoke(app, given, catch_exceptions=False).exit_code == 0
    paper, part, small, full = told
    assert (paper.size, paper.embedder) == ("paper", "minilm")
    assert paper.pairs >= 2_000
    assert paper.trials >= 1_000_000
    assert (part.size, part.embedder) == ("part", "wordllama")
    assert small.size == "small"
    assert (full.size, full.embedder, full.seed) == ("full", "wordllama", 7)


@pytest.mark.full
def test_quick_on_the_small_corpus(tmp_path: Path) -> None:
    given = ["bench", "edgar", "--quick", "--size", "small", "--out", str(tmp_path)]
    assert CliRunner().invoke(app, given, catch_exceptions=False).exit_code == 0
    assert len(read_rows(tmp_path / "rows.jsonl")) > 2_000


@pytest.mark.parametrize(
    ("more", "code"),
    [
        (["--size", "huge"], 65),
        (["--size", "paper", "--data", "/nowhere"], 65),
        (["--size", "small", "--model", "bedrock:amazon.nova-micro-v1:0"], 65),
        (["--size", "small", "--model", "bedrock:some.other"], 65),
        (["--from", "/nowhere/rows.jsonl"], 70),
    ],
)
def test_the_command_line_says_what_is_wrong(more: list[str], code: int, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["bench", "edgar", "--out", str(tmp_path), *more])
    assert stopped.value.code == code


@pytest.mark.parametrize(
    ("absent", "more", "code", "said"),
    [
        ("hnswlib", [], 70, "'carag-engine[bench]'"),
        ("boto3", ["--model", "bedrock:amazon.nova-micro-v1:0"], 70, "'carag-engine[bedrock]'"),
        ("xllamacpp", ["--model", "local"], 70, "'carag-engine[local]'"),
        ("", ["--size", "paper", "--data", "/nowhere"], 65, "qa.jsonl.gz"),
        ("", ["--model", "local:/nowhere.gguf"], 70, "/nowhere.gguf"),
        ("", ["--model", "bedrock:amazon.nova-micro-v1:0"], 65, "--max-usd"),
    ],
)
def test_what_a_run_needs_is_asked_for_before_it_leaves_anything(
    absent: str,
    more: list[str],
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A run that cannot end does not begin: no directory, no store, no dollar."""

    def distribution(name: str) -> None:
        if name == absent:
            raise PackageNotFoundError(name)

    monkeypatch.setattr("carag.extras.distribution", distribution)
    out = tmp_path / "out"
    with pytest.raises(SystemExit) as stopped:
        main(["bench", "edgar", "--size", "small", "--quick", "--out", str(out), *more])
    assert code == stopped.value.code
    assert said in " ".join(capsys.readouterr().err.split())
    assert not out.exists()


def test_a_price_is_stated_before_anything_is_spent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(f"bench edgar --size small --out {tmp_path} --model bedrock:amazon.nova-micro-v1:0".split())
    said = capsys.readouterr().err
    assert "estimated cost" in said
    assert "--max-usd" in said
    assert not (tmp_path / "rows.partial.jsonl").exists()
