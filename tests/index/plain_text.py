"""What a text index must answer, in plain Python: BM25 over admissible chunks, as if no others existed."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from carag.index import TextIndex
from carag.policy import NEVER, QUARANTINE, Mask, Policy, Search, policy_word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.random import Generator

    from carag.index import TextResult

WORDS = [f"w{n}" for n in range(8)] + ["a", "ab", "é", "z" * 40, "10-k", "日"]
AS_OF = [0, 5, 10, 15, NEVER - 1]


class Chunk(NamedTuple):
    document: int
    tokens: tuple[str, ...]
    heading: tuple[str, ...]


class Label(NamedTuple):
    chunk: int
    word: int
    public_at: int
    expires_at: int
    entity: int
    audience: int = 0


class Hit(NamedTuple):
    key: int
    chunk: int
    document: int
    score: float


def overlap(a: Label, b: Label) -> bool:
    """Whether both may hold at some instant."""
    return max(a.public_at, b.public_at) < min(a.expires_at, b.expires_at)


def meets(label: Label, search: Search) -> bool:
    """Whether a search admits a label."""
    alive_at = search.as_of if search.alive_at is None else search.alive_at
    is_current = label.public_at <= search.as_of and alive_at < label.expires_at
    return is_current and search.policy.admits(label.word, label.entity, label.audience)


class World:
    """A plain model of chunks and labels, in the order in which they were added."""

    def __init__(self) -> None:
        self.chunks: dict[int, Chunk] = {}
        self.labels: dict[int, Label] = {}

    def admitted(self, policy: Policy | Sequence[Search], as_of: int = 0) -> dict[int, int]:
        """Chunk to the key of the label that admits it: the smallest, whichever of several searches it meets."""
        searches = [Search(policy, as_of)] if isinstance(policy, Policy) else policy
        found: dict[int, int] = {}
        for key in sorted(self.labels, reverse=True):
            if any(meets(self.labels[key], search) for search in searches):
                found[self.labels[key].chunk] = key
        return found

    def answer(
        self,
        terms: Sequence[str],
        policy: Policy | Sequence[Search],
        as_of: int = 0,
        k1: float = 0.9,
        b: float = 0.4,
    ) -> list[Hit]:
        """Every admissible chunk that holds a term, best first."""
        admitted = self.admitted(policy, as_of)
        texts = {key: Counter(self.chunks[key].heading + self.chunks[key].tokens) for key in admitted}
        lengths = {key: text.total() for key, text in texts.items()}
        scores = dict.fromkeys(texts, 0.0)
        for term, times in sorted(Counter(terms).items(), key=lambda item: item[0].encode()):
            holders = [key for key in texts if texts[key][term]]
            if not holders:
                continue
            n, mean = len(holders), sum(lengths.values()) / len(texts)
            weight = times * math.log(1.0 + (len(texts) - n + 0.5) / (n + 0.5))
            for key in holders:
                f = texts[key][term]
                norm = k1 * (1.0 - b + b * lengths[key] / mean)
                scores[key] += weight * (f * (k1 + 1.0) / (f + norm))
        hits = [
            Hit(label, key, self.chunks[key].document, scores[key])
            for key, label in admitted.items()
            if any(texts[key][term] for term in terms)
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit.key))

    def rebuilt(self, policy: Policy, as_of: int) -> World:
        """The world in which only what the policy admits was ever added."""
        admitted = self.admitted(policy, as_of)
        world = World()
        world.chunks = {key: chunk for key, chunk in self.chunks.items() if key in admitted}
        world.labels = {key: self.labels[key] for key in sorted(admitted.values())}
        return world

    def indexed(self, *, batches: int = 1, reverse: bool = False) -> TextIndex:
        """Index it in a number of calls; in reverse, the last chunk and label first."""
        index = TextIndex()
        for some in np.array_split(np.array(list(self.chunks), np.int64)[:: -1 if reverse else 1], batches):
            chunks = {key: self.chunks[key] for key in some.tolist()}
            add(index, chunks)
        label(index, dict(list(self.labels.items())[:: -1 if reverse else 1]))
        return index


def add(index: TextIndex, chunks: dict[int, Chunk]) -> None:
    """Add chunks whose documents have one heading each."""
    index.add(
        list(chunks),
        [chunk.document for chunk in chunks.values()],
        [chunk.tokens for chunk in chunks.values()],
        headings={chunk.document: chunk.heading for chunk in chunks.values() if chunk.heading},
    )


def label(index: TextIndex, labels: dict[int, Label], closes: Sequence[int] = ()) -> None:
    """Open labels and close others."""
    columns = list(zip(*labels.values(), strict=True)) or [()] * 6
    index.label(
        list(labels),
        columns[0],
        np.array(columns[1], np.uint32),
        public_at=columns[2],
        expires_at=columns[3],
        entities=columns[4],
        audiences=columns[5],
        closes=closes,
        allow_quarantine=True,
    )


def hits(result: TextResult) -> list[Hit]:
    """Return a result in the form of the plain model."""
    columns = result.keys, result.chunks, result.documents, result.scores
    return [Hit(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


# ---------------------------------------------------------------- chance


def draw_label(rng: Generator, chunk: int) -> Label:
    """Draw a label: open or bounded windows, empty ones too; words of three bits, some unlabelled or in quarantine."""
    begin, end = sorted(rng.choice([0, 5, 10, 15, NEVER], 2).tolist()) if rng.random() < 0.6 else (0, NEVER)
    word = policy_word(int(rng.integers(0, 8)))
    if rng.random() < 0.1:
        word = [int(rng.integers(0, 8)), word | QUARANTINE][int(rng.integers(0, 2))]
    audience = int(rng.choice([0, 0, 1, 2, 70]))
    return Label(chunk, int(word), begin, end, int(rng.integers(0, 4)), audience)


def draw_policy(rng: Generator) -> Policy:
    """Draw masks of three bits, some audiences, and a list of entities now and then."""
    masks = []
    for _ in range(int(rng.choice([0, 1, 1, 1, 2, 3]))):
        required, forbidden = rng.integers(0, 8, 2).tolist() if rng.random() < 0.7 else (0, 0)
        masks.append(Mask(required, forbidden & ~required))
    listed = rng.integers(0, 5, int(rng.integers(0, 4))).tolist()
    shared = rng.choice([1, 2, 70, 71], int(rng.integers(0, 4)), replace=False).tolist()
    kind = rng.random()
    if kind < 0.2:
        return Policy(*masks, allow_entities=listed, audiences=shared)
    return Policy(*masks, deny_entities=listed if kind < 0.4 else (), audiences=shared)


def draw_searches(rng: Generator) -> list[Search]:
    """Draw searches; several may admit one label, or one chunk by different labels."""
    searches = []
    for _ in range(int(rng.integers(1, 5))):
        as_of, later = sorted(rng.choice(AS_OF, 2).tolist())
        searches.append(Search(draw_policy(rng), as_of, [None, later][int(rng.integers(0, 2))]))
    return searches


def draw_terms(rng: Generator, most: int) -> tuple[str, ...]:
    """Draw words, a few of them frequent."""
    ranks = np.minimum(rng.zipf(1.4, int(rng.integers(0, most + 1))), len(WORDS)) - 1
    return tuple(WORDS[rank] for rank in ranks)


def draw_chunks(rng: Generator, count: int, first_key: int) -> dict[int, Chunk]:
    """Draw chunks of few documents, under keys from `first_key` on in any order."""
    documents = {int(d): draw_terms(rng, 3) for d in rng.integers(0, 30, int(rng.integers(1, 6)))}
    keys = first_key + rng.permutation(count)
    chosen = rng.choice(list(documents), count).tolist()
    return {
        key: Chunk(document, draw_terms(rng, 12), documents[document])
        for key, document in zip(keys.tolist(), chosen, strict=True)
    }
