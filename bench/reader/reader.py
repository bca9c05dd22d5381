"""Read a passage beside a question or a claim, to tell whether it answers the one or supports the other.

The reader is all-MiniLM-L6-v2, whose file the embedder pins, after every matrix has been moved by an update that was
learnt, with three heads on top. Updates and heads are kept in four bits, 4.7 MB. README.md is the model's card;
``train`` makes the file again.

Every token is marked by whether it stands in the other text too, and whether it is a number. The marks are rows of the
table that BERT keeps for the two segments, which is larger here. The graph that runs is the embedder's own, with these
values in place of what the file says.
"""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from carag.labelling.numerals import NUMBER_WORDS
from carag.limits import check_question
from carag.retrieval.embedder import check_texts
from carag.retrieval.minilm import MiniLm
from carag.retrieval.model_files import fingerprint, tokenizer_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from onnxruntime import InferenceSession, OrtValue


WEIGHTS: Final = Path(__file__).with_name("weights.npz")
HIDDEN: Final = 384
TOKENS: Final = 192
"""In a pair, its three special tokens included; what the reader was trained with."""
FIRST: Final = 72
"""Tokens of the question or claim: what goes beyond is not read."""
MARKS: Final = 5
"""Kinds of marks; segment and mark together choose a row of the token type table."""
SUPPORTS, CONTRADICTS, NEUTRAL = range(3)
_CLS: Final = 101
_SEP: Final = 102
_PREPROCESSING: Final = 1
"""Version of tokens, marks and windows. Raise it when they change, so that records differ."""
_UNMARKED: Final = frozenset(
    {
        "the", "a", "an", "of", "to", "in", "on", "for", "and", "or", "is", "are",
        "be", "by", "with", "as", "at", "it", "its", "this", "that", "any", "from", "such",
        "what", "how", "when", "which",
    }
)  # fmt: skip
_NUMBERS: Final = frozenset({*NUMBER_WORDS, "hundred", "thousand", "lakh", "crore", "million", "billion"})
_FIRST_LAYER: Final = (49, 57, 65, 105, 109, 118)
"""Numbers of the first layer's matrices in the file: query, key, value, output, and the two of the feed-forward."""
MATRICES: Final = tuple(
    f"val_{number + (2 if layer and at < 3 else 0) + 71 * layer}"
    for layer in range(6)
    for at, number in enumerate(_FIRST_LAYER)
)
TYPES: Final = "inner.embeddings.token_type_embeddings.weight"


class Encoded(NamedTuple):
    """A pair of texts as the graph takes it."""

    ids: list[int]
    types: list[int]
    """Segment and mark of each token."""
    split: int
    """Where the second text begins."""


class Reader:
    """Judges passages; ModelUnavailable if a file of the embedder is missing or altered.

    Examples
    --------
    >>> reader = Reader()
    >>> text = "Banks shall keep the records for five years."
    >>> answered, missed = reader.holds("How long are records kept?", [text, "Branches open at nine."])
    >>> answered > missed
    True
    """

    name: Final = "carag-reader-1"
    remote: Final = False

    def __init__(self, *, threads: int = 1, weights: Path = WEIGHTS) -> None:
        content = weights.read_bytes()
        with np.load(BytesIO(content), allow_pickle=False) as kept:
            learnt = dict(_unpacked({name: kept[name] for name in kept.files}))
        self.fingerprint = fingerprint(
            self.name,
            hashlib.sha256(content).hexdigest(),
            MiniLm.files[0].sha256,
            TOKENS,
            FIRST,
            _PREPROCESSING,
        )
        self._pairs = Pairs()
        self._heads = {
            head: tuple(learnt.pop(f"{head}.{part}") for part in ("in", "shift", "out", "bias"))
            for head in ("holds", "stance", "order")
        }
        self._session, self._types = _session(learnt)
        self._threads = threads

    def holds(self, question: str, texts: Sequence[str]) -> list[float]:
        """Tell for each text how likely it is, from 0 to 1, that it answers the question."""
        scores: list[float] = self._best(question, texts, "holds")[:, 0].tolist()
        return scores

    def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        """Score texts by how well they answer the question, from 0 to 1."""
        scores: list[float] = self._best(question, texts, "order")[:, 0].tolist()
        return scores

    def stance(self, claim: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """Judge a claim by each text: ``(n, 3)`` float64, the shares of supports, contradicts, says nothing."""
        return self._best(claim, texts, "stance")

    def _best(self, first: str, texts: Sequence[str], head: str) -> NDArray[np.float64]:
        """Return the row of each text's decisive window: where it says most."""
        check_question("question", first)
        check_texts(texts)
        windows = [self._pairs.windows(first, text) for text in texts]
        with ThreadPoolExecutor(self._threads) as pool:
            states = list(pool.map(self._pooled, [one for some in windows for one in some]))
        if not states:
            return np.empty((0, 3 if head == "stance" else 1))
        into, shift, out, bias = self._heads[head]
        # One by one: a product of matrices rounds a row differently beside other rows.
        logits = np.array([gelu(state @ into + shift) @ out + bias for state in states], dtype=np.float64)
        shares = softmax(logits) if logits.shape[1] > 1 else 0.5 * (1 + np.tanh(logits / 2))
        said = 1 - shares[:, NEUTRAL] if head == "stance" else shares[:, 0]
        edges = np.cumsum([0, *map(len, windows)]).tolist()
        best: NDArray[np.float64] = shares[
            [start + int(said[start:end].argmax()) for start, end in pairwise(edges)]
        ]
        return best

    def _pooled(self, pair: Encoded) -> NDArray[np.float32]:
        """Return the first token's state, and the means over both texts."""
        ids = np.array([pair.ids], dtype=np.int64)
        fed = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.array([pair.types], dtype=np.int64),
        }
        (hidden,) = self._session.run(["last_hidden_state"], fed)
        states, split = hidden[0], pair.split
        return np.concatenate([states[0], states[:split].mean(axis=0), states[split:].mean(axis=0)])


class Pairs:
    """Encodes pairs of texts: ``[CLS] first [SEP] second [SEP]``, each token with its segment and mark."""

    def __init__(self) -> None:
        self._tokenizer = tokenizer_of(MiniLm.files[1].read().decode())
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def windows(self, first: str, second: str) -> list[Encoded]:
        """Encode a pair; a long second text is cut into windows, each repeating a quarter of the one before."""
        asked, text = self._tokenizer.encode_batch([first, second], add_special_tokens=False)
        tokens, ids = asked.tokens[:FIRST], asked.ids[:FIRST]
        room = TOKENS - 3 - len(ids)
        step = room - room // 4
        starts = range(0, max(len(text.ids) - room // 4, 1), step)
        return [
            _encoded((tokens, ids), (text.tokens[at : at + room], text.ids[at : at + room])) for at in starts
        ]


def _encoded(first: tuple[list[str], list[int]], second: tuple[list[str], list[int]]) -> Encoded:
    of_first, of_second = marks(first[0], second[0]), marks(second[0], first[0])
    return Encoded(
        [_CLS, *first[1], _SEP, *second[1], _SEP],
        [0, *of_first, 0, *(MARKS + mark for mark in (*of_second, 0))],
        len(first[1]) + 2,
    )


def marks(tokens: Sequence[str], others: Sequence[str]) -> list[int]:
    """Mark tokens: 1 a word of the other text, 2 another word, 3 another number, 4 a number of the other text."""
    there = set(others)
    found = []
    for token in tokens:
        if token.lstrip("#").isdigit() or token in _NUMBERS:
            found.append(4 if token in there else 3)
        elif token in _UNMARKED or not token[-1].isalnum():
            found.append(0)
        else:
            found.append(1 if token in there else 2)
    return found


def gelu(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the tanh form of GELU (Hendrycks and Gimpel, 2016)."""
    return np.asarray(0.5 * values * (1 + np.tanh(0.7978845608 * (values + 0.044715 * values**3))))


def softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the shares of each row."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _unpacked(kept: Mapping[str, NDArray[Any]]) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yield the weights; of a matrix, numbers from 1 to 15, two to a byte, and a scale for each column."""
    for name, value in kept.items():
        stem, _, part = name.rpartition(".")
        if part == "q":
            whole = np.stack([value >> 4, value & 15], axis=1).reshape(-1, value.shape[1]).astype(np.float32)
            yield stem, (whole - 8) * kept[f"{stem}.s"].astype(np.float32)
        elif part != "s" or f"{stem}.q" not in kept:
            yield name, value.astype(np.float32)


def _session(weights: Mapping[str, NDArray[np.float32]]) -> tuple[InferenceSession, OrtValue]:
    """Return the session, and a table that it refers to without keeping it alive."""
    from onnxruntime import InferenceSession, OrtValue, SessionOptions

    graph = bytearray(MiniLm.files[0].read())
    base = dict(initializers(memoryview(graph)))  # views: what is written to them is written to the graph
    for name in MATRICES:
        matrix = base[f"{name}_q"] * base[f"{name}_scale"] + weights[name]
        scale = np.abs(matrix).max(axis=0, keepdims=True) / 127
        base[f"{name}_q"][:] = np.rint(matrix / scale)
        base[f"{name}_scale"][:] = scale
    for name in base.keys() & weights.keys() - {TYPES}:
        base[name][:] = weights[name]
    options = SessionOptions()
    options.intra_op_num_threads = 1  # each thread takes whole windows
    options.log_severity_level = 3
    # Of another shape, so not in place. What constants are made of could not be given this way: onnxruntime 1.32 folds
    # them from the file's values.
    types = OrtValue.ortvalue_from_numpy(weights[TYPES])
    options.add_initializer(TYPES, types)
    return InferenceSession(bytes(graph), options, providers=["CPUExecutionProvider"]), types


def initializers(graph: bytes | memoryview) -> Iterator[tuple[str, NDArray[Any]]]:
    """Read float32 and int8 tensors of an ONNX model (onnx.proto: ModelProto.graph 7, GraphProto.initializer 5)."""
    kinds = {1: np.float32, 3: np.int8}
    for graph_field in (value for number, value in _fields(graph) if number == 7):
        for tensor in (value for number, value in _fields(graph_field) if number == 5):
            shape: list[int] = []
            kind, name, raw = 0, "", memoryview(b"")
            for number, value in _fields(tensor):
                if number == 1:  # dims
                    shape += [value] if isinstance(value, int) else _varints(value)
                elif number == 2:  # data_type
                    kind = value
                elif number == 8:
                    name = bytes(value).decode()
                elif number == 9:  # raw_data
                    raw = value
            if kind in kinds and raw:
                yield name, np.frombuffer(raw, kinds[kind]).reshape(shape)


def _fields(message: bytes | memoryview) -> Iterator[tuple[int, Any]]:
    """Walk the fields of a Protocol Buffers message: varints as int, what has a length as bytes, fixed ones skipped."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(message, at)
            yield key >> 3, value
        elif kind == 2:
            size, at = _varint(message, at)
            yield key >> 3, message[at : at + size]
            at += size
        else:
            at += 8 if kind == 1 else 4


def _varint(message: bytes | memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _varints(packed: bytes | memoryview) -> list[int]:
    found, at = [], 0
    while at < len(packed):
        value, at = _varint(packed, at)
        found.append(value)
    return found
