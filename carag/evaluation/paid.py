"""Estimate the cost of metered models before the first call, and cache answers so that none is paid for twice."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from carag.errors import CorruptFile, InvalidArgument
from carag.evaluation.judge import Verdict
from carag.generation import Draft
from carag.generation.generator import Stop

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from carag.evaluation.judge import Case, Judge
    from carag.generation import Generator
    from carag.retrieval import Embedder, Passage, Withheld


_CHARACTERS_PER_TOKEN: Final = 4
"""Characters in a token, about right for English text."""
_PROMPT_CHARACTERS: Final = 10_000
"""Characters in a prompt: eight passages of about a thousand, and the instructions."""
_ANSWER_TOKENS: Final = 160
"""Most tokens in an answer or a verdict."""
_CASE_CHARACTERS: Final = 20_000
"""Characters in a case to judge: eight passages that may be seen, eight that may not, and the rubric."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens read, and per million tokens written."""

    tokens_in: float
    tokens_out: float


PRICES: Final = {
    "bedrock:amazon.nova-micro-v1:0": Price(0.035, 0.14),
    "bedrock:amazon.nova-lite-v1:0": Price(0.06, 0.24),
    "bedrock:cohere.embed-multilingual-v3": Price(0.10, 0.0),
}
"""List prices of Amazon Bedrock as of 2026-11 in us-east-1, by model; other regions differ, and prices change."""


def price_of(name: str) -> Price:
    """Return a model's price; InvalidArgument if it is unknown, since the cost must be known before a run."""
    if name not in PRICES:
        raise InvalidArgument(
            f"no price is known for {name!r}, so the cost of the run cannot be estimated; want one of "
            f"{', '.join(PRICES)}"
        )
    return PRICES[name]


def estimate(
    generator: str | None,
    calls: int,
    embedder: str | None,
    characters: int,
    *,
    judge: str | None = None,
    verdicts: int = 0,
) -> float:
    """Estimate the greatest cost of a run in US dollars, ignoring what the cache saves."""
    total = 0.0
    if generator is not None:
        price = price_of(generator)
        total += calls * (
            _PROMPT_CHARACTERS / _CHARACTERS_PER_TOKEN * price.tokens_in + _ANSWER_TOKENS * price.tokens_out
        )
    if embedder is not None:
        total += characters / _CHARACTERS_PER_TOKEN * price_of(embedder).tokens_in
    if judge is not None:
        price = price_of(judge)
        total += verdicts * (
            _CASE_CHARACTERS / _CHARACTERS_PER_TOKEN * price.tokens_in + _ANSWER_TOKENS * price.tokens_out
        )
    return total / 1e6


class _Kept:
    """Append-only file of answers, keyed by the hash of what was asked; a line cut off by a kill is asked again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, object] = {}
        lines = path.read_bytes().split(b"\n") if path.exists() else [b""]
        whole, last = lines[:-1], lines[-1]
        for number, line in enumerate(whole, start=1):
            try:
                one = json.loads(line)
                self._known[one["key"]] = one["value"]
            except (ValueError, KeyError, TypeError) as error:
                raise CorruptFile(
                    f"{path}, line {number}: this is not a cached answer; delete the line"
                ) from error
        if last:
            path.write_bytes(b"".join(line + b"\n" for line in whole))

    def get(self, key: str) -> object | None:
        return self._known.get(key)

    def put(self, key: str, value: object) -> None:
        self._known[key] = value
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"key": key, "value": value}) + "\n")
            file.flush()


class CachedGenerator:
    """Generator that is asked the same thing once over all runs that share the cache."""

    def __init__(self, generator: Generator, path: Path) -> None:
        self._generator = generator
        self.name, self.remote, self.fingerprint = generator.name, generator.remote, generator.fingerprint
        self._kept = _Kept(path)

    def generate(self, question: str, passages: Sequence[Passage], withheld: Withheld) -> Draft:
        """Draft an answer, or return the one drafted before."""
        said = [question, *(f"{one.company}{one.form}{one.filed}{one.source}{one.text}" for one in passages)]
        said += [f"{one.code}{one.text}" for one in withheld.kinds]
        said += [withheld.topic.understood, withheld.topic.missing]
        key = _hash(self.fingerprint, *said)
        kept = self._kept.get(key)
        if isinstance(kept, dict):
            return Draft(kept["text"], tuple(kept["cited"]), Stop(kept["stop"]))
        draft = self._generator.generate(question, passages, withheld)
        self._kept.put(key, {"text": draft.text, "cited": list(draft.cited), "stop": draft.stop.value})
        return draft


class CachedJudge:
    """Judge that is asked the same thing once over all runs that share the cache; invalid verdicts are not kept."""

    def __init__(self, judge: Judge, path: Path) -> None:
        self._judge = judge
        self.name, self.fingerprint = judge.name, judge.fingerprint
        self._kept = _Kept(path)

    def judge(self, case: Case) -> Verdict:
        """Judge an answer, or return the verdict given before."""
        key = _hash(self.fingerprint, case.rendered())
        kept = self._kept.get(key)
        if isinstance(kept, dict):
            return Verdict(kept["disclosed"], kept["words"])
        verdict = self._judge.judge(case)
        self._kept.put(key, {"disclosed": verdict.disclosed, "words": verdict.words})
        return verdict


class CachedEmbedder:
    """Embedder that embeds the same text once over all runs that share the cache."""

    def __init__(self, embedder: Embedder, path: Path) -> None:
        self._embedder = embedder
        self.name, self.dim, self.fingerprint = embedder.name, embedder.dim, embedder.fingerprint
        self.remote = embedder.remote
        self._kept = _Kept(path)

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed the passages that are new."""
        keys = [_hash(self.fingerprint, "document", text) for text in texts]
        new = [at for at, key in enumerate(keys) if self._kept.get(key) is None]
        if new:
            for at, vector in zip(
                new, self._embedder.embed_documents([texts[at] for at in new]), strict=True
            ):
                self._kept.put(keys[at], vector.tolist())
        found = [self._kept.get(key) for key in keys]
        return np.array(found, np.float32).reshape(len(texts), self.dim)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Embed a question, if it is new."""
        key = _hash(self.fingerprint, "query", text)
        if self._kept.get(key) is None:
            self._kept.put(key, self._embedder.embed_query(text).tolist())
        return np.array(self._kept.get(key), np.float32)


def _hash(*parts: str) -> str:
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()
