"""Embed texts with any server that speaks OpenAI's ``POST /embeddings``: llama.cpp, vLLM, OpenAI itself."""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from carag.errors import MALFORMED, InvalidArgument, ModelUnavailable
from carag.limits import check_label, check_text
from carag.retrieval.embedder import checked_rows, mean_of_windows
from carag.retrieval.model_files import fingerprint
from carag.retrieval.model_server import ModelServer, check_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray


_PROBE: Final = "dimension"
"""Embedded once to learn the number of components; it reveals nothing about anyone's texts."""
_MAX_DIM: Final = 1 << 16
_MAX_PREFIX: Final = 1000
"""Characters."""


class OpenAiEmbedder:
    """Embed with a model on an OpenAI-compatible server; InvalidArgument for unusable arguments.

    - ``model``: its name there.
    - ``url``, ``key_env``, ``timeout``, ``retries``, ``insecure_http``: as for
      :class:`~carag.retrieval.model_server.ModelServer`.
    - ``dim``: the components of a vector. By default the server is asked once, with a fixed word; with ``dim`` a store
      can be opened while the server is unreachable.
    - ``dimensions``: components to request from a model that can shorten its vectors.
    - ``batch``: texts in one request.
    - ``max_characters``: characters that the model takes in one text; longer texts are cut into windows, whose vectors
      are averaged. The default is about 512 tokens of English, which small models take.
    - ``document_prefix``, ``query_prefix``: what the model expects before a passage and before a question, such as
      ``"search_query: "``.
    - ``version``: a name for the weights, which replaces the url in the fingerprint, so that the model may move to
      another server.
    """

    remote: Final = True

    def __init__(
        self,
        model: str,
        *,
        url: str,
        key_env: str | None = None,
        timeout: float = 60.0,
        retries: int = 3,
        insecure_http: bool = False,
        dim: int | None = None,
        dimensions: int | None = None,
        batch: int = 32,
        max_characters: int = 2000,
        document_prefix: str = "",
        query_prefix: str = "",
        version: str | None = None,
    ) -> None:
        self.name = f"openai:{model}"
        check_label("the model", model)
        check_label("the embedder's name", self.name)
        for name, number, most in (("dim", dim, _MAX_DIM), ("dimensions", dimensions, _MAX_DIM)):
            if number is not None:
                check_count(name, number, 1, most)
        if None not in (dim, dimensions) and dim != dimensions:
            raise InvalidArgument(f"dim is {dim} and dimensions {dimensions}; want one number")
        check_count("batch", batch, 1, 2048)
        check_count("max_characters", max_characters)
        for name, text in (("document_prefix", document_prefix), ("query_prefix", query_prefix)):
            check_text(name, text, _MAX_PREFIX)
        if version is not None:
            check_label("version", version)
        self._server = ModelServer(
            url, key_env=key_env, timeout=timeout, retries=retries, insecure_http=insecure_http
        )
        self._model, self._stated_dim, self._dimensions = model, dim or dimensions, dimensions
        self._batch, self._max_characters = batch, max_characters
        self._prefixes = document_prefix, query_prefix
        weights = ("version", version) if version is not None else ("url", self._server.url)
        self.fingerprint = fingerprint(
            self.name, *weights, dimensions or 0, max_characters, *self._prefixes, 1
        )

    def __repr__(self) -> str:
        return f"OpenAiEmbedder({self._model!r}, {self._server!r})"

    @cached_property
    def dim(self) -> int:
        """The number of components of a vector; its first use may ask the server."""
        if self._stated_dim is not None:
            return self._stated_dim
        (row,) = self._asked([_PROBE])
        if not isinstance(row, list) or not 1 <= len(row) <= _MAX_DIM:
            raise self._malformed("a vector that is not a list of numbers")
        return len(row)

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed passages to store."""
        return self._embed(texts, self._prefixes[0])

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Embed a question."""
        vector: NDArray[np.float32] = self._embed([text], self._prefixes[1])[0]
        return vector

    def _embed(self, texts: Sequence[str], prefix: str) -> NDArray[np.float32]:
        return mean_of_windows(
            texts,
            lambda some: self._rows([prefix + text for text in some]),
            dim=self.dim,
            most_characters=self._max_characters,
            batch=self._batch,
        )

    def _rows(self, texts: list[str]) -> NDArray[np.float32]:
        came, wrong = self._asked(texts), ""
        try:
            return checked_rows(self.name, came, (len(texts), self.dim))
        except InvalidArgument as error:  # the server's mistake, not the caller's
            wrong = str(error)
        raise ModelUnavailable(f"{wrong}; check the model at {self._server.url}")

    def _asked(self, texts: list[str]) -> list[Any]:
        """Return the server's result for each text, in the order of the texts."""
        body: dict[str, Any] = {"model": self._model, "input": texts, "encoding_format": "float"}
        if self._dimensions is not None:
            body["dimensions"] = self._dimensions
        answer, wrong = self._server.post("/embeddings", body), ""
        try:
            items = json.loads(answer)["data"]
            rows = {item["index"]: item["embedding"] for item in items}
            if len(items) == len(texts) and set(rows) == set(range(len(texts))):
                return [rows[at] for at in range(len(texts))]
            wrong = f"not one vector for each of {len(texts)} texts"
        except MALFORMED as error:
            wrong = type(error).__name__
        raise self._malformed(wrong)

    def _malformed(self, what: str) -> ModelUnavailable:
        return ModelUnavailable(
            f"the model server {self._server.url}/embeddings: the answer is not in OpenAI's format ({what}); check "
            "that it serves embeddings"
        )
