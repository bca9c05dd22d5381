"""Embed texts with a model of the package ``sentence-transformers`` that is on this machine; nothing is downloaded."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from carag.errors import InvalidArgument, MissingExtra, ModelUnavailable
from carag.limits import check_label, check_text
from carag.retrieval.embedder import check_texts, checked_rows
from carag.retrieval.model_files import fingerprint
from carag.retrieval.model_server import check_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["SentenceTransformerEmbedder"]

_MAX_PREFIX: Final = 1000
"""Characters."""


class SentenceTransformerEmbedder:
    """Embed with a model directory as ``sentence-transformers`` saves it.

    The model reads as many tokens of a text as its own configuration says (``max_seq_length``); what is longer it does
    not read, so cut long passages before.

    Parameters
    ----------
    model : str
        The path of the directory, or the name of a model that the hub's cache on this machine holds.
    document_prefix, query_prefix : str
        What the model wants before a passage and before a question.
    batch : int
        Texts that are embedded at once.
    device : str
        As PyTorch names it.

    Raises
    ------
    MissingExtra
        If ``sentence-transformers`` is not installed.
    ModelUnavailable
        If the model is not on this machine or cannot be loaded.
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
        # Every file counts: weights, tokenizer, pooling and the number of tokens that are read.
        self.fingerprint = fingerprint("sentence-transformers", _tree_hash(home), *self._prefixes, 1)
        try:
            # Code that comes with a model is not run.
            self._model: Any = SentenceTransformer(
                str(home), device=device, local_files_only=True, trust_remote_code=False
            )
            dim = self._model.get_sentence_embedding_dimension()
        except Exception as error:
            raise ModelUnavailable(
                f"{self.name}: {type(error).__name__}; want a directory that sentence-transformers can load"
            ) from error
        if type(dim) is not int or dim < 1:
            raise InvalidArgument(f"{self.name} states no dimension; want a model with a pooling layer")
        self.dim: int = dim

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed passages to store; see :class:`~carag.retrieval.embedder.Embedder`."""
        return self._embed(texts, self._prefixes[0])

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Embed a question; see :class:`~carag.retrieval.embedder.Embedder`."""
        vector: NDArray[np.float32] = self._embed([text], self._prefixes[1])[0]
        return vector

    def _embed(self, texts: Sequence[str], prefix: str) -> NDArray[np.float32]:
        check_texts(texts)
        try:
            came = self._model.encode(
                [prefix + text for text in texts],
                batch_size=self._batch,
                convert_to_numpy=True,
                normalize_embeddings=True,
                show_progress_bar=False,
            )
        except Exception as error:
            raise ModelUnavailable(f"{self.name} raised {type(error).__name__}") from error
        return checked_rows(self.name, came if texts else came.reshape(0, self.dim), (len(texts), self.dim))


def _directory(model: str) -> Path:
    """Return the directory of a model, which may be in the hub's cache."""
    path = Path(model)
    if path.is_dir():
        return path
    try:
        from huggingface_hub import snapshot_download

        return Path(snapshot_download(model, local_files_only=True))
    except Exception as error:
        raise ModelUnavailable(
            f"{model} is no directory, and the hub's cache on this machine holds no model of that name; download it "
            "first"
        ) from error


def _tree_hash(home: Path) -> str:
    """Hash the names and bytes of all files below a directory, but for hidden ones."""
    whole = hashlib.sha256()
    for path in sorted(path for path in home.rglob("*") if path.is_file()):
        name = path.relative_to(home)
        if not any(part.startswith(".") for part in name.parts):
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            whole.update(f"{name.as_posix()}\0{content}\n".encode("utf-8", "surrogateescape"))
    return whole.hexdigest()
