"""Embed texts with a local model of the package ``sentence-transformers``; nothing is downloaded."""

from __future__ import annotations

import hashlib
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from carag.errors import InvalidArgument, MissingExtra, ModelUnavailable
from carag.limits import check_label, check_text
from carag.retrieval.embedder import check_texts, checked_rows, equal_spans, unit_rows
from carag.retrieval.model_files import fingerprint
from carag.retrieval.model_server import check_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


_MAX_PREFIX: Final = 1000
"""Characters."""
_PREPROCESSING: Final = 2
"""Version of windows and their mean. Raise it when they change, so that old vectors are refused."""
_NO_LIMIT: Final = 1 << 24
"""Tokenizers without a maximum length state a number above this."""


class SentenceTransformerEmbedder:
    """Embed with a model directory as ``sentence-transformers`` saves it.

    The model reads as many tokens as its own configuration says (``max_seq_length``), and would silently drop the rest
    of a longer text. Such a text is cut into windows of equal size, whose vectors are averaged by length.

    - ``model``: the path of the directory, or the name of a model in the hub's cache on this machine.
    - ``document_prefix``, ``query_prefix``: what the model expects before a passage and before a question.
    - ``batch``: texts that are embedded at once.
    - ``device``: as PyTorch names it.

    Raises MissingExtra if ``sentence-transformers`` is not installed; ModelUnavailable if the model is not on this
    machine or cannot be loaded.
    """

    remote: Final = False

    def __init__(
        self,
        model: str,
        *,
        document_prefix: str = "",
        query_prefix: str = "",
        batch: int = 32,
        device: str = "cpu",
    ) -> None:
        self.name = f"sentence-transformers:{model}"
        check_label("the embedder's name", self.name)
        check_label("device", device)
        check_count("batch", batch, 1, 2048)
        for name, text in (("document_prefix", document_prefix), ("query_prefix", query_prefix)):
            check_text(name, text, _MAX_PREFIX)
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as absent:
            raise MissingExtra(
                f"{self.name} needs sentence-transformers; run: pip install 'carag-engine[sentence-transformers]'"
            ) from absent
        home = _directory(model)
        self._prefixes, self._batch = (document_prefix, query_prefix), batch
        # Every file counts: weights, tokenizer, pooling and maximum length.
        self.fingerprint = fingerprint(
            "sentence-transformers", _tree_hash(home), *self._prefixes, _PREPROCESSING
        )
        try:
            # Code that comes with a model is not run.
            self._model: Any = SentenceTransformer(
                str(home), device=device, local_files_only=True, trust_remote_code=False
            )
            dim = self._model.get_sentence_embedding_dimension()
        except Exception as error:
            raise ModelUnavailable(
                f"{self.name} cannot be loaded ({type(error).__name__}); want a directory that sentence-transformers "
                "saved"
            ) from error
        if type(dim) is not int or dim < 1:
            raise InvalidArgument(f"{self.name} states no dimension; use a model with a pooling layer")
        self.dim: int = dim
        # Without a maximum of its own the model uses its tokenizer's (class Transformer, method tokenize).
        self._tokenizer: Any = getattr(self._model, "tokenizer", None)
        stated = getattr(self._model, "max_seq_length", None) or getattr(
            self._tokenizer, "model_max_length", None
        )
        self._most_tokens: int | None = int(stated) if stated is not None and stated < _NO_LIMIT else None
        if self._most_tokens is not None and not callable(self._tokenizer):
            raise InvalidArgument(
                f"{self.name} reads {self._most_tokens} tokens but has no tokenizer to count them, so a longer text "
                "would silently lose its end; use a model with its own tokenizer"
            )

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed passages to store."""
        return self._embed(texts, self._prefixes[0])

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Embed a question."""
        vector: NDArray[np.float32] = self._embed([text], self._prefixes[1])[0]
        return vector

    def _embed(self, texts: Sequence[str], prefix: str) -> NDArray[np.float32]:
        check_texts(texts)
        windows = [self._windows(text, prefix) for text in texts]
        rows = self._rows([prefix + window for some in windows for window in some])
        if len(rows) == len(texts):
            return rows
        ends = list(accumulate(map(len, windows)))
        means = [
            # A text that the model reads whole keeps its vector, bit for bit.
            rows[end - 1] if len(some) == 1 else _mean(some, rows[end - len(some) : end])
            for some, end in zip(windows, ends, strict=True)
        ]
        return np.stack(means)

    def _windows(self, text: str, prefix: str) -> list[str]:
        """Cut a text into windows of equal size that the model reads to the end."""
        most = self._most_tokens
        tokens = 0 if most is None else self._tokens(prefix + text)
        if most is None or tokens <= most:
            return [text]
        count = -(-tokens // most)
        while count < len(text):
            cut = (text[start:end] for start, end in equal_spans(len(text), -(-len(text) // count)))
            windows = [window for window in cut if window.strip()]
            if all(self._tokens(prefix + window) <= most for window in windows):
                return windows
            count += 1 + count // 8
        raise InvalidArgument(
            f"{self.name} reads {most} tokens, which the prefix alone fills; use a shorter prefix"
        )

    def _tokens(self, text: str) -> int:
        """Count the tokens of a text, special ones included."""
        try:
            return len(self._tokenizer(text, truncation=False, verbose=False)["input_ids"])
        except Exception as error:
            raise ModelUnavailable(f"{self.name} raised {type(error).__name__}") from error

    def _rows(self, texts: list[str]) -> NDArray[np.float32]:
        try:
            came = self._model.encode(
                texts,
                batch_size=self._batch,
                convert_to_numpy=True,
                normalize_embeddings=True,
                show_progress_bar=False,
            )
        except Exception as error:
            raise ModelUnavailable(f"{self.name} raised {type(error).__name__}") from error
        return checked_rows(self.name, came if texts else came.reshape(0, self.dim), (len(texts), self.dim))


def _mean(windows: list[str], rows: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.array([len(window) for window in windows], dtype=np.float32)
    mean: NDArray[np.float32] = unit_rows((lengths @ rows)[None, :])[0]
    return mean


def _directory(model: str) -> Path:
    """Return the directory of a model, perhaps in the hub's cache."""
    path = Path(model)
    if path.is_dir():
        return path
    try:
        from huggingface_hub import snapshot_download

        return Path(snapshot_download(model, local_files_only=True))
    except Exception as error:
        raise ModelUnavailable(
            f"{model} is neither a directory nor the name of a model in the hub's cache on this machine; download it "
            "first"
        ) from error


def _tree_hash(home: Path) -> str:
    """Hash the names and bytes of all files below a directory except hidden ones."""
    whole = hashlib.sha256()
    for path in sorted(path for path in home.rglob("*") if path.is_file()):
        name = path.relative_to(home)
        if not any(part.startswith(".") for part in name.parts):
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            whole.update(f"{name.as_posix()}\0{content}\n".encode("utf-8", "surrogateescape"))
    return whole.hexdigest()
