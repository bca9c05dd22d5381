"""Make the pairs that the reader is trained with, of licensed data and of our own writing.

``written/`` holds questions and claims that were written for passages of public texts, by a language model, by reading;
each line names its passage by document and offsets. README.md lists the licences. Nothing of a test split is read here,
nor questions of ``bench/circulars``; articles of the AI Act on which the metric is tested are left out.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import re
import zipfile
from itertools import groupby, pairwise
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bench.reader import rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


TESTED_ARTICLES: Final = frozenset(f"art_{n}" for n in (5, 9, 10, 12, 13, 14, 15, 18, 19, 20, 26, 50, 72, 73))
UNSEEN_REQUIREMENTS: Final = frozenset({"nda-1", "nda-5", "nda-11", "nda-13", "nda-17"})
WRITTEN: Final = Path(__file__).with_name("written")
_STANCES: Final = {"Entailment": 0, "Contradiction": 1, "NotMentioned": 2}
_CONJ: Final = {"entailment": 0, "contradiction": 1, "neutral": 2}
_RULED: Final = 4_000
"""Pairs made by rule, at most."""
_CONJUNCTIONS: Final = 1_200
_SENTENCE: Final = re.compile(r"(?<=[.?!;:])\s+(?=[A-Z(₹“\"0-9])")
_WORDS: Final = 110
"""Of a passage that is cut here."""


class Pair(NamedTuple):
    """Two texts, and what one head should say of them."""

    head: str
    first: str
    second: str
    label: int
    source: str


def part(key: str) -> float:
    """Draw a number in [0, 1) by a key, to split data in the same way everywhere."""
    return int(hashlib.md5(key.encode(), usedforsecurity=False).hexdigest(), 16) % 1000 / 1000


def lines(path: Path) -> list[dict[str, Any]]:
    """Read JSON lines, compressed or not."""
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    return [json.loads(one) for one in text.splitlines() if one]


def plain(text: str) -> str:
    """Return a text in one line."""
    return " ".join(text.split())


def passages(text: str, words: int = _WORDS) -> list[str]:
    """Cut a text into passages of whole sentences where they are short enough."""
    found: list[list[str]] = []
    room = 0
    for start, end in pairwise([0, *(one.end() for one in _SENTENCE.finditer(text)), len(text)]):
        said = text[start:end].split()
        for at in range(0, len(said), words):
            some = said[at : at + words]
            if len(some) > room:
                found.append([])
                room = words
            found[-1] += some
            room -= len(some)
    return [" ".join(one) for one in found if len(one) > 3]


class Corpora:
    """The texts that written lines name, by source."""

    def __init__(self, shared: Path) -> None:
        circulars = lines(shared / "rbi/circulars.jsonl.gz")
        self.titles = {one["id"]: plain(one.get("title") or "")[:90] for one in circulars}
        self.circulars = {one["id"]: one["text"] for one in circulars}
        self.articles = {
            f"{one['id']}#{at}": paragraph
            for one in lines(shared / "ai_act/articles.jsonl")
            for at, paragraph in enumerate(one["paragraphs"])
        }
        self.contracts = {
            one["doc_id"]: one
            for one in lines(shared / "legal/contractnli_docs.jsonl.gz")
            if one["split"] == "dev"
        }
        self.reports = {
            one["context_id"]: one["text"]
            for one in lines(shared / "edgar/qa_contexts.jsonl.gz")
            if one["source"] == "TAT-QA" and one["split"] == "dev"
        }

    def passage(self, line: dict[str, Any]) -> str:
        """Return the passage of a written line; a circular's begins with its title."""
        source = line["source"]
        text = self.circulars.get(source) or self.articles.get(source) or self.reports.get(source)
        text = text or self.contracts[source]["text"]
        cut = plain(text[line["start"] : line["end"]])
        return f"{self.titles[source]}. {cut}" if self.titles.get(source) else cut


def every_pair(shared: Path, fitz: Path, conj: Path, seed: int) -> list[Pair]:
    """Make all pairs, in an order drawn by ``seed``."""
    draw = Random(seed)  # noqa: S311 - draws data, no secret
    corpora = Corpora(shared)
    pairs = [
        *_questions(corpora, draw),
        *_claims(corpora, draw),
        *_reports(shared, corpora, draw),
        *_contracts(shared, corpora, draw),
        *_governed(fitz, draw),
        *_conjunctions(conj, draw),
        *_ruled(corpora, draw),
    ]
    draw.shuffle(pairs)
    return pairs


# ---------------------------------------------------------------- our own writing


def _questions(corpora: Corpora, draw: Random) -> Iterator[Pair]:
    """Questions that a passage answers, near misses, and other passages that are found for them."""
    for path in sorted(WRITTEN.glob("q_*.jsonl")):
        written = lines(path)
        texts = [corpora.passage(one) for one in written]
        near = Nearest(texts)
        for at, one in enumerate(written):
            for question in one["yes"]:
                yield Pair("holds", question, texts[at], 1, path.stem)
                yield Pair("order", question, texts[at], 1, path.stem)
                others = [row for row in near.rows(question, 10) if row != at]
                for head in ("order", "holds"):
                    yield Pair(head, question, texts[draw.choice(others[:6])], 0, path.stem)
            for question in one["no"]:
                yield Pair("holds", question, texts[at], 0, path.stem)


def _claims(corpora: Corpora, draw: Random) -> Iterator[Pair]:
    written = lines(WRITTEN / "claims.jsonl")
    texts = [corpora.passage(one) for one in written]
    near = Nearest(texts)
    for at, one in enumerate(written):
        for label, kind in enumerate(("yes", "no", "open")):
            for claim in one[kind]:
                yield Pair("stance", claim, texts[at], label, "claims")
                if draw.random() < 0.3:
                    other = draw.choice([row for row in near.rows(claim, 8) if row != at])
                    yield Pair("stance", claim, texts[other], rules.OPEN, "claims")


class Nearest:
    """Finds the passages that share most words with a question, rare words counting more."""

    def __init__(self, texts: Sequence[str]) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        self._terms = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, stop_words="english")
        self._rows = self._terms.fit_transform(texts)

    def rows(self, question: str, count: int) -> list[int]:
        """Return the rows, nearest first."""
        scores = (self._rows @ self._terms.transform([question]).T).toarray()[:, 0]
        return [int(row) for row in (-scores).argsort(kind="stable")[:count]]


# ---------------------------------------------------------------- public sets


def _reports(shared: Path, corpora: Corpora, draw: Random) -> Iterator[Pair]:
    """TAT-QA's development part (CC BY 4.0): the passage with the answer, and others of the report and elsewhere."""
    kept = {one: passages(text, 85) for one, text in corpora.reports.items() if part(f"t{one}") < 0.7}
    everything = [text for some in kept.values() for text in some]
    near = Nearest(everything)
    for one in lines(shared / "edgar/qa.jsonl.gz"):
        if one.get("context_id") not in kept or one["type"] not in ("span", "multi-span"):
            continue
        given = one["answer"] if isinstance(one["answer"], list) else [one["answer"]]
        answers = [plain(str(answer)).lower() for answer in given]
        own = kept[one["context_id"]]
        right = [text for text in own if all(answer in text.lower() for answer in answers)]
        if not right:
            continue
        found = [everything[row] for row in near.rows(one["question"], 8)]
        for others in (own, found):
            wrong = [text for text in others if not any(answer in text.lower() for answer in answers)]
            if wrong:
                yield Pair("holds", one["question"], draw.choice(wrong), 0, "tatqa")
                yield Pair("order", one["question"], draw.choice(wrong), 0, "tatqa")
        yield Pair("holds", one["question"], right[0], 1, "tatqa")
        yield Pair("order", one["question"], right[0], 1, "tatqa")


def _contracts(shared: Path, corpora: Corpora, draw: Random) -> Iterator[Pair]:
    """ContractNLI's development part (CC BY 4.0) without five requirements, on which reading is tested."""
    kept = [
        one
        for one in lines(shared / "legal/contractnli_pairs.jsonl.gz")
        if one["split"] == "dev" and one["label_id"] not in UNSEEN_REQUIREMENTS
    ]
    for document, some in groupby(kept, key=lambda one: one["doc_id"]):
        contract = corpora.contracts[document]
        spans = [plain(contract["text"][start:end]) for start, end in contract["spans"]]
        near = Nearest([*spans, "nothing"])
        for one in some:
            label, evidence = _STANCES[one["choice"]], one["evidence_spans"]
            found = [row for row in near.rows(one["hypothesis"], 4) if row < len(spans)]
            if label == 2:
                yield Pair(
                    "stance", one["hypothesis"], _cut(" ".join(spans[row] for row in found[:2])), 2, "nda"
                )
                continue
            yield Pair(
                "stance", one["hypothesis"], _cut(" ".join(spans[row] for row in evidence[:3])), label, "nda"
            )
            others = [row for row in found if row not in evidence]
            if label == 1:
                yield Pair("stance", one["hypothesis"], _cut(spans[evidence[0]]), label, "nda")
            if others and draw.random() < 0.4:
                yield Pair("stance", one["hypothesis"], _cut(spans[others[0]]), 2, "nda")


def _cut(text: str, words: int = 100) -> str:
    return " ".join(text.split()[:words])


def _governed(fitz: Path, draw: Random) -> Iterator[Pair]:
    """fitz-gov's core cases (MIT), 70 of 100: direct answers, and cases in which to abstain."""
    with zipfile.ZipFile(fitz) as wheel:
        for name, label in (
            ("abstention", 0), ("relevance", 0), ("trustworthy_direct", 1), ("trustworthy_hedged", 1),
        ):  # fmt: skip
            for case in governed(wheel, name):
                if part(f"f{case['id']}") >= 0.7:
                    continue
                contexts = [_cut(text) for text in case["contexts"]]
                together = " ".join(contexts)
                if len(together.split()) < 115:
                    yield Pair("holds", case["query"], together, label, "fitz")
                elif label == 0:
                    for text in contexts[:2]:
                        yield Pair("holds", case["query"], text, 0, "fitz")
        for case in governed(wheel, "dispute"):
            if part(f"f{case['id']}") < 0.7 and len(case["contexts"]) == 2:
                first, second = (_cut(text) for text in case["contexts"])
                yield Pair("stance", _cut(first, 50), second, 1, "fitz")
        for case in governed(wheel, "trustworthy_direct"):
            if part(f"f{case['id']}") < 0.7 and len(case["contexts"]) == 2 and draw.random() < 0.5:
                first, second = (_cut(text) for text in case["contexts"])
                yield Pair("stance", _cut(first, 50), second, 2, "fitz")


def governed(wheel: zipfile.ZipFile, name: str) -> list[dict[str, Any]]:
    """Return the core cases of a category of fitz-gov."""
    found = json.loads(wheel.read(f"fitz_gov/data/tier1_core/{name}.json"))
    return list(found["cases"] if isinstance(found, dict) else found)


def _conjunctions(conj: Path, draw: Random) -> Iterator[Pair]:
    """ConjNLI's training part (MIT): what *and*, *or* and *but* imply."""
    table = csv.reader(conj.open(encoding="utf-8-sig"), delimiter="\t", quoting=csv.QUOTE_NONE)
    rows = [row for row in table if len(row) > 2 and row[2].strip() in _CONJ]
    for row in draw.sample(rows, min(_CONJUNCTIONS, len(rows))):
        yield Pair("stance", _cut(row[1], 50), _cut(row[0]), _CONJ[row[2].strip()], "conj")


def _ruled(corpora: Corpora, draw: Random) -> Iterator[Pair]:
    """Claims by rule over articles of the AI Act, circulars of the training part, and contracts."""
    groups = [
        [text for key, text in corpora.articles.items() if key.partition("#")[0] not in TESTED_ARTICLES],
        [text for key, text in corpora.circulars.items() if part(f"c{key}") < 0.4 and len(text) < 400_000],
        [one["text"][:30_000] for one in corpora.contracts.values()],
    ]
    made: list[Pair] = []
    for texts in groups:
        cut = [passage for text in texts for passage in passages(text, 80)]
        duties = [
            (sentence, passage)
            for passage in cut
            for sentence in _SENTENCE.split(passage)
            if rules.DUTY.search(sentence) and 45 < len(sentence) < 420
        ]
        draw.shuffle(duties)
        everything = [sentence for sentence, _ in duties]
        for sentence, passage in duties[:700]:
            others = [one for one in draw.sample(everything, 3) if one not in passage]
            second = passage if draw.random() < 0.7 else sentence
            made += [
                Pair("stance", claim, second, label, "rules")
                for claim, label in rules.claims(sentence, others, draw)
            ]
    yield from draw.sample(made, min(_RULED, len(made)))
