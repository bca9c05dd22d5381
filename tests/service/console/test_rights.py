"""Each viewer sees what their token grants, and no page shows more."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from carag import Session
from carag.audit import Disclosure, Outcome
from carag.errors import AuditUnavailable, Refused
from carag.policy import infer
from carag.service.app import application
from carag.service.console import desk
from carag.service.problems import Problem
from carag.service.release import Asker
from carag.service.service import Service
from carag.service.wire import encoded
from tests.service.conftest import CHUNK, QUESTION, Asked, denials, events, refusals, settings, token
from tests.service.console.conftest import AUDITOR, OFFICER, PAGES, Viewer, read

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from carag import Engine

HISTORY = "9990000102-24-000005:00000"
OWN = "Labels of"


def test_the_log_is_for_those_with_the_duty(officer: Viewer, auditor: Viewer, engine: Engine) -> None:
    """Others are refused, which is recorded, and see no link to it."""
    for number, page in enumerate(("records", "health"), start=1):
        assert 200 == auditor.get(page).status_code
        assert f'href="/console/{page}"' in auditor.get("policy").text
        found = officer.get(page)
        assert (403, True) == (found.status_code, "TOKEN_DUTY" in found.text)
        assert {"TOKEN_DUTY": number} == refusals(engine)
        assert f'href="/console/{page}"' not in officer.get("policy").text


def test_an_auditor_cannot_ask(auditor: Viewer, engine: Engine) -> None:
    """The duty only reads; the refusal of a question is shown in place of the answer, and recorded."""
    assert 'href="/console/ask"' not in auditor.get("").text
    found = auditor.ask(QUESTION, "buy_side/invest")
    assert "TOKEN_CELL" in found.text
    assert "royalty rate that" not in found.text
    assert ["TOKEN_CELL"] == denials(engine)


def test_a_token_that_grants_nothing_here_opens_no_page(asked: Asked, engine: Engine) -> None:
    """A duty alone suffices; without any grant a token is refused, which is recorded."""
    stranger = Viewer(asked, groups=["strangers"])
    for page in ("", "policy", "benchmarks", "receipts"):
        found = stranger.get(page)
        assert (403, True) == (found.status_code, "TOKEN_CELL" in found.text)
    assert "TOKEN_CELL" in denials(engine)


def test_a_cell_that_the_token_does_not_grant_is_refused_in_its_own_half(
    officer: Viewer, engine: Engine
) -> None:
    """The other half is answered."""
    found = officer.ask(QUESTION, "sell_side/publish", "public/public_qa")
    assert "TOKEN_CELL" in found.text
    assert 1 == found.text.count('class="said"')
    assert ["TOKEN_CELL"] == denials(engine)


def test_each_half_is_a_recorded_request_whose_receipt_verifies(officer: Viewer, engine: Engine) -> None:
    """Two records, one per cell, with the same question; each download is the receipt, byte for byte."""
    import base64

    from carag.audit import verify_receipt

    before = engine.log.size
    found = officer.ask(QUESTION, "compliance/surveil", "public/public_qa")
    made = [engine.log.record(seq).event for seq in range(before, engine.log.size)]
    assert {("compliance", "surveil"), ("public", "public_qa")} == {(one.role, one.purpose) for one in made}
    files = re.findall(r'href="data:application/json;base64,([^"]+)"', found.text)
    checked = [verify_receipt(base64.b64decode(one), engine.vkey) for one in files]
    assert ["verified", "verified"] == [one.verdict.value for one in checked]
    assert {QUESTION} == {one.values["query"] for one in checked}


def test_passages_of_only_one_half_are_marked(officer: Viewer) -> None:
    """By word and shape; shared passages by their place in the other half."""
    text = read(officer.ask(QUESTION, "compliance/surveil", "public/public_qa"))
    assert "only here" in text
    assert "also 1 there" in text
    assert "also 3 there" in text


def test_a_conversation_shows_the_viewer_s_own_questions(officer: Viewer, asked: Asked) -> None:
    """Those of the first session, in their order; another person with the same id sees none, and no answer is kept."""
    said = {"left": "compliance/surveil", "conversation": "c"}
    first, follow = "How much did Acme Corp pay in dividends in 2020?", "And the year before?"
    assert first in read(officer.post("ask", question=first, **said))
    assert '<ol class="turns' not in officer.post("ask", question=first, **said | {"conversation": "d"}).text
    shown = read(officer.post("ask", question=follow, **said))
    assert shown.index(first) < shown.index(f'<p class="asked">{follow}')
    assert "read as: How much did Acme Corp pay in dividends in 2019?" in shown
    assert 'value="c"' in shown
    other = read(Viewer(asked, **{**OFFICER, "sub": "other"}).post("ask", question=follow, **said))
    assert first not in other
    assert "taken over" not in other


def test_another_person_s_record_looks_like_an_absent_one(
    officer: Viewer, analyst: Viewer, engine: Engine
) -> None:
    """Unless the viewer has the duty to audit."""
    officer.ask(QUESTION, "public/public_qa")
    seq = engine.log.size - 1
    assert "Verified" in officer.get(f"records/{seq}").text
    foreign, absent = analyst.get(f"records/{seq}"), analyst.get("records/999999")
    assert (404, 404) == (foreign.status_code, absent.status_code)
    assert foreign.text == absent.text


def test_an_auditor_reads_any_record_without_its_values(
    officer: Viewer, auditor: Viewer, engine: Engine
) -> None:
    """Person, question and answer are commitments until they are opened."""
    officer.ask(QUESTION, "public/public_qa")
    for seq in range(engine.log.size):
        found = auditor.get(f"records/{seq}")
        assert 200 == found.status_code
        assert "Verified" in found.text
        assert "Lumenfield" not in found.text
        assert "olga" not in found.text
    assert 404 == auditor.get(f"records/{engine.log.size}").status_code
    assert 404 == auditor.get("records/-1").status_code
    assert 404 == auditor.get("records/x").status_code


def test_a_value_is_opened_for_a_purpose_after_its_record(
    officer: Viewer, auditor: Viewer, engine: Engine
) -> None:
    """The record names the value, the purpose and, sealed, the person; then the value is shown."""
    officer.ask(QUESTION, "public/public_qa")
    seq, before = engine.log.size - 1, engine.log.size
    found = auditor.post(f"records/{seq}/open", field="query", purpose="COMPLAINT-3")
    assert QUESTION in read(found)
    assert before + 1 == engine.log.size
    event = engine.log.record(before).event
    assert (
        Disclosure(record=seq, fields=("query",), role="auditor", outcome=Outcome.ANSWER, why="COMPLAINT-3")
        == event
    )
    assert "eve@audit.example" == engine.log.private.openings(before)["actor"].value


def test_no_value_is_shown_whose_opening_cannot_be_recorded(
    officer: Viewer, auditor: Viewer, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the log fails the answer is 503, without the value."""
    officer.ask(QUESTION, "public/public_qa")
    seq = engine.log.size - 1

    def broken(*_: Any, **__: Any) -> Any:
        raise AuditUnavailable("the disk is full")

    monkeypatch.setattr(type(engine.log), "append", broken)
    found = auditor.post(f"records/{seq}/open", field="query", purpose="COMPLAINT-3")
    assert (503, True) == (found.status_code, "AUDIT_UNAVAILABLE" in found.text)
    assert "royalty" not in found.text


def test_nothing_is_opened_without_a_purpose_that_is_a_code(
    officer: Viewer, auditor: Viewer, engine: Engine
) -> None:
    """Nor a value that the record does not have; and nothing is recorded as opened."""
    officer.ask(QUESTION, "public/public_qa")
    seq, before = engine.log.size - 1, engine.log.size
    for field, purpose in (
        ("query", ""),
        ("query", "because I want to"),
        ("query", "x" * 65),
        ("nonsense", "X-1"),
        ("", "X-1"),
    ):
        assert 422 == auditor.post(f"records/{seq}/open", field=field, purpose=purpose).status_code
    assert before == engine.log.size


def test_without_the_duty_not_even_one_s_own_values_are_opened(officer: Viewer, engine: Engine) -> None:
    """403, recorded as a refused token."""
    officer.ask(QUESTION, "public/public_qa")
    found = officer.post(f"records/{engine.log.size - 1}/open", field="query", purpose="X-1")
    assert (403, True) == (found.status_code, "TOKEN_DUTY" in found.text)
    assert [] == [one for one in events(engine) if isinstance(one, Disclosure)]


def test_the_history_of_labels_follows_the_right_to_know_it(
    officer: Viewer, analyst: Viewer, auditor: Viewer, engine: Engine
) -> None:
    """Of auditors, and of a cell that may know of hidden passages and ask about any past."""
    assert OWN in auditor.post("chunk", chunk_id=HISTORY).text
    assert OWN in officer.post("chunk", chunk_id=HISTORY, cell="compliance/surveil").text
    assert OWN not in officer.post("chunk", chunk_id=HISTORY, cell="public/public_qa").text
    assert OWN not in officer.post("chunk", chunk_id=HISTORY).text
    assert OWN not in analyst.post("chunk", chunk_id=HISTORY, cell="buy_side/invest").text
    assert "knows no passage" in auditor.post("chunk", chunk_id="nothing:00000").text
    assert [] == denials(engine)


def test_the_desk_itself_refuses_a_history_without_the_right(service: Service, engine: Engine) -> None:
    """Without a cell, with one that the token does not grant, and with one that lacks the right."""
    for said in (
        {},
        {"role": "compliance", "purpose": "surveil"},
        {"role": "buy_side", "purpose": "invest"},
        {"role": "buy_side"},
    ):
        asked = json.dumps({"page": "history", "chunk_id": HISTORY, **said}).encode()
        with pytest.raises(Refused, match="does not grant this duty"):
            service.console(Asker(token()), asked)
    assert "TOKEN_DUTY" in denials(engine)


def test_a_hidden_passage_and_an_absent_one_are_explained_alike(officer: Viewer) -> None:
    """To a role that may not know, the pages differ only in the id asked for and the record's number."""
    pages = [
        re.sub(
            r"records/\d+\">\d+", "", officer.post("chunk", chunk_id=one, cell="public/public_qa").text
        ).replace(one, "")
        for one in (CHUNK, "9990000000-23-000077:99999")
    ]
    assert pages[0] == pages[1]
    assert "NOTHING_TO_EXPLAIN" in pages[0]


def test_an_explanation_is_recorded_and_names_rule_regulation_and_remedy(
    officer: Viewer, engine: Engine
) -> None:
    """For a role that may know of hidden passages."""
    before = engine.log.size
    text = read(officer.post("chunk", chunk_id=CHUNK, cell="compliance/surveil"))
    assert "ADMISSIBLE" in text
    assert "CONF_TREAT" in text
    assert "Exchange Act Rule 24b-2" in text
    assert before + 1 == engine.log.size


def test_a_table_is_compared_only_for_auditors(officer: Viewer, auditor: Viewer, engine: Engine) -> None:
    """What it widens and tightens, by word and shape; an invalid one gets an error, and nothing is applied."""
    text, before = engine.profile.texts[1], engine.profile.table.sha256
    wider = text.replace("may_know_existence = false", "may_know_existence = true", 1)
    assert "▲" in auditor.post("policy", proposed=wider).text
    tighter = text.replace("may_know_existence = true", "may_know_existence = false", 1)
    assert "▼" in auditor.post("policy", proposed=tighter).text
    assert "No cell differs" in auditor.post("policy", proposed=text.replace("\n", "\r\n")).text
    assert "This is not a valid table" in auditor.post("policy", proposed="<b>schema</b>").text
    assert "<b>schema" not in auditor.post("policy", proposed="<b>schema</b>").text
    assert 403 == officer.post("policy", proposed=wider).status_code
    assert before == engine.profile.table.sha256


def test_the_desk_refuses_unknown_pages_keys_and_types(service: Service) -> None:
    """Even if a page itself sent them."""
    for said in (
        {},
        {"page": "nothing"},
        {"page": ["records"]},
        {"page": "viewer", "more": 1},
        {"page": "records", "before": "7"},
        {"page": "records", "since": "2026-13-41"},
        {"page": "record", "record": -1},
        {"page": "record", "record": True},
    ):
        with pytest.raises(Problem):
            service.console(Asker(token(**AUDITOR)), json.dumps(said).encode())


def test_the_answers_of_the_desk_are_plain_json(service: Service, engine: Engine) -> None:
    """Every page is the same after reading it back."""
    said = {
        "record": {"record": 0},
        "open": {"record": 0, "field": "x", "purpose": "X-1"},
        "history": {"chunk_id": HISTORY},
        "policy": {"proposed": engine.profile.texts[1]},
    }
    for page in desk.PAGES.keys() - {"open", "turns"}:
        asked = json.dumps({"page": page, **said.get(page, {})}).encode()
        found = service.console(Asker(token(**AUDITOR)), asked)
        assert found == encoded(json.loads(found)), page


def every_cell(engine: Engine, home: Path, files: Path) -> Iterator[tuple[str, Asked, str]]:
    """Yield each cell of the table, with a token that grants only that cell."""
    cells = [f"{cell.role}/{cell.purpose}" for cell in engine.profile.table.cells]
    grants = "".join(f'[[grant]]\ngroup = "{cell}"\ncells = ["{cell}"]\n' for cell in cells)
    (files / "grants.toml").write_text(f"schema = 1\n{grants}")
    service = Service(engine, home, settings(files))
    asked = Asked(application(service))
    for cell in cells:
        yield cell, asked, token(groups=[cell])
    service.close()


@pytest.mark.parametrize(
    "count", [pytest.param(2, id="quick"), pytest.param(40, id="whole", marks=pytest.mark.release)]
)
def test_no_page_of_any_cell_shows_a_line_that_is_hidden_from_it(
    engine: Engine, home: Path, files: Path, small_corpus: Path, count: int
) -> None:
    """On all pages, also with questions about hidden passages; lines that an admissible passage has do not count."""
    store = engine._collection.store
    chunks = [store.chunk(row[0]) for row in store.labels.snapshot()]
    asked_of = (small_corpus.parent / "questions.jsonl").read_text("utf-8").splitlines()
    questions = [json.loads(line)["question"] for line in asked_of]
    looked_for = 0
    for cell, asked, bearer in every_cell(engine, home, files):
        role, purpose = cell.split("/")
        try:
            decision = infer(Session(role=role, purpose=purpose), engine.profile.table, now=datetime.now(UTC))
        except Refused:  # the cell needs an allow-list, so everything is hidden
            admitted: list[str] = []
        else:
            admitted = [one.text for one in chunks if not decision.reasons_for(one)]
        open_text = "\n".join(admitted)
        hidden = {line for one in chunks for line in one.text.splitlines() if len(line) > 50} - set(
            open_text.splitlines()
        )
        hidden = {line for line in hidden if line not in open_text}
        looked_for += len(hidden)
        viewer = Viewer(asked, bearer)
        answers = [viewer.ask(question, cell) for question in [QUESTION, *questions[: count - 1]]]
        assert all('class="said"' in one.text for one in answers)
        explained = [viewer.post("chunk", chunk_id=one.chunk_id, cell=cell) for one in chunks[:count]]
        pages = [read(one) for one in (*answers, *explained, *(viewer.get(page) for page in PAGES))]
        found = {line for line in hidden for page in pages if line in page}
        assert set() == found, cell
    assert looked_for > 1000
