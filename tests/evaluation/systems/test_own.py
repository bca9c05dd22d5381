"""Your own system is measured like ours: equal figures for equal work, and no success for a failure."""

from __future__ import annotations

import gc
from dataclasses import fields, replace
from enum import Enum
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.evaluation.report.measures import MEASURES, SAFETY
from carag.evaluation.report.page import Verdict, verdict
from carag.evaluation.report.report import report
from carag.evaluation.report.strata import EVERYTHING, SliceName
from carag.evaluation.row import ORACLE, K
from carag.evaluation.systems.baselines import Hnsw
from carag.evaluation.systems.own import (
    Corpus,
    CorpusPassage,
    OwnSystem,
    checked,
    corpus_of,
    load_own_systems,
    take,
)
from carag.evaluation.systems.scoring import row_of
from carag.evaluation.systems.systems import Systems
from carag.retrieval.embedder import headed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from carag.evaluation.cases.pairs import Pair
    from carag.evaluation.models import Models
    from carag.evaluation.report.strata import Slice
    from carag.evaluation.row import Row
    from carag.evaluation.systems.output import Output
    from carag.policy import Session
    from tests.evaluation.conftest import Small

System = "Callable[[str, Session], object]"

ROW_OF = {f"a:{at}": at for at in range(20)}
known = st.lists(st.sampled_from(sorted(ROW_OF)), max_size=K, unique=True)
texts = st.none() | st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)
outcomes = st.sampled_from(["answer", "decline", "refuse"])
anything = (
    st.none() | st.integers() | st.text() | st.binary() | st.lists(st.text() | st.integers()) | st.booleans()
)


# --- the contract, as laws ---


@given(known, texts, outcomes, st.sampled_from([dict, lambda **values: SimpleNamespace(**values)]))
def test_what_keeps_the_contract_is_taken_as_it_is(
    ids: list[str], text: str | None, outcome: str, made: Callable[..., object]
) -> None:
    """From a mapping or an object, in the order given."""
    said = checked(take(made(ids=ids, text=text, outcome=outcome)), "own:x", "q", ROW_OF)
    assert [f"a:{row}" for row in said.rows] == ids
    assert (said.text, said.outcome) == (text, outcome)


@given(st.dictionaries(st.sampled_from(["ids", "text", "outcome"]), anything | known | outcomes) | anything)
def test_everything_else_is_refused_by_name(returned: object) -> None:
    """Whatever comes is either what the contract wants or one error that names system and question."""

    def kept() -> bool:
        if not isinstance(returned, dict) or set(returned) != {"ids", "text", "outcome"}:
            return False
        ids, text, outcome = returned["ids"], returned["text"], returned["outcome"]
        return (
            isinstance(ids, list)
            and len(ids) <= K
            and len(set(ids)) == len(ids)
            and set(ids) <= set(ROW_OF)
            and (text is None or (isinstance(text, str) and (text.strip() != "" or outcome != "answer")))
            and outcome in ("answer", "decline", "refuse")
        )

    if kept():
        checked(take(returned), "own:x", "q7", ROW_OF)
        return
    with pytest.raises(InvalidArgument, match=r"(?s)^own:x, question q7: .*; want "):
        checked(take(returned), "own:x", "q7", ROW_OF)


GOOD: dict[str, object] = {"ids": ["a:1", "a:0"], "text": "Net sales rose.", "outcome": "answer"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ids": ["a:1", "b:1"]}, "'b:1' is not an id in the corpus"),
        ({"ids": [1]}, "1 is not an id in the corpus"),
        ({"ids": ["a:1", "a:1"]}, "'a:1' was returned twice"),
        ({"ids": [f"a:{at}" for at in range(K + 1)]}, f"more than {K} ids"),
        ({"ids": "a:1"}, "ids is 'a:1'; want a sequence"),
        ({"ids": None}, "ids is None; want a sequence"),
        ({"ids": {"a:1": 0.5}}, "want a sequence"),
        ({"ids": {"a:1", "a:0"}}, "best first"),
        ({"text": b"Net sales"}, "text is b'Net sales'; want a str"),
        ({"text": ""}, "the text of an answer is empty"),
        ({"text": "\ud800"}, "half a surrogate pair"),
        ({"outcome": "ok"}, "outcome is 'ok'; want one of answer, decline, refuse"),
        ({"outcome": "error"}, "outcome is 'error'"),
        ({"outcome": ["answer"]}, "outcome is ['answer']"),
    ],
)
def test_each_breach_is_told(change: dict[str, object], said: str) -> None:
    checked(take(GOOD), "own:x", "q7", ROW_OF)
    with pytest.raises(InvalidArgument) as refused:
        checked(take({**GOOD, **change}), "own:x", "q7", ROW_OF)
    assert said in str(refused.value)


@pytest.mark.parametrize("absent", ["ids", "text", "outcome"])
def test_no_field_has_a_default(absent: str) -> None:
    """A system that forgot to say that it declined has not answered."""
    with pytest.raises(InvalidArgument, match=f"{absent} was not returned"):
        checked(take({name: value for name, value in GOOD.items() if name != absent}), "own:x", "q", ROW_OF)


def test_an_outcome_may_be_a_member_of_an_enumeration() -> None:
    class Said(str, Enum):  # noqa: UP042 - the older kind, whose str() is its name
        NOTHING = "decline"

    said = checked(take({**GOOD, "outcome": Said.NOTHING}), "own:x", "q", ROW_OF)
    assert "decline" == str(said.outcome)


def test_a_stream_of_ids_without_end_is_refused() -> None:
    def endless() -> Iterator[str]:
        while True:
            yield "a:1"

    with pytest.raises(InvalidArgument, match="more than"):
        checked(take({**GOOD, "ids": endless()}), "own:x", "q", ROW_OF)


# --- what a factory is given ---


def test_the_corpus_has_every_passage_and_no_label(small: Small) -> None:
    corpus = corpus_of(small.truth)
    assert [one.id for one in corpus.passages] == small.truth.ids
    assert [one.text for one in corpus.passages] == [small.truth.text(row) for row in range(len(small.truth))]
    assert {one.name for one in fields(Corpus)} == {"passages", "k"}
    told = {one.name for one in fields(CorpusPassage)}
    assert told == {"id", "text", "accession_number", "company", "form", "filed", "ciks", "document"}


def test_the_corpus_does_not_lead_to_the_ground_truth(small: Small) -> None:
    """Nothing that a passage holds holds a label."""
    first = corpus_of(small.truth).passages[0]
    assert all(isinstance(one, (str, tuple)) for one in (getattr(first, name.name) for name in fields(first)))
    assert all(isinstance(one, (str, int, type, tuple)) for one in gc.get_referents(first))


# --- the same work, the same figures ---


class Apart:
    """The systems that are asked below; each comes to its index by its own way."""

    def __init__(self, small: Small) -> None:
        self.small = small
        self.systems: Systems | None = None

    @property
    def all(self) -> tuple[OwnSystem, ...]:
        return tuple(
            OwnSystem(f"own:{name}", factory, "0" * 64)
            for name, factory in (
                ("engine", self.engine),
                ("answering", self.answering),
                ("other-words", self.other_words),
                ("short", self.short),
                ("unfiltered", self.unfiltered),
                ("failing", self.failing),
                ("quitting", self.quitting),
                ("telling", self.telling),
            )
        )

    def engine(self, _: Corpus) -> Any:
        """Our engine's retrieval; the benchmark answers from what it found."""

        def system(question: str, session: Session) -> dict[str, object]:
            assert self.systems is not None
            found = self.systems.engine.retrieve(question, session, k=K)
            ids = [one.chunk_id for one in found.passages]
            return {
                "ids": ids,
                "text": None,
                "outcome": "refuse" if found.outcome.value == "refuse" else "answer",
            }

        return system

    def answering(self, _: Corpus) -> Any:
        """Our whole engine, its answer included."""

        def system(question: str, session: Session) -> SimpleNamespace:
            assert self.systems is not None
            answer = self.systems.engine.ask(question, session)
            ids = [one.chunk_id for one in answer.passages]
            return SimpleNamespace(ids=ids, text=answer.text, outcome=answer.outcome.value)

        return system

    def other_words(self, corpus: Corpus) -> Any:
        """Our engine's retrieval, and a model that always answers, in words of its own."""
        search = self.engine(corpus)

        def system(question: str, session: Session) -> dict[str, object]:
            return {**search(question, session), "text": "It is as it is.", "outcome": "answer"}

        return system

    def short(self, corpus: Corpus) -> Any:
        """The same, but for the last passages."""
        search = self.other_words(corpus)

        def system(question: str, session: Session) -> dict[str, object]:
            said = search(question, session)
            return {**said, "ids": said["ids"][:1]}

        return system

    def unfiltered(self, corpus: Corpus) -> Any:
        """The nearest passages, no matter who asks, over an index of the corpus alone."""
        texts = [headed(one.text, f"{one.company} {one.form} filed {one.filed}") for one in corpus.passages]
        graph = Hnsw(self.small.embedder.embed_documents(texts), seed=0)

        def system(question: str, _: Session) -> dict[str, object]:
            query = self.small.embedder.embed_query(question)
            rows, _similarities = graph.nearest(query, corpus.k)
            return {"ids": [corpus.passages[row].id for row in rows], "text": None, "outcome": "answer"}

        return system

    def failing(self, _: Corpus) -> Any:
        def system(_question: str, _session: Session) -> object:
            raise KeyError("half \ud800 of a pair")

        return system

    def quitting(self, _: Corpus) -> Any:
        def system(_question: str, _session: Session) -> object:
            raise SystemExit(0)

        return system

    def telling(self, corpus: Corpus) -> Any:
        """Names nothing that it retrieved, and tells all of it."""
        search = self.unfiltered(corpus)
        text_of = {one.id: one.text for one in corpus.passages}

        def system(question: str, session: Session) -> dict[str, object]:
            told = " ".join(text_of[one] for one in search(question, session)["ids"])
            return {"ids": [], "text": told, "outcome": "answer"}

        return system


@pytest.fixture(scope="module")
def rows(small: Small, models: Models, pairs: list[Pair]) -> list[Row]:
    """Every question asked of ours and of those above."""
    apart, found = Apart(small), []
    ours = (ORACLE, "vanilla", "carag-certified")
    with Systems(small.built.store, small.truth, models, seed=0, names=ours, own=apart.all) as systems:
        apart.systems = systems
        assert systems.names == (*ours, *(one.name for one in apart.all))
        for pair in pairs[::3]:
            oracle = systems.ask(ORACLE, pair)
            said: dict[str, Output] = {name: systems.ask(name, pair) for name in systems.names[1:]}
            for name, output in {ORACLE: oracle, **said}.items():
                found.append(
                    row_of(small.truth, pair, name, output, oracle, embedder="e", generator="g", seed=0)
                )
    return found


@pytest.fixture(scope="module")
def slices(rows: list[Row]) -> dict[SliceName, Slice]:
    return dict(report(rows).sections[0].slices)


def of(rows: list[Row], system: str) -> list[Row]:
    return [
        replace(row, system="vanilla", latency_ms=dict.fromkeys(row.latency_ms), cost_usd=None)
        for row in rows
        if row.system == system
    ]


@pytest.mark.parametrize(("own", "ours"), [("own:engine", "carag-certified"), ("own:engine", ORACLE)])
def test_a_perfect_system_has_the_rows_and_figures_of_ours(
    own: str, ours: str, rows: list[Row], slices: dict[SliceName, Slice]
) -> None:
    """Our engine's retrieval, brought from outside: every row the same but for its times."""

    def but_for_words(row: Row) -> Row:
        return replace(row, answer_sha256=None) if row.outcome == "refuse" else row

    assert [*map(but_for_words, of(rows, own))] == [*map(but_for_words, of(rows, ours))]
    for part in slices.values():
        for measure in MEASURES if part.systems and part.name.scope != EVERYTHING else ():
            if measure.name not in ("cost", "noninterference"):
                assert part.systems[own][measure.name] == part.systems[ours][measure.name], measure.name


def test_a_whole_system_with_its_own_text_is_scored_by_the_text(rows: list[Row]) -> None:
    """Its figures, too; what its answers rest on it does not tell."""
    assert of(rows, "own:answering") == [
        replace(
            row,
            prompt_chunks=row.retrieved if row.outcome != "refuse" else (),
            existence_disclosed=False,
            cited=None,
            cited_elsewhere=None,
        )
        for row in of(rows, "carag-certified")
    ]


def test_your_own_model_betrays_nothing_by_answering_where_the_oracle_does_not(rows: list[Row]) -> None:
    """Only how many passages it finds is compared then, and fewer than there are does betray."""
    oracle = {row.pair: row for row in rows if row.system == ORACLE}
    others = [row for row in rows if row.system == "own:other-words"]
    assert any(oracle[row.pair].outcome != row.outcome for row in others)
    assert not any(row.existence_disclosed for row in others)
    assert any(row.existence_disclosed for row in rows if row.system == "own:short")


def test_an_unfiltered_system_leaks_as_ordinary_rag_does(
    rows: list[Row], slices: dict[SliceName, Slice]
) -> None:
    part = slices[SliceName(EVERYTHING)]
    for measure in SAFETY:
        own, ours = (
            getattr(part.systems[name][measure.name], "value", None) for name in ("own:unfiltered", "vanilla")
        )
        if (
            measure.name != "noninterference"
        ):  # where nothing relevant is hidden, the two agree with different orders
            assert (own is None, own == 0) == (ours is None, ours == 0), measure.name
    assert verdict(part, "own:unfiltered") is verdict(part, "vanilla") is Verdict.LEAKS


@pytest.mark.parametrize("name", ["own:failing", "own:quitting"])
def test_a_failure_is_a_row_with_an_error_and_never_a_success(
    name: str, rows: list[Row], slices: dict[SliceName, Slice]
) -> None:
    """It has retrieved nothing inadmissible, and that proves nothing; an exit of the program is a failure too."""
    part = slices[SliceName(EVERYTHING)]
    assert {row.outcome for row in rows if row.system == name} == {"error"}
    assert part.failed[name] == part.rows[name] == part.pairs
    assert verdict(part, name) is Verdict.UNPROVED
    real = slices[SliceName("real")].systems[name]
    assert real["f1_answerable"].value == real["admissible_recall"].value == 0  # type: ignore[union-attr]
    assert real["over_refusal"].value == real["error"].value == 1  # type: ignore[union-attr]


def test_times_are_of_the_call_and_what_it_costs_is_not_known(rows: list[Row]) -> None:
    """A retriever embeds the question itself; of a whole system the parts are not known."""
    for row in rows:
        known = {stage for stage, ms in row.latency_ms.items() if ms is not None}
        if row.outcome == "error":
            assert set() == known
        elif row.system == "own:engine" and row.outcome != "refuse":
            assert {"retrieve", "generate", "total"} == known
            assert row.latency_ms["total"] == pytest.approx(
                (row.latency_ms["retrieve"] or 0) + (row.latency_ms["generate"] or 0), abs=0.002
            )
        elif row.system == "own:answering":
            assert {"total"} == known


def test_a_system_that_names_nothing_and_tells_everything_is_not_cleared(
    slices: dict[SliceName, Slice],
) -> None:
    """A system is not believed about what it retrieved: its words are read."""
    part = slices[SliceName(EVERYTHING)]
    assert part.systems["own:telling"]["cvr_query"].value == 0  # type: ignore[union-attr]
    assert part.systems["own:telling"]["odr_ngram"].value > 0  # type: ignore[union-attr]
    assert verdict(part, "own:telling") is Verdict.WORDS


# --- factories ---


@pytest.mark.parametrize(
    ("factory", "said"),
    [
        (lambda _: None, "own:x: the factory returned None; it must return a callable"),
        (lambda _: 1 / 0, "own:x: the factory raised ZeroDivisionError"),
        (lambda _: exec("raise SystemExit(0)"), "own:x: the factory raised SystemExit"),  # noqa: S102
    ],
)
def test_a_factory_that_makes_no_system_is_refused(factory: Callable[[Corpus], Any], said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        OwnSystem("own:x", factory, "0" * 64).build(Corpus(()))


MODULE = """
def make(corpus): return lambda question, session: None
def named(corpus): return make(corpus)
named.name = "our-rag.2"
def oracle(corpus): return make(corpus)
oracle.name = "oracle"
def spoilt(corpus): return make(corpus)
spoilt.name = "a|b"
def numbered(corpus): return make(corpus)
numbered.name = 7
nothing = 3
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current directory with modules, none of which stays imported."""
    import sys

    (tmp_path / "some_rag.py").write_text(MODULE)
    (tmp_path / "broken_rag.py").write_text("def make(:\n")
    (tmp_path / "quitting_rag.py").write_text("raise SystemExit(0)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("some_rag", "broken_rag", "quitting_rag"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


@pytest.mark.usefixtures("here")
def test_a_system_is_named_by_its_module_or_its_factory() -> None:
    one, other = load_own_systems(["some_rag:make", "some_rag:named"])
    assert (one.name, other.name) == ("own:some_rag:make", "own:our-rag.2")
    assert one.source_sha256 == other.source_sha256 != ""


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("named", "said"),
    [
        (["some_rag"], "want MODULE:FACTORY"),
        ([""], "want MODULE:FACTORY"),
        (["some_rag.py:make"], "importing some_rag.py raised ModuleNotFoundError"),
        (["../some_rag:make"], "want MODULE:FACTORY"),
        (["some_rag:make()"], "want MODULE:FACTORY"),
        (["no_such_rag:make"], "importing no_such_rag raised ModuleNotFoundError"),
        (["broken_rag:make"], "importing broken_rag raised SyntaxError"),
        (["quitting_rag:make"], "importing quitting_rag raised SystemExit"),
        (["sys:exit"], "sys has no source file"),
        (["some_rag:absent"], "is missing; want a callable"),
        (["some_rag:nothing"], "is 3; want a callable"),
        (["some_rag:oracle"], "which a built-in system has"),
        (["some_rag:spoilt"], "its name is 'a|b'"),
        (["some_rag:numbered"], "its name is 7"),
        (["some_rag:make", "some_rag:make"], "two systems are named own:some_rag:make"),
    ],
)
def test_what_cannot_be_loaded_is_refused(named: list[str], said: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        load_own_systems(named)
    assert said in str(refused.value)
