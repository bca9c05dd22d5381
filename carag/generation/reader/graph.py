"""Run the graph of the embedder's file with the weights that the reader learnt, kept in four bits.

Every matrix of all-MiniLM-L6-v2 is moved by an update, which is written into the file's bytes, since its shape is the
same. The table of types is larger, so it is given to onnxruntime beside the file.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from carag.retrieval.minilm import MiniLm

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from carag.generation.reader.pairs import Encoded


_FIRST_LAYER: Final = (49, 57, 65, 105, 109, 118)
"""Numbers of the first layer's matrices in the file: query, key, value, output, and the two of the feed-forward."""
MATRICES: Final = tuple(
    f"val_{number + (2 if layer and at < 3 else 0) + 71 * layer}"
    for layer in range(6)
    for at, number in enumerate(_FIRST_LAYER)
)
TYPES: Final = "inner.embeddings.token_type_embeddings.weight"


class Graph:
    """The reader's network, from the content of its file of weights."""

    def __init__(self, content: bytes) -> None:
        with np.load(BytesIO(content), allow_pickle=False) as kept:
            learnt = dict(_unpacked({name: kept[name] for name in kept.files}))
        self._head = tuple(learnt.pop(f"holds.{part}") for part in ("in", "shift", "out", "bias"))
        self._session, self._types = session_of(learnt)  # it does not keep the table of types alive

    def score(self, pair: Encoded) -> float:
        """Tell how likely, from 0 to 1, the second text answers the first."""
        into, shift, out, bias = self._head
        # One by one: a product of matrices rounds a row differently beside other rows.
        logit = (gelu(self._pooled(pair) @ into + shift) @ out + bias).astype(np.float64)
        return float(0.5 * (1 + np.tanh(logit[0] / 2)))

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


def gelu(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the tanh form of GELU (Hendrycks and Gimpel, 2016)."""
    return np.asarray(0.5 * values * (1 + np.tanh(0.7978845608 * (values + 0.044715 * values**3))))


def _unpacked(kept: Mapping[str, NDArray[Any]]) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yield the weights; of a matrix, numbers from 1 to 15, two to a byte, and a scale for each column."""
    for name, value in kept.items():
        stem, _, part = name.rpartition(".")
        if part == "q":
            whole = np.stack([value >> 4, value & 15], axis=1).reshape(-1, value.shape[1]).astype(np.float32)
            yield stem, (whole - 8) * kept[f"{stem}.s"].astype(np.float32)
        elif part != "s" or f"{stem}.q" not in kept:
            yield name, value.astype(np.float32)


def session_of(weights: Mapping[str, NDArray[np.float32]]) -> tuple[Any, Any]:
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
    options.intra_op_num_threads = 1  # so that sums are taken in one order
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
            said = [*_fields(tensor)]
            one = dict(said)  # 2 data_type, 8 name, 9 raw_data
            if one.get(2) in kinds and 9 in one:
                shape = [
                    value for number, value in said if number == 1
                ]  # dims, not packed in the pinned file
                yield bytes(one[8]).decode(), np.frombuffer(one[9], kinds[one[2]]).reshape(shape)


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
