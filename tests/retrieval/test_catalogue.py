"""A catalogue reads questions over a store, and what is hidden from a session changes nothing of it."""

from __future__ import annotations

import gzip
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carag import Document, Engine
from carag.errors import CorruptFile, InvalidArgument
from carag.labelling.labelled import LabelledDocument
from carag.policy import Profile
from carag.profiles.edgar.facts.filing import Filing
from carag.profiles.edgar.rules.labeller import label
from carag.profiles.edgar.rules.metadata_only import facts_of_metadata, facts_of_text, united
from carag.retrieval.catalogue import Catalogue, Understood
from carag.retrieval.public_names import PublicNames
from carag.retrieval.reading import Described, Names, ReportKind
from carag.store.store import CorpusStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

EDGAR, GENERIC = Profile.open("edgar"), Profile.open("generic")
COMPANIES = (
    "Delta Air Lines Inc",
    "Delta Apparel Inc",
    "Apple Inc.",
    "Apple Hospitality REIT, Inc.",
    "Amcor plc",
)
TABLE = (
    b'{"cik": 3, "name": "Apple Inc.", "tickers": ["AAPL"], "fiscal_year_end": "0930"}\n'
    b'{"cik": 99, "name": "Pfizer Inc", "tickers": ["PFE"]}'
)
QUESTIONS = (
    "What did Delta pay in FY2020?",
    "Apple's latest 10-K",
    "Amcor and Delta Apparel, annual reports of 2021",
    "What did PFE and Apple Hospitality earn in Q2 2021?",
    "the newest 10-Q",
)


def filing(
    number: int, cik: int, form: str = "10-K", period: str | None = None, **more: Any
) -> LabelledDocument:
    facts: dict[str, Any] = {"period": period, "ciks": more.pop("ciks", [cik]), "stated": []}
    return LabelledDocument(
        document_id=f"f{number}",
        form=form,
        company=more.pop("company", COMPANIES[cik - 1]),
        filed="2021-02-03",
        content_hash="ab" * 32,
        facts=facts,
        causes={},
        public_at_source="acceptance",
        **more,
    )


def document(number: int, metadata: dict[str, Any]) -> LabelledDocument:
    facts = {"metadata": metadata, "supersedes": None, "removed": False}
    return LabelledDocument(
        document_id=f"d{number}",
        content_hash="ab" * 32,
        facts=facts,
        causes={},
        public_at_source="always public",
    )


def put(store: CorpusStore, filings: Sequence[LabelledDocument]) -> None:
    with store.writing() as transaction:
        transaction.put([(one, []) for one in filings], np.empty((0, 4), np.float32))
        transaction.relabel()


def said(understood: Understood) -> tuple[object, ...]:
    """All of it, by ids: row numbers differ between stores."""
    by_id = dict(zip((one.id for one in understood.records), understood.tiers.tolist(), strict=True))
    return understood.reading, by_id, understood.absent, understood.terms, understood.described()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CorpusStore]:
    with CorpusStore.open(tmp_path / "corpus.db") as opened:
        yield opened


# --- laws ---

FILINGS = st.builds(
    filing,
    st.integers(1, 10**6),
    st.integers(1, 5),
    st.sampled_from(["10-K", "10-K/A", "10-Q", "8-K"]),
    st.none() | st.dates(date(2019, 1, 1), date(2022, 1, 1)).map(str),
)


@given(
    st.lists(FILINGS, max_size=8, unique_by=lambda one: one.document_id),
    st.sampled_from(QUESTIONS),
    st.booleans(),
    st.data(),
)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_store_without_the_hidden_documents_reads_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    every: list[LabelledDocument],
    question: str,
    has_table: bool,
    data: st.DataObject,
) -> None:
    """Reading, tiers, what is absent and its description: all as if the others had never been stored."""
    kept = [one for one in every if data.draw(st.booleans())]
    found = []
    for name, filings in (("whole", every), ("without", kept)):
        with CorpusStore.open(tmp_path_factory.mktemp(name) / "corpus.db") as store:
            if has_table:
                PublicNames.parse(TABLE).keep(store)
            if filings:
                put(store, filings)
            catalogue = Catalogue(store, EDGAR)
            row = {one: number for number, one, *_ in store.documents.described()}
            found.append(said(catalogue.read(question, [row[one.document_id] for one in kept])))
    assert found[0] == found[1]


ROWS = st.lists(
    st.tuples(
        st.lists(
            st.sampled_from(["Delta", "Apple", "Air", "Amcor", "Target", "Inc", "of"]), min_size=1, max_size=3
        ).map(" ".join),
        st.lists(st.sampled_from(["DAL", "AAPL"]), max_size=1),
        st.integers(1, 4),
    ),
    max_size=8,
)


@given(
    ROWS,
    st.data(),
    st.sampled_from(["Delta", "Apple Air and Delta Air", "Target, AAPL or DAL of Amcor", "Apple's"]),
)
def test_names_among_some_rows_are_those_of_a_table_of_these(
    rows: list[tuple[str, list[str], int]], data: st.DataObject, named: str
) -> None:
    """Whatever else the table has."""
    kept = {number for number in range(len(rows)) if data.draw(st.booleans())}
    question = f"What did {named} pay?"
    among = Names(rows).among(kept.__contains__).find(question)
    assert among == Names(row for number, row in enumerate(rows) if number in kept).find(question)


# --- filings ---


def test_a_document_is_described_as_its_own_text_states_it(store: CorpusStore) -> None:
    """An amendment by its base form; a table says when years end; what is not a day is left out."""
    PublicNames.parse(TABLE).keep(store)
    put(store, [filing(1, 3, "10-K405/A", "2020-09-26"), filing(2, 5, "8-K"), filing(3, 3, ciks=[3, 5])])
    first, second, third = Catalogue(store, EDGAR).read("Anything?", [1, 2, 3]).records
    filed = date(2021, 2, 3)
    assert first == Described(
        *(1, "f1", "10-K", (3,), "Apple Inc.", "", date(2020, 9, 26), filed, ReportKind.ANNUAL, "0930")
    )
    assert second == Described(2, "f2", "8-K", (5,), "Amcor plc", dated=filed)
    assert (third.entities, third.fiscal_year_end) == ((3, 5), "0930")


def test_a_name_is_known_where_its_documents_are(store: CorpusStore) -> None:
    """Of two that share a first word, either is meant by it where the other is hidden."""
    put(store, [filing(1, 1), filing(2, 2), filing(3, 3)])
    catalogue = Catalogue(store, EDGAR)
    for documents, keys in (([1, 3], {1}), ([2], {2}), ([1, 2], set()), ([], set())):
        assert catalogue.read("What did Delta pay?", documents).reading.keys == keys


def test_whose_name_a_filing_of_several_has_is_not_guessed(store: CorpusStore) -> None:
    """An insider's report names the issuer, and would make the insider a name of it."""
    put(store, [filing(1, 5, "4", ciks=[7, 5])])
    catalogue = Catalogue(store, EDGAR)
    assert not catalogue.read("What did Amcor pay?", [1]).reading.entities
    put(store, [filing(2, 5)])
    catalogue.refresh()
    understood = catalogue.read("What did Amcor pay?", [1, 2])
    assert understood.reading.keys == {5}
    assert understood.tiers.tolist() == [1, 1]


def test_what_came_since_is_read_at_the_next_refresh(store: CorpusStore) -> None:
    """And not before; a new version of a document is a row of its own."""
    put(store, [filing(1, 5)])
    catalogue = Catalogue(store, EDGAR)
    assert len(catalogue.read("Amcor?", [1]).records) == 1
    put(store, [filing(1, 5, period="2021-06-30"), filing(2, 3)])
    with pytest.raises(InvalidArgument, match="the catalogue has no document with number 2; refresh"):
        catalogue.read("Amcor?", [1, 2])
    catalogue.refresh()
    understood = catalogue.read("What did Amcor and Apple do in fiscal 2021?", [1, 2, 3])
    assert understood.tiers.tolist() == [1, 1.5, 1]


def test_a_table_of_names_counts_from_the_next_refresh_and_in_the_fingerprint(store: CorpusStore) -> None:
    """Whatever the store holds; a hidden company that it names is named, and absent."""
    put(store, [filing(1, 5)])
    catalogue = Catalogue(store, EDGAR)
    before = catalogue.fingerprint
    assert before == Catalogue(store, EDGAR).fingerprint != Catalogue(store, GENERIC).fingerprint
    PublicNames.parse(TABLE).keep(store)
    assert not catalogue.read("Pfizer's revenue?", [1]).reading.entities
    catalogue.refresh()
    assert catalogue.fingerprint != before
    understood = catalogue.read("What is Pfizer's revenue?", [1])
    assert [one.described() for one in understood.absent] == ["Pfizer"]
    assert understood.is_void
    assert understood.tiers.tolist() == [0]


@pytest.mark.parametrize("note", ["names", "names_sha256"])
def test_a_damaged_table_of_names_is_refused(store: CorpusStore, note: str) -> None:
    """Not ignored; and it can be put right by giving it again."""
    PublicNames.parse(TABLE).keep(store)
    catalogue = Catalogue(store, EDGAR)
    catalogue.refresh()
    kept = store.meta_get(note) or ""
    store.meta_set(note, kept.replace("9", "8"))
    with pytest.raises(CorruptFile, match="does not match its hash; give it again: carag names FILE"):
        Catalogue(store, EDGAR).refresh()
    PublicNames.parse(TABLE).keep(store)
    catalogue.refresh()


def test_the_lexicon_adds_terms_for_words_alone(store: CorpusStore) -> None:
    """The reading stays what it is."""
    understood = Catalogue(store, EDGAR).read("What was capex?", [])
    assert "capital expenditures" in understood.terms
    assert understood.described() == ""


def test_news_of_a_filing_changes_no_row(store: CorpusStore) -> None:
    """What other sources state of it is united with it in place, and would be read by some catalogues alone."""
    own = Filing(accession_number="f1", form="10-K", ciks=(5,), filed=date(2021, 2, 3))
    facts = facts_of_text(own, label(own))
    put(store, [replace(filing(1, 5), facts=facts)])
    before = list(store.documents.described())
    row = replace(own, ciks=(3, 5), period=date(2020, 12, 31))
    news = united(facts, facts_of_metadata(row, label(row, metadata_only=True)))
    with store.writing() as transaction:
        listed = replace(filing(2, 3), facts=facts_of_metadata(row, label(row, metadata_only=True)))
        transaction.put_metadata([replace(filing(1, 5), facts=news), listed])
        transaction.relabel()
    assert store.documents.facts_of("f1") == news != facts
    assert list(store.documents.described()) == before


def test_documents_as_the_engine_stores_them_are_read(tmp_path: Path) -> None:
    """Filings of the corpus that ships, and a user's documents with their versions and removals."""
    metadata = {"title": "Canteen menu", "kind": "memo", "dated": "2024-05-01"}
    menu = Document(id="menu", text="Soup.", facts={"classification": "public"}, metadata=metadata)
    with Engine.open(tmp_path / "office", profile="generic", embedder="wordllama") as engine:
        engine.add([menu, Document(id="note", text="Nothing.", facts={"classification": "public"})])
        engine.remove(["menu"])
        engine.add([menu])
    with CorpusStore.open(tmp_path / "office" / "corpus.db") as store:
        understood = Catalogue(store, GENERIC).read("What is on the canteen menu of 2024?", [4, 2])
    assert [one.id for one in understood.records] == ["menu", "note"]
    assert understood.described() == "canteen menu; 2024"
    assert understood.tiers.tolist() == [1.25, 0]


def test_filings_of_the_corpus_that_ships_are_read(tmp_path: Path, small_corpus: Path) -> None:
    """Each row has a kind, a filer and a date, if EDGAR's header states them."""
    with Engine.open(tmp_path / "filings", embedder="wordllama") as engine:
        engine.ingest(small_corpus)
    with CorpusStore.open(tmp_path / "filings" / "corpus.db") as store:
        catalogue = Catalogue(store, EDGAR)
        numbers = [row[0] for row in store.documents.described()]
        understood = catalogue.read("What royalty rate does Lumenfield pay in FY2023?", numbers)
        stated = {one.id: store.documents.document(one.id) for one in understood.records}
    assert understood.reading.entities
    assert {one.entities for one in understood.records if one.company and len(one.entities) == 1}
    for one, tier in zip(understood.records, understood.tiers, strict=True):
        filing = stated[one.id]
        assert (one.company, one.dated and one.dated.isoformat()) == (filing.company, filing.filed or None)
        assert list(one.entities) == filing.facts["ciks"]
        assert (tier >= 1) == (not understood.reading.keys.isdisjoint(one.entities))


# --- other profiles ---


def test_titles_and_kinds_are_those_of_documents_that_may_be_used(store: CorpusStore) -> None:
    """The title and the kind of a hidden document are not read."""
    put(
        store,
        [
            document(1, {"title": "Canteen menu", "kind": "Memo", "dated": "2024-05-01"}),
            document(2, {"title": "Canteen menu", "kind": "memo", "dated": "2024-06-01"}),
            document(3, {"title": "Sale of the gym", "kind": "board paper"}),
            document(4, {"title": "x" * 900, "kind": 7, "dated": "soon"}),
        ],
    )
    catalogue = Catalogue(store, GENERIC)
    asked = "Is the sale of the gym in a board paper, or the latest memo?"
    assert catalogue.read(asked, [1, 2, 4]).described() == "memo; the latest"
    assert catalogue.read(asked, [1, 2, 4]).tiers.tolist() == [0.2, 0.7, 0]
    assert catalogue.read(asked, [3]).described() == "sale of the gym; board paper; the latest"
    found = catalogue.read("What is on the latest canteen menu, in 2024?", [2, 1, 3])
    assert found.tiers.tolist() == [1.75, 1.25, 0]
    assert found.records[0].dated == date(2024, 6, 1)
    assert catalogue.read("Anything?", [4]).records[0] == Described(4, "d4")


def test_a_profile_that_declares_nothing_reads_nothing_of_documents(store: CorpusStore) -> None:
    """Periods of the question alone, which no document can fit."""
    put(store, [document(1, {"title": "Canteen menu", "dated": "2024-05-01"})])
    bare = Profile.from_texts(*(text.replace('"generic"', '"bare"') for text in GENERIC.texts))
    understood = Catalogue(store, bare).read("the canteen menu of 2024", [1])
    assert (understood.described(), understood.tiers.tolist(), understood.absent) == ("2024", [0], ())


def test_a_table_given_gzipped_is_the_same(store: CorpusStore) -> None:
    """Its hash covers what is read."""
    assert PublicNames.parse(gzip.compress(TABLE)).sha256 == PublicNames.parse(TABLE).sha256


def test_a_nickname_is_the_company_and_not_its_namesake(store: CorpusStore) -> None:
    """By the profile's table, whatever the store holds: first words and names of others do not win over it."""
    declared = Catalogue(store, EDGAR).declared.nicknames
    assert (declared["Citi"], declared["BofA"], declared["J&J"]) == (831001, 70858, 200406)
    PublicNames.parse(
        b'{"cik": 1318484, "name": "Citi Trends Inc"}\n{"cik": 785956, "name": "J&J SNACK FOODS CORP"}\n'
    ).keep(store)
    catalogue = Catalogue(store, EDGAR)
    catalogue.refresh()
    for nickname, cik in declared.items():
        assert catalogue.read(f"What did {nickname} pay?", []).reading.keys == {cik}
    assert catalogue.read("What did Citi Trends pay?", []).reading.keys == {1318484}
