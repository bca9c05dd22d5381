"""Rerank with any server that speaks Jina's ``POST /rerank``: llama.cpp (``--reranking``), vLLM, Jina itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from carag.errors import MALFORMED, InvalidArgument, ModelUnavailable
from carag.limits import check_label
from carag.retrieval.model_files import fingerprint
from carag.retrieval.model_server import ModelServer
from carag.retrieval.reranker import checked_scores

if TYPE_CHECKING:
    from collections.abc import Sequence


class JinaReranker:
    """Rerank with a cross-encoder on a server, by its name there.

    The other arguments, and the errors raised, are those of :class:`~carag.retrieval.model_server.ModelServer`.
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
    ) -> None:
        self.name = f"jina:{model}"
        check_label("the model", model)
        check_label("the reranker's name", self.name)
        self._server = ModelServer(
            url, key_env=key_env, timeout=timeout, retries=retries, insecure_http=insecure_http
        )
        self._model = model
        self.fingerprint = fingerprint(self.name, self._server.url, 1)

    def __repr__(self) -> str:
        return f"JinaReranker({self._model!r}, {self._server!r})"

    def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        """Score texts."""
        if not texts:
            return []
        answer = self._server.post(
            "/rerank", {"model": self._model, "query": question, "documents": list(texts)}
        )
        try:
            results = json.loads(answer)["results"]
            scores = {one["index"]: one["relevance_score"] for one in results}
            if len(results) == len(texts) and set(scores) == set(range(len(texts))):
                return checked_scores(
                    f"the reranker {self.name!r}", [scores[at] for at in range(len(texts))], len(texts)
                )
            wrong = f"not one score for each of {len(texts)} texts"
        except InvalidArgument as error:
            wrong = str(error)
        except MALFORMED as error:
            wrong = type(error).__name__
        raise ModelUnavailable(
            f"the model server {self._server.url}/rerank: the answer is not in Jina's format ({wrong}); check that it "
            "serves a reranker"
        )
