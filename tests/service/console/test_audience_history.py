"""Who could see a document, and when: whole to auditors, and to a session what its own questions tell."""

from __future__ import annotations

import json
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carag import Document, Engine
from carag.policy.audience import Audience
from carag.service.app import application
from carag.service.release import Asker
from carag.service.service import Service
from tests.engine.documents import Counting
from tests.service import conftest
from tests.service.conftest import Asked, token
from tests.service.console import conftest as viewers
from tests.service.console.conftest import Viewer, read
from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GRANTS = """\
schema = 1

[[grant]]
group = "officers"
cells = ["compliance/review", "employee/work"]

[[grant]]
group = "auditors"
duties = ["audit"]
"""
CELL = "compliance/review"
OWN, OTHERS = ("user:ana", "group:desk"), ("group:kestrel", "user:osprey", "group:merlin")
AUDITOR = {**viewers.AUDITOR, "mine": [], "teams": []}
ANA = {"groups": ["officers"], "sub": "ana", "mine": ["ana"], "teams": ["desk"]}


def memo(id_: str, **lists: Any) -> Document:
    return Document(id=id_, text=f"The plan {id_}.", bits=(), **lists)


class Office:
    """A service whose tokens bring principals."""

    def __init__(self, folder: Path, files: Path) -> None:
        (files / "grants.toml").write_text(GRANTS)
        self.engine = Engine.open(folder / "store", profile="generic", embedder=Counting())
        groups = folder / "groups.jsonl"
        groups.write_text(
            "".join(
                json.dumps({"group": group, "members": members}) + "\n"
                for group, members in {"group:merlin": ["group:desk"], "group:kestrel": ["user:bo"]}.items()
            )
        )
        self.engine.contents.import_groups(groups)
        principals = {"mine": "user", "teams": "group"}
        self.service = Service(self.engine, folder / "store", conftest.settings(files, principals=principals))
        self.asked = Asked(application(self.service))

    def close(self) -> None:
        self.service.close()
        self.engine.close()

    def history(self, chunk: str, **claims: Any) -> Any:
        said = {"page": "history", "chunk_id": chunk}
        if "auditors" not in claims["groups"]:
            said |= dict(zip(("role", "purpose"), CELL.split("/"), strict=True))
        return json.loads(self.service.console(Asker(token(**claims)), json.dumps(said).encode()))


@pytest.fixture
def office(tmp_path: Path, files: Path) -> Iterator[Office]:
    made = Office(tmp_path, files)
    yield made
    made.close()


def test_a_session_is_told_by_which_of_its_principals_a_document_opened(office: Office) -> None:
    """In each version, and nobody else is named; a group in the store is told as the principal that it holds."""
    for lists in (
        {"allow": ["user:osprey"]},
        {"allow": ["group:merlin", "user:osprey"]},
        {"deny": ["group:kestrel"]},
        {"allow": ["user:ana", "group:desk"], "deny": ["user:osprey"]},
    ):
        office.engine.add([memo("plan", **lists)])
    found = office.history("plan.v4:00000", **ANA)["history"]
    told = [(one["version"], one["through"]) for one in found["audiences"]]
    assert told == [(1, []), (2, ["group:desk"]), (3, None), (4, ["group:desk", "user:ana"])]
    page = read(Viewer(office.asked, **ANA).post("chunk", chunk_id="plan.v4:00000", cell=CELL))
    assert "not to you" in page
    assert "you as user:ana" in page.replace("<code>", "").replace("</code>", "")
    assert not [one for one in OTHERS if one.partition(":")[2] in page]
    assert page.count("never shown here") == 2


def test_an_auditor_is_told_the_lists(office: Office) -> None:
    office.engine.add([memo("plan", allow=["group:kestrel"], deny=["user:osprey"])])
    office.engine.add([memo("plan")])
    found = office.history("plan:00000", **AUDITOR)["history"]["audiences"]
    assert [(one["allow"], one["deny"]) for one in found] == [
        (["group:kestrel"], ["user:osprey"]),
        (None, []),
    ]
    assert found[0]["known_to"] == found[1]["known_from"]
    page = read(Viewer(office.asked, **AUDITOR).post("chunk", chunk_id="plan:00000"))
    assert "group:kestrel" in page
    assert "everybody" in page


def test_who_may_not_use_the_document_now_is_told_nothing_of_its_audience(office: Office) -> None:
    """Even where the session could use it before; that it exists, and its labels, the role may know."""
    office.engine.add([memo("plan", allow=["user:ana"])])
    office.engine.add([memo("plan", allow=["user:osprey"])])
    for chunk in ("plan:00000", "plan.v2:00000"):
        found = office.history(chunk, **ANA)
        assert (found["explained"]["why"], found["history"]["audiences"]) == ("HIDDEN", None)
        assert found["history"]["labels"]
        page = read(Viewer(office.asked, **ANA).post("chunk", chunk_id=chunk, cell=CELL))
        assert "osprey" not in page
        assert "by the groups of now" not in page


def test_a_page_is_one_record(office: Office) -> None:
    """So that the number on the page is that of what was shown; it counts as an explanation."""
    office.engine.add([memo("plan")])
    before = office.engine.log.size
    page = Viewer(office.asked, **ANA).post("chunk", chunk_id="plan:00000", cell=CELL).text
    assert office.engine.log.size == before + 1
    assert f"/console/records/{before}" in page


NAMES = [*OWN, *OTHERS]
AUDIENCES = st.builds(
    Audience,
    st.none() | st.lists(st.sampled_from(NAMES), unique=True),
    st.lists(st.sampled_from(NAMES), unique=True, max_size=2),
)


def test_two_lists_that_no_question_of_the_session_tells_apart_are_told_alike(office: Office) -> None:
    """What is shown follows from whether each set of its principals opens the document, as its own requests tell."""
    held = {"user:ana": {"user:ana"}, "group:desk": {"group:desk", "group:merlin"}}
    known = {"group:merlin", "group:kestrel"}
    sets = [set(some) for count in range(len(OWN) + 1) for some in combinations(OWN, count)]
    session = office.engine.session(token(**ANA), verifier(office))

    def opens(audience: Audience, some: set[str]) -> bool:
        own = set().union(*(held[one] for one in some))
        barred = set().union(*held.values()) & {*audience.deny}
        unknown = {one for one in audience.deny if one.startswith("group:")} - known
        allowed = audience.allow is None or bool(own & {*audience.allow})
        return allowed and not barred and not unknown

    seen: dict[tuple[bool, ...], Any] = {}

    @settings(max_examples=examples(300), suppress_health_check=list(HealthCheck))
    @given(AUDIENCES)
    def law(audience: Audience) -> None:
        (told,) = office.engine.contents.opened_to(session, [audience])
        by_questions = tuple(opens(audience, some) for some in sets)
        assert seen.setdefault(by_questions, told) == told
        wanted = [one for one in sorted(OWN) if opens(audience, {one})]
        assert told == (None if by_questions[0] else tuple(wanted))

    law()


def verifier(office: Office) -> Any:
    from carag.service.grants import GrantVerifier

    role, purpose = CELL.split("/")
    return GrantVerifier(office.service._tokens, office.service.grants, "groups", chosen=(role, purpose))
