"""Worlds of documents, drawn from a number, of which a session may use a part; and all that a ranker says of them.

A world is three copies and no store, so that a hundred thousand fit into a test: the index of vectors, the index of
words, and the catalogue over rows as a store describes them. Rows of a store are asked in tests of the retriever.
"""

from __future__ import annotations

import json
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

import numpy as np

from carag.index import Index, TextIndex, tokenize
from carag.policy import NEVER, QUARANTINE, Decision, Mask, Policy, Profile, policy_word
from carag.retrieval.catalogue import Catalogue
from carag.retrieval.ranking import Fused, Question, best_of, ranker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.random import Generator

    from carag.retrieval.public_names import PublicNames
    from carag.retrieval.ranking import Best

COMPANIES = (
    ("Delta Air Lines Inc", 1),
    ("Delta Apparel Inc", 2),
    ("Apple Inc.", 3),
    ("Apple Hospitality REIT, Inc.", 4),
    ("Amcor plc", 5),
    ("Amcor Flexibles", 6),
    ("Target Corp", 7),
)
"""Of which most can be taken for another."""
OFTEN = (0.2, 0.1, 0.05, 0.25, 0.25, 0.05, 0.1)
TITLES = ("Canteen menu", "Sale of the gym", "Canteen rules", "")
KINDS = ("memo", "board paper", "contract")
FORMS = ("10-K", "10-K/A", "10-Q", "8-K")
WORDS = ("sales", "capex", "capital", "expenditures", "royalty", "lease", "gym", "delta", "wine", "profit")
SECRETS = ("whistle", "gringotts", "settlement", "target")
"""Terms that only what is hidden holds, in most worlds."""
SUBJECTS = (
    *("Delta", "Delta Apparel", "Apple", "Amcor", "Target Corp", "Apple Hospitality and Target Corp"),
    *(
        "Amcor plc and Delta Air Lines",
        "Gringotts",
        "the filings",
        "Apple Hospitality, Amcor plc and Delta Air Lines",
    ),
)
TITLED = (
    "the papers",
    "the canteen menu",
    "the sale of the gym",
    "Gringotts",
    "the memo",
    "canteen rules and the gym",
)
WHEN = ("in FY2020", "in 2019", "in Q2 2021", "in the latest 10-K", "in the latest memo", "")
DIM = 16
MATERIAL, OFFERING = 1 << 17, 1 << 16
AS_OF = 100


class Label(NamedTuple):
    """When a passage has which word."""

    word: int
    public_at: int = 0
    expires_at: int = NEVER
    entity: int = 0


@dataclass(frozen=True)
class Text:
    """A passage, under one key for each of its labels."""

    terms: tuple[str, ...]
    vector: tuple[float, ...]
    labels: dict[int, Label]


@dataclass(frozen=True)
class Document:
    """What a store's row says of it, and its passages."""

    id: str
    company: str
    cik: int
    kind: str
    title: str
    day: str | None
    texts: tuple[Text, ...]

    def described(self, number: int, *, has_companies: bool) -> tuple[Any, ...]:
        """The columns of ``SELECT_DESCRIBED``."""
        if has_companies:
            return (
                number,
                self.id,
                self.kind,
                self.company,
                "2021-02-03",
                self.day,
                json.dumps([self.cik]),
                None,
            )
        stated = {"title": self.title, "kind": self.kind, "dated": self.day}
        return number, self.id, "", "", "", None, "[]", json.dumps(stated)

    @property
    def heading(self) -> str:
        return f"{self.title} {self.company} {self.kind}"


@dataclass(frozen=True)
class World:
    """Documents in the order in which they came, and who asks what."""

    profile: str
    documents: tuple[Document, ...]
    question: str
    decision: Decision
    query: tuple[float, ...]
    k: int

    def admits(self, label: Label) -> bool:
        return self.decision.admits(
            label.word, label.public_at, entity=label.entity, expires_at=label.expires_at
        )

    def visible(self) -> World:
        """The same world, in which nothing was ever stored but what the session may use."""
        documents = []
        for one in self.documents:
            texts = [
                replace(text, labels=kept)
                for text in one.texts
                if (kept := {key: label for key, label in text.labels.items() if self.admits(label)})
            ]
            if texts:
                documents.append(replace(one, texts=tuple(texts)))
        return replace(self, documents=tuple(documents))


@dataclass
class Rows:
    """A store as a catalogue reads it."""

    rows: list[tuple[Any, ...]]
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def documents(self) -> Rows:
        return self

    def described(self, *, after: int = 0) -> Iterator[tuple[Any, ...]]:
        return (row for row in self.rows if row[0] > after)

    def meta_get(self, name: str) -> str | None:
        return self.notes.get(name)

    def meta_update(self, notes: dict[str, str]) -> None:
        self.notes.update(notes)


CATALOGUES = {name: Catalogue(Rows([]), Profile.open(name)) for name in ("edgar", "generic")}  # type: ignore[arg-type]


class Said(NamedTuple):
    """All that a ranker says to a session, numbers by their bits."""

    keys: tuple[int, ...]
    similarities: bytes
    scores: bytes
    admissible: int
    topic: tuple[str, str, str]
    share: str
    about: frozenset[int] | None


def catalogue_of(world: World, table: PublicNames | None = None) -> Catalogue:
    """A catalogue that has read nothing but this world; what the profile declares is parsed once."""
    is_edgar = world.profile == "edgar"
    catalogue = copy(CATALOGUES[world.profile])
    rows = [one.described(number, has_companies=is_edgar) for number, one in enumerate(world.documents, 1)]
    store: Any = Rows(rows)
    if table is not None:
        table.keep(store)
    catalogue._store = store
    return catalogue


def said_of(world: World, table: PublicNames | None = None) -> Said:
    """Ask the fused ranker of a newly made world."""
    index, words = Index(DIM, M=8, ef_construction=20), TextIndex()
    numbered = list(enumerate(world.documents, 1))
    texts = [(number, one, text) for number, one in numbered for text in one.texts]
    rows = [
        (key, chunk, text, label)
        for chunk, (_, _, text) in enumerate(texts)
        for key, label in text.labels.items()
    ]
    if rows:
        words.add(
            range(len(texts)),
            [number for number, _, _ in texts],
            [text.terms for _, _, text in texts],
            headings={number: tokenize(one.heading) for number, one in numbered if one.texts},
        )
        keys = np.array([key for key, *_ in rows])
        bits = np.array([label.word for *_, label in rows], np.uint32)
        columns = {
            "public_at": np.array([label.public_at for *_, label in rows], np.uint32),
            "expires_at": np.array([label.expires_at for *_, label in rows], np.uint32),
            "entities": np.array([label.entity for *_, label in rows], np.uint32),
        }
        words.label(keys, [chunk for _, chunk, *_ in rows], bits, allow_quarantine=True, **columns)
        vectors = np.array([text.vector for _, _, text, _ in rows], np.float32)
        index.add(vectors, bits, keys, allow_quarantine=True, **columns)
    found: list[Best] = []

    def kept(*given: Any, **named: Any) -> Best:
        found.append(best_of(*given, **named))
        return found[-1]

    question = Question(world.question, np.array(world.query, np.float32))
    with patch.object(ranker, "best_of", kept):
        ranked = Fused(catalogue_of(world, table)).rank(
            index, words, question, world.decision.searches, world.k, exact_limit=None
        )
    assert ranked.words is not None
    return Said(
        tuple(ranked.keys),
        np.array(ranked.similarities, np.float32).tobytes(),
        found[-1].scores.tobytes(),
        ranked.admissible,
        (ranked.topic.understood, ranked.topic.absent, ranked.topic.missing),
        ranked.words.share.hex(),
        ranked.about,
    )


# ---------------------------------------------------------------- chance


def draw_label(rng: Generator) -> Label:
    """Draw bits that policies ask for, windows around the instant of the question, entities."""
    word = (
        int(rng.integers(0, 4))
        | (MATERIAL if rng.random() < 0.3 else 0)
        | (OFFERING if rng.random() < 0.2 else 0)
    )
    begin = int(rng.choice([0, 0, 0, 0, 50, 95, AS_OF, AS_OF + 1]))
    end = int(rng.choice([NEVER, NEVER, NEVER, NEVER, AS_OF, AS_OF + 1, begin]))
    control = QUARANTINE if rng.random() < 0.05 else 0
    return Label(int(policy_word(word)) | control, begin, max(begin, end), int(rng.integers(0, 5)))


def draw_decision(rng: Generator, as_of: int = AS_OF) -> Decision:
    """Draw masks, lists, a cooling time, and cells that are reopened for what is offered."""
    is_reopened = rng.random() < 0.2
    listed = rng.integers(0, 5, int(rng.integers(1, 4))).tolist()
    lists = rng.choice([{}, {}, {}, {}, {"deny_entities": listed}, {"allow_entities": listed}])
    masks = [Mask(int(rng.integers(0, 3)) & int(rng.integers(0, 3)), OFFERING if is_reopened else 0)]
    if rng.random() < 0.2:
        masks.append(Mask(2, OFFERING if is_reopened else 1))
    return Decision(
        "role",
        "purpose",
        Policy(*masks, **lists),
        as_of,
        None,
        False,
        "",
        reopened=Policy(Mask(OFFERING), deny_entities=[1]) if is_reopened else None,
        cooling=int(rng.choice([0, 0, 20])),
    )


def wide(decision: Decision) -> Decision:
    """Admit everything public."""
    return replace(decision, policy=Policy(Mask()), reopened=None, cooling=0)


def draw_vector(rng: Generator) -> tuple[float, ...]:
    """Draw a unit vector; every other one of a lattice, so that cosines are exact and many are equal."""
    if rng.random() < 0.5:
        return tuple((rng.integers(0, 2, DIM) / 2 - 0.25).tolist())
    drawn = rng.standard_normal(DIM)
    return tuple((drawn / np.linalg.norm(drawn)).tolist())


def draw_text(rng: Generator, words: tuple[str, ...], keys: Iterator[int], labels: list[Label]) -> Text:
    ranks = np.minimum(rng.zipf(1.5, int(rng.integers(0, 12))), len(words)) - 1
    return Text(tuple(words[rank] for rank in ranks), draw_vector(rng), dict(zip(keys, labels, strict=False)))


def draw_document(rng: Generator, name: str, texts: tuple[Text, ...]) -> Document:
    company, cik = COMPANIES[int(rng.choice(len(COMPANIES), p=OFTEN))]
    day = f"{rng.integers(2019, 2022)}-{rng.choice(['12-31', '06-30', '09-26'])}"
    forms = FORMS if rng.random() < 0.8 else KINDS
    return Document(
        name,
        company,
        cik,
        str(rng.choice(forms)),
        str(rng.choice(TITLES)),
        day if rng.random() < 0.8 else None,
        texts,
    )


def keys_of(rng: Generator, low: int) -> Iterator[int]:
    """Keys in any order, none twice."""
    return iter((low + rng.permutation(2_000)).tolist())


def draw_world(rng: Generator, documents: int = 8) -> World:
    """Draw documents, some of which a drawn session may use."""
    profile = "edgar" if rng.random() < 0.7 else "generic"
    keys = keys_of(rng, 0)
    named = rng.choice(SUBJECTS if profile == "edgar" else TITLED)
    asked = " ".join(rng.choice([*WORDS, *SECRETS], int(rng.integers(1, 4))))
    drawn = []
    for at in range(int(rng.integers(0, documents + 1))):
        texts = []
        for _ in range(int(rng.integers(1, 5))):
            one = draw_label(rng)
            later = (
                [Label(one.word ^ 2, one.expires_at)] if one.expires_at < NEVER and rng.random() < 0.5 else []
            )
            texts.append(draw_text(rng, WORDS, keys, [one, *later]))
        drawn.append(draw_document(rng, f"d{at}", tuple(texts)))
    return World(
        profile,
        tuple(drawn),
        f"What did {named} say about {asked} {rng.choice(WHEN)}?",
        draw_decision(rng),
        draw_vector(rng),
        int(rng.choice([1, 2, 3, 8, 60])),
    )


def with_other_hidden(rng: Generator, world: World) -> World:
    """Add to a fully visible world what its session must not use, and what would change most if it counted.

    Terms that nothing else holds, documents of other lengths, many of one frequent term, companies with names that can
    be taken for the others', newer reports, further passages and windows of the documents that are there.
    """
    keys = keys_of(rng, 10_000)
    frequent = str(rng.choice([*WORDS, *world.question.rstrip("?").lower().split()]))
    vocabularies = (SECRETS, WORDS, (frequent,), (*SECRETS, frequent))

    def hidden_label() -> Label:
        for _ in range(8):
            if not world.admits(label := draw_label(rng)):
                return label
        return label._replace(word=label.word | QUARANTINE)

    def hidden_texts(most: int) -> tuple[Text, ...]:
        count, words = int(rng.integers(0, most)), vocabularies[int(rng.integers(0, 4))]
        drawn = [draw_text(rng, words, keys, [hidden_label()]) for _ in range(count)]
        if rng.random() < 0.3:  # as near as can be
            drawn = [replace(one, vector=world.query) for one in drawn]
        return tuple(drawn)

    documents = []
    for one in world.documents:
        texts = [*one.texts, *hidden_texts(3)] if rng.random() < 0.5 else list(one.texts)
        for at, text in enumerate(texts):
            first = min(label.public_at for label in text.labels.values())
            earlier = Label(hidden_label().word | QUARANTINE, 0, first)
            if first > 0 and rng.random() < 0.5:
                texts[at] = replace(text, labels={next(keys): earlier, **text.labels})
        documents.append(replace(one, texts=tuple(texts)))
    for at in range(int(rng.integers(0, 6))):
        hidden = replace(
            draw_document(rng, f"h{at}", ()), texts=hidden_texts(25 if rng.random() < 0.2 else 4)
        )
        if rng.random() < 0.5:
            hidden = replace(hidden, day="2023-12-31", kind="10-K")
        documents.insert(int(rng.integers(0, len(documents) + 1)), hidden)
    return replace(world, documents=tuple(documents))
