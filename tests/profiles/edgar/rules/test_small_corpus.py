"""The corpus that ships with the project: intact, quotable, and a different slice for every policy."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

from carag.labelling.chunking import chunk
from carag.policy import QUARANTINE, PolicyBit, PolicyTable, bit_names
from carag.profiles.edgar.reading.readers import read_filings
from carag.profiles.edgar.rules.filing_events import state_bits
from carag.profiles.edgar.rules.filing_facts import FilingFacts
from carag.profiles.edgar.rules.labeller import chunk_word, label

if TYPE_CHECKING:
    from carag.profiles.edgar.facts.filing import Filing

DATA: Final = Path(__file__).parents[4] / "data"
NOTICE: Final = (
    "Illustrative text written for the CARAG project around EDGAR header facts. "
    "It is not the text of the filing."
)
ROW: Final = re.compile(
    r"^\| (\d{10}-\d\d-\d{6}) \| ([^|]+) \| ([^|]+) \| (real|fictional) \| ([^|]+) \|$", re.MULTILINE
)

NAMES: Final = frozenset(PolicyBit.__members__)
UNRELEASED_LETTER: Final = "9990000000-25-000052"


class Passage(NamedTuple):
    accession: str
    document: int
    text: str
    word: int


@pytest.fixture(scope="module")
def filings() -> dict[str, Filing]:
    read = [outcome.filing for outcome in read_filings(DATA / "corpus")]
    return {filing.accession_number: filing for filing in read if filing is not None}


@pytest.fixture(scope="module")
def questions() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / "questions.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def table() -> PolicyTable:
    return PolicyTable.shipped()


def test_manifest_matches() -> None:
    """MANIFEST.sha256 names every text and the questions, and each file has the digest it states."""
    lines = (DATA / "MANIFEST.sha256").read_text(encoding="utf-8").splitlines()
    stated = {name: digest for digest, name in (line.split(maxsplit=1) for line in lines)}
    folders = ("circulars", "clinical", "corpus")
    paths = [*(path for name in folders for path in (DATA / name).iterdir()), DATA / "questions.jsonl"]
    assert {
        path.relative_to(DATA).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths
    } == stated


def test_size_names_and_notices(filings: dict[str, Filing]) -> None:
    """There are 30 to 60 submissions, named by their accession numbers, and each text begins with the notice."""
    assert sorted(filings) == sorted(path.stem for path in (DATA / "corpus").iterdir())
    assert 30 <= len(filings) <= 60
    texts = [document.text for filing in filings.values() for document in filing.documents]
    assert all(text.startswith(NOTICE + "\n") for text in texts)


def test_fictional_filers_are_marked(filings: dict[str, Filing]) -> None:
    """README tells real headers from fictional ones, and fictional CIKs lie where EDGAR has none."""
    rows = {
        row[1]: (row[2], row[4]) for row in ROW.finditer((DATA / "README.md").read_text(encoding="utf-8"))
    }
    assert rows == {
        accession: (filing.form, "fictional" if min(filing.ciks) >= 9_990_000_000 else "real")
        for accession, filing in filings.items()
    }


def test_quotes_are_exact(filings: dict[str, Filing], questions: list[dict[str, Any]]) -> None:
    """Every quote is an exact substring of the document it names, as filed and as read."""
    for gold in (gold for question in questions for gold in question["gold"]):
        texts = {document.sequence: document.text for document in filings[gold["accession"]].documents}
        raw = (DATA / "corpus" / f"{gold['accession']}.txt").read_text(encoding="utf-8")
        assert gold["quote"] in texts[gold["document"]]
        assert gold["quote"] in raw


def test_questions_are_well_formed(questions: list[dict[str, Any]]) -> None:
    """40 to 65 questions with distinct ids, five of which nothing answers, and one showcase."""
    assert all(set(question) == {"id", "question", "answer", "gold", "note"} for question in questions)
    ids = [question["id"] for question in questions]
    assert len(ids) == len(set(ids))
    assert 40 <= len(ids) <= 65
    assert sum(not question["gold"] for question in questions) == 5
    assert ids.count("showcase") == 1


@pytest.fixture(scope="module")
def passages(filings: dict[str, Filing]) -> list[Passage]:
    """Every passage with the word it has once all filings are known."""
    labels = {accession: label(filing) for accession, filing in filings.items()}
    state = state_bits(FilingFacts.of(filing, labels[accession]) for accession, filing in filings.items())
    return [
        Passage(
            accession,
            document.sequence,
            piece.text,
            chunk_word(labels[accession], filing, document, piece.text, piece.start) | state[accession].bits,
        )
        for accession, filing in filings.items()
        for document in filing.documents
        for piece in chunk(document.text)
    ]


def test_every_bit_is_set_somewhere(passages: list[Passage]) -> None:
    """Each of the 27 bits stands on a passage that some policy could admit."""
    open_words = [passage.word for passage in passages if not passage.word & QUARANTINE]
    assert [bit.name for bit in PolicyBit if not any(word & bit for word in open_words)] == []


def test_readme_names_the_bits(passages: list[Passage]) -> None:
    """Each file earns, on a passage at least, the bits that README says it is there for."""
    earned = {passage.accession: 0 for passage in passages}
    for passage in passages:
        earned[passage.accession] |= passage.word
    rows = ROW.finditer((DATA / "README.md").read_text(encoding="utf-8"))
    promised = {
        row[1]: {name for name in re.findall(r"[A-Z][A-Z0-9_]+", row[5]) if name in NAMES} for row in rows
    }
    assert {
        accession: names - set(bit_names(earned[accession])) for accession, names in promised.items()
    } == dict.fromkeys(earned, frozenset())


def test_only_the_unreleased_letter_is_quarantined(passages: list[Passage]) -> None:
    """The staff letter without a release date is closed; nothing else is."""
    assert {passage.accession for passage in passages if passage.word & QUARANTINE} == {UNRELEASED_LETTER}


def test_every_policy_sees_another_slice(passages: list[Passage], table: PolicyTable) -> None:
    """Any two distinct policies of the table, the data-subject cells' masks included, differ on a passage."""
    slices = {
        cell.policy: frozenset(n for n, passage in enumerate(passages) if cell.policy.admits(passage.word))
        for cell in table.cells
    }
    assert all(slices.values())
    assert len(set(slices.values())) == len(slices)


def test_no_quote_is_cut(passages: list[Passage], questions: list[dict[str, Any]]) -> None:
    """Every quote is whole in one passage, so that finding the passage is finding the evidence."""
    for gold in (gold for question in questions for gold in question["gold"]):
        assert word_of(passages, gold) is not None


def test_showcase_has_three_answers(
    passages: list[Passage], table: PolicyTable, questions: list[dict[str, Any]]
) -> None:
    """The public, an investor and compliance each have one passage more to answer the showcase from."""
    gold = next(question["gold"] for question in questions if question["id"] == "showcase")
    words = [word_of(passages, one) for one in gold]
    seen = {
        (cell.role, cell.purpose): [
            one["accession"] for one, word in zip(gold, words, strict=True) if cell.policy.admits(word)
        ]
        for cell in table.cells
    }
    exhibit, draft, quarterly = (one["accession"] for one in gold)
    assert seen["public", "public_qa"] == [quarterly]
    assert seen["buy_side", "invest"] == [draft, quarterly]
    assert seen["compliance", "surveil"] == [exhibit, draft, quarterly]


def word_of(passages: list[Passage], gold: dict[str, Any]) -> int:
    """Return the word of the one passage a quote stands in."""
    (word,) = {
        passage.word
        for passage in passages
        if (passage.accession, passage.document) == (gold["accession"], gold["document"])
        and gold["quote"] in passage.text
    }
    return word
