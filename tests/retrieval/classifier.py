"""A tiny random sequence classifier in ONNX, with a tokenizer of its own, and the same sums in numpy."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *(f"w{at}" for at in range(60))]
RANDOM = np.random.default_rng(7)
TOKENS, TYPES, PLACES = (RANDOM.normal(0, 2, (rows, 8)).astype(np.float32) for rows in (len(WORDS), 2, 512))
COLUMNS = RANDOM.normal(0, 2, (8, 3)).astype(np.float32)


def graph(
    columns: int = 1, rows: int | str = "batch", width: int | str = "tokens", kind: int = TensorProto.INT64
) -> Any:
    """A mean over the attended tokens of the tangent of their embeddings, and a linear layer: every input counts."""
    weights = {
        "tokens": TOKENS,
        "types": TYPES,
        "places": PLACES,
        "head": COLUMNS[:, :columns],
        "last": np.array([-1]),
        "first": np.array(0),
        "step": np.array(1),
        "middle": np.array([1]),
    }
    node = helper.make_node
    nodes = [
        node("Gather", ["tokens", "input_ids"], ["a"]),
        node("Gather", ["types", "token_type_ids"], ["b"]),
        node("Shape", ["input_ids"], ["shape"], start=1),
        node("Squeeze", ["shape"], ["count"]),
        node("Range", ["first", "count", "step"], ["at"]),
        node("Gather", ["places", "at"], ["c"]),
        node("Sum", ["a", "b", "c"], ["sum"]),
        node("Tanh", ["sum"], ["state"]),
        node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        node("Unsqueeze", ["mask", "last"], ["column"]),
        node("Mul", ["state", "column"], ["kept"]),
        node("ReduceSum", ["kept", "middle"], ["total"], keepdims=0),
        node("ReduceSum", ["mask", "last"], ["attended"], keepdims=1),
        node("Div", ["total", "attended"], ["mean"]),
        node("MatMul", ["mean", "head"], ["logits"]),
    ]
    inputs = [
        helper.make_tensor_value_info(name, kind, [rows, width])
        for name in ("input_ids", "attention_mask", "token_type_ids")
    ]
    return helper.make_model(
        helper.make_graph(
            nodes,
            "tiny",
            inputs,
            [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [rows, columns])],
            [numpy_helper.from_array(value, name) for name, value in weights.items()],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=9,
    )


def tokenizer() -> Tokenizer:
    made = Tokenizer(models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token=WORDS[1]))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    # As files of embedders do: neither may touch a pair.
    made.enable_truncation(5)
    made.enable_padding(length=5)
    return made


def folder(path: Path, model: Any = None, config: object = None) -> str:
    path.mkdir(parents=True, exist_ok=True)
    (path / "model.onnx").write_bytes((model or graph()).SerializeToString())
    tokenizer().save(str(path / "tokenizer.json"))
    if config is not None:
        (path / "config.json").write_text(json.dumps(config))
    return str(path)


def expected(first: str, second: str, columns: int = 1) -> NDArray[np.float64]:
    """The same sums in numpy, for a pair that fits."""
    one, two = ([WORDS.index(word) for word in text.split()] for text in (first, second))
    ids, types = [2, *one, 3, *two, 3], [0] * (len(one) + 2) + [1] * (len(two) + 1)
    state = np.tanh(TOKENS[ids] + TYPES[types] + PLACES[: len(ids)])
    logits = state.mean(axis=0).astype(np.float64) @ COLUMNS[:, :columns]
    if columns == 1:
        return np.asarray(1 / (1 + np.exp(-logits)))
    return np.asarray(np.exp(logits) / np.exp(logits).sum())
