"""Stores to which anything happens, and what the fused ranker must say of them, in plain Python over every label.

Vectors are on a lattice, so that cosines are exact in float32 and many are equal, however a machine sums.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from carag.engine.collection import Collection, no_progress
from carag.index import tokenize
from carag.labelling.labelled import LabelledDocument, LabelledPassage
from carag.labelling.lifecycle import StateSpan
from carag.labelling.naming import named
from carag.policy import (
    EVERYWHERE,
    NEVER,
    TOMBSTONE,
    Mask,
    Policy,
    PolicyBit,
    Profile,
    Where,
    infer,
    policy_word,
)
from carag.retrieval import share_of, terms_of, topic_of
from carag.retrieval.ranking import NAMED, SIMILARITY, WORDS
from tests.index.plain_text import Chunk, Label, World
from tests.retrieval.ranking import worlds
from tests.retrieval.test_retriever import NOW, SESSIONS, TABLE, moment

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.random import Generator
    from numpy.typing import NDArray

    from carag.policy import Decision
    from carag.retrieval import Topic
    from carag.store.store import CorpusStore

DIM = 16
EDGAR = Profile.open("edgar")
DEPARTMENTS = ("treasury", "risk")
EVENTS = (0, PolicyBit.SUPERSEDED, PolicyBit.NOT_LATEST)
LISTS = [("treasury",), ("risk", "treasury"), ("none",)]


class Lattice:
    """An embedder of questions alone; passages are stored with drawn vectors."""

    name, dim, fingerprint, remote = "lattice", DIM, "0" * 64, False

    def embed_query(self, question: str) -> NDArray[np.float32]:
        return drawn_vectors(np.random.default_rng(list(hashlib.sha256(question.encode()).digest())), 1)[0]


def drawn_vectors(rng: Generator, count: int) -> NDArray[np.float32]:
    """Unit vectors whose entries are all a quarter, one sign or the other."""
    return (rng.integers(0, 2, (count, DIM)) / 2 - 0.25).astype(np.float32)


class Clock:
    """A microsecond later at every look."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        self.now += 1
        return self.now


class Histories(dict[str, tuple[StateSpan, ...]]):
    """A drawn history of every filing that is asked for: states come and go, and some filings end."""

    def __init__(self, rng: Generator) -> None:
        super().__init__()
        self._rng = rng

    def __missing__(self, number: str) -> tuple[StateSpan, ...]:
        edges = sorted({0, *self._rng.integers(1, 2 * NOW, int(self._rng.integers(0, 3))).tolist()})
        bits = self._rng.choice(EVENTS, len(edges)).tolist()
        if len(edges) > 1 and self._rng.random() < 0.2:
            bits[-1] = TOMBSTONE
        self[number] = tuple(StateSpan(*one) for one in zip(edges, bits, strict=True))
        return self[number]


def draw_chunk(rng: Generator, cik: int) -> LabelledPassage:
    """Draw a passage: words of the questions' vocabulary, a window, entities, and metadata for a narrowing."""
    text = " ".join(rng.choice(worlds.WORDS, int(rng.integers(1, 9))))
    bits = int((rng.random(27) < 0.03) @ (1 << np.arange(27)))
    bits |= int(rng.choice([0, PolicyBit.MATERIAL, PolicyBit.OFFERING | PolicyBit.EGC]))
    begin = int(rng.choice([0, NOW // 2, NOW - 5, NOW + 1]))
    department = str(rng.choice(DEPARTMENTS))
    return LabelledPassage(
        document="10-K",
        start=0,
        end=len(text),
        text=text,
        word=int(policy_word(bits)),
        public_at=begin,
        expires_at=max(begin, int(rng.choice([NEVER, NEVER, NEVER, NOW, NOW + 1]))),
        subjects=tuple(sorted({cik, *rng.choice([cik, 0, 1, 3], 1).tolist()})),
        metadata={"department": department} if rng.random() < 0.5 else {},
    )


def grow(store: CorpusStore, rng: Generator, number: int) -> None:
    """Put filings, new ones and other versions of old ones, and give all they touch another history."""
    put, vectors = [], 0
    for _ in range(int(rng.integers(1, 4))):
        company, cik = worlds.COMPANIES[int(rng.choice(len(worlds.COMPANIES), p=worlds.OFTEN))]
        name = f"f{rng.integers(0, 2 * number + 3)}"
        if name in {one.document_id for one, _ in put}:
            continue
        day = f"{rng.integers(2019, 2022)}-{rng.choice(['12-31', '06-30', '09-26'])}"
        filing = LabelledDocument(
            document_id=name,
            form=str(rng.choice(worlds.FORMS)),
            company=company,
            filed=f"{rng.integers(2019, 2023)}-02-03",
            content_hash=f"{number:064x}",
            facts={"period": day if rng.random() < 0.8 else None, "ciks": [cik], "stated": []},
            causes={},
            public_at_source="acceptance",
            ciks=(cik,),
        )
        chunks = [draw_chunk(rng, cik) for _ in range(int(rng.integers(0, 7)))]
        put.append((filing, chunks))
        vectors += len(chunks)
    with store.writing() as transaction:
        transaction.put(put, drawn_vectors(rng, vectors))
        transaction.relabel(Histories(rng))


def refreshed(collection: Collection) -> int:
    """Bring a collection up to its store; return the instant."""
    collection.refresh(no_progress)
    return collection.known_at


def collection_of(store: CorpusStore, path: Path) -> Collection:
    return Collection(store, Lattice(), path / "index.carag", EDGAR)  # type: ignore[arg-type]


# ---------------------------------------------------------------- questions


class Asked(NamedTuple):
    """A question, and who asks it."""

    question: str
    decision: Decision
    where: Where
    k: int


def draw_asked(rng: Generator) -> Asked:
    """Draw sessions of the shipped table, with cooling, deals and lists; others of drawn masks; narrowings."""
    if rng.random() < 0.5:
        session = list(SESSIONS.values())[int(rng.integers(0, len(SESSIONS)))]
        decision = infer(session, TABLE, now=moment(NOW))
    else:
        decision = worlds.draw_decision(rng, NOW)
    if rng.random() < 0.3:
        decision = worlds.wide(decision)
    words = " ".join(rng.choice([*worlds.WORDS, *worlds.SECRETS], int(rng.integers(0, 4))))
    question = f"What did {rng.choice(worlds.SUBJECTS)} say about {words} {rng.choice(worlds.WHEN)}?"
    fields = LISTS[int(rng.integers(0, len(LISTS)))]
    where = (
        Where.of({"department": list(fields)}, {"department": "text"}) if rng.random() < 0.2 else EVERYWHERE
    )
    return Asked(question, decision, where, int(rng.choice([1, 2, 5, 8, 500])))


class Expected(NamedTuple):
    """What must be said."""

    chunk_ids: list[str]
    similarities: list[float]
    scores: list[float]
    admissible: int
    topic: Topic
    share: float
    about: int | None


def expected_of(collection: Collection, asked: Asked, known_at: int) -> Expected:
    """Score every label that was open at an instant and is admissible, and sort: no index, no pruning, no searches."""
    store, catalogue = collection.store, collection.catalogue
    keys = store.labels.open(known_at=known_at)
    labels, vectors = store.labels.rows(keys)
    query = collection.embedder.embed_query(asked.question)
    rows = [
        (chunk, float(cosine))
        for chunk, cosine in zip(
            store.chunks(labels.keys, known_at=known_at), vectors.reshape(-1, DIM) @ query, strict=True
        )
        if asked.decision.admits(
            chunk.word, chunk.public_at, entity=chunk.subjects, expires_at=chunk.expires_at
        )
        and asked.where.admits(chunk.metadata)
    ]
    documents = sorted({chunk.filing for chunk, _ in rows})
    understood = catalogue.read(asked.question, documents)
    tiers = dict(zip(documents, (understood.tiers + NAMED * understood.is_about).tolist(), strict=True))
    is_about = dict(zip(documents, understood.is_about.tolist(), strict=True))
    heading = collection.profile.vocabulary.heading
    texts = World()
    for chunk, _ in rows:
        terms = tuple(tokenize(" ".join(named(heading, chunk.stated))))
        texts.chunks[chunk.number] = Chunk(chunk.filing, tuple(tokenize(chunk.text)), terms)
        texts.labels[chunk.key] = Label(chunk.number, int(policy_word(0)), 0, NEVER, 0)
    terms = terms_of(asked.question, understood.terms)
    by_words = {hit.key: hit.score for hit in texts.answer(terms, Policy(Mask()))}
    greatest = max(by_words.values(), default=1.0)
    scored = [
        (
            SIMILARITY * cosine + (WORDS * (by_words.get(chunk.key, 0.0) / greatest) + tiers[chunk.filing]),
            cosine,
            chunk,
        )
        for chunk, cosine in rows
    ]
    best = sorted(scored, key=lambda one: (-one[0], one[2].key))[: asked.k]
    index = texts.indexed()
    return Expected(
        [chunk.chunk_id for *_, chunk in best],
        [cosine for _, cosine, _ in best],
        [score for score, *_ in best],
        len(rows),
        topic_of(understood, lambda terms: index.count(terms, Mask()).frequencies),
        share_of(max(by_words.values(), default=0.0), index.count(terms, Mask())) if by_words else 0.0,
        sum(is_about[chunk.filing] for *_, chunk in best) if understood.reading.is_about_somebody else None,
    )


def draw_store(store: CorpusStore, rng: Generator, steps: int) -> None:
    for number in range(steps):
        grow(store, rng, number)


def every(found: Any) -> tuple[Any, ...]:
    """What a session sees of evidence, in the order of :class:`Expected`, without scores."""
    return (
        [one.chunk_id for one in found.passages],
        [one.similarity for one in found.passages],
        found.admissible,
        found.topic,
        found.about,
    )
