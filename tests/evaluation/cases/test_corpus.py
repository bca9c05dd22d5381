"""The corpora follow their rules to the chunk."""

from __future__ import annotations

import gzip
import json
import random
from typing import TYPE_CHECKING

import pytest

from carag.errors import InvalidArgument
from carag.evaluation.cases import corpus as corpora
from carag.evaluation.cases.corpus import CorpusRule, build_corpus, names_of
from carag.evaluation.cases.ground_truth import GroundTruth
from carag.evaluation.run import NOW
from carag.labelling.chunking import chunk
from carag.retrieval import embedder_by_name
from carag.retrieval.public_names import PublicNames
from carag.store.store import CorpusStore

if TYPE_CHECKING:
    from pathlib import Path


def _prose(seed: int, words: int) -> str:
    rng = random.Random(seed)  # noqa: S311 # a seed, no secret
    vocabulary = [f"word{number}" for number in range(3_000)]
    return ". ".join(
        " ".join(rng.choice(vocabulary) for _ in range(12)).capitalize() for _ in range(words // 12)
    )


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data set of made-up filings: two that questions ask about, and others inside and outside the window."""
    edgar = tmp_path / "data" / "edgar"
    edgar.mkdir(parents=True)
    rows = [
        {
            "id": f"000000{number:04d}-25-00000{number}",
            "accession": f"000000{number:04d}-25-00000{number}",
            "form": "10-K",
            "company": f"Company {number}",
            "cik": 1000 + number,
            "filed": "2025-03-01" if number < 8 else "2012-03-01",
            "business_state": "NY",
            "state_of_inc": "DE",
            "text": _prose(number, 3_000),
        }
        for number in range(1, 10)
    ]
    with gzip.open(edgar / "filings-00.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    first = str(rows[0]["text"])
    questions = [
        {
            "id": "q1",
            "question": "What does company 1 say?",
            "answer": "this",
            "source": "patronus-ai/financebench (open source 150)",
            "evidence": [{"doc_id": rows[0]["id"], "text": chunk(first)[3].text}],
        },
        {
            "id": "q2",
            "question": "And company 2?",
            "answer": "other",
            "source": "patronus-ai/financebench (open source 150)",
            "evidence": [
                {"doc_id": rows[1]["id"], "text": "nowhere in any filing stands this sentence at all"}
            ],
        },
    ]
    with gzip.open(edgar / "qa.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in questions)
    return tmp_path / "data"


def test_the_rule_is_kept_to_the_chunk(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gold first, then the question sets' filings to the first number, then the window's to the second."""
    monkeypatch.setitem(corpora.SIZES, "part", CorpusRule(15, 38))
    embedder = embedder_by_name("wordllama")
    built = build_corpus("part", cache=tmp_path / "cache", embedder=embedder, data=data)
    truth = GroundTruth.open(built.store, now=NOW)
    assert len(truth) == 38
    near = [row for row in range(38) if truth.filing(row).company in {"Company 1", "Company 2"}]
    assert len(near) == 15
    assert not [row for row in range(38) if truth.filing(row).filed == "2012-03-01"]
    (gold,) = built.gold["q1"]
    assert truth.rows_at(gold)
    assert [one.id for one in built.questions] == ["q1"]
    assert built.dropped == 1
    again = build_corpus("part", cache=tmp_path / "other", embedder=embedder, data=data)
    assert GroundTruth.open(again.store, now=NOW).ids == truth.ids
    kept = build_corpus("part", cache=tmp_path / "cache", embedder=embedder, data=data)
    assert GroundTruth.open(kept.store, now=NOW).ids == truth.ids


def test_a_corpus_reads_questions_by_the_table_next_to_its_filings(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A corpus built without it, or with another one, is completed and not embedded again."""

    def kept(built: corpora.BuiltCorpus) -> tuple[PublicNames, tuple[str, ...], bytes]:
        with CorpusStore.open(built.store / "corpus.db", create=False) as store:
            table = PublicNames.kept_in(store)
        assert table == built.names == names_of("full", data)
        truth = GroundTruth.open(built.store, now=NOW)
        assert len(truth.rows_of) == 9  # full is every filing
        return table, tuple(truth.ids), (built.store / "index.carag").read_bytes()

    embedder = embedder_by_name("wordllama")
    none, ids, index = kept(build_corpus("full", cache=tmp_path, embedder=embedder, data=data))
    assert not none.rows
    monkeypatch.setattr(type(embedder), "embed_documents", lambda *_: pytest.fail("embedded again"))
    for name in ("Company 1", "Company One"):
        with gzip.open(data / "edgar" / "companies.jsonl.gz", "wt") as file:
            file.write(json.dumps({"cik": 1001, "name": name, "sic": "3720"}) + "\n")
        table, *same = kept(build_corpus("full", cache=tmp_path, embedder=embedder, data=data))
        assert [row.name for row in table.rows] == [name]
        assert same == [ids, index]
    (data / "edgar" / "companies.jsonl.gz").unlink()
    assert kept(build_corpus("full", cache=tmp_path, embedder=embedder, data=data)) == (none, ids, index)


def test_too_few_filings_are_reported(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(corpora.SIZES, "part", CorpusRule(30, 75_000))
    with pytest.raises(InvalidArgument, match="the rule wants 75000"):
        build_corpus("part", cache=tmp_path, embedder=embedder_by_name("wordllama"), data=data)


def test_missing_data_say_what_to_do(tmp_path: Path) -> None:
    embedder = embedder_by_name("wordllama")
    for size, wanted in (("paper", "fetch_edgar.py"), ("huge", "small, part, paper, full")):
        with pytest.raises(InvalidArgument, match=wanted):
            build_corpus(size, cache=tmp_path, embedder=embedder, data=tmp_path)


@pytest.mark.full
def test_the_papers_size_is_the_papers(shared_data: Path, tmp_path: Path) -> None:
    built = build_corpus("paper", cache=tmp_path, embedder=embedder_by_name("wordllama"), data=shared_data)
    truth = GroundTruth.open(built.store, now=NOW)
    assert len(truth) == 26_595
    held = [name for name, pieces in built.gold.items() if any(truth.rows_at(piece) for piece in pieces)]
    assert len(held) >= len(built.questions)
