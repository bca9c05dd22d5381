"""Lists, counts and parts of documents are what the store's rows say under the session's mask, and are on record."""

from __future__ import annotations

import re
import tempfile
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.collection.__main__ import admitted
from carag import Document, Engine, Outcome, Session
from carag.audit import Record, Verdict, verify_receipt
from carag.generation.collection.lists import MOST_COUNTED, MOST_LISTED
from carag.labelling.document import Act, ActKind
from tests.engine.documents import Clock, Counting
from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from carag.engine.results import Answer
    from tests.sharing import SharedServer

NOW = datetime(2026, 1, 5, 9, tzinfo=UTC)
CELLS = [("public", "read"), ("employee", "work"), ("counsel", "advise"), ("compliance", "review")]
STAFF = Session(role="employee", purpose="work")
KINDS, TEAMS, DAYS = (
    ("policy", "memo"),
    ("Treasury", "Risk"),
    ("2024-03-31", "2024-04-01", "2024-04-30", "2025-01-02"),
)
TITLES = ("Gold loans", "Lending against gold", "Travel", "100% (GL.*) '; DROP TABLE filings; --")
TIMES = {
    "": ("0001-01-01", "9999-12-31"),
    " issued in April 2024": ("2024-04-01", "2024-04-30"),
    " since 1 April 2024": ("2024-04-01", "9999-12-31"),
    " dated after the month of April 2024": ("2024-05-01", "9999-12-31"),
    " issued before April 1st, 2024": ("0001-01-01", "2024-03-31"),
    " issued between 31 March 2024 and 1 April 2024": ("2024-03-31", "2024-04-01"),
}
WORDS = {"": set(), " on gold": {"gold"}, " about loans": {"loans"}}

documents = st.lists(
    st.builds(
        lambda bits, kind, team, day, title, until: {
            "bits": bits,
            "metadata": {"kind": kind, "department": team, "title": title} | ({"dated": day} if day else {}),
            "expires_at": until,
        },
        st.sampled_from([(), ("INTERNAL",), ("SECRET",), ("INTERNAL", "DRAFT"), ("LEGAL",)]),
        st.sampled_from(KINDS),
        st.sampled_from(TEAMS),
        st.sampled_from([None, *DAYS]),
        st.sampled_from(TITLES),
        st.sampled_from([None, None, date(2025, 12, 1)]),
    ),
    max_size=7,
)
asked = st.tuples(
    st.sampled_from(["How many", "List all", "Which"]),
    st.sampled_from(["documents", *KINDS]),
    st.sampled_from(["", *TEAMS]),
    st.sampled_from(list(WORDS)),
    st.sampled_from(list(TIMES)),
)


def store_of(rows: Sequence[dict[str, Any]], home: str) -> Engine:
    engine = Engine.open(home, profile="generic", embedder=Counting(), clock=lambda: NOW)
    engine.add([Document(id=f"d/{n}", text=f"Text {n} of all.", **row) for n, row in enumerate(rows)])
    return engine


def meets(row: dict[str, Any], kind: str, team: str, words: str, time: str) -> bool:
    stated, (first, last) = row["metadata"], TIMES[time]
    return (
        kind in ("documents", stated["kind"])
        and team in ("", stated["department"])
        and WORDS[words] <= set(stated["title"].casefold().split())
        and (not time or first <= stated.get("dated", "") <= last)
    )


def cited(answer: Answer) -> list[str]:
    return [one.document_id for one in answer.citations]


@given(documents, asked, st.sampled_from(CELLS))
@settings(max_examples=examples(100), deadline=None)
def test_lists_and_counts_are_those_of_the_rows_under_the_mask(
    rows: list[dict[str, Any]], question: tuple[str, str, str, str, str], cell: tuple[str, str]
) -> None:
    """Whatever the store, the labels, the session and the filters; a document with hidden passages only is absent."""
    verb, kind, team, words, time = question
    plural = {"policy": "policies", "memo": "memos"}.get(kind, kind)
    text = f"{verb} {plural}{' of the ' if team else ''}{team}{words}{time}?"
    session = Session(role=cell[0], purpose=cell[1])
    with tempfile.TemporaryDirectory() as home, store_of(rows, home) as engine:
        known = sorted(admitted(Path(home), engine, session, NOW))
        titled = [rows[int(id_[2:])]["metadata"]["title"].casefold().split() for id_ in known]
        values = {one for id_ in known for one in rows[int(id_[2:])]["metadata"].values()}
        answer = engine.ask(text, session)
        expected = [id_ for id_ in known if meets(rows[int(id_[2:])], kind, team, words, time)]
        expected.sort(key=lambda one: rows[int(one[2:])]["metadata"].get("dated", ""), reverse=True)
        is_known = all(WORDS[words] <= set(one) for one in titled) or any(
            WORDS[words] <= set(one) for one in titled
        )
        if not (titled or not words) or not is_known or {kind, team} - {"documents", ""} - values:
            assert answer.why not in ("LISTED", "COUNTED")  # the words may be of a text
        elif not expected:
            assert (answer.outcome, answer.why) == (Outcome.DECLINE, "NONE_LISTED")
        else:
            assert answer.why == ("COUNTED" if verb == "How many" else "LISTED")
            assert answer.text.startswith(f"{len(expected)} document")
            assert cited(answer) == expected


@given(documents, asked)
@settings(max_examples=examples(50), deadline=None)
def test_hidden_documents_change_nothing(
    rows: list[dict[str, Any]], question: tuple[str, str, str, str, str]
) -> None:
    """Of two stores that differ in what is hidden only, both give the same answer, and the same receipt's passages."""
    verb, kind, _, words, time = question
    text = f"{verb} {'policies' if kind == 'policy' else kind}{words}{time}?"
    said = []
    hidden = [{**row, "bits": ("SECRET",)} for row in rows]
    for several in (rows, [*rows, *hidden]):
        with tempfile.TemporaryDirectory() as home, store_of(several, home) as engine:
            said.append(seen(engine.ask(text, STAFF)))
    assert said[0] == said[1]


def seen(answer: Answer) -> dict[str, Any]:
    told = {name: value for name, value in answer.to_json().items() if name not in ("record", "gate")}
    told["passages"] = [one["chunk_id"] for one in told["passages"]]
    return told


# --- a store of a firm's documents --------------------------------------------------------------------

POLICY = (
    "1 Scope\nThis policy is for all staff.\n\n4.1 Flights\nEconomy only.\n\n4.2 Hotels\nUp to 90 euro a night.\n"
    "In these cities:\n1. Rome 120.\n\n5 Meals\nForty euro a day."
)
FIRM = [
    Document(
        id="p/1",
        text=POLICY,
        bits=(),
        metadata={"title": "Travel Policy", "kind": "policy", "dated": "2024-04-03"},
    ),
    Document(
        id="p/2",
        text="Loans against gold are capped.",
        bits=(),
        metadata={"title": "Gold Loans", "kind": "memo", "dated": "2024-04-20"},
    ),
    Document(
        id="p/3",
        text="Leave is 30 days.",
        bits=(),
        metadata={"title": "Leave", "kind": "policy", "dated": "2024-06-20"},
    ),
    Document(
        id="p/4",
        text="Leave is 31 days.",
        bits=(),
        public_at=date(2025, 6, 20),
        supersedes="p/3",
        metadata={"title": "Leave of Absence", "kind": "policy", "dated": "2025-06-20"},
    ),
    Document(
        id="p/5",
        text="Nothing is said about travel.",
        bits=("SECRET",),
        public_at=date(2025, 7, 1),
        supersedes="p/2",
        metadata={"title": "Gold Plan", "kind": "plan", "dated": "2025-07-01"},
    ),
]


@pytest.fixture(scope="module")
def firm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with Engine.open(
        tmp_path_factory.mktemp("firm"), profile="generic", embedder="wordllama", clock=Clock()
    ) as engine:
        engine.add(FIRM[:4])
        yield engine


@pytest.mark.parametrize(
    ("question", "why", "documents"),
    [
        ("How many documents are there?", "COUNTED", ["p/4", "p/2", "p/1"]),
        ("Please list all policies", "LISTED", ["p/4", "p/1"]),
        ("What is the latest policy?", "LISTED", ["p/4"]),
        ("Show me the two oldest documents", "LISTED", ["p/1", "p/2"]),
        ("Which documents were issued since the 20th of April 2024?", "LISTED", ["p/4", "p/2"]),
        ("List documents titled Gold Loans", "LISTED", ["p/2"]),
        ("What has replaced Leave?", "LISTED", ["p/4"]),
        ("By which policy was p/3 replaced?", "LISTED", ["p/4"]),
        ("What did Leave of Absence replace?", "NONE_LISTED", []),
        ("How many policies were issued in 2019?", "NONE_LISTED", []),
        ("Which documents changed since June 2025?", "NONE_LISTED", []),
        ("Show section 4.2 of the Travel Policy", "SHOWN", ["p/1"]),
        ("Summarise the Travel Policy", "OUTLINED", ["p/1"]),
    ],
)
def test_a_question_about_the_documents_is_answered_from_metadata(
    firm: Engine, question: str, why: str, documents: list[str]
) -> None:
    """With each document cited, named by the receipt, and marked as cited in it."""
    answer = firm.ask(question, STAFF)
    assert answer.why == why
    assert cited(answer) == documents
    assert (answer.model_called, answer.top_similarity) == (False, None)
    checked = verify_receipt(answer.receipt.to_bytes(), firm.vkey)
    assert checked.verdict is Verdict.VERIFIED
    named = zip(answer.receipt.passages, Record.parse(answer.receipt.record).hits, strict=True)
    assert [chunk.rpartition(":")[0] for (chunk, _), hit in named if hit.cited] == documents


@pytest.mark.parametrize(
    "question",
    [
        "What is the latest policy on travel and what limit does it set?",
        "List the documents required for a loan",
        "How many days is leave?",
        "Which policies mention hotels?",
        "What documents are needed before May 2024?",
        "List documents about SELECT title FROM filings",
        "List documents about (.*)",
        "How many policies were issued in 2023-24?",
        "What has replaced the Gold Plan?",
        "Show section 9 of the Travel Policy",
        "Show section 4.2 of the Hotel Policy",
        f"List all documents{' of mine' * 60}",
    ],
)
def test_what_is_not_certain_goes_the_ordinary_way(firm: Engine, question: str) -> None:
    """A question that asks more, or names what no document has, is answered from passages or declined as before."""
    told = ("LISTED", "COUNTED", "NONE_LISTED", "SHOWN", "OUTLINED", "COMPARED")
    assert firm.ask(question, STAFF).why not in told


def test_a_section_is_shown_as_it_stands(firm: Engine) -> None:
    """From its number to the next section; a list inside it does not end it."""
    text = firm.ask("What does section 4.2 of the Travel Policy say?", STAFF).text
    assert text.split("\n", 1)[1] == "4.2 Hotels\nUp to 90 euro a night.\nIn these cities:\n1. Rome 120. [1]"


def test_an_outline_says_that_it_is_not_a_summary(firm: Engine) -> None:
    """It has each heading with the first sentence below it."""
    head, *lines = firm.ask("Summarise the Travel Policy", STAFF).text.split("\n")
    assert "not a summary" in head
    assert lines == [
        "- 1 Scope: This policy is for all staff. [1]",
        "- 4.1 Flights: Economy only. [1]",
        "- 4.2 Hotels: Up to 90 euro a night. [1]",
        "- 1. Rome 120. [1]",
        "- 5 Meals: Forty euro a day. [1]",
    ]


def test_a_generator_that_writes_is_asked_for_summaries(tmp_path: Path) -> None:
    """As before; an outline that is asked for as such stays one."""
    with Engine.open(
        tmp_path, profile="generic", embedder="wordllama", generator=lambda *_: "In short, go by train [1]."
    ) as engine:
        engine.add(FIRM[:1])
        assert engine.ask("Summarise the Travel Policy", STAFF).why == "ANSWERED"
        assert engine.ask("Give me an outline of the Travel Policy", STAFF).why == "OUTLINED"


def test_a_hidden_successor_is_absent(tmp_path: Path) -> None:
    """A session that may not use it learns as little as before it came; compliance is told."""
    with Engine.open(tmp_path, profile="generic", embedder="wordllama", clock=lambda: NOW) as engine:
        engine.add(FIRM)
        asked = "What has replaced Gold Loans?"
        assert engine.ask(asked, STAFF).why == "NONE_LISTED"
        told = engine.ask(asked, Session(role="compliance", purpose="review"))
        assert cited(told) == ["p/5"]
        about_hidden = engine.ask("What did the Gold Plan replace?", STAFF)
    assert about_hidden.why not in ("LISTED", "NONE_LISTED")


def test_as_of_an_earlier_day_the_documents_are_those_of_that_day(firm: Engine) -> None:
    """What was replaced since then counts, and what replaced it does not."""
    then = Session(role="compliance", purpose="review", as_of=datetime(2025, 1, 1, tzinfo=UTC))
    assert cited(firm.ask("List all policies", then)) == ["p/3", "p/1"]
    assert firm.ask("What has replaced Leave?", then).why == "NONE_LISTED"


def test_where_and_an_authority_narrow_lists(tmp_path: Path) -> None:
    """They are asked before anything is counted."""

    class Odd:
        name = "odd/1"

        def allowed(self, principals: frozenset[str], document_ids: Sequence[str]) -> list[bool]:
            return [one != "p/1" for one in document_ids]

    with Engine.open(tmp_path, profile="generic", embedder="wordllama", authorizer=Odd()) as engine:
        engine.add(FIRM[:4])
        assert cited(engine.ask("List all documents", STAFF)) == ["p/4", "p/2"]
        assert cited(engine.ask("List all documents", STAFF, where={"kind": "memo"})) == ["p/2"]
        assert engine.ask("Show section 4.2 of the Travel Policy", STAFF).why != "SHOWN"


@pytest.mark.parametrize(
    "question",
    [
        "How many documents are there?",
        "What did the Gold Plan amend?",
        "What has amended the Gold Plan?",
        "Which documents changed since 2020?",
        "List documents on plan",
        "How many plans are there?",
        "Give me an outline of the Gold Plan",
        "Compare the cap of Gold Loans and Gold Plan",
    ],
)
def test_what_an_authority_forbids_has_no_part_in_lists(tmp_path: Path, question: str) -> None:
    """Neither its acts nor its words: a question is told about as in a store without the document."""

    class Odd:
        name = "odd/1"

        def allowed(self, principals: frozenset[str], document_ids: Sequence[str]) -> list[bool]:
            return [one != "p/5" for one in document_ids]

    plan = replace(FIRM[4], bits=(), supersedes=None, acts=[Act(ActKind.AMENDS, "p/1")])
    told = []
    for name, documents in (("with", [*FIRM[:4], plan]), ("without", FIRM[:4])):
        with Engine.open(
            tmp_path / name, profile="generic", embedder="wordllama", clock=lambda: NOW, authorizer=Odd()
        ) as engine:
            engine.add(documents)
            answer = engine.ask(question, STAFF)
            told.append((answer.why, answer.text) if answer.top_similarity is None else None)
    assert told[0] == told[1]


def test_a_longer_list_is_cut_and_says_so(tmp_path: Path) -> None:
    """At what one record can hold; a count is of all."""
    many = MOST_LISTED + 3
    with Engine.open(tmp_path, profile="generic", embedder=Counting()) as engine:
        engine.add([Document(id=f"d/{n:04d}", text=f"Text {n}.", bits=()) for n in range(many)])
        listed, counted = (engine.ask(one, STAFF) for one in ("List all documents", "How many documents?"))
    assert (len(listed.citations), listed.complete) == (MOST_LISTED, False)
    assert listed.text.endswith(f"Only {MOST_LISTED} of them are named here; 3 more are not.")
    assert counted.text.startswith(f"{many} documents")
    assert len(counted.citations) == MOST_COUNTED


def test_a_comparison_answers_for_each_name_in_one_record(firm: Engine) -> None:
    """Side by side, in the order of the question; every mark is that of a citation, and of a hit of the record."""
    answer = firm.ask("Compare the cap of Gold Loans and Travel Policy", STAFF)
    assert answer.why == "COMPARED"
    gold, travel = answer.text.split("\n\n")
    assert gold.startswith("Gold Loans:\n")
    assert travel.startswith("Travel Policy:\n")
    marks = {int(one) for one in re.findall(r"\[(\d+)\]", answer.text)}
    assert marks == {one.number for one in answer.citations}
    named = [chunk for chunk, _ in answer.receipt.passages]
    assert [named[one.number - 1] for one in answer.citations] == [one.chunk_id for one in answer.citations]
    assert "p/2" in {one.document_id for one in answer.citations}
    assert verify_receipt(answer.receipt.to_bytes(), firm.vkey).verdict is Verdict.VERIFIED


def test_a_table_is_shown_whole_with_its_heads(tmp_path: Path) -> None:
    """Although it was cut into several passages, each of which is cited."""
    rows = "\n".join(f"Branch {n} | {n} | {n + 1}" for n in range(1, 120))
    text = f"Figures follow.\n\nBranch statement\nBranch | 2022 | 2021\n{rows}\n"
    with Engine.open(tmp_path, profile="generic", embedder="wordllama") as engine:
        engine.add([Document(id="t", text=text, bits=(), metadata={"title": "Figures", "kind": "memo"})])
        answer = engine.ask("Show the branch statement as a table", STAFF)
    assert answer.why == "SHOWN"
    shown = re.sub(r" \[\d+\]$", "", answer.text, flags=re.MULTILINE)
    assert shown.endswith(f"Branch statement\nBranch | 2022 | 2021\n{rows}")
    assert len(answer.citations) > 1
    assert answer.complete


def test_a_store_on_a_server_lists_the_same(sharing: SharedServer, tmp_path: Path) -> None:
    """The statements are those of a file."""
    sharing.shared(tmp_path / "shared")
    questions = (
        *("List all policies", "How many documents are there?", "What is the latest policy?"),
        *(
            "What has replaced Leave?",
            "What did Leave of Absence replace?",
            "Which documents changed since 2020?",
        ),
        "Show section 4.2 of the Travel Policy",
    )
    with (
        Engine.open(tmp_path / "shared", profile="generic", embedder="wordllama") as shared,
        Engine.open(tmp_path / "file", profile="generic", embedder="wordllama") as here,
    ):
        for engine in (shared, here):
            engine.add(FIRM[:4])
        for question in questions:
            assert seen(shared.ask(question, STAFF)) == seen(here.ask(question, STAFF))


def test_what_changed_is_what_others_state_as_far_as_they_may_be_used(tmp_path: Path) -> None:
    """On the day from which an act holds; the act of a hidden document is absent, as the document is."""

    def amending(id_: str, day: date, bits: tuple[str, ...]) -> Document:
        stated = {"title": f"Change {id_}", "kind": "memo", "dated": day.isoformat()}
        act = Act(ActKind.AMENDS, "p/1")
        return Document(
            id=id_, text="Hotels: 95 euro.", bits=bits, metadata=stated, acts=[act], public_at=day
        )

    with Engine.open(tmp_path, profile="generic", embedder="wordllama", clock=lambda: NOW) as engine:
        engine.add(
            [FIRM[0], amending("c/1", date(2025, 5, 2), ()), amending("c/2", date(2025, 9, 1), ("SECRET",))]
        )
        assert cited(engine.ask("Which documents were amended since May 2025?", STAFF)) == ["p/1"]
        assert cited(engine.ask("What did Change c/1 amend?", STAFF)) == ["p/1"]
        assert cited(engine.ask("What has amended the Travel Policy?", STAFF)) == ["c/1"]
        assert engine.ask("Which documents changed before May 2025?", STAFF).why == "NONE_LISTED"
        assert engine.ask("Which documents changed after June 2025?", STAFF).why == "NONE_LISTED"
        compliance = Session(role="compliance", purpose="review")
        assert cited(engine.ask("Which documents changed after June 2025?", compliance)) == ["p/1"]
        assert engine.ask("What did the Change replace?", STAFF).why != "LISTED"  # two documents may be meant
