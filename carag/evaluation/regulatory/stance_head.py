"""Judge whether passages support or contradict a claim, with a small trained head over MiniLM's token vectors.

A passage is cut into sentences. Of each the head asks two things: does it bear on the claim (``relevance``), and if so,
against it (``polarity``)? Both are logistic, over similarities of vectors and tokens and over cues of negation,
modality and exception; the cues of a lead-in ("shall not:") count for the items of its list. Of a passage the sentence
most relevant decides.

For the claims it was trained with, the head keeps weights of their own over sentence vectors, found by a hash of the
claim's text. They remember how such claims usually stand, and have no effect on any other claim.

Measured on the 2,091 pairs of ContractNLI's test contracts, as macro-F1 of three classes: with what it remembers 0.683,
which a TF-IDF regression trained alike (0.674) nearly equals; without, 0.399, below an untrained NLI model (0.468). So
for a claim not trained with, read relevance and leave polarity: of 228 pairs it then called contradicted, 15 were.
``bench/metric/`` trains and measures.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import OrderedDict
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from carag.errors import InvalidArgument
from carag.retrieval.embedder import check_texts, equal_spans
from carag.retrieval.minilm import MiniLm
from carag.retrieval.model_files import fingerprint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = [
    "Encoded",
    "JudgedPassage",
    "StanceHead",
    "Verdict",
    "claim_hash",
    "pooled",
    "relevance_and_polarity",
]

Word = Literal["supported", "contradicted", "neutral"]

_WINDOW: Final = 254
"""Tokens of a window between [CLS] and [SEP] (MiniLM's 256 with them)."""
_FIRST_WORD: Final = 1000
"""Ids below it are punctuation, digits' signs and specials of BERT's vocabulary; whole words follow by frequency."""
_CACHED: Final = 20_000
"""Sentences kept encoded; of 40 tokens each takes about 60 KB, so about 1.2 GB at the limit."""
_MOST_CUES: Final = 3
"""Cues of a kind counted at most, so that a long sentence does not outweigh."""
_CUES: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(not|no|nor|never|neither|without|none|nothing|cannot|prohibit\w*|refrain\w*|prevent\w*|forbid\w*"
        r"|preclude\w*|unauthori[sz]ed)\b|n't\b",
        r"\b(may|can|could|might|permit\w*|allow\w*|free to|entitled|right to|authori[sz]ed|at liberty)\b",
        r"\b(shall|must|will|agree\w*|undertake\w*|require\w*|oblig\w*|ensure|responsible)\b",
        r"\b(except\w*|unless|other than|save|provided|however|notwithstanding|exclud\w*|but|subject to"
        r"|to the extent|solely|only)\b",
        r"\b(only|solely|exclusively|all|any|every|each)\b",
        r"\b(some|certain|several|includ\w*)\b",
        r"\b(if|in the event|where|when|upon|in case|until|after|during)\b",
    )
)
"""Negation, permission, duty, exception, universal, partial, condition."""
_NEGATIONS: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), put)
    for pattern, put in (
        (r"\b(shall|must|may) not\b", "may"),
        (r"\bshall only\b", "shall not only"),
        (r"\b(may|shall)\b", "shall not"),
        (r"\bmust\b", "need not"),
        (r"\b(is|are|was|were|will|can|has|have|does|do)\b", r"\1 not"),
    )
)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z(“\"])|\n+")
_ITEM: Final = re.compile(r"\(?[a-z0-9ivx]{1,4}[.)]|[a-z]")
_LEADS: Final = re.compile(r"([:,]|\bto)$")


@dataclass(frozen=True, slots=True)
class JudgedPassage:
    """What one passage says of a claim: three probabilities, and the characters of the sentence that decided."""

    supports: float
    contradicts: float
    neutral: float
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """What all passages together say of a claim; ``known`` where the head was trained with it."""

    verdict: Word
    supported: float
    contradicted: float
    neutral: float
    known: bool


@dataclass(frozen=True, slots=True)
class Encoded:
    """A text as the head sees it."""

    sentence: NDArray[np.float64]
    tokens: NDArray[np.float32]
    weights: NDArray[np.float64]
    ids: NDArray[np.int64]
    cues: NDArray[np.float64]


class StanceHead:
    """Says SUPPORTS, CONTRADICTS or NEUTRAL of each passage, offline and with the packages of ``[models]``.

    Raises
    ------
    ModelUnavailable
        If a model file is missing or altered.

    Examples
    --------
    >>> head = StanceHead()
    >>> rows = head.judge("Recipient may keep copies.", ["Recipient shall not keep any copies.", "Rome is a city."])
    >>> rows.shape, bool(rows[0, 2] < rows[1, 2])
    ((2, 3), True)
    """

    name: Final = "stance_head"
    remote: Final = False

    def __init__(self, weights: dict[str, Any] | None = None) -> None:
        from onnxruntime import InferenceSession, SessionOptions
        from tokenizers import Tokenizer

        read = weights is None
        text = files(__package__).joinpath("stance_head.json").read_text() if read else json.dumps(weights)
        self.weights: dict[str, Any] = json.loads(text)
        self.fingerprint = fingerprint(
            self.name, hashlib.sha256(text.encode()).hexdigest(), MiniLm.fingerprint
        )
        model, tokenizer = MiniLm.files
        self._tokenizer = Tokenizer.from_str(tokenizer.read().decode())
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        options = SessionOptions()
        options.intra_op_num_threads = 1  # the same order of every sum, whatever the machine
        options.log_severity_level = 3
        self._session = InferenceSession(model.read(), options, providers=["CPUExecutionProvider"])
        self._cache: OrderedDict[bytes, Encoded] = OrderedDict()

    def judge(self, claim: str, passages: Sequence[str]) -> NDArray[np.float64]:
        """Give a row of (SUPPORTS, CONTRADICTS, NEUTRAL) for each passage.

        Parameters
        ----------
        claim : str
        passages : sequence of str
            Each of any length.

        Returns
        -------
        (n, 3) float64
            Probabilities that sum to 1. A row depends on the claim and its own passage alone.

        Raises
        ------
        InvalidArgument
            If a text is no string, is empty or white space, or there is no passage.
        """
        judged = self.judge_spans(claim, passages)
        return np.array([(one.supports, one.contradicts, one.neutral) for one in judged])

    def judge_spans(self, claim: str, passages: Sequence[str]) -> list[JudgedPassage]:
        """Judge as :meth:`judge` does, and name the characters of each passage that decided."""
        check_texts([claim])
        check_texts(passages)
        if not passages:
            raise InvalidArgument("there is no passage to judge the claim by; give at least one")
        own, against = self.encode(claim), self.encode(negated(claim))
        known = self.weights["known"].get(claim_hash(claim))
        judged = []
        for passage in passages:
            cut = sentences(passage)
            encoded = [self.encode(passage[start:end]) for start, end in cut]
            leads = lead_cues([passage[start:end] for start, end in cut], encoded)
            rows = np.array([features(own, against, *pair) for pair in zip(encoded, leads, strict=True)])
            vectors = np.array([one.sentence for one in encoded])
            relevance, polarity = relevance_and_polarity(self.weights, known, rows, vectors)
            most = int(relevance.argmax())
            bears, opposes = float(relevance[most]), float(polarity[most])
            judged.append(JudgedPassage(bears * (1 - opposes), bears * opposes, 1 - bears, *cut[most]))
        return judged

    def verdict(self, claim: str, rows: NDArray[np.float64]) -> Verdict:
        """Say what the rows of :meth:`judge` for a claim amount to; their order does not matter."""
        known = self.weights["known"].get(claim_hash(claim))
        fit = self.weights["verdict_known" if known else "verdict"]
        pool = pooled(rows)
        shift = known["verdict"] if known else (0.0, 0.0)
        bears = _sigmoid(float(pool @ fit["relevance"][1:] + fit["relevance"][0] + shift[0]))
        opposes = _sigmoid(float(pool @ fit["polarity"][1:] + fit["polarity"][0] + shift[1]))
        word: Word = "neutral"
        if bears >= fit["bears_from"]:
            word = "contradicted" if opposes >= fit["contradicts_from"] else "supported"
        return Verdict(word, bears * (1 - opposes), bears * opposes, 1 - bears, known is not None)

    def encode(self, text: str) -> Encoded:
        """Encode a text, from the cache where it was encoded before."""
        key = hashlib.sha256(text.encode()).digest()
        if (found := self._cache.get(key)) is not None:
            self._cache.move_to_end(key)
            return found
        made = self._encode(text)
        self._cache[key] = made
        if len(self._cache) > _CACHED:
            self._cache.popitem(last=False)
        return made

    def _encode(self, text: str) -> Encoded:
        ids = self._tokenizer.encode(text, add_special_tokens=False).ids
        parts = []
        for start, end in equal_spans(len(ids), _WINDOW):
            window = np.array([[101, *ids[start:end], 102]], dtype=np.int64)
            feed = {"input_ids": window, "attention_mask": window * 0 + 1, "token_type_ids": window * 0}
            parts.append(self._session.run(["last_hidden_state"], feed)[0][0])
        mean = np.concatenate(parts).mean(axis=0, dtype=np.float64)
        if not ids:  # control characters alone: nothing a token stands for
            raise InvalidArgument("a text holds no character that the model knows; leave it out")
        tokens = np.concatenate([part[1:-1] for part in parts])
        numbers = np.array(ids, dtype=np.int64)
        # BERT's vocabulary lists whole words by falling frequency, so that an id's logarithm stands for its rarity.
        rarity = np.where(numbers < _FIRST_WORD, 0.0, np.log2(2 + np.maximum(0, numbers - 1995)))
        counts = np.array([len(cue.findall(text)) for cue in _CUES], dtype=np.float64)
        return Encoded(
            mean / np.linalg.norm(mean),
            tokens / np.linalg.norm(tokens, axis=1, keepdims=True),
            rarity,
            numbers,
            np.minimum(counts, _MOST_CUES),
        )


def claim_hash(claim: str) -> str:
    """Hash a claim so that case and spacing do not matter: the key of the claims trained with."""
    return hashlib.sha256(" ".join(claim.lower().split()).encode()).hexdigest()


def negated(claim: str) -> str:
    """Turn the first modal or auxiliary verb of a claim round.

    Examples
    --------
    >>> negated("Recipient shall not copy."), negated("Staff may travel.")
    ('Recipient may copy.', 'Staff shall not travel.')
    """
    for pattern, put in _NEGATIONS:
        turned, count = pattern.subn(put, claim, count=1)
        if count:
            return turned
    return f"It is not true that {claim}"


def sentences(passage: str) -> list[tuple[int, int]]:
    r"""Cut a passage at line ends and sentence ends into spans, none without a letter or digit unless all are.

    Examples
    --------
    >>> sentences("One. Two\nthree")
    [(0, 4), (5, 8), (9, 14)]
    """
    edges = [0, *(edge for found in _SENTENCE.finditer(passage) for edge in found.span()), len(passage)]
    cut = list(zip(edges[::2], edges[1::2], strict=True))
    return [span for span in cut if any(map(str.isalnum, passage[slice(*span)]))] or [(0, len(passage))]


def lead_cues(texts: Sequence[str], encoded: Sequence[Encoded]) -> list[NDArray[np.float64]]:
    """Give each list item the cues of its lead-in, and every other sentence none."""
    none = np.zeros(len(_CUES))
    lead, leads = none, []
    for text, one in zip(texts, encoded, strict=True):
        item = _ITEM.match(text.lstrip()) is not None
        leads.append(lead if item else none)
        if _LEADS.search(text.rstrip()):
            lead = one.cues
        elif not item:
            lead = none
    return leads


def features(
    claim: Encoded, against: Encoded, text: Encoded, lead: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return what the head weighs of a claim, the claim turned round, and a sentence."""
    similar = (claim.tokens @ text.tokens.T).astype(np.float64)
    best, back = similar.max(axis=1), similar.max(axis=0)
    best_against = (against.tokens @ text.tokens.T).astype(np.float64).max(axis=1)
    rare = np.sort(best[claim.weights > 5]) if (claim.weights > 5).any() else np.sort(best)
    covers = _mean(np.isin(claim.ids, text.ids), claim.weights)
    cosine = claim.sentence @ text.sentence
    turned = against.sentence @ text.sentence - cosine
    weighted = _mean(best, claim.weights)
    negative, permits, *_ = np.minimum(claim.cues, 1)
    has_negative, has_permission, _, has_exception, *_ = np.minimum(text.cues + lead, 1)
    forbids = permits * (1 - negative) * has_negative
    return np.array(
        [
            cosine,
            best.mean(),
            weighted,
            rare[0],
            rare[:3].mean(),
            _mean(back, text.weights),
            np.sort(back)[-5:].mean(),
            covers,
            _mean(np.isin(text.ids, claim.ids), text.weights),
            np.log(len(text.ids) + 1),
            *text.cues,
            turned,
            _mean(best_against, against.weights) - weighted,
            (1 - 2 * negative) * (text.cues[0] + lead[0]),
            forbids,
            forbids * (1 - has_exception),
            negative * has_permission * (1 - has_negative),
        ]
    )


FOR_POLARITY: Final = slice(17, 23)
"""Where the features stand that say for or against; those before them say whether a sentence bears on the claim."""


def relevance_and_polarity(
    weights: dict[str, Any],
    known: dict[str, Any] | None,
    rows: NDArray[np.float64],
    vectors: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return of sentences P(bears on the claim) and P(against it, if it does)."""
    scores = []
    for part, columns in (("relevance", slice(0, 17)), ("polarity", FOR_POLARITY)):
        fit = np.asarray(weights[part])
        score = rows[:, columns] @ fit[1:] + fit[0]
        if known is not None:
            own = np.frombuffer(base64.b64decode(known[part]), dtype="<f2").astype(np.float64)
            score = own[0] + own[1] * score + vectors @ own[2:]
        scores.append(1 / (1 + np.exp(-score.clip(-30, 30))))
    return scores[0], scores[1]


def pooled(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum rows of passages up: the most relevant, any of the ten most, and the polarity of one, three and eight."""
    bears = 1 - rows[:, 2]
    order = np.lexsort((rows[:, 1], -bears))
    bears, against = bears[order], rows[order, 1]
    polar = [against[:top].sum() / max(bears[:top].sum(), 1e-12) for top in (1, 3, 8)]
    return _logit(np.array([bears[0], 1 - np.prod(1 - bears[:10]), *polar]))


def _mean(values: NDArray[Any], weights: NDArray[np.float64]) -> float:
    return float(values @ weights / max(weights.sum(), 1e-12))


def _sigmoid(score: float) -> float:
    return float(1 / (1 + np.exp(-score)))


def _logit(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    inside = shares.clip(1e-3, 1 - 1e-3)
    return np.asarray(np.log(inside / (1 - inside)))
