"""Filings without text are ingested from EDGAR's submissions, index lines and rows of metadata."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from carag.engine.collection import Collection
from carag.policy import NEVER, QUARANTINE, TOMBSTONE, PolicyBit
from carag.profiles.edgar.reading.readers import read_filings
from carag.retrieval import embedder_by_name
from carag.store._label_history import LabelChange
from carag.store.store import CorpusStore
from tests.engine.filings import ingest_filings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from carag.engine import IngestReport
    from carag.profiles.edgar.facts.filing import Filing

    Opened = Callable[[], Collection]

ORIGINAL, AMENDED = "9990000102-24-000005", "9990000102-24-000021"  # a 10-K, and a 10-K/A that replaces it


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Give new, empty collections."""
    found: list[tuple[CorpusStore, Collection]] = []

    def another() -> Collection:
        store = CorpusStore.open(tmp_path / f"{len(found)}.db")
        found.append(
            (store, Collection(store, embedder_by_name("wordllama"), tmp_path / f"{len(found)}.carag"))
        )
        return found[-1][1]

    yield another
    for store, one in found:
        one.close()
        store.close()


def run(collection: Collection, *paths: Path) -> IngestReport:
    for path in paths:
        report = ingest_filings(collection, path)
    assert collection.store.labels.open().tolist() == collection.index.keys().tolist()
    return report


def read(path: Path) -> Filing:
    filing = next(iter(read_filings(path))).filing
    assert filing is not None
    return filing


def row(filing: Filing, **changes: Any) -> dict[str, Any]:
    """Describe a filing as EDGAR's submissions do."""
    assert filing.filed
    return {
        "accessionNumber": filing.accession_number,
        "filingDate": filing.filed.isoformat(),
        "reportDate": filing.period.isoformat() if filing.period else "",
        "acceptanceDateTime": f"{filing.accepted:%Y-%m-%dT%H:%M:%S.000Z}" if filing.accepted else "",
        "form": filing.form,
        "fileNumber": (filing.file_numbers or ("",))[0],
        "items": ",".join(filing.items),
        "isXBRL": 1,
        "primaryDocument": "x.htm",
    } | changes


def submissions(path: Path, cik: int, rows: list[dict[str, Any]]) -> Path:
    """Write ``CIK##########.json`` in EDGAR's layout."""
    columns = {name: [one[name] for one in rows] for name in rows[0]}
    filer = {
        "cik": f"{cik:010}",
        "name": "EXAMPLE",
        "exchanges": ["NYSE"],
        "filings": {"recent": columns, "files": []},
    }
    file = path / f"CIK{cik:010}.json"
    file.write_text(json.dumps(filer))
    return file


def words(collection: Collection, accession: str) -> list[int]:
    labels = collection.store.labels.of(collection.store.labels.of_document(accession))
    return labels.words[labels.expires_at == NEVER].tolist()


def held(collection: Collection) -> set[tuple[Any, ...]]:
    """Everything that can be found, without the store's own numbers."""
    chunks = collection.store.chunks(collection.store.labels.open())
    return {(one.chunk_id, one.text, one.word, one.public_at, one.expires_at) for one in chunks}


def causes(collection: Collection, chunk_id: str) -> dict[str, str]:
    return dict(collection.store.chunk(chunk_id).causes)


@pytest.fixture
def listed(small_corpus: Path, tmp_path: Path) -> Path:
    """Submissions that list the 10-K/A."""
    amended = read(small_corpus / f"{AMENDED}.txt")
    return submissions(tmp_path, amended.ciks[0], [row(amended)])


def test_a_listed_filing_is_an_event_and_no_passage(opened: Opened, small_corpus: Path, listed: Path) -> None:
    collection = opened()
    run(collection, small_corpus / f"{ORIGINAL}.txt")
    passages = len(words(collection, ORIGINAL))
    report = run(collection, listed)
    assert (report.events, report.chunks, report.filings, report.relabelled) == (1, 0, 0, passages)
    assert (report.total_events, report.total_filings, report.total_chunks) == (1, 1, passages)
    assert all(word & PolicyBit.AMENDED for word in words(collection, ORIGINAL))
    assert causes(collection, f"{ORIGINAL}:00000")["AMENDED"] == AMENDED


def test_any_order_with_text_ends_as_the_text_alone(opened: Opened, small_corpus: Path, listed: Path) -> None:
    """Same passages, same ids, same words; and the second run of each changes nothing."""
    texts = [small_corpus / f"{ORIGINAL}.txt", small_corpus / f"{AMENDED}.txt"]
    alone, first, last, between = (opened() for _ in range(4))
    run(alone, *texts)
    run(first, listed, *texts)
    run(last, *texts, listed)
    run(between, texts[1], listed, texts[0])
    assert held(alone) == held(first) == held(last) == held(between)
    for collection in (first, last, between):
        known = collection.known_at
        for path in (listed, *texts):
            report = run(collection, path)
            assert (report.added, report.changed, report.events, report.total_events) == (0, 0, 0, 0)
        assert collection.known_at == known


@pytest.mark.parametrize("is_one_run", [False, True])
@pytest.mark.parametrize("text_first", [True, False])
def test_a_row_that_contradicts_the_text_closes_it(
    opened: Opened, small_corpus: Path, tmp_path: Path, text_first: bool, is_one_run: bool
) -> None:
    """Whichever came first, also while the text waits to be embedded; and what was known before stays known."""
    folder = tmp_path / "given"
    folder.mkdir()
    original = folder / ("0.txt" if text_first else "x.txt")  # sorts before CIK, or after it
    shutil.copy(small_corpus / f"{ORIGINAL}.txt", original)
    filing = read(original)
    wrong = submissions(folder, filing.ciks[0], [row(filing, reportDate="2019-12-31")])
    collection = opened()
    run(collection, *((folder,) if is_one_run else (original, wrong) if text_first else (wrong, original)))
    assert words(collection, ORIGINAL)
    assert all(word & QUARANTINE for word in words(collection, ORIGINAL))
    code, said = collection.store.documents.document(ORIGINAL).quarantine or ("", "")
    assert code == "FACTS_DISAGREE"
    assert "2019-12-31" in said
    assert not any(chunk.word & TOMBSTONE for chunk in collection.store.chunks(collection.index.keys()))
    if text_first:
        report = run(collection, original)
        assert (report.unchanged, report.quarantined) == (1, {"FACTS_DISAGREE": 1})


def test_a_kill_inside_the_transaction_stores_no_event(
    opened: Opened, small_corpus: Path, listed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the next run makes it good; at each step of a transaction: ``test_ingest.py``."""

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    collection = opened()
    run(collection, small_corpus / f"{ORIGINAL}.txt")
    with monkeypatch.context() as patched:
        patched.setattr(LabelChange, "_open", killed)
        with pytest.raises(KeyboardInterrupt):
            ingest_filings(collection, listed)
    assert collection.store.documents.counts().metadata_only == 0
    assert not any(word & PolicyBit.AMENDED for word in words(collection, ORIGINAL))
    assert run(collection, listed).events == 1
    assert all(word & PolicyBit.AMENDED for word in words(collection, ORIGINAL))


def test_bad_rows_are_named_and_cost_no_others(opened: Opened, small_corpus: Path, tmp_path: Path) -> None:
    """An impossible date, a missing accession number, contradicting rows: each has its line, the rest is read."""
    amended = read(small_corpus / f"{AMENDED}.txt")
    rows = [
        row(amended, accessionNumber="0009999999-24-000001", reportDate="2024-02-30"),
        row(amended, accessionNumber=None),
        row(amended),
        row(amended, reportDate="2001-12-31"),
        row(amended, accessionNumber="0009999999-24-000002", form="8-K", items="", reportDate=""),
    ]
    report = run(opened(), submissions(tmp_path, amended.ciks[0], rows))
    assert (report.events, report.total_events) == (3, 2)
    assert ["broken" in problem for problem in report.problems] == [True, True, False]
    assert "2024-02-30" not in report.problems[0] or "period" in report.problems[0]
    assert "quarantined" in report.problems[2]
    assert report.quarantined == {"FACTS_DISAGREE": 1}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("index.tsv", "accession\tcik\n1\t2\n", "has no column form"),
        ("index.tsv", "accession\tform\na\t10-K\tmore\n", "more cells"),
        (
            "CIK0000000007.json",
            '{"cik": "7", "filings": {"recent": {"form": ["10-K"], "items": []}}}',
            "entries",
        ),
        (
            "CIK0000000007.json",
            '{"cik": "seven", "filings": {"recent": {"form": []}}}',
            "not a filer's submissions",
        ),
        ("page.json", '{"accessionNumber": ["a"], "form": ["25"]}', "whose submissions"),
        ("CIK0000000007.json", "{", "Expecting"),
        ("codes.json", '{"X0": "United Kingdom"}', "skipped: not a filer's submissions"),
    ],
)
def test_a_file_of_another_layout_is_a_clear_problem(
    opened: Opened, tmp_path: Path, name: str, content: str, said: str
) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    (folder / name).write_text(content)
    report = run(opened(), folder)
    assert report.events == 0
    assert len(report.problems) == 1
    assert said in report.problems[0]


def test_an_index_and_a_further_page_are_read_as_well(
    opened: Opened, small_corpus: Path, tmp_path: Path
) -> None:
    """Columns that are not known are passed over, and the page's name says whose it is."""
    original = read(small_corpus / f"{ORIGINAL}.txt")
    cik = original.ciks[0]
    (tmp_path / "edgar_index.tsv").write_text(
        f"accession\tcik\tform\tfiled\tcolour\n0009999999-25-000001\t{cik}\t25-NSE\t2025-03-03\tblue\n"
    )
    page = {
        name: [value]
        for name, value in row(original, form="15-12G", accessionNumber="b", reportDate="").items()
    }
    (tmp_path / f"CIK{cik:010}-submissions-001.json").write_text(json.dumps(page))
    collection = opened()
    run(collection, small_corpus / f"{ORIGINAL}.txt", tmp_path / "edgar_index.tsv")
    assert causes(collection, f"{ORIGINAL}:00000") == {"DELISTED": "0009999999-25-000001"}
    run(collection, tmp_path / f"CIK{cik:010}-submissions-001.json")
    assert causes(collection, f"{ORIGINAL}:00000") == {"DELISTED": "b"}


def test_an_event_that_bears_on_nothing_costs_later_filings_nothing(
    opened: Opened, small_corpus: Path, tmp_path: Path
) -> None:
    """It is known, so that its text must agree with it, and read again for no other filing."""
    original = read(small_corpus / f"{ORIGINAL}.txt")
    plain = row(original, form="8-K", items="8.01", accessionNumber="c")
    collection = opened()
    run(collection, submissions(tmp_path, original.ciks[0], [plain]))
    assert collection.store.documents.document("c").ciks == ()
    assert run(collection, small_corpus / f"{ORIGINAL}.txt").total_events == 1
