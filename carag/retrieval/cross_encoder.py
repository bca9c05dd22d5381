"""Score passages with a sequence classifier in ONNX, from a folder with ``model.onnx`` and ``tokenizer.json``.

Such a model (a cross-encoder trained on MS MARCO, an NLI model) reads a question with a passage, or a claim with its
evidence, as one pair. The folder may come from anywhere: onnxruntime runs the graph with its own operators and no other
code. The graph is loaded from the bytes that were hashed; a graph that keeps its weights in other files is refused,
because the names of those files could lead anywhere on this machine and the hash would not cover the weights.

A passage too long for the model is cut into the fewest windows of equal size, and its score is that of the best window
(MaxP in Dai and Callan, *Deeper Text Understanding for IR with Contextual Neural Language Modeling*, SIGIR 2019).
Windows overlap, so that a statement at a cut is whole in one of them. A graph that takes any number of rows gets one at
a time, without padding, so that no score depends on other passages or on the number of threads.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from carag.errors import InvalidArgument, ModelUnavailable
from carag.limits import check_label, quoted, shown
from carag.retrieval.embedder import check_texts
from carag.retrieval.model_files import fingerprint, tokenizer_of
from carag.retrieval.model_server import check_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


_INPUTS: Final = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
"""Inputs that a graph may have, by Hugging Face's names, and the tokenizer's names for them."""
_INTEGERS: Final = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
_MAX_TOKENS: Final = 512
"""The default number of tokens in a pair: what BERT, RoBERTa and DeBERTa were trained with."""
_LEAST_TOKENS: Final = 16
"""A graph that takes fewer tokens is not a model of texts."""
_PART: Final = 4
"""A quarter of a pair's tokens is reserved for the passage, however long the question; and a quarter of each window
repeats the end of the one before, so that a statement of that length is whole in one of them."""
_EXTERNAL: Final = re.compile(rb"(?:\x0a|\x8a\x80*\x00)(?:\x08|\x88\x80*\x00)location")
"""The key of a tensor's file in an ONNX model: field 1 of ``StringStringEntryProto`` (onnx.proto, *external_data*), of
length 8, in every encoding that Protocol Buffers allow for a number."""
_PREPROCESSING: Final = 1
"""Version of windows and scores. Raise it when they change, so that records differ."""


class CrossEncoder:
    """Rerank passages, or judge claims, with your own ONNX model.

    - ``folder``: with ``model.onnx``, ``tokenizer.json`` and perhaps ``config.json``, as Hugging Face's tools export
      them.
    - ``label``: which of several logits is the score: its number, or its name in ``id2label`` of ``config.json``.
    - ``first``: what the model reads first: ``question``, usual for search, or ``text``, usual for NLI.
    - ``max_tokens``: tokens in a pair; by default what the graph takes or ``config.json`` states, at most 512.
    - ``threads``: by default one for each processor. Scores do not depend on it.

    - ``labels``: the logits: their names in ``config.json``, or their numbers.

    Raises ModelUnavailable if a file is missing or invalid; InvalidArgument if an argument does not fit the model.
    """

    remote: Final = False

    def __init__(
        self,
        folder: str,
        *,
        label: str | int | None = None,
        first: str = "question",
        max_tokens: int | None = None,
        threads: int | None = None,
    ) -> None:
        if first not in ("question", "text"):
            raise InvalidArgument(f"first is {quoted(first)}; want question or text")
        if threads is not None:
            check_count("threads", threads, 1, 1024)
        home = Path(folder)
        graph, tokens = (_read(home / name) for name in ("model.onnx", "tokenizer.json"))
        config = _config(home / "config.json")
        # The folder's name alone: records need no path.
        self.name = f"onnx:{home.resolve().name}"
        check_label("the reranker's name", self.name)
        self._is_text_first = first == "text"
        self._threads = threads or os.cpu_count() or 1
        self._tokenizer, self._pad = _tokenizer(home / "tokenizer.json", tokens)
        self._session = _session(home / "model.onnx", graph)
        self._inputs, self._rows, self._width = _inputs(home / "model.onnx", self._session)
        self._output = _output(home / "model.onnx", self._session)
        known = self._width or config.get("max_position_embeddings")
        if max_tokens is not None:
            check_count("max_tokens", max_tokens, _LEAST_TOKENS, known or 1 << 20)
        self._tokens: int = max_tokens or self._width or min(known or _MAX_TOKENS, _MAX_TOKENS)
        if self._tokens < _LEAST_TOKENS:
            raise ModelUnavailable(f"{home} reads {self._tokens} tokens; want at least {_LEAST_TOKENS}")
        # One run, so that files that do not fit together fail now and not at the first question.
        columns = self._logits(self._windows("a", ["a"])[0]).shape[1]
        self.labels = _labels(home, config.get("id2label"), columns)
        self._column = _column(self.name, label, self.labels)
        self.fingerprint = fingerprint(
            "onnx",
            *(hashlib.sha256(content).hexdigest() for content in (graph, tokens)),
            *(self._column, first, self._tokens, _PREPROCESSING),
        )

    def __repr__(self) -> str:
        return f"CrossEncoder({self.name!r}, labels={self.labels!r})"

    def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        """Score texts from 0 to 1: the sigmoid of a single logit, or the softmax of the logit ``label``.

        Raises InvalidArgument if a text is empty, or the question leaves too few of the model's tokens for a passage;
        ModelUnavailable if the model fails.
        """
        scores: list[float] = self._best(question, texts, self._column)[:, self._column].tolist()
        return scores

    def probabilities(
        self, claim: str, texts: Sequence[str], *, decides: int | None = None
    ) -> NDArray[np.float64]:
        """Judge a claim by each text: return ``(n, labels)`` float64, the softmax of the logits.

        In a long text, the window that counts is the one with the greatest logit ``decides``, by default that of
        ``label``. Raises as :meth:`rerank` does, and also for a model with a single logit.
        """
        if len(self.labels) == 1:
            raise InvalidArgument(f"{self.name} gives a single logit; use a model with two or more")
        return self._best(claim, texts, self._column if decides is None else decides)

    def _best(self, question: str, texts: Sequence[str], column: int) -> NDArray[np.float64]:
        """Return for each text the row of the window where a column is greatest."""
        check_texts([question])
        check_texts(texts)
        if not texts:
            return np.empty((0, len(self.labels)))
        of_texts = self._windows(question, texts)
        windows = [window for some in of_texts for window in some]
        runs = [windows[start : start + self._rows] for start in range(0, len(windows), self._rows)]
        with ThreadPoolExecutor(min(self._threads, len(runs))) as pool:
            rows = _shares(np.concatenate(list(pool.map(self._logits, runs))))
        edges = np.cumsum([0, *map(len, of_texts)]).tolist()
        best = [start + int(rows[start:end, column].argmax()) for start, end in pairwise(edges)]
        chosen: NDArray[np.float64] = rows[best]
        return chosen

    def _windows(self, question: str, texts: Sequence[str]) -> list[list[Any]]:
        """Encode pairs; only the passage is cut."""
        encode = self._tokenizer.encode_batch
        asked, *passages = encode([question, *texts], add_special_tokens=False)
        kept = self._tokens // _PART
        room = self._tokens - self._tokenizer.num_special_tokens_to_add(True) - len(asked.ids)
        if room < kept:
            raise InvalidArgument(
                f"the question has {len(asked.ids)} tokens; {self.name} reads {self._tokens} for question and passage "
                f"together, of which {kept} are reserved for the passage; shorten the question to "
                f"{len(asked.ids) - kept + room} tokens"
            )
        found = []
        for passage in passages:
            overlap = room // _PART
            count = -(-(len(passage.ids) - overlap) // (room - overlap))
            if count > 1:
                passage.truncate(-(-(len(passage.ids) - overlap) // count) + overlap, stride=overlap)
            pairs = [
                (window, asked) if self._is_text_first else (asked, window)
                for window in (passage, *passage.overflowing)
            ]
            found.append([self._tokenizer.post_process(*pair) for pair in pairs])
        return found

    def _logits(self, windows: list[Any]) -> NDArray[np.float64]:
        """Run the graph once; if it takes a fixed number of rows, the last window is repeated to fill them."""
        filled = windows + windows[-1:] * (self._rows - len(windows))
        width = self._width or max(len(window.ids) for window in filled)
        fed = {}
        for name, kind in self._inputs.items():
            fed[name] = np.full((len(filled), width), self._pad if name == "input_ids" else 0, kind)
            for row, window in zip(fed[name], filled, strict=True):
                row[: len(window.ids)] = getattr(window, _INPUTS[name])
        try:
            logits = np.asarray(self._session.run([self._output], fed)[0])
        except Exception as error:
            raise ModelUnavailable(
                f"{self.name}: the graph raised {type(error).__name__}; check that model.onnx and tokenizer.json are "
                f"from the same model, and that it reads {self._tokens} tokens (max_tokens)"
            ) from error
        if (
            logits.ndim != 2
            or logits.shape[0] != len(filled)
            or not logits.shape[1]
            or logits.dtype.kind != "f"
        ):
            raise ModelUnavailable(
                f"{self.name}: {self._output} is {logits.dtype} of shape {logits.shape} for {len(filled)} pairs; "
                "want a row of logits for each, as a model for sequence classification gives"
            )
        if not np.isfinite(logits).all():
            raise ModelUnavailable(f"{self.name} gave a logit that is not finite; check the model")
        return np.asarray(logits, dtype=np.float64)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        raise ModelUnavailable(
            f"{path} cannot be read ({why}); want a folder with model.onnx and tokenizer.json, as Hugging Face's tools "
            "export them"
        ) from error


def _config(path: Path) -> dict[str, Any]:
    """Return labels and length from ``config.json``, if it exists."""
    if not path.exists():
        return {}
    try:
        config = json.loads(_read(path))
    except (ValueError, RecursionError) as error:
        raise ModelUnavailable(f"{path} is not JSON; restore it, or remove it") from error
    labels = config.get("id2label") if isinstance(config, dict) else 0
    tokens = config.get("max_position_embeddings") if isinstance(config, dict) else 0
    if not (isinstance(labels, dict | None) and (tokens is None or (type(tokens) is int and tokens > 0))):
        raise ModelUnavailable(
            f"{path}: id2label must be an object and max_position_embeddings a positive integer; restore the file, or "
            "remove it"
        )
    return {"id2label": labels, "max_position_embeddings": tokens}


def _tokenizer(path: Path, content: bytes) -> tuple[Any, int]:
    """Return the tokenizer and the id that it pads with."""
    try:
        tokenizer = tokenizer_of(content.decode())
    except Exception as error:
        raise ModelUnavailable(
            f"{path} is not a tokenizer ({type(error).__name__}); want a file saved by Hugging Face's tokenizers"
        ) from error
    if tokenizer.num_special_tokens_to_add(True) == 0:
        raise ModelUnavailable(
            f"{path} has no template for a pair, so question and passage would run together; want a tokenizer with a "
            "post_processor"
        )
    named = [tokenizer.token_to_id(name) for name in ("[PAD]", "<pad>")]
    pad = (tokenizer.padding or {}).get("pad_id", next((one for one in named if one is not None), 0))
    # The file's own truncation could shorten the question, and its padding is not the graph's.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer, pad


def _session(path: Path, graph: bytes) -> Any:
    from onnxruntime import InferenceSession, SessionOptions

    if b"location" in graph and _EXTERNAL.search(graph):  # the first test alone is eight times faster
        raise ModelUnavailable(
            f"{path} keeps its weights in other files, which are not read; save it as one file: "
            "onnx.save_model(onnx.load(PATH), NEW_PATH)"
        )
    options = SessionOptions()
    options.intra_op_num_threads = 1  # each thread takes whole windows
    options.log_severity_level = 3
    # Otherwise bytes that look like onnxruntime's own format are read as such.
    options.add_session_config_entry("session.load_model_format", "ONNX")
    try:
        return InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise ModelUnavailable(
            f"{path} cannot be loaded ({type(error).__name__}); want an ONNX model with onnxruntime's own operators"
        ) from error


def _inputs(path: Path, session: Any) -> tuple[dict[str, Any], int, int | None]:
    """Return the inputs with their types, the rows of a run, and the width if fixed."""
    stated = {one.name: one for one in session.get_inputs()}
    shapes = [one.shape for one in stated.values()]
    fixed = [{size for size in sizes if isinstance(size, int)} for sizes in zip(*shapes, strict=False)]
    if (
        not {"input_ids", "attention_mask"} <= set(stated) <= set(_INPUTS)
        or any(len(shape) != 2 for shape in shapes)
        or any(one.type not in _INTEGERS for one in stated.values())
        or any(len(sizes) > 1 or not all(size > 0 for size in sizes) for sizes in fixed)
    ):
        came = ", ".join(f"{one.name} {one.type} {one.shape}" for one in stated.values())
        raise ModelUnavailable(
            f"{path} takes {shown(came)}; want input_ids, attention_mask and perhaps token_type_ids, all integers with "
            "the shape (batch, tokens): export it for sequence classification"
        )
    kinds = {name: _INTEGERS[one.type] for name, one in stated.items()}
    return kinds, next(iter(fixed[0]), 1), next(iter(fixed[1]), None)


def _output(path: Path, session: Any) -> str:
    names: list[str] = [one.name for one in session.get_outputs()]
    if "logits" not in names and len(names) != 1:
        raise ModelUnavailable(f"{path} gives {shown(', '.join(names))}; want logits, or a single output")
    return "logits" if "logits" in names else names[0]


def _labels(home: Path, stated: dict[str, Any] | None, columns: int) -> tuple[str, ...] | tuple[int, ...]:
    if stated is None:
        return tuple(range(columns))
    names = [stated.get(str(at)) for at in range(columns)]
    if len(stated) != columns or not all(isinstance(name, str) for name in names) or len({*names}) < columns:
        raise ModelUnavailable(
            f"{home / 'config.json'} names {quoted(stated)}, but the model gives {columns} logits; want a name for "
            "each, with keys from 0: check that both files belong to the same model"
        )
    return tuple(str(name) for name in names)


def _column(name: str, label: str | int | None, labels: tuple[str, ...] | tuple[int, ...]) -> int:
    if len(labels) == 1:
        if label is not None:
            raise InvalidArgument(f"{name} gives a single logit, which is the score; leave label out")
        return 0
    if type(label) is int and 0 <= label < len(labels):
        return label
    if isinstance(label, str) and label in labels:
        return [*labels].index(label)
    columns = ", ".join(f"{at} ({quoted(one)})" if one != at else f"{at}" for at, one in enumerate(labels))
    raise InvalidArgument(
        f"label is {quoted(label)}; {name} gives {len(labels)} logits, want one of {columns}"
    )


def _shares(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sigmoid of single logits, or the softmax of several."""
    if logits.shape[1] == 1:
        return np.asarray(0.5 * (1 + np.tanh(logits / 2)))
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))
