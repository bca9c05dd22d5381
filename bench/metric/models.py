"""Give the models that are compared one shape each: embedders, rerankers with scores in [0, 1], judges of stance.

All keep what they computed (:mod:`bench.metric.kept`). A model whose package or folder is missing is left out, and the
report says why.
"""

from __future__ import annotations

import functools
import math
import re
import sys
import time
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.metric.kept import key
from carag.errors import MissingExtra, ModelUnavailable
from carag.evaluation.regulatory import CosineReranker, Reranker
from carag.labelling.sentences import sentences
from carag.retrieval import embedder_by_name
from carag.retrieval.model_files import fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from bench.metric.kept import Kept
    from carag.evaluation.regulatory import StanceJudge
    from carag.retrieval import Embedder


_K1: Final = 1.2
_B: Final = 0.75
"""Both as Robertson and Zaragoza recommend (The Probabilistic Relevance Framework, 2009, section 3.5)."""
_WORD: Final = re.compile(r"[a-z0-9]+")
_WORDS_READ: Final = 60
"""Words of a sentence that an NLI model is shown: with them a window of 160 tokens keeps room for evidence."""


def progress(what: str) -> Callable[[int, int], None]:
    """Return what writes a line on stderr at most every ten seconds, and at the end."""
    began = last = time.monotonic()

    def said(done: int, of: int) -> None:
        nonlocal last
        now = time.monotonic()
        if done == of or now - last > 10:
            print(f"{what}: {done:,} of {of:,}, {now - began:.0f} s", file=sys.stderr, flush=True)
            last = now

    return said


class KeptEmbedder:
    """An embedder that computes each text once; it embeds questions as passages, as all that are compared do."""

    remote = False

    def __init__(self, inner: Embedder, kept: Kept) -> None:
        self._inner, self._kept = inner, kept
        self.name, self.dim, self.fingerprint = inner.name, inner.dim, inner.fingerprint

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a unit row for each text."""
        found = self._kept.rows(
            self.fingerprint,
            [key(text) for text in texts],
            lambda places: self._inner.embed_documents([texts[at] for at in places]),
            progress(f"{self.name} embeds"),
        )
        return np.stack(found) if found else np.empty((0, self.dim), np.float32)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the row of a question."""
        vector: NDArray[np.float32] = self.embed_documents([text])[0]
        return vector


class Bm25(Reranker):
    """BM25 of a passage for a response, over the greatest that its words can reach: for this bench only.

    A word's weight in BM25 grows towards ``idf (k1 + 1)``, so the sum of these over the response bounds the score.

    Parameters
    ----------
    corpus : iterable of str
        Passages whose words are counted for the weight of a word.

    Examples
    --------
    >>> near, far = Bm25(["logs are kept", "fees rise"]).score("the logs", ["logs are kept", "fees rise"])
    >>> 0 < near < 1, far
    (True, 0.0)
    """

    def __init__(self, corpus: Iterable[str]) -> None:
        self._words = functools.cache(_words)  # a passage is scored for many responses
        passages = [_words(text) for text in corpus]
        self._seen = Counter(word for words in passages for word in words)
        self._count = len(passages)
        self._mean = sum(words.total() for words in passages) / max(1, len(passages))
        self.name = "bm25"

    def score(self, query: str, documents: list[str]) -> list[float]:
        """Return a score for each passage."""
        weights = {word: self._weight(word) for word in _words(query)}
        whole = sum(weights.values()) * (_K1 + 1)
        return [self._of(weights, self._words(text)) / whole if whole else 0.0 for text in documents]

    def _of(self, weights: dict[str, float], words: Counter[str]) -> float:
        long = _K1 * (1 - _B + _B * words.total() / self._mean)
        return sum(
            weight * words[word] * (_K1 + 1) / (words[word] + long)
            for word, weight in weights.items()
            if words[word]
        )

    def _weight(self, word: str) -> float:
        seen = self._seen[word]
        return math.log(1 + (self._count - seen + 0.5) / (seen + 0.5))


class TokenMaxSim(Reranker):
    """The scores of :class:`carag.retrieval.maxsim.MaxSim`, each text's token vectors computed once."""

    def __init__(self) -> None:
        from carag.retrieval.maxsim import MaxSim

        inner = MaxSim()
        self._of_windows = inner._model.of_windows  # noqa: SLF001 - the same vectors, or it were another reranker
        self._tokens: dict[str, NDArray[np.float32]] = {}
        self.name, self.fingerprint = inner.name, inner.fingerprint

    def score(self, query: str, documents: list[str]) -> list[float]:
        """Return a score for each passage."""
        from carag.retrieval.embedder import unit_rows

        if new := [one for one in dict.fromkeys([query, *documents]) if one not in self._tokens]:
            found = self._of_windows(new, unit_rows)
            self._tokens.update({text: np.concatenate(rows) for text, rows in zip(new, found, strict=True)})
        asked = self._tokens[query]
        return [float(np.clip((asked @ self._tokens[one].T).max(axis=1).mean(), 0, 1)) for one in documents]


class Stance(Reranker):
    """A judge of stance as a reranker: of what it says of a claim, the part that supports it."""

    def __init__(self, judge: StanceJudge) -> None:
        self._judge = judge
        self.name, self.fingerprint = judge.name, fingerprint("as a reranker", judge.fingerprint)

    def score(self, query: str, documents: list[str]) -> list[float]:
        """Return P(supports) / (P(supports) + P(contradicts)) for each passage; 1/2 where both are 0."""
        rows = self._judge.judge(query, documents)
        both = rows[:, 0] + rows[:, 1]
        return [float(one) for one in np.where(both > 0, rows[:, 0] / np.where(both > 0, both, 1), 0.5)]


class Nli(Reranker):
    """A model of inference in ONNX: 1 - P(conflict), of a response's sentences the one in most conflict.

    Parameters
    ----------
    folder : Path
        With ``model.onnx`` and ``tokenizer.json``.
    conflict : int
        Its column of conflict.
    """

    def __init__(self, folder: Path, conflict: int) -> None:
        from carag.retrieval.cross_encoder import CrossEncoder

        self._model = CrossEncoder(str(folder), label=conflict, first="text")
        self.name, self.fingerprint = (
            "nli",
            fingerprint("most in conflict", self._model.fingerprint, _WORDS_READ),
        )

    def score(self, query: str, documents: list[str]) -> list[float]:
        """Return a score for each passage."""
        claims = [query[start:end] for start, end in sentences(query)] or [query]
        shown = [" ".join(one.split()[:_WORDS_READ]) for one in claims]
        worst = np.max([self._model.rerank(one, documents) for one in shown], axis=0)
        return [float(1 - one) for one in worst]


class KeptReranker(Reranker):
    """A reranker that scores each pair once."""

    def __init__(self, inner: Reranker, kept: Kept) -> None:
        self._inner, self._kept = inner, kept
        self.name, self.fingerprint = inner.name, inner.fingerprint
        self.is_slow = isinstance(inner, Nli)
        """Whether it reads a part of long responses only; see :mod:`bench.metric.classification`."""

    def score(self, query: str, documents: list[str]) -> list[float]:
        """Return a score for each passage, as it is kept: in single precision."""
        rows = self._kept.rows(
            self.fingerprint,
            [key(query, one) for one in documents],
            lambda places: np.array(self._inner.score(query, [documents[at] for at in places])).reshape(
                -1, 1
            ),
        )
        return [float(row[0]) for row in rows]


def embedders(kept: Kept) -> tuple[list[KeptEmbedder], dict[str, str]]:
    """Return the embedders that are there, and why others are not."""
    made, absent = _made({name: partial(embedder_by_name, name) for name in ("minilm", "wordllama")})
    heavy, without = _made({"mpnet": _mpnet})
    return [KeptEmbedder(one, kept) for one in [*made, *heavy]], absent | without


def rerankers(
    found: Sequence[KeptEmbedder],
    judged: Sequence[Any],
    kept: Kept,
    nli: tuple[Path, int] | None,
) -> tuple[list[Reranker], dict[str, str]]:
    """Return the rerankers that are there but BM25, which wants a corpus, and why others are not."""
    heavy: dict[str, Callable[[], Any]] = {"maxsim": TokenMaxSim}
    if nli is not None:
        heavy["nli"] = lambda: Nli(*nli)
    made, absent = _made(heavy)
    if nli is None:
        absent["nli"] = "no folder is named in --nli"
    return [
        *(CosineReranker(one) for one in found if one.name != "wordllama"),
        *(KeptReranker(one, kept) for one in made),
        *(Stance(one) for one in judged),
    ], absent


def judges() -> tuple[list[Any], dict[str, str]]:
    """Return the judges of stance that are there, and why others are not."""
    made, absent = _made({"stance-head": _stance_head})
    return made, absent


def _made(wanted: dict[str, Callable[[], Any]]) -> tuple[list[Any], dict[str, str]]:
    made, absent = [], {}
    for name, make in wanted.items():
        try:
            made.append(make())
        except (ImportError, MissingExtra, ModelUnavailable) as error:
            absent[name] = str(error).partition("; run: ")[0]
    return made, absent


def _mpnet() -> Any:
    from bench.ann.mpnet import MpNet

    return MpNet()


def _stance_head() -> Any:
    from carag.evaluation.regulatory.stance_head import StanceHead

    return StanceHead()


def _words(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text.lower()))
