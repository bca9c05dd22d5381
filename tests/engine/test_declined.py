"""An answer says whether a generator ran and how near the evidence came; a decline names what the asker may use."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from carag import Document, Engine, Outcome, Session
from carag.audit import Record
from carag.audit.records.hits import hit_digest
from carag.cli import Exit
from carag.cli.app import run
from carag.generation import MODEL_CALLED, DeclineCode
from carag.retrieval import ConfidenceGate
from tests.engine.documents import Angles

if TYPE_CHECKING:
    from pathlib import Path

EMPLOYEE = Session(role="employee", purpose="work")
OPEN = [
    Document(id=f"open-{number}", text=f"Open number {number}.", facts={"classification": "public"})
    for number in range(5)
]
SECRET = Document(id="secret", text="secret", facts={"classification": "secret"})


class Generator:
    """Says one text, and counts how often it is asked."""

    def __init__(self, text: str) -> None:
        self.text, self.calls = text, 0

    def __call__(self, question: str, passages: Any, withheld: Any) -> str:
        self.calls += 1
        return self.text


def asked(
    tmp_path: Path, question: str, *, session: Session = EMPLOYEE, says: str = "So [1].", gate: float = 0.5
) -> tuple[Any, int]:
    generator = Generator(says)
    with Engine.open(
        tmp_path / "store",
        profile="generic",
        embedder=Angles(),
        generator=generator,
        gate=ConfidenceGate(gate),
    ) as engine:
        engine.add([*OPEN, SECRET])
        return engine.ask(question, session), generator.calls


CASES: dict[str, tuple[dict[str, Any], str]] = {
    "answered": ({"question": "q 0.9"}, "ANSWERED"),
    "below the gate": ({"question": "q 0.1"}, "BELOW_GATE"),
    "it has no answer": ({"question": "q 0.9", "says": ""}, "MODEL_DECLINED"),
    "it cites what it was not given": ({"question": "q 0.9", "says": "So [99]."}, "BAD_CITATION"),
    "refused": ({"question": "q 0.9", "session": Session(role="stranger", purpose="work")}, "UNKNOWN_ROLE"),
}


@pytest.mark.parametrize(("request_", "why"), CASES.values(), ids=CASES)
def test_model_called_is_said_exactly_when_a_generator_ran(
    tmp_path: Path, request_: dict[str, Any], why: str
) -> None:
    answer, calls = asked(tmp_path, **request_)
    assert why == answer.why
    assert bool(calls) == answer.model_called == answer.to_json()["model_called"]


def test_every_code_of_a_decline_is_of_before_or_of_after_the_model() -> None:
    """A new code must be put on one side or the other."""
    before = {
        "NO_ADMISSIBLE_EVIDENCE",
        "NOTHING_ABOUT_IT",
        "BELOW_GATE",
        "DRIFTED",
        "TOO_FEW_WORDS",
        "ASKED_BACK",
        "READER_DECLINED",
    }
    assert {code.value for code in DeclineCode} - before == MODEL_CALLED - {"ANSWERED", "COMPARED"}


def test_the_similarity_is_that_of_what_may_be_used(tmp_path: Path) -> None:
    """The secret passage is nearer, and moves nothing."""
    answer, _ = asked(tmp_path, "q 0.1")
    assert pytest.approx(0.1, abs=1e-6) == answer.top_similarity == answer.to_json()["top_similarity"]
    assert "secret:0" not in json.dumps(answer.to_json())


def test_without_anything_admissible_there_is_no_similarity_and_nothing_is_named(tmp_path: Path) -> None:
    with Engine.open(tmp_path / "store", profile="generic", embedder=Angles()) as engine:
        engine.add([SECRET])
        answer = engine.ask("q 0.1", EMPLOYEE)
    assert ("NO_ADMISSIBLE_EVIDENCE", None, ()) == (answer.why, answer.top_similarity, answer.nearest)
    assert [] == answer.to_json()["nearest"]


@pytest.mark.parametrize("says", ["So.", ""])
@pytest.mark.parametrize("gate", [0.5, -1.0])
def test_a_decline_names_up_to_three_passages_that_are_on_its_record(
    tmp_path: Path, says: str, gate: float
) -> None:
    """Whether the gate or the model declined; an answer names none, because it cites."""
    declined, _ = asked(tmp_path, "q 0.1", says=says, gate=gate)
    assert declined.outcome is Outcome.DECLINE
    named = declined.to_json()["nearest"]
    assert 3 == len(named) == len({one["chunk_id"] for one in named})
    assert all({"chunk_id", "document_id", "version", "source", "similarity"} == set(one) for one in named)
    on_record = {hit.digest for hit in Record.parse(declined.receipt.record).hits}
    assert {hit_digest(one.chunk_id, one.text_sha256) for one in declined.nearest} <= on_record
    answered, _ = asked(tmp_path, "q 0.9")
    assert (Outcome.ANSWER, ()) == (answered.outcome, answered.nearest)


def test_a_decline_reads_as_an_answer_to_the_asker_and_not_as_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    with Engine.open(store, profile="generic", embedder="wordllama") as engine:
        engine.add([*OPEN, SECRET])
    question = ["ask", "Who composed the fugue in G minor?", "--store", str(store)]
    session = ["--role", "employee", "--purpose", "work"]
    assert Exit.DECLINED == run([*question, *session])
    said = capsys.readouterr()
    assert "" == said.err
    lines = said.out.splitlines()
    at = lines.index("Nearest passages that you may use:")
    assert all("open-" in line and ", similarity " in line for line in lines[at + 1 : at + 4])
    assert "error" not in said.out.casefold()
    assert "secret:0" not in said.out
    assert Exit.DECLINED == run([*question, *session, "--json"])
    told = json.loads(capsys.readouterr().out)
    assert ("decline", False, []) == (told["outcome"], told["model_called"], told["citations"])
    assert told["nearest"][0]["similarity"] <= told["top_similarity"] < 0.39
