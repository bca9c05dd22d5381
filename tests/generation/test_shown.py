"""A generator reads only about the companies that the question names; a hidden one is declined like an absent one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from carag.generation.generator import Draft
from carag.generation.guarded import Answered, DeclineCode, Declined, GuardedGenerator
from carag.labelling.labelled import LabelledDocument, LabelledPassage
from carag.policy import QUARANTINE, Decision, Mask, Policy, policy_word
from carag.retrieval import FUSED, Evidence, Retriever, ranker_by_name
from carag.retrieval.confidence.gate import ConfidenceGate
from carag.retrieval.evidence import Words
from carag.retrieval.public_names import PublicNames
from carag.store.store import CorpusStore
from tests.retrieval.ranking.stores import DIM, Clock, collection_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from carag.retrieval import Passage, Withheld

    Build = Callable[..., Evidence]

PUBLIC = PublicNames.parse(
    b'{"cik": 1, "name": "Delta Air Lines Inc", "tickers": ["DAL"]}\n{"cik": 5, "name": "Amcor plc", "tickers": []}'
)
DELTA, AMCOR, TARGET = ("Delta Air Lines Inc", 1), ("Amcor plc", 5), ("Target Corp", 7)
TEXT = "The royalty paid on net sales was 4 percent."


class Citing:
    """A generator that cites what it is shown first, and keeps what it was shown."""

    name, remote, fingerprint = "citing", False, "0" * 64

    def __init__(self) -> None:
        self.read: list[tuple[str, ...]] = []

    def generate(self, question: str, passages: Sequence[Passage], withheld: Withheld) -> Draft:
        self.read.append(tuple(one.company for one in passages))
        return Draft("It pays a royalty [1].", (0,))


class Fond:
    """A reranker that likes one company's passages best."""

    name, fingerprint, remote = "fond", "0" * 64, False

    def __init__(self, of: str) -> None:
        self.of = of

    def rerank(self, question: str, passages: Sequence[str]) -> list[float]:
        return [float(self.of in text) + at / 1e3 for at, text in enumerate(passages)]


def stored(home: Path, visible: Sequence[Any], hidden: Sequence[Any] = (), *, table: bool) -> CorpusStore:
    """A store with three passages of each company; hidden companies' passages are in quarantine."""
    store = CorpusStore.open(home / "corpus.db", clock=Clock())
    if table:
        PUBLIC.keep(store)
    for number, (company, cik) in enumerate([*hidden, *visible]):
        filing = LabelledDocument(
            document_id=f"f{number}",
            form="10-K",
            company=company,
            filed="2021-02-03",
            content_hash=f"{number:064x}",
            facts={"period": "2020-12-31", "ciks": [cik], "stated": []},
            causes={},
            public_at_source="acceptance",
        )
        word = int(policy_word(1)) | (QUARANTINE if (company, cik) in hidden else 0)
        texts = [f"{company}: {TEXT}", f"{company}: other income.", f"{company}: leases."]
        chunks = [
            LabelledPassage(
                document="10-K", start=0, end=len(one), text=one, word=word, public_at=0, subjects=(cik,)
            )
            for one in texts
        ]
        vectors = np.random.default_rng(cik).standard_normal((3, DIM)).astype(np.float32)
        store.put(filing, chunks, vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    return store


def asked(
    home: Path, question: str, *companies: Any, reranker: Any = None, k: int = 8, **more: Any
) -> tuple[Evidence, Answered | Declined, Citing]:
    """Ask a new store, through the ranker and the guard."""
    home.mkdir(parents=True)
    with stored(home, companies, **more) as store:
        collection = collection_of(store, home)
        ranker = ranker_by_name(FUSED, collection.catalogue)
        decision = Decision("role", "purpose", Policy(Mask()), 100, None, False, "")
        found = Retriever(collection, ranker, reranker=reranker).retrieve(question, decision, k)
        collection.close()
    generator = Citing()
    return found, GuardedGenerator(generator, ConfidenceGate(-1.0)).answer(question, found), generator


# --- who is named ---


@pytest.mark.parametrize(
    ("question", "table"),
    [
        ("What royalty does Delta Air Lines pay?", False),
        ("What royalty does Delta pay on net sales?", True),
        ("DAL's royalty in FY2020?", True),  # a ticker is in the table alone
    ],
)
def test_a_hidden_company_is_declined_like_an_absent_one(tmp_path: Path, question: str, table: bool) -> None:
    """Code, words, passages and similarities; and no model is called."""
    hidden = asked(tmp_path / "hidden", question, AMCOR, TARGET, hidden=[DELTA], table=table)
    absent = asked(tmp_path / "absent", question, AMCOR, TARGET, table=table)
    assert hidden[1] == absent[1]
    assert isinstance(hidden[1], Declined)
    assert hidden[1].code is DeclineCode.NOTHING_ABOUT_IT
    assert hidden[1].message.startswith("None of the documents this session may use is about D")
    assert [one.similarity for one in hidden[0].passages] == [one.similarity for one in absent[0].passages]
    assert (hidden[0].topic, hidden[0].words) == (absent[0].topic, absent[0].words)
    assert hidden[2].read == absent[2].read == []
    there = asked(tmp_path / "there", question, AMCOR, DELTA, table=table)
    assert isinstance(there[1], Answered)


def test_of_two_companies_one_is_enough(tmp_path: Path) -> None:
    """It answers from the one that is there, says what is missing, and shows nothing of a third."""
    question = "What royalty do Amcor and Delta Air Lines pay?"
    for name, hidden in (("hidden", [DELTA]), ("absent", [])):
        found, answer, generator = asked(tmp_path / name, question, AMCOR, TARGET, hidden=hidden, table=True)
        assert isinstance(answer, Answered)
        assert (found.topic.absent, found.topic.missing) == ("", "Delta Air Lines")
        assert (found.about, generator.read) == (3, [("Amcor plc",) * 3])
        assert len(found.passages) == 6, "a session may read the others"


def test_a_year_that_nothing_is_of_is_declined(tmp_path: Path) -> None:
    """Of the company named, in the question's own words."""
    _, answer, generator = asked(
        tmp_path / "a", "What royalty did Amcor pay in FY2012?", AMCOR, TARGET, table=True
    )
    assert isinstance(answer, Declined)
    assert answer.code is DeclineCode.NOTHING_ABOUT_IT
    assert "Amcor in " in answer.message
    assert generator.read == []


def test_if_no_company_is_named_all_is_shown(tmp_path: Path) -> None:
    """In the order of the ranker; the question says enough for no question back."""
    found, answer, generator = asked(
        tmp_path / "a", "What royalty on net sales of licensed goods is paid?", AMCOR, TARGET, table=True
    )
    assert isinstance(answer, Answered)
    assert (found.about, len(generator.read[0])) == (None, 6)
    assert found.shown == found.passages


@pytest.mark.parametrize("k", [2, 4, 6, *(pytest.param(k, marks=pytest.mark.release) for k in (1, 3))])
def test_a_reranker_keeps_what_is_about_whom_is_named_before_the_rest(tmp_path: Path, k: int) -> None:
    """However well it likes the others; within either it orders as it likes."""
    question = "What royalty does Amcor pay?"
    found, answer, generator = asked(
        tmp_path / "a", question, AMCOR, TARGET, table=True, reranker=Fond("Target"), k=k
    )
    companies = [one.company for one in found.passages]
    assert companies == (["Amcor plc"] * 3 + ["Target Corp"] * 3)[:k]
    assert found.about == min(k, 3)
    assert isinstance(answer, Answered)
    assert set(generator.read[0]) == {"Amcor plc"}
    if k == 6:
        plain, _, _ = asked(tmp_path / "b", question, AMCOR, TARGET, table=True, k=6)
        assert [one.chunk_id for one in found.passages[:3]] == [one.chunk_id for one in plain.passages[2::-1]]


# --- the guard by itself ---


@pytest.mark.parametrize(("share", "declines"), [(0.0, True), (0.2499, True), (0.25, False), (1.0, False)])
def test_too_few_words_are_declined(evidence: Build, share: float, declines: bool) -> None:
    """Below the profile's least share, with both numbers; and no model is called."""
    generator = Citing()
    found = replace(evidence("Net sales rose."), words=Words(share, 0.25))
    answer = GuardedGenerator(generator, ConfidenceGate(0.5)).answer("What rose?", found)
    assert (isinstance(answer, Declined), generator.read == []) == (declines, declines)
    if isinstance(answer, Declined):
        assert answer.code is DeclineCode.TOO_FEW_WORDS
        assert f"{share:.2f}" in answer.message
        assert "needed 0.25" in answer.message
