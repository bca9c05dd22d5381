"""A cell opens over HTTP for one person, for a time and a written reason, and for nobody else, whatever is sent."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carag import AsyncClient, Client, Session
from carag.audit import RecordKind
from carag.errors import Refused
from carag.service.app import application
from carag.service.glasses import MOST_EACH
from carag.service.problems import TITLES
from carag.service.service import Service
from tests.engine.documents import QUESTION, Clock
from tests.engine.test_break_glass import opened
from tests.service import conftest
from tests.service.conftest import Asked, denials, token
from tests.service.console.conftest import Viewer
from tests.service.test_client import Served
from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from carag import Engine

GRANTS = """\
schema = 1

[[grant]]
group = "nurses"
cells = ["employee/work", "employee/emergency"]

[[grant]]
group = "clerks"
cells = ["employee/work"]
"""
ANA, BO = ({"groups": ["nurses"], "sub": name} for name in ("ana", "bo"))
CLERK = {"groups": ["clerks"], "sub": "cy"}
WORK, EMERGENCY = ({"role": "employee", "purpose": purpose} for purpose in ("work", "emergency"))
REASON = {**EMERGENCY, "reason": "cardiac arrest in ward 3"}
ALL = ["patient", "rules"]


def outcome(answer: dict[str, Any]) -> list[str] | str:
    """Return the documents found; without any, the code that says why."""
    found = sorted(one["document_id"] for one in answer.get("passages", ()))
    return found or str(answer.get("why", answer.get("code")))


class Ward:
    """A service over a store with a cell that opens by breaking the glass."""

    def __init__(self, folder: Path, files: Path, terms: str = "{ minutes = 30 }") -> None:
        (files / "grants.toml").write_text(GRANTS)
        self.clock = Clock()
        self.engine: Engine = opened(folder / "store", terms, clock=self.clock)
        self.home, self.files = folder / "store", files
        self.service = Service(self.engine, self.home, conftest.settings(files))
        self.asked = Asked(application(self.service))

    def close(self) -> None:
        self.service.close()
        self.engine.close()

    def broken(self, who: dict[str, Any] = ANA, **said: Any) -> Any:
        return self.asked.post("break-glass", {**REASON, **said}, bearer=token(**who))

    def found(self, who: dict[str, Any] = ANA, **said: Any) -> Any:
        body = {"question": QUESTION, **EMERGENCY, **said}
        return outcome(self.asked.post("retrieve", body, bearer=token(**who)).json())


@pytest.fixture
def ward(tmp_path: Path, files: Path) -> Iterator[Ward]:
    made = Ward(tmp_path, files)
    yield made
    made.close()


@pytest.fixture
def two(tmp_path: Path, files: Path) -> Iterator[Ward]:
    made = Ward(tmp_path, files, "{ minutes = 30, two_persons = true }")
    yield made
    made.close()


def problem(answer: Any) -> tuple[int, str, list[str] | None]:
    said = answer.json()
    return answer.status_code, said["code"], said.get("at")


def test_the_cell_opens_for_the_person_and_the_time(ward: Ward) -> None:
    """Every operation is under it, the record names the person's reason, and then it is shut by the engine."""
    assert ward.found() == "BREAK_GLASS_REQUIRED"
    said = ward.broken().json()
    record = ward.engine.log.record(said["record"])
    assert (record.kind, record.event.until) == (RecordKind.GLASS, said["until"])
    opened_values = {
        name: one.value for name, one in ward.engine.log.private.openings(said["record"]).items()
    }
    assert opened_values == {"subject": "ana", "reason": REASON["reason"]}
    assert ward.found(glass=said["glass"]) == ALL
    assert ward.found(glass=said["glass"], narrow={"conversation": "c"}) == ALL
    bearer, under = token(**ANA), {**EMERGENCY, "glass": said["glass"]}
    answer = ward.asked.post("ask", {"question": QUESTION, **under}, bearer=bearer).json()
    assert (answer["glass"], ward.engine.log.record(answer["record"]).event.glass) == (said["record"],) * 2
    assert json.loads(json.loads(answer["receipt"])["record"])["glass"] == said["record"]
    told = ward.asked.post("explain", {"chunk_id": "patient:00000", **under}, bearer=bearer).json()
    assert told["why"] == "ADMISSIBLE"
    ward.clock.pass_(minutes=31)
    assert ward.found(glass=said["glass"]) == "BREAK_GLASS_ENDED"


def test_it_opens_for_fewer_minutes_and_never_for_more(ward: Ward) -> None:
    said = ward.broken(minutes=5).json()
    ward.clock.pass_(minutes=6)
    assert ward.found(glass=said["glass"]) == "BREAK_GLASS_ENDED"
    assert problem(ward.broken(minutes=31)) == (422, "INVALID_ARGUMENT", ["minutes"])


def test_it_is_nobody_else_s_and_of_no_other_cell(ward: Ward) -> None:
    """The answer to another person's handle is the one to a handle that never was; the attempt is on record."""
    handle = ward.broken().json()["glass"]
    answers = [
        ward.asked.post("retrieve", {"question": QUESTION, **cell, "glass": one}, bearer=token(**who))
        for who, cell, one in (
            (BO, EMERGENCY, handle),
            (BO, EMERGENCY, "x" * len(handle)),
            (ANA, WORK, handle),
            (CLERK, WORK, handle),
        )
    ]
    assert problem(answers[0]) == (403, "BREAK_GLASS_UNKNOWN", ["glass"])
    assert len({one.text for one in answers}) == 1
    assert ward.found(CLERK, glass=handle) == "TOKEN_CELL"
    assert "BREAK_GLASS_UNKNOWN" in denials(ward.engine)


@pytest.mark.parametrize(
    ("who", "said", "wanted"),
    [
        (ANA, {"reason": ""}, (422, "INVALID_REQUEST", ["reason"])),
        (ANA, {"reason": " \n"}, (422, "INVALID_ARGUMENT", ["reason"])),
        (ANA, {"reason": "r" * 1001}, (422, "INVALID_REQUEST", ["reason"])),
        (ANA, {"minutes": 0}, (422, "INVALID_REQUEST", ["minutes"])),
        (ANA, {"purpose": "work"}, (403, "NOT_BREAK_GLASS", None)),
        (ANA, {"role": None, "purpose": None}, (403, "TOKEN_CELL_UNCLEAR", None)),
        (ANA, {"subject": "bo"}, (403, "TOKEN_SUBJECT", None)),
        (CLERK, {}, (403, "TOKEN_CELL", None)),
    ],
)
def test_what_is_missing_opens_nothing(ward: Ward, who: Any, said: Any, wanted: Any) -> None:
    assert problem(ward.broken(who, **said)) == wanted
    assert RecordKind.GLASS not in kinds(ward.engine)


def kinds(engine: Engine) -> list[RecordKind]:
    return [engine.log.record(seq).kind for seq in range(engine.log.size)]


@pytest.mark.parametrize(
    ("second", "told"),
    [
        (None, None),
        (ANA, None),
        (CLERK, TITLES["TOKEN_CELL"][1]),
        ({**BO, "exp": int(time.time()) - 600}, TITLES["TOKEN_EXPIRED"][1]),
        ({**BO, "aud": "payroll"}, TITLES["TOKEN_AUDIENCE"][1]),
    ],
    ids=["nobody", "the same person", "without the right", "expired", "for another audience"],
)
def test_a_second_person_has_a_valid_token_and_the_same_right(
    two: Ward, second: Any, told: str | None
) -> None:
    """Otherwise nothing opens; why a second token is refused is said, and no code has the first person log in again."""
    approver = {} if second is None else {"approver": token(**second)}
    answer = two.broken(**approver)
    assert (answer.status_code, answer.json()["code"]) == (403, "APPROVER_REQUIRED")
    assert answer.json().get("wanted") == (told and {"approver": told})
    assert RecordKind.GLASS not in kinds(two.engine)
    assert "APPROVER_REQUIRED" in denials(two.engine)


def test_a_second_person_s_token_opens_the_cell_for_the_first_alone(two: Ward) -> None:
    said = two.broken(approver=token(**BO)).json()
    assert two.engine.log.private.openings(said["record"])["approver"].value == "bo"
    assert two.found(glass=said["glass"]) == ALL
    assert two.found(BO, glass=said["glass"]) == "BREAK_GLASS_UNKNOWN"


def test_a_service_that_starts_again_has_no_cell_open(ward: Ward) -> None:
    handle = ward.broken().json()["glass"]
    again = Service(ward.engine, ward.home, conftest.settings(ward.files))
    body = {"question": QUESTION, **EMERGENCY, "glass": handle}
    answer = Asked(application(again)).post("retrieve", body, bearer=token(**ANA))
    again.close()
    assert problem(answer) == (403, "BREAK_GLASS_UNKNOWN", ["glass"])


def test_a_right_that_is_withdrawn_shuts_it_at_once(ward: Ward) -> None:
    handle = ward.broken().json()["glass"]
    (ward.files / "grants.toml").write_text(GRANTS.replace(', "employee/emergency"', ""))
    assert ward.found(glass=handle) == "TOKEN_CELL"


def test_a_person_has_so_many_open_until_one_ends(ward: Ward) -> None:
    """Others are not held up by it."""
    for _ in range(MOST_EACH):
        assert ward.broken(minutes=5).status_code == 200
    size = ward.engine.log.size
    assert problem(ward.broken()) == (429, "BREAK_GLASS_LIMIT", None)
    assert ward.engine.log.size == size
    assert ward.broken(BO).status_code == 200
    ward.clock.pass_(minutes=6)
    assert ward.found(glass=ward.broken().json()["glass"]) == ALL


def test_a_client_breaks_the_glass_as_the_engine_does(ward: Ward) -> None:
    """The session that it returns is under it; the same session in another person's client is not."""
    served = Served(ward.engine, ward.home, ward.files)
    nurse = Session(role="employee", purpose="work")
    try:
        with Client(served.url, token=token(**ANA)) as ana, Client(served.url, token=token(**BO)) as bo:
            wide = ana.break_glass(nurse, purpose="emergency", reason="cardiac arrest", minutes=5)
            found = ana.retrieve(QUESTION, wide.narrow(conversation="c"))
            assert sorted(one.document_id for one in found.passages) == ALL
            assert found.glass == wide.glass.record
            assert ana.ask(QUESTION, nurse).glass is None
            with pytest.raises(Refused) as refused:
                bo.retrieve(QUESTION, wide)
            assert refused.value.code == "BREAK_GLASS_UNKNOWN"
            assert wide.glass.handle not in repr(wide)

        async def opens() -> Any:
            async with AsyncClient(served.url, token=token(**ANA)) as client:
                wide = await client.break_glass(nurse, purpose="emergency", reason="r")
                return await client.retrieve(QUESTION, wide)

        assert len(asyncio.run(opens()).passages) == 2
    finally:
        served.stop()


def test_the_console_marks_an_answer_under_it(ward: Ward) -> None:
    """Only in the half whose cell opens so; the field is there for those who have such a cell."""
    viewer, mark = Viewer(ward.asked, **ANA), "The glass was broken for this answer"
    said = ward.broken().json()
    asked = {"question": QUESTION, "left": "employee/emergency", "right": "employee/work"}
    page = viewer.post("ask", **asked, glass=said["glass"]).text
    assert page.count(mark) == 1
    assert f"on record as {said['record']}." in page
    assert mark not in viewer.post("ask", **asked, glass="").text
    assert "BREAK_GLASS_UNKNOWN" in Viewer(ward.asked, **BO).post("ask", **asked, glass=said["glass"]).text
    assert 'name="glass"' in viewer.get("ask").text
    assert 'name="glass"' not in Viewer(ward.asked, **CLERK).get("ask").text


WORDS = st.none() | st.text(max_size=50) | st.sampled_from(["THEIRS", "OWN, ENDED"])


def test_who_has_broken_no_glass_gets_what_they_got_before(ward: Ward) -> None:
    """Whatever is sent: the same passages, or nothing."""
    before = {purpose: ward.found(BO, purpose=purpose) for purpose in ("work", "emergency", "review")}
    own = ward.broken(BO, minutes=1).json()["glass"]
    ward.clock.pass_(minutes=2)
    known = {"THEIRS": ward.broken().json()["glass"], "OWN, ENDED": own}
    bearers = [
        token(**BO),
        token(**{**BO, "groups": ["clerks"]}),
        token(**{**BO, "name": "ana", "glass": own}),
    ]

    @settings(max_examples=examples(200), suppress_health_check=list(HealthCheck))
    @given(WORDS, st.sampled_from([*before]), st.sampled_from(bearers), st.sampled_from(["retrieve", "ask"]))
    def law(word: str | None, purpose: str, bearer: str, operation: str) -> None:
        glass = known.get(word or "", word)
        body = {"question": QUESTION, "role": "employee", "purpose": purpose, "glass": glass}
        found = outcome(ward.asked.post(operation, body, bearer=bearer).json())
        assert isinstance(found, str) or found == before[purpose]
        if glass is None and found != "TOKEN_CELL":
            assert found == before[purpose]

    law()
