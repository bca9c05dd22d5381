"""Documents that are shared with some only: an oracle in plain sets, groups, twins, history, and what is refused."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import asdict, replace
from datetime import date
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from carag import Document, Engine, Session
from carag.audit import Verdict, verify_receipt
from carag.errors import CorruptFile, InvalidArgument, StoreLocked
from carag.labelling.document import Act
from carag.policy.shipped import shipped_text
from carag.retrieval import ConfidenceGate
from tests.engine.documents import QUESTION, Clock, Counting
from tests.sizes import SIZE

if TYPE_CHECKING:
    from pathlib import Path

REVIEW = Session(role="compliance", purpose="review")
READER = Session(role="public", purpose="read")
USERS = [f"user:u{number}" for number in range(6)]
GROUPS = [f"group:g{number}" for number in range(8)]
DOCUMENTS, SESSIONS = {"quick": (60, 60), "release": (300, 600)}.get(SIZE, (2000, 5000))


def opened(store: Path, **settings: Any) -> Engine:
    usual = {"profile": "generic", "embedder": Counting(), "clock": Clock(), "gate": ConfidenceGate(-1)}
    return Engine.open(store, **{**usual, **settings})


def memo(name: str, **changes: Any) -> Document:
    return Document(**{"id": name, "text": f"Branches report, says {name}.", "bits": (), **changes})


def found(engine: Engine, *principals: str, session: Session = REVIEW) -> set[str]:
    asked = replace(session, principals=frozenset(principals))
    return {one.document_id for one in engine.retrieve(QUESTION, asked, 400).passages}


def state(engine: Engine, folder: Path, groups: dict[str, list[str]]) -> None:
    """Import groups."""
    file = folder / "groups.jsonl"
    lines = (json.dumps({"group": group, "members": members}) for group, members in groups.items())
    file.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    engine.contents.import_groups(file)


# --- laws ---


def nested(random: Random) -> dict[str, list[str]]:
    """Make groups, each of people and of later groups only, so that there is no cycle."""
    return {
        group: random.sample(USERS, random.randint(0, 3)) + random.sample(GROUPS[at + 1 :], min(2, 7 - at))
        for at, group in enumerate(GROUPS[:-1])  # the last one is never stated
    }


def above(principals: set[str], groups: dict[str, list[str]]) -> set[str]:
    held = set(principals)
    while more := {group for group, members in groups.items() if held & {*members}} - held:
        held |= more
    return held


def admits(document: Document, held: set[str], denied: set[str], groups: dict[str, list[str]]) -> bool:
    """Read the two lists of a document plainly."""
    allow, deny = document.allow, set(document.deny)
    if not denied and (allow is not None or deny):
        return False
    if denied & deny or any(one.startswith("group:") and one not in groups for one in deny):
        return False
    return allow is None or bool(held & {*allow})


def shared(random: Random, number: int) -> Document:
    allow = None if random.random() < 0.3 else random.sample(USERS + GROUPS, random.randint(0, 3))
    deny = random.sample(USERS + GROUPS, random.choice([0, 0, 0, 1, 2]))
    return memo(f"d{number:04}", allow=allow, deny=deny)


@pytest.mark.parametrize("seed", range(2))
def test_a_session_finds_what_is_shared_with_it_and_nothing_else(tmp_path: Path, seed: int) -> None:
    random = Random(seed)  # noqa: S311 - a seeded world, not a secret
    groups = nested(random)
    documents = [shared(random, number) for number in range(DOCUMENTS)]
    with opened(tmp_path / "store") as engine:
        state(engine, tmp_path, groups)
        engine.add(documents)
        for _ in range(SESSIONS):
            stated = {*random.sample(USERS + GROUPS, random.randint(0, 3))}
            kept = {one for one in stated if random.random() < 0.7}
            session = replace(REVIEW, principals=frozenset(stated)).narrow(principals=kept)
            expected = {
                one.id for one in documents if admits(one, above(kept, groups), above(stated, groups), groups)
            }
            retrieval = engine.retrieve(QUESTION, session, 5)
            got = {one.document_id for one in retrieval.passages}
            assert got <= expected
            assert len(got) == min(5, len(expected))
            assert {one.document_id for one in engine.retrieve(QUESTION, session, 400).passages} == expected


def test_hidden_documents_and_groups_change_nothing_that_a_reader_gets(tmp_path: Path) -> None:
    """Twins of a store that differ in what the reader may not know."""
    answers = []
    for twin, hidden in (("a", []), ("b", [f"s{number}" for number in range(9)])):
        with opened(tmp_path / twin) as engine:
            groups = {"group:desk": ["user:ana"]}
            state(engine, tmp_path, groups | ({"group:deal": ["user:bo", "user:cy"]} if hidden else {}))
            engine.add(
                [
                    memo("open"),
                    memo("desk", allow=["group:desk"]),
                    *(memo(name, allow=["group:deal"]) for name in hidden),
                ]
            )
            ana = replace(READER, principals=frozenset({"user:ana"}))
            retrieval = engine.retrieve(QUESTION, ana, 10)
            receipt = json.loads(json.loads(retrieval.receipt.to_bytes())["record"])
            answers.append(
                (
                    [(one.chunk_id, one.similarity) for one in retrieval.passages],
                    receipt["index"]["admissible"],
                    retrieval.withheld,
                    engine.ask(QUESTION, ana).text,
                    [engine.explain(f"{name}:00000", ana).why for name in ("s1", "desk", "absent")],
                )
            )
    assert answers[0] == answers[1]
    assert answers[0][1] == 2


# --- changes ---


def test_a_new_audience_is_seen_by_the_next_question_without_embedding_again(tmp_path: Path) -> None:
    embedder = Counting()
    with opened(tmp_path / "store", embedder=embedder) as engine:
        engine.add([memo("plan", allow=["user:ana"])])
        assert (found(engine, "user:ana"), found(engine, "user:bo")) == ({"plan"}, set())
        many = len(embedder.texts)
        engine.add([memo("plan", allow=["user:bo"])])
        assert (found(engine, "user:ana"), found(engine, "user:bo")) == (set(), {"plan"})
        assert len(embedder.texts) == many
        engine.add([memo("plan")])
        assert found(engine) == {"plan"}


def test_what_was_known_then_is_shared_as_it_was_then(tmp_path: Path) -> None:
    """A record can be asked for again with its `known_at`."""
    clock = Clock()
    with opened(tmp_path / "store", clock=clock) as engine:
        engine.add([memo("plan", allow=["user:ana"])])
        clock.pass_(hours=1)
        then = clock.now
        clock.pass_(hours=1)
        engine.add([memo("plan", allow=["user:bo"])])
        past = replace(REVIEW, known_at=then)
        assert found(engine, "user:ana", session=past) == {"plan"}
        assert found(engine, "user:bo", session=past) == set()
        assert found(engine, "user:bo") == {"plan"}


def test_a_group_moved_under_another_is_effective_at_once(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as engine:
        state(engine, tmp_path, {"group:bank": [], "group:desk": ["user:ana"]})
        engine.add([memo("plan", allow=["group:bank"])])
        assert found(engine, "user:ana") == set()
        state(engine, tmp_path, {"group:bank": ["group:desk"]})
        assert found(engine, "user:ana") == {"plan"}
        state(engine, tmp_path, {"group:bank": []})
        assert found(engine, "user:ana") == set()


class Late(Counting):
    """Something happens while a question is embedded."""

    happening: Any = None

    def embed_query(self, text: str) -> Any:
        if self.happening is not None:
            happening, self.happening = self.happening, None
            happening()
        return super().embed_query(text)


@pytest.mark.parametrize("asker", ["user:ana", "user:ANA"])
def test_a_document_newer_than_the_groups_that_were_read_is_not_shown(tmp_path: Path, asker: str) -> None:
    """A person joins a group, and a document comes that is denied to it, while the question waits for its vector."""
    embedder = Late()

    def happening() -> None:
        state(engine, tmp_path, {"group:out": ["user:ana"]})
        engine.add([memo("plan", deny=["group:out"])])

    with opened(tmp_path / "store", embedder=embedder) as engine:
        state(engine, tmp_path, {"group:out": []})
        embedder.happening = happening
        with pytest.raises(StoreLocked, match="ask again"):
            found(engine, asker)
        assert engine.log.record(engine.log.size - 1).event.why == "STORE_LOCKED"  # type: ignore[union-attr]
        assert found(engine, asker) == set()
        assert found(engine, "user:bo") == {"plan"}


def test_a_successor_is_not_shown_to_who_left_its_group_while_the_model_wrote(tmp_path: Path) -> None:
    def writes(question: str, passages: Any, withheld: Any) -> str:
        state(engine, tmp_path, {"group:desk": []})
        return f"{passages[0].text} [1]"

    clock, text = Clock(), "1. The limit of a wallet is {} crowns."
    given = {
        "profile": "circulars",
        "embedder": Counting(),
        "clock": clock,
        "gate": ConfidenceGate(-1),
    }
    ana = Session(role="analyst", purpose="research", principals={"user:ana"})
    seen = []
    for generator in ("extractive", writes):
        with Engine.open(tmp_path / str(len(seen)), **given, generator=generator) as engine:
            state(engine, tmp_path, {"group:desk": ["user:ana"]})
            old = memo("old", text=text.format(10), names=["B/1"], public_at=date(2022, 1, 1))
            new = memo("new", text=text.format(20), acts=[Act("amends", "B/1")], public_at=date(2024, 1, 1))
            engine.add([old, replace(new, allow=["group:desk"])])
            answer = engine.ask("What is the limit of a wallet as on 1 March 2023?", ana)
            assert [one.document_id for one in answer.citations] == ["old"]
            seen.append([one.by.document_id for one in answer.superseded])
    assert seen == [["new"], []]


def test_an_audience_survives_closing_and_opening(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as engine:
        engine.add([memo("plan", allow=["user:ana"], deny=["user:bo"]), memo("open")])
    for path in (tmp_path / "store").glob("index.*"):
        path.unlink()  # and is written again from the store
    with opened(tmp_path / "store") as engine:
        assert found(engine, "user:ana") == {"plan", "open"}
        assert found(engine, "user:ana", "user:bo") == found(engine) == {"open"}


def test_the_record_commits_to_who_asked_and_names_nobody(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as engine:
        state(engine, tmp_path, {"group:kestrel": ["user:ana"]})
        engine.add([memo("plan", allow=["group:kestrel"])])
        receipt = engine.retrieve(QUESTION, replace(REVIEW, principals=frozenset({"user:ana"}))).receipt
        checked = verify_receipt(receipt.to_bytes(), engine.vkey)
        assert checked.verdict is Verdict.VERIFIED
        assert "principals" in checked.undisclosed
        assert b"kestrel" not in receipt.to_bytes()
        assert b"ana" not in receipt.to_bytes()
        said = json.loads(engine.log.private.openings(receipt.seq)["principals"].value)
    assert said["stated"] == ["user:ana"]
    assert len(bytes.fromhex(said["memberships"])) == 32


def test_what_a_session_gets_names_nobody_else_on_the_lists(tmp_path: Path) -> None:
    """In no form that a host may write down or send on."""
    lists = {"allow": ["group:desk", "user:kestrel"], "deny": ["user:osprey"]}
    with opened(tmp_path / "store") as engine:
        state(engine, tmp_path, {"group:desk": ["user:ana"]})
        engine.add([memo("plan", **lists)])
        ana = replace(REVIEW, principals=frozenset({"user:ana"}))
        answer, told = engine.ask(QUESTION, ana), engine.explain("plan:00000", ana)
        history = engine.contents.label_history("plan:00000")
        assert answer.passages
        for shown in (list(map(asdict, answer.passages)), answer, answer.to_json(), told.to_json(), history):
            assert not [name for name in ("kestrel", "osprey", "desk") if name in repr(shown)]


def test_an_explanation_says_that_a_document_is_shared_with_others_and_not_with_whom(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as engine:
        engine.add([memo("plan", allow=["group:kestrel"])])
        told = engine.explain("plan:00000", replace(REVIEW, principals=frozenset({"user:ana"})))
        assert [one.reason.code for one in told.reasons] == ["AUDIENCE"]
        assert "kestrel" not in str(told.to_json())
        assert engine.explain("plan:00000", READER).why == "NOTHING_TO_EXPLAIN"


# --- what cannot be read for certain ---


@pytest.mark.parametrize(
    ("lists", "said"),
    [
        ({"allow": ["ana"]}, "want a kind and an id"),
        ({"allow": "user:ana"}, "want a list of principals"),
        ({"deny": ["user:"]}, "want a kind and an id"),
        ({"allow": ["group:Desk"], "deny": ["group:desk"]}, "two spellings"),
        ({"allow": [f"user:{number}" for number in range(10_001)]}, "at most 10000"),
        ({"deny": ["user:bo, user:cy"]}, "more than one principal"),
        ({"deny": ["user:bo;user:cy"]}, "more than one principal"),
        ({"deny": ["user:bo group:x"]}, "more than one principal"),
    ],
)
def test_lists_that_are_not_valid_are_refused(lists: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        memo("plan", **lists)


def test_one_principal_has_one_spelling_in_a_store(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as engine:
        engine.add([memo("plan", allow=["group:Desk"])])
        with pytest.raises(InvalidArgument, match="group:Desk"):
            engine.add([memo("note", allow=["group:desk"])])
        assert found(engine, "group:Desk") == {"plan"}


def test_denying_reads_every_spelling_of_a_principal(tmp_path: Path) -> None:
    """A token that writes the person, or a group, in other letters opens nothing more."""
    with opened(tmp_path / "store") as engine:
        state(engine, tmp_path, {"group:out": ["user:cy"], "group:desk": []})
        engine.add([memo("plan", allow=["group:desk"], deny=["group:out"]), memo("note", deny=["user:cy"])])
        assert found(engine, "group:desk", "user:ana") == {"plan", "note"}
        assert found(engine, "group:desk", "user:CY") == found(engine, "group:desk", "user:cy") == set()
        assert found(engine, "group:desk", "group:OUT") == {"note"}
        assert found(engine, "group:DESK") == {"note"}


def test_shared_with_nobody_is_found_by_nobody_and_said(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as engine:
        report = engine.add([memo("plan", allow=[])])
        assert any("plan" in problem for problem in report.problems)
        assert found(engine, *USERS, *GROUPS) == set()


def test_a_deny_list_with_an_unknown_group_hides_until_the_group_is_known(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as engine:
        engine.add([memo("plan", deny=["group:contractors"])])
        assert found(engine, "user:ana") == set()
        state(engine, tmp_path, {"group:contractors": ["user:bo"]})
        assert found(engine, "user:ana") == {"plan"}
        assert found(engine, "user:bo") == set()


def test_a_group_is_not_imported_under_another_spelling_than_documents_use(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as engine:
        engine.add([memo("plan", allow=["group:Desk"])])
        with pytest.raises(InvalidArgument, match="another spelling of 'group:Desk'"):
            state(engine, tmp_path, {"group:desk": ["user:ana"]})
        state(engine, tmp_path, {"group:Desk": ["user:ana"]})
        assert found(engine, "user:ana") == {"plan"}


@pytest.mark.parametrize("kind", ["allow", "deny"])
def test_a_group_that_was_never_imported_is_named_when_a_document_comes(tmp_path: Path, kind: str) -> None:
    with opened(tmp_path / "store") as engine:
        report = engine.add([memo("plan", **{kind: ["group:desk", "user:bo"]})])
        assert [one for one in report.problems if "'group:desk'" in one and "never imported" in one]
        state(engine, tmp_path, {"group:desk": []})
        assert engine.add([memo("note", **{kind: ["group:desk"]})]).problems == []


# --- folders, and profiles that require an audience ---


def folder(at: Path, **files: str) -> Path:
    at.mkdir(exist_ok=True)
    for name, text in files.items():
        (at / f"{name}.md").write_text(text, "utf-8")
    return at


def test_a_folder_states_audiences_in_front_matter_and_sidecar(tmp_path: Path) -> None:
    files = folder(
        tmp_path / "files",
        plan="---\nclassification: public\nallow: [group:desk, user:ana]\ndeny: user:bo\n---\nBranches report.\n",
        note="Branches report twice.\n",
        open="---\nclassification: public\n---\nBranches report at times.\n",
    )
    (files / "metadata.csv").write_text("file,classification,allow\nnote.md,public,user:cy\n", "utf-8")
    with opened(tmp_path / "store") as engine:
        state(engine, tmp_path, {"group:desk": ["user:bo", "user:di"]})
        assert engine.sync(files).problems == []
        assert found(engine, "user:ana") == found(engine, "user:di") == {"plan.md", "open.md"}
        assert found(engine, "user:bo") == found(engine) == {"open.md"}
        assert found(engine, "user:cy") == {"note.md", "open.md"}
        (files / "metadata.csv").write_text("file,classification,allow\nnote.md,public,user:ana\n", "utf-8")
        report = engine.sync(files)
        assert (report.changed, report.embedded) == (1, 0)
        assert found(engine, "user:cy") == {"open.md"}
        assert found(engine, "user:ana") == {"plan.md", "note.md", "open.md"}


@pytest.mark.parametrize(
    "field",
    [
        *("allowed: user:ana", "denny: user:bo", "alow: [user:ana]", "Deny: user:bo", "ALLOW: user:ana"),
        *("denied: user:bo", "deny_list: [user:bo]", "allow-only: user:ana", "disallow: user:bo"),
    ],
)
def test_a_misspelt_list_quarantines(tmp_path: Path, field: str) -> None:
    files = folder(tmp_path / "files", plan=f"---\nclassification: public\n{field}\n---\nBranches report.\n")
    with opened(tmp_path / "store") as engine:
        report = engine.sync(files)
        assert any("MISSPELT_FACT" in one for one in report.problems)
        assert found(engine, *USERS) == set()


@pytest.mark.parametrize(
    "field", ["allow: ana", "allow: [group:Desk, group:desk]", "deny: ['user:']", "deny: user:bo, user:cy"]
)
def test_a_list_that_cannot_be_read_keeps_its_file_out(tmp_path: Path, field: str) -> None:
    files = folder(tmp_path / "files", plan=f"---\nclassification: public\n{field}\n---\nBranches report.\n")
    with opened(tmp_path / "store") as engine:
        assert any("plan.md: broken" in one for one in engine.sync(files).problems)
        assert found(engine, "user:ana") == set()


def test_where_an_audience_is_required_a_document_without_one_is_quarantined(tmp_path: Path) -> None:
    profile = tmp_path / "profile"
    profile.mkdir()
    text = shipped_text("generic", "profile.toml")
    first = text.index("\n[")
    (profile / "profile.toml").write_text(
        f"{text[:first]}\n[audience]\nrequired = true\n{text[first:]}", "utf-8"
    )
    (profile / "roles.toml").write_text(shipped_text("generic", "roles.toml"), "utf-8")
    with opened(tmp_path / "store", profile=profile) as engine:
        report = engine.add(
            [memo("plan"), memo("shared", allow=["user:ana"]), memo("denied", deny=["user:bo"])]
        )
        assert (report.quarantined, len(report.problems)) == (1, 1)
        assert "MISSING_AUDIENCE" in report.problems[0]
        assert found(engine, "user:ana") == {"shared", "denied"}


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM label_audiences", 'UPDATE audiences SET stated = \'{"allow":null,"deny":["user:no"]}\''],
)
def test_lists_loosened_in_the_file_are_found_at_the_first_use_or_at_opening(
    tmp_path: Path, statement: str
) -> None:
    """The state that each record names covers who may see a passage."""
    for without in ("index.carag", "index.state"):
        home = tmp_path / without.partition(".")[2]
        with opened(home) as engine:
            engine.add([memo("plan", allow=["user:ana"])])
        with closing(sqlite3.connect(home / "corpus.db", isolation_level=None)) as sql:
            sql.execute(statement)
        for path in home.glob("index.*") if without == "index.state" else [home / without]:
            path.unlink()
        with pytest.raises(CorruptFile), opened(home) as engine:
            found(engine, "user:bo")


def test_a_list_that_is_spoilt_closes_its_document(tmp_path: Path) -> None:
    """What was open before, by a list that could be read, does not stay open."""
    lines = "---\nclassification: public\nallow: {}\n---\nBranches report.\n"
    files = folder(tmp_path / "files", plan=lines.format("[user:ana]"), note=lines.format("user:ana"))
    with opened(tmp_path / "store") as engine:
        engine.sync(files)
        assert found(engine, "user:ana") == {"plan.md", "note.md"}
        folder(files, plan=lines.format("[user ana]"))
        assert any("plan.md: broken" in one for one in engine.sync(files).problems)
        assert found(engine, "user:ana") == {"note.md"}


def test_one_file_with_another_spelling_does_not_keep_the_rest_out(tmp_path: Path) -> None:
    lines = "---\nclassification: public\nallow: {}\n---\nBranches report {}.\n"
    files = folder(
        tmp_path / "files",
        a=lines.format("group:Desk", 1),
        b=lines.format("group:desk", 2),
        c=lines.format("group:Desk", 3),
    )
    with opened(tmp_path / "store") as engine:
        assert any("another spelling" in one for one in engine.sync(files).problems)
        assert found(engine, "group:Desk") == {"a.md", "c.md"}
        assert found(engine, "group:desk") == set()
