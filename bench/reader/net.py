"""The reader in PyTorch, to be trained; it starts from the file of the embedder and is exported as a delta."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from carag.generation.reader.graph import MATRICES, TYPES, initializers
from carag.generation.reader.pairs import MARKS
from carag.retrieval.minilm import MiniLm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.generation.reader.pairs import Encoded


HEADS: Final = {"holds": 1, "stance": 3, "order": 1}
"""All are trained together; only ``holds`` is kept, since the others told nothing on texts that were left out."""
HIDDEN: Final = 384
_GREATEST: Final = 7
"""The greatest whole number of an update."""
_ATTENTION: Final = 12
_BETWEEN: Final = 192
"""Width of a head."""


class Layer(nn.Module):
    """One of BERT's layers."""

    def __init__(self, base: dict[str, Any], number: int) -> None:
        super().__init__()
        stem = f"inner.encoder.layer.{number}."
        biases = [f"attention.self.{one}" for one in ("query", "key", "value")]
        biases += ["attention.output.dense", "intermediate.dense", "output.dense"]
        self.names = MATRICES[6 * number : 6 * number + 6]
        self.matrices = nn.ParameterList(nn.Parameter(base[name].clone()) for name in self.names)
        self.bias_names = [f"{stem}{one}.bias" for one in biases]
        self.biases = nn.ParameterList(nn.Parameter(base[name].clone()) for name in self.bias_names)
        self.norm_names = [
            f"{stem}{one}.LayerNorm.{what}"
            for one in ("attention.output", "output")
            for what in ("weight", "bias")
        ]
        self.norms = nn.ParameterList(nn.Parameter(base[name].clone()) for name in self.norm_names)

    def forward(self, states: torch.Tensor, mask: torch.Tensor, dropout: float) -> torch.Tensor:
        """Apply it to ``(batch, tokens, 384)``."""

        def linear(at: int, values: torch.Tensor) -> torch.Tensor:
            return functional.linear(values, self.matrices[at].t(), self.biases[at])

        batch, tokens, _ = states.shape
        query, key, value = (
            linear(at, states).float().view(batch, tokens, _ATTENTION, -1).transpose(1, 2) for at in range(3)
        )
        with torch.autocast("cpu", enabled=False):  # in bfloat16 it takes four times as long (PyTorch 2.14)
            seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        seen = linear(3, seen.transpose(1, 2).reshape(batch, tokens, HIDDEN))
        states = functional.layer_norm(states + seen, (HIDDEN,), self.norms[0], self.norms[1], 1e-12)
        fed = functional.dropout(linear(5, functional.gelu(linear(4, states))), dropout, self.training)
        return functional.layer_norm(states + fed, (HIDDEN,), self.norms[2], self.norms[3], 1e-12)


class Net(nn.Module):
    """MiniLM with marks and three heads."""

    def __init__(self) -> None:
        super().__init__()
        raw = dict(initializers(MiniLm.files[0].read()))
        base = {name: torch.tensor(value) for name, value in raw.items() if value.dtype == np.float32}
        for name in (
            *MATRICES,
            "inner.embeddings.word_embeddings.weight",
            "inner.embeddings.position_embeddings.weight",
        ):
            base[name] = torch.tensor(raw[f"{name}_q"] * raw[f"{name}_scale"])
        self.base = {name: base[name].clone() for name in MATRICES}
        self.words = nn.Parameter(base["inner.embeddings.word_embeddings.weight"], requires_grad=False)
        self.places = nn.Parameter(base["inner.embeddings.position_embeddings.weight"], requires_grad=False)
        self.types = nn.Parameter(base[TYPES].repeat_interleave(MARKS, dim=0))
        self.norm_names = ["inner.embeddings.LayerNorm.weight", "inner.embeddings.LayerNorm.bias"]
        self.norms = nn.ParameterList(nn.Parameter(base[name].clone()) for name in self.norm_names)
        self.layers = nn.ModuleList(Layer(base, number) for number in range(6))
        self.heads = nn.ModuleDict(
            {
                name: nn.Sequential(
                    nn.Linear(3 * HIDDEN, _BETWEEN), nn.GELU(approximate="tanh"), nn.Linear(_BETWEEN, width)
                )
                for name, width in HEADS.items()
            }
        )

    def forward(
        self, ids: torch.Tensor, types: torch.Tensor, splits: torch.Tensor, dropout: float = 0.0
    ) -> Any:
        """Return the logits of each head for ``(batch, tokens)`` pairs, padded with 0."""
        places = torch.arange(ids.shape[1])
        states = self.words[ids] + self.places[places][None] + self.types[types]
        states = functional.layer_norm(states, (HIDDEN,), self.norms[0], self.norms[1], 1e-12)
        there = ids != 0
        for layer in self.layers:
            states = layer(states, there[:, None, None, :], dropout)
        first = (places[None] < splits[:, None]).float()[..., None]
        second = (there.float() - first[..., 0])[..., None]
        states = states.float()
        pooled = torch.cat(
            [
                states[:, 0],
                (states * first).sum(1) / first.sum(1),
                (states * second).sum(1) / second.sum(1).clamp(min=1),
            ],
            dim=-1,
        )
        pooled = functional.dropout(pooled, dropout, self.training)
        return {name: head(pooled) for name, head in self.heads.items()}

    def exported(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return what is kept: the updates of matrices and one head in four bits, other weights in float16.

        The 32 greatest singular values of the updates have but 0.68 of their squares.
        """
        kept = {TYPES: self.types}
        made: dict[str, np.ndarray[Any, Any]] = {}
        for holder in (self, *self.layers):
            kept |= dict(zip(holder.norm_names, holder.norms, strict=True))
        for layer in self.layers:
            kept |= dict(zip(layer.bias_names, layer.biases, strict=True))
            for name, matrix in zip(layer.names, layer.matrices, strict=True):
                update = (matrix.detach() - self.base[name]).numpy()
                made |= quantized(name, update, _GREATEST)
        into, _, out = self.heads["holds"]
        made |= quantized("holds.in", into.weight.detach().t().numpy(), _GREATEST)
        kept |= {"holds.shift": into.bias, "holds.out": out.weight.t(), "holds.bias": out.bias}
        return made | {name: value.detach().numpy().astype(np.float16) for name, value in kept.items()}


def quantized(name: str, matrix: np.ndarray[Any, Any], greatest: int) -> dict[str, np.ndarray[Any, Any]]:
    """Return a matrix with an even number of rows as whole numbers, two to a byte, and a scale for each column."""
    scale = np.abs(matrix).max(axis=0) / greatest
    whole = (np.rint(matrix / scale) + greatest + 1).astype(np.uint8)
    return {f"{name}.q": whole[0::2] << 4 | whole[1::2], f"{name}.s": scale.astype(np.float16)}


def padded(pairs: Sequence[Encoded]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return ids, types and splits of a batch."""
    width = max(len(one.ids) for one in pairs)
    rows = [[row + [0] * (width - len(row)) for row in (one.ids, one.types)] for one in pairs]
    ids, types = (torch.tensor([row[at] for row in rows]) for at in range(2))
    return ids, types, torch.tensor([one.split for one in pairs])


def rate(step: int, steps: int, warm: int = 100) -> float:
    """Return the share of the peak learning rate: up in a straight line, then down along a cosine."""
    if step < warm:
        return (step + 1) / warm
    return 0.02 + 0.49 * (1 + math.cos(math.pi * (step - warm) / max(1, steps - warm)))
