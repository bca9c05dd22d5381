"""Call Amazon Bedrock, and embed texts with its Cohere and Titan models.

Everything sent leaves the machine. No failure falls back to another model, and no request or answer is logged. The
generator of :mod:`carag.generation.bedrock` uses the same client.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from carag.errors import MissingExtra, ModelUnavailable
from carag.retrieval.embedder import mean_of_windows
from carag.retrieval.model_files import fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray


_T = TypeVar("_T")
_REMEDIES: Final = {
    "AccessDeniedException": "allow bedrock:InvokeModel for this model, and ask for access to it",
    "ThrottlingException": "retries failed as well; slow down, or raise the account's quota",
    "ServiceQuotaExceededException": "raise the account's quota",
    "ModelNotReadyException": "retries failed as well; try again later",
    "ModelTimeoutException": "try again, or ask for fewer passages",
    "ResourceNotFoundException": "check the model id and whether this region offers the model",
    "ValidationException": "the service does not accept this request; check the model id",
    "ExpiredTokenException": "renew the credentials",
    "UnrecognizedClientException": "check the credentials",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BedrockSettings:
    """How to reach the service. Credentials come from boto3's own chain, never from these settings."""

    region: str | None = None
    """Default: the configured region."""
    endpoint_url: str | None = None
    """A different address, such as a VPC endpoint's."""
    attempts: int = 4
    """The number of tries in all, with exponential backoff; only throttling, time-outs and server errors are
    retried."""
    connect_timeout: float = 5
    """Seconds."""
    read_timeout: float = 60
    """Seconds."""


def bedrock_client(settings: BedrockSettings) -> Any:
    """Make a ``bedrock-runtime`` client; botocore's log stays above DEBUG, where it would contain whole prompts.

    Raises MissingExtra if boto3 is not installed; ModelUnavailable if no region is configured, or the endpoint is not
    an address.
    """
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
    except ImportError as absent:
        raise MissingExtra("Amazon Bedrock needs boto3; run: pip install 'carag-engine[bedrock]'") from absent
    config = Config(
        retries={"mode": "standard", "total_max_attempts": settings.attempts},
        connect_timeout=settings.connect_timeout,
        read_timeout=settings.read_timeout,
    )
    if (log := logging.getLogger("botocore")).level < logging.INFO:
        log.setLevel(logging.INFO)
    try:
        return boto3.Session().client(
            "bedrock-runtime", region_name=settings.region, endpoint_url=settings.endpoint_url, config=config
        )
    except (BotoCoreError, ValueError) as failure:
        raise ModelUnavailable(f"Bedrock: {failure}; check the region and the endpoint") from failure


def calling(model: str, call: Callable[[], _T]) -> _T:
    """Call the service; if it or the connection fails, raise ModelUnavailable, which names the code and a remedy."""
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    try:
        return call()
    except ClientError as failure:
        error = failure.response.get("Error", {})
        code = error.get("Code", "unknown error")
        remedy = _REMEDIES.get(code, "see the service's status and the CloudTrail event")
        raise ModelUnavailable(f"Bedrock, {model}: {code}: {error.get('Message', '')}; {remedy}") from failure
    except BotoCoreError as failure:
        raise ModelUnavailable(
            f"Bedrock, {model}: {failure}; check the network, the region and the credentials"
        ) from failure
    except (ResponseParserError, AttributeError, TypeError, ValueError) as failure:
        # botocore's parser raises plain Python errors for a malformed body.
        raise malformed_answer(model, type(failure).__name__) from failure


def converse(client: Any, model: str, *, system: str, user: str, max_tokens: int) -> dict[str, Any]:
    """Ask a model once through ``Converse``, at temperature 0; raises as :func:`calling` does."""
    return calling(
        model,
        lambda: client.converse(
            modelId=model,
            system=[{"text": system}],
            messages=[{"role": "user", "content": [{"text": user}]}],
            inferenceConfig={"temperature": 0, "maxTokens": max_tokens},
        ),
    )


def malformed_answer(model: str, what: str) -> ModelUnavailable:
    """Make the error for an answer that is not in the documented form; the error quotes nothing from that answer."""
    return ModelUnavailable(
        f"Bedrock, {model}: the answer is not in the documented form ({what}); "
        "check that the endpoint is Bedrock's"
    )


def reply_text(reply: dict[str, Any], model: str) -> str:
    """Return the text of an answer from :func:`converse`; ModelUnavailable if the answer holds anything but text."""
    try:
        return "".join(block["text"] for block in reply["output"]["message"]["content"])
    except (KeyError, TypeError) as malformed:
        raise malformed_answer(model, type(malformed).__name__) from malformed


class Cohere:
    """cohere.embed-multilingual-v3 through ``InvokeModel``: 1,024 dimensions, over a hundred languages.

    A call takes up to 96 texts of up to 2,048 characters each. A longer text is cut into windows of equal
    size, whose vectors are averaged by length. Nothing is cut off: with ``truncate`` set to ``NONE``, the service would
    refuse a text that is too long rather than shorten it. Raises as :func:`bedrock_client` does.
    """

    name: Final = "bedrock:cohere.embed-multilingual-v3"
    dim: Final = 1024
    remote: Final = True
    fingerprint: Final = fingerprint("bedrock:cohere.embed-multilingual-v3", 1024, 1)
    """A hash of name, dimension and preprocessing version; the model id stands for the service's weights."""

    _MODEL_ID: Final = "cohere.embed-multilingual-v3"
    _MAX_TEXTS: Final = 96
    """Texts per call (the service's limit)."""
    _MAX_CHARACTERS: Final = 2048
    """Characters per text (the service's limit)."""

    def __init__(self, settings: BedrockSettings | None = None) -> None:
        self._client = bedrock_client(settings or BedrockSettings())

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed passages to store."""
        return self._embed(texts, "search_document")

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Embed a question."""
        vector: NDArray[np.float32] = self._embed([text], "search_query")[0]
        return vector

    def _embed(self, texts: Sequence[str], input_type: str) -> NDArray[np.float32]:
        return mean_of_windows(
            texts,
            lambda batch: self._invoke(batch, input_type),
            dim=self.dim,
            most_characters=self._MAX_CHARACTERS,
            batch=self._MAX_TEXTS,
        )

    def _invoke(self, texts: list[str], input_type: str) -> NDArray[np.float32]:
        body = {"texts": texts, "input_type": input_type, "truncate": "NONE"}
        answer = _invoked(self._client, self._MODEL_ID, body)
        try:
            embeddings = json.loads(answer)["embeddings"]
            # A mapping by type if the account's default requests types, otherwise the rows.
            rows = np.array(
                embeddings["float"] if isinstance(embeddings, dict) else embeddings, dtype=np.float32
            )
        except (ValueError, KeyError, TypeError) as malformed:
            raise malformed_answer(self._MODEL_ID, type(malformed).__name__) from malformed
        if rows.shape != (len(texts), self.dim) or not np.isfinite(rows).all():
            raise malformed_answer(self._MODEL_ID, f"{rows.shape} for {len(texts)} texts")
        return rows


class Titan:
    """amazon.titan-embed-text-v2:0 through ``InvokeModel``: 1,024 dimensions, one text per call.

    The model takes 8,192 tokens, and a token has at least one character; a text of more than 8,192 characters is cut
    into windows as :class:`Cohere` does. Raises as :func:`bedrock_client` does.
    """

    name: Final = "bedrock:amazon.titan-embed-text-v2:0"
    dim: Final = 1024
    remote: Final = True
    fingerprint: Final = fingerprint("bedrock:amazon.titan-embed-text-v2:0", 1024, 1)
    """A hash of name, dimension and preprocessing version; the model id stands for the service's weights."""

    _MODEL_ID: Final = "amazon.titan-embed-text-v2:0"
    _MAX_CHARACTERS: Final = 8192

    def __init__(self, settings: BedrockSettings | None = None) -> None:
        self._client = bedrock_client(settings or BedrockSettings())

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed passages to store."""
        return mean_of_windows(
            texts, self._invoke, dim=self.dim, most_characters=self._MAX_CHARACTERS, batch=1
        )

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Embed a question."""
        vector: NDArray[np.float32] = self.embed_documents([text])[0]
        return vector

    def _invoke(self, texts: list[str]) -> NDArray[np.float32]:
        body = {"inputText": texts[0], "dimensions": self.dim, "normalize": True}
        answer = _invoked(self._client, self._MODEL_ID, body)
        try:
            row = np.array(json.loads(answer)["embedding"], dtype=np.float32)
        except (ValueError, KeyError, TypeError) as malformed:
            raise malformed_answer(self._MODEL_ID, type(malformed).__name__) from malformed
        if row.shape != (self.dim,) or not np.isfinite(row).all():
            raise malformed_answer(self._MODEL_ID, f"{row.shape} for one text")
        return row.reshape(1, self.dim)


def _invoked(client: Any, model: str, body: dict[str, Any]) -> bytes:
    """Call ``InvokeModel`` with a JSON body, and read the whole answer."""
    answer: bytes = calling(
        model,
        lambda: client.invoke_model(
            modelId=model, body=json.dumps(body), contentType="application/json", accept="application/json"
        )["body"].read(),
    )
    return answer
