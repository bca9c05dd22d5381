"""What changes a store does the same over HTTP as in the engine, for people with the duty and for nobody else."""

from __future__ import annotations

import asyncio
import inspect
import json
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carag import AsyncClient, Client, Document, Engine, Session
from carag.audit import DocumentErasure, Hold, Verdict, verify_erasure, verify_receipt
from carag.audit.operations.hold import release_hold
from carag.engine.contents import Contents
from carag.engine.erasing.documents import DocumentErasures
from carag.engine.erasing.holds import DocumentHolds
from carag.errors import AuditUnavailable, CaragError, InvalidArgument, Refused, ServiceUnavailable
from carag.labelling.document import Act
from carag.policy import PolicyBit
from carag.policy.groups.statements import GroupImport, GroupStatement, Window
from carag.service import calls
from carag.service.app import application
from carag.service.requests import DocumentBody
from carag.service.writes import WRITES
from carag.service.written import document_json
from tests.engine.documents import Counting
from tests.engine.erasing.canaries import canary, found, marks
from tests.service.conftest import Asked, token
from tests.service.test_client import Served
from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GRANTS = """\
schema = 1

[[grant]]
group = "staff"
cells = ["employee/work"]

[[grant]]
group = "editors"
duties = ["operate"]

[[grant]]
group = "officers"
duties = ["admin"]

[[grant]]
group = "auditors"
duties = ["audit"]

[[grant]]
group = "all"
cells = ["employee/work"]
duties = ["operate", "admin", "audit"]
"""
WORK = Session(role="employee", purpose="work")
BY = "dana"
LEFT_OUT = {"stop", "admin", "role", "actor"}
"""Parameters of the engine that no request may state, or that cannot be sent."""


def memo(number: int, **changes: Any) -> Document:
    return Document(
        **{
            "id": f"memo/{number}",
            "text": f"Ana Ruiz asked for loan {number}.",
            "bits": ["INTERNAL"],
            **changes,
        }
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def engine(home: Path) -> Iterator[Engine]:
    with Engine.open(home, profile="generic", embedder=Counting()) as opened:
        yield opened


@pytest.fixture
def served(engine: Engine, home: Path, files: Path) -> Iterator[Served]:
    (files / "grants.toml").write_text(GRANTS)
    running = Served(engine, home, files)
    yield running
    running.stop()


@pytest.fixture
def asked(served: Served) -> Asked:
    return Asked(application(served.service))


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    with Client(served.url, token=bearer()) as opened:
        yield opened


def bearer(group: str = "all", sub: str = BY) -> str:
    return token(groups=[group], sub=sub)


def awaited(served: Served, calling: Any) -> Any:
    """Do the same with an asynchronous client."""

    async def done() -> Any:
        async with AsyncClient(served.url, token=bearer()) as client:
            return await calling(client)

    return asyncio.run(done())


class TestWrites:
    """The laws of writes, of an engine and of a client: the second person is a name here and a token there."""

    @pytest.fixture(params=["engine", "client"])
    def store(self, request: pytest.FixtureRequest) -> Any:
        return request.getfixturevalue(request.param)

    @pytest.fixture
    def second(self, store: Any) -> str:
        return "carl" if isinstance(store, Engine) else bearer(sub="carl")

    def test_documents_are_added_changed_and_skipped(self, store: Any, engine: Engine) -> None:
        reports = [store.add([memo(1), memo(2)], by=BY), store.add([memo(1), memo(2, text="Other.")], by=BY)]
        assert [(one.added, one.changed, one.unchanged, one.embedded) for one in reports] == [
            (2, 0, 0, 2),
            (0, 1, 1, 1),
        ]
        assert engine.contents.counts().filings == 2
        assert engine.log.private.openings(engine.log.size - 1)["subject"].value == BY

    def test_a_document_that_cannot_be_found_is_reported(self, store: Any) -> None:
        report = store.add([memo(1, bits=None, facts={"classification": "no such class"})], by=BY)
        assert (report.added, report.quarantined, len(report.problems)) == (1, 1, 1)

    def test_removing_counts_and_takes_all_or_nothing(self, store: Any, engine: Engine) -> None:
        store.add([memo(1), memo(2)], by=BY)
        root = engine._collection.state.root
        with pytest.raises(InvalidArgument):
            store.remove(["memo/1", "memo/7"], by=BY)
        assert engine._collection.state.root == root
        assert store.remove(["memo/1"], by=BY) == 1

    def test_a_refused_addition_stores_nothing(self, store: Any, engine: Engine) -> None:
        with pytest.raises(InvalidArgument):
            store.add([memo(1), memo(2, supersedes="memo/9")], by=BY)
        assert engine.contents.counts().filings == 0

    def test_erasing_reports_and_proves(self, store: Any, second: str, engine: Engine) -> None:
        store.add([memo(1), memo(2)], by=BY)
        size = engine.log.size
        told = store.erase(["memo/1"], basis="GDPR_17_1", by=BY, approver=second, dry_run=True)
        assert (told.documents, told.passages, told.receipts, engine.log.size) == (1, 1, (), size)
        done = store.erase(["memo/1"], basis="GDPR_17_1", by=BY, approver=second)
        assert (done.documents, done.passages, done.beyond) == (1, 1, ("backups",))
        (receipt,), (statement,) = done.receipts, done.statements
        assert verify_receipt(receipt.to_bytes(), engine.vkey).verdict is Verdict.VERIFIED
        assert (
            verify_erasure(receipt.to_bytes(), statement.to_bytes(), engine.vkey).verdict is Verdict.VERIFIED
        )
        values = engine.log.private.openings(receipt.seq)
        assert (values["actor"].value, values["approver"].value) == (BY, "carl")
        with pytest.raises(InvalidArgument):
            store.erase(["memo/1"], basis="GDPR_17_1", by=BY, approver=second)

    def test_one_person_is_not_two(self, store: Any, engine: Engine) -> None:
        store.add([memo(1)], by=BY)
        mine = BY if isinstance(store, Engine) else bearer()
        for approver in (None, mine):
            with pytest.raises((InvalidArgument, Refused)):
                store.erase(["memo/1"], basis="GDPR_17_1", by=BY, approver=approver)
        assert engine.contents.counts().filings == 1

    def test_holds_keep_documents_and_what_is_due(self, store: Any, second: str, engine: Engine) -> None:
        due = {"erase_after": date(2020, 1, 1)}
        store.add([memo(1, **due), memo(2, **due), memo(3, retain_until=date(2999, 1, 1))], by=BY)
        placed = store.erasures.holds.place("MATTER-7", by=BY, words=["loan 1"])
        assert store.erasures.holds.on(["memo/1", "memo/2"]) == {"memo/1": (placed.seq,)}
        assert isinstance(engine.log.record(placed.seq).event, Hold)
        for id_, code in (("memo/1", "LEGAL_HOLD"), ("memo/3", "RETENTION")):
            with pytest.raises(Refused) as refused:
                store.erase([id_], basis="GDPR_17_1", by=BY, approver=second)
            assert refused.value.code == code
        assert [(one.document, one.held, one.refusal) for one in store.erasures.due()] == [
            ("memo/1", (placed.seq,), "LEGAL_HOLD"),
            ("memo/2", (), ""),
        ]
        done = store.erasures.erase_due(by=BY, approver=second)
        assert (done.erased, [one.document for one in done.stayed], done.report.documents) == (
            ("memo/2",),
            ["memo/1"],
            1,
        )
        release_hold(engine.log, placed.seq, actor="dpo", approver="cco")
        assert store.erasures.erase_due(by=BY, approver=second).erased == ("memo/1",)
        assert store.erasures.erase_due(by=BY, approver=second).report is None

    def test_a_hold_that_fits_nothing_is_not_placed(self, store: Any, engine: Engine) -> None:
        size = engine.log.size
        for said in (
            {},
            {"ids": ["memo/9"]},
            {"words": ["x"]},
            {"where": {"no_such": 1}},
            {"ids": ["a"], "words": ["b"]},
        ):
            with pytest.raises(InvalidArgument):
                store.erasures.holds.place("MATTER-7", by=BY, **said)
        assert engine.log.size == size

    def test_a_person_is_found(self, store: Any, engine: Engine) -> None:
        store.add([memo(1, allow=["user:ana"])], by=BY)
        extra = {"role": "auditor", "actor": BY} if isinstance(store, Engine) else {}
        said = store.erasures.report(["ana ruiz", "user:ana"], why="REQUEST-3", **extra)
        assert [(one.id, one.where) for one in said.documents] == [("memo/1", ("text",))]
        assert [tuple(one) for one in said.lists] == [("memo/1", "allow", "user:ana")]
        assert said.page().startswith("# Where `ana ruiz`")
        values = engine.log.private.openings(said.record)
        assert values["actor"].value == BY

    def test_groups_are_imported_all_or_nothing(self, store: Any, tmp_path: Path) -> None:
        file = tmp_path / "groups.jsonl"
        file.write_text('{"group": "group:desk", "members": ["user:ana"], "until": "2030-05-01"}\n')
        told = store.contents.import_groups(file, by=BY, dry_run=True)
        done = store.contents.import_groups(file, by=BY)
        assert (told.opened, told.known_at, done.opened, done.sha256) == (1, None, 1, told.sha256)
        change = GroupStatement(
            "group:desk", {"user:bo": Window(60, 120), "group:fx": Window()}, ["user:ana"]
        )
        done = store.contents.import_groups(GroupImport([change]), by=BY)
        assert (done.opened, done.closed, done.undefined) == (2, 1, ("group:fx",))
        assert done.sha256 == GroupImport([change]).sha256
        file.write_text('{"group": "group:fx", "members": ["group:desk"]}\n')
        with pytest.raises(InvalidArgument):
            store.contents.import_groups(file, by=BY)


def test_the_signatures_are_the_engine_s() -> None:
    """Less what no request may state; both clients have the same, and no call is without a description."""
    pairs: tuple[tuple[type, type, tuple[str, ...]], ...] = (
        (Engine, Client, ("add", "remove", "erase")),
        (DocumentErasures, calls.Erasures, ("due", "erase_due", "report")),
        (DocumentHolds, calls.Holds, ("place", "on")),
        (Contents, calls.Contents, ("import_groups",)),
    )
    for ours, theirs, names in pairs:
        for name in names:
            wanted = inspect.signature(getattr(ours, name)).parameters
            made = inspect.signature(getattr(theirs, name)).parameters
            assert [one for one in wanted if one not in LEFT_OUT] == [*made]
            for one in made:
                assert (made[one].kind, made[one].default) == (wanted[one].kind, wanted[one].default)
    public = [name for name in dir(Client) if not name.startswith("_")]
    assert public == [name for name in dir(AsyncClient) if not name.startswith("_")]
    for kind in (Client, calls.Erasures, calls.Holds, calls.Contents):
        assert all(inspect.getdoc(getattr(kind, name)) for name in dir(kind) if not name.startswith("_"))


def test_an_asynchronous_client_writes_the_same(served: Served, engine: Engine) -> None:
    """Every call once."""

    async def calling(client: AsyncClient) -> list[Any]:
        second = bearer(sub="carl")
        added = await client.add([memo(1), memo(2, erase_after=date(2020, 1, 1)), memo(3)])
        placed = await client.erasures.holds.place("M-1", ids=["memo/1"])
        statement = GroupImport([GroupStatement("group:desk", {"user:ana": Window()})])
        return [
            added.added,
            await client.erasures.holds.on(["memo/1"]) == {"memo/1": (placed.seq,)},
            [one.document for one in await client.erasures.due()],
            (await client.erasures.erase_due(approver=second)).erased,
            (await client.erase(["memo/3"], basis="GDPR_17_1", approver=second)).documents,
            len((await client.erasures.report(["ana ruiz"], why="R-1")).documents),
            (await client.contents.import_groups(statement)).opened,
            await client.remove(["memo/1"]),
            [(one.role, one.purpose) for one in (await client.policy()).cells],
            (await client.checkpoint()) == engine.log.checkpoint(),
        ]

    assert awaited(served, calling) == [
        3,
        True,
        ["memo/2"],
        ("memo/2",),
        1,
        1,
        1,
        1,
        [("employee", "work")],
        True,
    ]


def test_records_jobs_and_grants_are_shown(client: Client, engine: Engine, asked: Asked) -> None:
    """A receipt only to the person; a job only to its sender."""
    client.add([memo(1)])
    answer = client.ask("Who asked for a loan?", WORK)
    receipt = client.receipt(answer.receipt.seq)
    assert verify_receipt(receipt, engine.vkey).verdict is Verdict.VERIFIED
    assert client.checkpoint() == engine.log.checkpoint()
    assert client.policy().profile == engine.profile.name
    sent = asked.post(
        "ingest", {"remove": ["memo/1"]}, bearer=bearer(), headers={"Idempotency-Key": "k"}
    ).json()
    assert client.job(sent["id"]).id == sent["id"]
    with Client(client.url, token=bearer(sub="eve")) as other:
        for call in (lambda: other.receipt(answer.receipt.seq), lambda: other.job(sent["id"])):
            with pytest.raises(ServiceUnavailable, match="NOT_FOUND"):
                call()
    for bad in (-1, "1", True):
        with pytest.raises(InvalidArgument):
            client.receipt(bad)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument):
        client.job("../policy")


def test_a_document_arrives_as_it_was(engine: Engine, client: Client) -> None:
    """Every field: adding it again in the engine changes nothing."""
    moment = datetime(2024, 5, 1, 9, 30, tzinfo=UTC)
    internal = engine.profile.vocabulary.flags["INTERNAL"]
    whole = memo(
        1,
        bits=[internal],
        metadata={"title": "Loan \u2028 ü"},
        entities=[7, 8],
        allow=[],
        deny=["user:bo"],
        public_at=moment,
        expires_at=date(2999, 1, 1),
        retain_until=date(2030, 1, 1),
        erase_after=date(2031, 1, 1),
        names=["Number 7"],
        acts=[Act("replaces", "Number 6", date(2024, 6, 1))],
        language="de-CH",
        pages=[0, 5],
        read_by="pdf/2",
    )
    others = [memo(2, bits=()), memo(3, bits=None, facts={"classification": "internal", "x": [1, "y", None]})]
    client.add([whole, *others])
    assert engine.add([whole, *others]).unchanged == 3
    local = {"vectors", "embedded_by", "cuts"}
    assert {*DocumentBody.model_fields} == {*inspect.signature(Document).parameters} - local
    with pytest.raises(InvalidArgument, match="brings vectors, which a service does not take"):
        document_json(
            Document.of_passages(["A."], np.eye(1, 3, dtype=np.float32), "angles", id="memo/1", bits=())
        )
    with pytest.raises(InvalidArgument, match="vocabulary"):
        document_json(memo(1, bits=3))
    with pytest.raises(InvalidArgument):
        client.add(["memo"])  # type: ignore[list-item]
    assert document_json(memo(1, bits=PolicyBit.MATERIAL | PolicyBit.LATE))["bits"] == ["MATERIAL", "LATE"]


BODIES: dict[str, dict[str, Any]] = {
    "ingest": {"remove": ["memo/1"]},
    "erase": {"ids": ["memo/1"], "basis": "GDPR_17_1_D"},
    "erase-due": {},
    "due": {},
    "hold": {"matter": "M-1", "ids": ["memo/1"]},
    "held": {"ids": ["memo/1"]},
    "subject-report": {"person": ["Ana Ruiz"], "why": "R-1"},
    "groups": {"groups": '{"group": "group:desk", "members": ["user:ana"]}'},
}
DUTIES = {"ingest": "operate"} | {one.path: one.duty for one in WRITES.values()}


def test_every_write_is_tried_here() -> None:
    assert BODIES.keys() == DUTIES.keys()


def sends(asked: Asked, path: str, body: Any, group: str, key: str = "k", sub: str = BY) -> Any:
    return asked.post(path, body, bearer=bearer(group, sub), headers={"Idempotency-Key": key})


@pytest.mark.parametrize("count", [examples(100), pytest.param(10_000, marks=pytest.mark.full)])
def test_without_the_duty_nothing_changes(asked: Asked, engine: Engine, count: int) -> None:
    """Whatever is sent: a reader's token, and one for another duty, can never write."""
    engine.add([memo(1, erase_after=date(2020, 1, 1))])
    root, groups = engine._collection.state.root, engine._collection.store.groups
    second = bearer("officers", "carl")
    json_value = st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["ids", "subject", "role"]), inner)
        ),
        max_leaves=4,
    )
    wrong = {"operate": "officers", "admin": "editors", "audit": "officers"}

    @settings(max_examples=count, suppress_health_check=list(HealthCheck), deadline=None)
    @given(
        st.sampled_from(sorted(BODIES)),
        st.sampled_from(["staff", "wrong", "none"]),
        st.sampled_from(["usual", "approved", "other", "role"]),
        json_value,
    )
    def run(path: str, group: str, kind: str, value: Any) -> None:
        bodies = {
            "usual": BODIES[path],
            "approved": {**BODIES[path], "approver": second},
            "other": value,
            "role": {**BODIES[path], "role": "admin", "duty": DUTIES[path], "subject": "carl"},
        }
        who = wrong[DUTIES[path]] if group == "wrong" else group
        answer = sends(asked, path, bodies[kind], who)
        assert (answer.status_code, answer.json()["code"]) == (403, "TOKEN_DUTY")

    run()
    assert engine._collection.state.root == root
    assert not groups.listed()
    assert not engine.log.private.held()


def test_the_second_person_needs_the_duty(asked: Asked, engine: Engine) -> None:
    """A token without it, of the same person, or that is not one, is refused and on record; nothing is erased."""
    engine.add([memo(1)])
    expired = token(groups=["officers"], sub="carl", exp=1)
    for approver in (
        None,
        bearer("staff", "carl"),
        bearer("editors", "carl"),
        bearer("officers", BY.upper()),
        expired,
        "x",
    ):
        said = {**BODIES["erase"], **({} if approver is None else {"approver": approver})}
        refused = sends(asked, "erase", said, "officers")
        assert (refused.status_code, refused.json()["code"], refused.json()["at"]) == (
            403,
            "APPROVER_REQUIRED",
            ["approver"],
        )
        assert approver is None or approver not in refused.text.split('"')
    assert engine.contents.counts().filings == 1


def test_another_person_s_name_is_refused(client: Client, engine: Engine) -> None:
    """``by`` is who the token says."""
    engine.add([memo(1)])
    for call in (
        lambda: client.add([memo(2)], by="eve"),
        lambda: client.remove(["memo/1"], by="eve"),
        lambda: client.erase(["memo/1"], basis="GDPR_17_1", by="eve", approver=bearer(sub="carl")),
        lambda: client.erasures.holds.place("M-1", by="eve", ids=["memo/1"]),
    ):
        with pytest.raises(Refused) as refused:
            call()
        assert refused.value.code == "TOKEN_SUBJECT"
    assert engine.contents.counts().filings == 1


def test_a_key_stands_for_one_write_of_one_person(asked: Asked, engine: Engine) -> None:
    """The same body is answered as before, also with a new token of the second person; another body is refused."""
    engine.add([memo(1), memo(2)])
    second = {"approver": bearer("officers", "carl")}
    first = sends(asked, "erase", {**BODIES["erase"], **second}, "officers")
    again = sends(asked, "erase", {**BODIES["erase"], "approver": bearer("all", "carl")}, "officers")
    assert (first.status_code, again.content) == (200, first.content)
    assert 1 == sum(
        isinstance(engine.log.record(seq).event, DocumentErasure) for seq in range(engine.log.size)
    )
    for path, body in (("erase", {**BODIES["erase"], "ids": ["memo/2"], **second}), ("hold", BODIES["hold"])):
        reused = sends(asked, path, body, "officers")
        assert (reused.status_code, reused.json()["code"]) == (422, "IDEMPOTENCY_KEY_REUSED")
    hers = sends(asked, "erase", {**BODIES["erase"], **second}, "officers", sub="emma")
    assert (hers.status_code, hers.json()["at"]) == (422, ["ids"])
    missing = asked.post("hold", BODIES["hold"], bearer=bearer("officers"))
    assert missing.json()["code"] == "IDEMPOTENCY_KEY_MISSING"


def test_a_problem_names_fields_and_never_what_was_sent(asked: Asked, engine: Engine) -> None:
    for path, body, at in (
        ("erase", {"ids": ["zwyq"], "basis": "GDPR_17_1", "approver": bearer("officers", "carl")}, ["ids"]),
        ("hold", {"matter": "M-1", "words": ["zwyq"]}, ["matter", "words"]),
        ("hold", {"matter": "zwyq zwyq", "ids": []}, ["ids", "matter"]),
        ("groups", {"groups": "zwyq"}, ["groups"]),
        ("subject-report", {"person": ["zwyq"], "why": "zwyq zwyq"}, ["person", "why"]),
        ("held", {"ids": "zwyq"}, ["ids"]),
        ("erase", {"ids": [], "basis": "GDPR_17_1"}, ["ids"]),
    ):
        size = engine.log.size
        refused = sends(asked, path, body, "all")
        said = refused.json()
        assert (refused.status_code, said["at"], sorted(said["wanted"])) == (422, at, at), (path, said)
        assert "zwyq" not in refused.text
        assert engine.log.size == size


def test_a_write_that_fails_leaves_the_store_as_before(
    client: Client, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it cannot be put on record, and where the connection is lost before the answer."""
    client.add([memo(1)])
    root = engine._collection.state.root

    def fails(*_: Any, **__: Any) -> None:
        raise AuditUnavailable("x")

    with monkeypatch.context() as patched:
        patched.setattr(engine.log, "append", fails)
        second = bearer(sub="carl")
        for call in (
            lambda: client.erase(["memo/1"], basis="GDPR_17_1", approver=second),
            lambda: client.erasures.holds.place("M-1", ids=["memo/1"]),
            lambda: client.contents.import_groups(GroupImport([GroupStatement("group:a", {})])),
            lambda: client.erasures.report(["ana"], why="R-1"),
        ):
            with pytest.raises(CaragError):
                call()
    assert not engine.log.private.held()
    assert not engine._collection.store.groups.listed()
    assert engine.erase(["memo/1"], basis="GDPR_17_1", by="a", approver="b").documents == 1
    assert engine._collection.state.root != root


def test_an_interrupted_wait_names_the_job(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The documents are stored all the same."""
    with monkeypatch.context() as patched:
        patched.setattr("time.sleep", lambda _: client.close())
        with pytest.raises(Exception, match="closed") as lost:
            client.add([memo(1)])
    assert not isinstance(lost.value, InvalidArgument)


def test_nothing_of_an_erased_document_stays_in_any_file(client: Client, engine: Engine, home: Path) -> None:
    """What came over HTTP leaves the journal of jobs, tables, index and log; others stay."""
    numbers = range(1, examples(6) + 1)
    client.add([canary(one) for one in numbers])
    wanted = {one: marks(one) for one in numbers}
    gone = [one for one in numbers if one % 2]
    assert found(home, {1: wanted[1]})
    client.erase([canary(one).id for one in gone], basis="GDPR_17_1", approver=bearer(sub="carl"))
    assert not found(home, {one: wanted[one] for one in gone})
    assert found(home, {2: wanted[2]})


def test_the_journal_of_jobs_keeps_no_problem(client: Client, home: Path) -> None:
    """Reports name documents, so they are kept in memory alone."""
    report = client.add([canary(1, bits=None, facts={"classification": "no such class"})])
    assert "dossier-0001-qzx" in json.dumps(report.problems)
    assert b"dossier-0001-qzx" not in (home / "jobs.db").read_bytes()
