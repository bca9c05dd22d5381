"""Embed texts as the mean of WordLlama's static token vectors, in 256 dimensions."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

import numpy as np

from carag.retrieval.embedder import check_texts, unit_rows
from carag.retrieval.model_files import PackagedFile, fingerprint, tokenizer_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from tokenizers import Tokenizer


_WEIGHTS: Final = PackagedFile(
    "wordllama==0.4.0.post1",
    "wordllama/weights/l2_supercat_256.safetensors",
    "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
)
_TOKENIZER: Final = PackagedFile(
    "wordllama==0.4.0.post1",
    "wordllama/tokenizers/l2_supercat_tokenizer_config.json",
    "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
)
_BATCH: Final = 256
"""Texts tokenised at once: enough for all processors, but few enough for their tokens to fit in memory."""
_PREPROCESSING: Final = 1
"""Version of tokenisation and pooling. Raise it when they change, so that old vectors are refused."""


class StaticWordLlama:
    """The fast embedder, which embeds texts of any length whole; ModelUnavailable if a file is missing or altered."""

    files: Final = (_WEIGHTS, _TOKENIZER)
    name: Final = "wordllama"
    dim: Final = 256
    remote: Final = False
    fingerprint: Final = fingerprint("wordllama", 256, _WEIGHTS.sha256, _TOKENIZER.sha256, _PREPROCESSING)

    def __init__(self) -> None:
        self._vectors, self._tokenizer = _model()

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed passages to store."""
        check_texts(texts)
        rows = np.empty((len(texts), self.dim), dtype=np.float32)
        for start in range(0, len(texts), _BATCH):
            batch = list(texts[start : start + _BATCH])
            encodings = self._tokenizer.encode_batch_fast(batch, add_special_tokens=False)
            for row, encoding in enumerate(encodings, start):
                rows[row] = self._vectors[encoding.ids].mean(axis=0)
        return unit_rows(rows)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Embed a question."""
        vector: NDArray[np.float32] = self.embed_documents([text])[0]
        return vector


@functools.cache  # 0.2 s, once in a process, however many stores it opens
def _model() -> tuple[NDArray[np.float32], Tokenizer]:
    from safetensors.numpy import load

    tokenizer = tokenizer_of(_TOKENIZER.read().decode())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return load(_WEIGHTS.read())["embedding.weight"].astype(np.float32), tokenizer
