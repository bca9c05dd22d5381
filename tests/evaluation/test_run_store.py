"""A store of the user's own is measured with questions of the user's own: what leaks is seen, and is on record."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from carag import Document
from carag.audit import AuditLog, Evaluation
from carag.engine import Engine
from carag.errors import InvalidArgument
from carag.evaluation.report.files import check_files
from carag.evaluation.report.strata import SliceName
from carag.evaluation.row import read_rows
from carag.evaluation.run_store import OURS, SUITE, StoreResult, run_store
from carag.evaluation.systems.own import Corpus, OwnSystem
from carag.policy import Mask, Profile, table
from tests.evaluation.own_store import CANARIES, CANARY, QUESTIONS, TEXTS, a_store, written

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.policy import Session

HOSPITAL = """
schema = 1
name = "ward"
time_zone = "Europe/Paris"
bit = [
    { name = "PADDING", document = "documents of no kind", regulation = "none" },
    { name = "HOUSE", document = "house rules", regulation = "none" },
    { name = "BOARD", document = "papers of the board", regulation = "none" },
]
[[intent]]
name = "RULES_ONLY"
required = ["HOUSE"]
phrases = ['\\brules\\b']
"""
ROLES = """
schema = 1
[[cell]]
role = "nurse"
purpose = "care"
regulation = "none"
may_know_existence = false
past = "none"
masks = [{ forbidden = ["BOARD"] }]
"""


def shows_all(corpus: Corpus) -> Callable[[str, Session], object]:
    """It leaks: everything to everybody."""
    said = " ".join(one.text for one in corpus.passages)
    return lambda _question, _session: {
        "ids": [one.id for one in corpus.passages],
        "text": said,
        "outcome": "answer",
    }


def tells_unseen(corpus: Corpus) -> Callable[[str, Session], object]:
    """It names no passage, and tells a secret all the same."""
    secret = next(one.text for one in corpus.passages if one.accession_number == "merger").split()[3]
    return lambda _question, _session: {"ids": [], "text": f"Ask about {secret}.", "outcome": "answer"}


LEAKS = OwnSystem("own:leaks", shows_all, "1" * 64)
TELLS = OwnSystem("own:tells", tells_unseen, "2" * 64)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store and its files."""
    home = tmp_path_factory.mktemp("own")
    a_store(home / "store")
    written(home / "questions.jsonl", QUESTIONS)
    written(home / "canaries.jsonl", CANARIES)
    return home


def measured(home: Path, **more: Any) -> StoreResult:
    return run_store(
        home / "store", home / "questions.jsonl", home / "out", canaries=home / "canaries.jsonl", **more
    )


@pytest.fixture(scope="module")
def done(made: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, StoreResult]:
    """A run with two systems that leak."""
    home = Path(shutil.copytree(made, tmp_path_factory.mktemp("done") / "own"))
    return home, measured(home, own=(LEAKS, TELLS))


def figure(result: StoreResult, system: str, measure: str, scope: str = "everything") -> tuple[float, int]:
    found: Any = result.report.sections[0].slices[SliceName(scope)].systems[system][measure]
    return found.numerator, found.denominator


def test_ours_violates_and_discloses_nothing(done: tuple[Path, StoreResult]) -> None:
    _, result = done
    for system in ("oracle", OURS):
        assert figure(result, system, "cvr_query") == (0, 5)
        assert figure(result, system, "cvr_touch") == (0, 5)
        assert figure(result, system, "odr_ngram") == (0, 5)
        assert figure(result, system, "odr_canary") == (0, 4)  # counsel may use the document
    assert result.passed


def test_ordinary_retrieval_shows_that_the_questions_bite(done: tuple[Path, StoreResult]) -> None:
    """All but counsel, who may use everything here, are shown what they may not use."""
    assert figure(done[1], "vanilla", "cvr_query") == (4, 5)


def test_a_system_that_leaks_is_caught_by_what_it_retrieves_and_by_its_canary(
    done: tuple[Path, StoreResult],
) -> None:
    _, result = done
    assert figure(result, LEAKS.name, "cvr_query") == (4, 5)
    assert figure(result, LEAKS.name, "odr_canary") == (4, 4)
    assert figure(result, LEAKS.name, "odr_ngram") == (4, 5)


def test_a_system_that_hides_what_it_read_is_caught_by_the_canary_alone(
    done: tuple[Path, StoreResult],
) -> None:
    home, result = done
    assert figure(result, TELLS.name, "cvr_query") == (0, 5)
    assert figure(result, TELLS.name, "odr_canary") == (4, 4)
    assert "| own:tells | leaks |" in (home / "out" / "report.md").read_text("utf-8")


def test_evidence_is_found_by_documents_and_only_where_it_may_be_used(
    done: tuple[Path, StoreResult],
) -> None:
    """Of three questions that name documents one may not have its own, and one says that none answers."""
    home, result = done
    assert figure(result, OURS, "evidence_recall", "real") == (2, 2)
    assert figure(result, TELLS.name, "evidence_recall", "real") == (0, 2)
    # Answering is wrong for a question whose document is hidden or that has none, and unknown where none is stated.
    assert figure(result, LEAKS.name, "under_refusal", "real") == (2, 2)
    rows = [row for row in read_rows(home / "out" / "rows.jsonl") if row.system == OURS]
    assert sorted((row.question_id, row.gold, row.gold_admissible) for row in rows) == [
        ("line-1", ("merger:",), (False,)),
        ("line-1", ("merger:",), (True,)),
        ("line-3", (), ()),
        ("line-3", ("canteen:",), (True,)),
        ("line-5", (), ()),
    ]


def test_what_was_asked_and_the_result_are_on_the_record_of_the_store(done: tuple[Path, StoreResult]) -> None:
    """Anyone hashes two files of the directory, and finds the hashes in the log."""
    home, result = done
    with AuditLog.open(home / "store") as log:
        event = log.record(result.record).event
        asked = [log.record(number).event for number in range(log.size)]
    assert isinstance(event, Evaluation)
    assert (event.suite, event.passed) == (SUITE, True)
    sha = {
        name: hashlib.sha256((home / "out" / name).read_bytes()) for name in ("settings.json", "rows.jsonl")
    }
    assert event.suite_hash == sha["settings.json"].digest()
    assert event.result == sha["rows.jsonl"].digest()
    settings = json.loads((home / "out" / "settings.json").read_text())
    for name in ("questions", "canaries"):
        assert settings[name] == hashlib.sha256((home / f"{name}.jsonl").read_bytes()).hexdigest()
    assert sum(type(one).__name__ == "Access" for one in asked) == len(QUESTIONS)


def test_nothing_that_a_run_writes_holds_a_question_a_canary_or_a_passage(
    done: tuple[Path, StoreResult],
) -> None:
    for path in (done[0] / "out").iterdir():
        text = path.read_text("utf-8")
        assert not [
            one for one in (CANARY, *TEXTS.values(), *(str(q["question"]) for q in QUESTIONS)) if one in text
        ]


def test_the_report_is_of_the_store_and_not_of_edgar(done: tuple[Path, StoreResult]) -> None:
    out = done[0] / "out"
    page = (out / "report.md").read_text("utf-8")
    assert page.startswith("# A store measured with its own questions")
    assert not [word for word in ("EDGAR", "SEC filings", "filer", "goal", "Table 2") if word in page]
    check_files(out / "rows.jsonl", out)


def test_a_run_goes_on_where_it_stopped_and_records_again(made: Path, tmp_path: Path) -> None:
    """A system joins, and ours is not asked again."""
    home = Path(shutil.copytree(made, tmp_path / "own"))
    first = measured(home)
    again = measured(home, own=(LEAKS,))
    rows = read_rows(home / "out" / "rows.jsonl")
    assert {row.system for row in rows} == {"oracle", "vanilla", OURS, LEAKS.name}
    assert again.passed
    # The oracle of each pair is asked besides, and writes no record; ours is not asked at all.
    assert again.record == first.record + 1


def test_another_run_in_the_same_directory_is_refused(made: Path, tmp_path: Path) -> None:
    home = Path(shutil.copytree(made, tmp_path / "own"))
    measured(home)
    written(home / "canaries.jsonl", [{"document": "rent", "text": "four per cent"}])
    with pytest.raises(InvalidArgument, match=r"other settings \(canaries\)"):
        measured(home)


def test_a_profile_of_ones_own_says_what_is_closed(tmp_path: Path) -> None:
    """Its bits have other names and places than those of any profile that ships, and its phrases tighten."""
    profile = Profile.from_texts(HOSPITAL, ROLES)
    a_store(tmp_path / "store", profile, {"canteen": ("HOUSE",), "rent": ("PADDING",), "merger": ("BOARD",)})
    nurse = {"role": "nurse", "purpose": "care"}
    texts = ("What will the board buy?", "How far does the rent rise by the rules?")
    written(tmp_path / "questions.jsonl", [{"question": one, **nurse} for one in texts])
    written(tmp_path / "canaries.jsonl", CANARIES)
    result = measured(tmp_path, own=(LEAKS,))
    assert figure(result, OURS, "cvr_query") == (0, 2)
    assert figure(result, "vanilla", "cvr_query") == figure(result, LEAKS.name, "cvr_query") == (2, 2)
    assert figure(result, LEAKS.name, "cvr_chunk") == (1 + 2, 6)  # with "rules" the rent is closed, too
    assert result.passed


def test_a_store_whose_index_admits_too_much_does_not_pass(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mutant of the policy that forbids nothing is seen by the plain reading of the same profile."""
    home = Path(shutil.copytree(made, tmp_path / "own"))
    open_to_all = property(lambda self: (Mask([], [], flags=self._flags),))
    monkeypatch.setattr(table.Cell, "compiled", open_to_all)
    monkeypatch.setattr(table, "_shipped", table._shipped.__wrapped__)  # the mutant's masks are nobody else's
    result = measured(home)
    assert figure(result, OURS, "cvr_query") == (3, 5)  # no cell is still no cell
    assert not result.passed
    with AuditLog.open(home / "store") as log:
        event = log.record(result.record).event
    assert isinstance(event, Evaluation)
    assert not event.passed


class Elsewhere:
    """A generator that a service runs."""

    name, fingerprint, remote = "elsewhere", "1", True

    def generate(self, *_: object) -> object:
        raise AssertionError("it was sent something")


def test_a_model_on_another_machine_is_sent_nothing(made: Path, tmp_path: Path) -> None:
    home = Path(shutil.copytree(made, tmp_path / "own"))
    with pytest.raises(InvalidArgument, match="elsewhere runs on another machine"):
        measured(home, generator=Elsewhere())
    assert not (home / "out").exists()


class SentAway:
    """An embedder that a service runs; the texts of a store were sent to it before."""

    name, fingerprint, dim, remote = "sent-away", "1", 2, True

    def embed_documents(self, texts: list[str]) -> list[list[int]]:
        return [[len(text), 1] for text in texts]

    def embed_query(self, _: str) -> object:
        raise AssertionError("it was sent a question")


def test_an_embedder_on_another_machine_is_sent_no_question(tmp_path: Path) -> None:
    with Engine.open(tmp_path / "store", profile="generic", embedder=SentAway()) as engine:
        engine.add([Document(id="canteen", text=TEXTS["canteen"], bits=())])
    written(tmp_path / "questions.jsonl", QUESTIONS[3:4])
    with pytest.raises(InvalidArgument, match="sent-away runs on another machine"):
        run_store(tmp_path / "store", tmp_path / "questions.jsonl", tmp_path / "out", embedder=SentAway())
    assert not (tmp_path / "out").exists()


def test_a_store_that_changes_meanwhile_is_refused(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be judged by labels that are no longer the ones searched."""
    home = Path(shutil.copytree(made, tmp_path / "own"))
    was = run_store.__globals__["own_pairs"]

    def meanwhile(*given: Any) -> Any:
        with Engine.open(home / "store") as engine:
            engine.remove(["rent"])
        return was(*given)

    monkeypatch.setitem(run_store.__globals__, "own_pairs", meanwhile)
    with pytest.raises(InvalidArgument, match="changed while it was measured"):
        measured(home)
    assert not (home / "out" / "rows.jsonl").exists()


def test_a_store_without_documents_is_refused(tmp_path: Path) -> None:
    Engine.open(tmp_path / "store", profile="generic", embedder="wordllama").close()
    written(tmp_path / "questions.jsonl", QUESTIONS)
    with pytest.raises(InvalidArgument, match="contains no passages"):
        run_store(tmp_path / "store", tmp_path / "questions.jsonl", tmp_path / "out")
