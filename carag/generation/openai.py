"""Draft answers with any server that offers OpenAI's ``POST /chat/completions``: llama.cpp, vLLM, OpenAI itself.

The prompt (question, admissible passages, the policy's rules) leaves this process for the server at ``url``. The answer
is requested as a stream with an end mark: an answer without the mark was cut off, and is not used.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from carag.errors import MALFORMED, ModelUnavailable
from carag.generation.generator import Draft, Stop
from carag.generation.marks import cited_positions
from carag.generation.prompts import ANSWER, render
from carag.limits import check_label
from carag.retrieval.model_files import fingerprint
from carag.retrieval.model_server import ModelServer, check_count
from carag.visible import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.retrieval.evidence import Passage, Withheld


_SEED: Final = 1
"""Seed of the sampler, where the server has one."""
_STOPS: Final = {"stop": Stop.END, "length": Stop.LENGTH, "content_filter": Stop.FILTERED}
"""Finish reasons that leave a draft; any other (a tool call) is a failure."""
_DONE: Final = "[DONE]"
"""What OpenAI's streams end with (https://platform.openai.com/docs/api-reference/chat/create, ``stream``)."""

_CUT: Final = "cut"
"""Stands for a missing finish reason."""


class OpenAiGenerator:
    """Draft answers with a model behind an OpenAI-compatible server, at temperature 0.

    Parameters
    ----------
    model : str
        The model's name on the server.
    url, key_env, timeout, retries, insecure_http
        As for :class:`~carag.retrieval.model_server.ModelServer`; ``timeout`` is for the whole answer.
    max_tokens : int
        Longest answer, in tokens; 80 in the paper.

    Raises
    ------
    InvalidArgument
        If an argument cannot be used.

    Examples
    --------
    >>> OpenAiGenerator("qwen", url="http://127.0.0.1:8080/v1", key_env="CHAT_KEY")
    OpenAiGenerator('qwen', ModelServer('http://127.0.0.1:8080/v1', key_env='CHAT_KEY'))
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
        max_tokens: int = 80,
    ) -> None:
        self.name = f"openai:{model}"
        check_label("the model", model)
        check_label("the generator's name", self.name)
        check_count("max_tokens", max_tokens)
        self._server = ModelServer(
            url, key_env=key_env, timeout=timeout, retries=retries, insecure_http=insecure_http
        )
        self._model, self._max_tokens = model, max_tokens
        # Two servers may serve different weights under the same name.
        self.fingerprint = fingerprint(self.name, self._server.url, ANSWER.sha256, max_tokens, _SEED)

    def __repr__(self) -> str:
        return f"OpenAiGenerator({self._model!r}, {self._server!r})"

    def generate(self, question: str, passages: Sequence[Passage], withheld: Withheld) -> Draft:
        """Draft an answer, as :class:`~carag.generation.generator.Generator` defines it."""
        prompt = render(ANSWER, question, passages, withheld)
        stream = self._server.post(
            "/chat/completions",
            {
                "model": self._model,
                "messages": [
                    {"role": "system", "content": prompt.system},
                    {"role": "user", "content": prompt.user},
                ],
                "temperature": 0,
                "seed": _SEED,
                "max_tokens": self._max_tokens,
                "stream": True,
            },
            accept="text/event-stream",
        )
        try:
            text, reason = _read(stream)
        except MALFORMED as error:
            wrong = f"is not in OpenAI's format ({type(error).__name__})"
        else:
            if reason in _STOPS:
                text = visible(text)
                return Draft(text, cited_positions(text), _STOPS[reason])
            wrong = "was cut off" if reason == _CUT else "ended without a usable answer"
        raise ModelUnavailable(
            f"the model server {self._server.url}/chat/completions: the stream {wrong}, and none of "
            "it is used; check the server, or ask again"
        )


def _read(stream: bytes) -> tuple[str, str]:
    """Return the text of a whole stream and its finish reason, or :data:`_CUT`; raise one of `MALFORMED`."""
    parts: list[str] = []
    reason = ""
    for line in stream.decode().replace("\r\n", "\n").split("\n"):
        field, _, data = line.partition(":")
        if field != "data":  # a comment that keeps the connection open, another field, an empty line
            continue
        data = data.removeprefix(" ")
        if data == _DONE:
            return "".join(parts), reason or _CUT
        chunk = json.loads(data)
        if "error" in chunk:
            return "", "error"
        for choice in chunk["choices"]:
            if reason or choice["index"] != 0:
                raise ValueError
            parts.append(choice["delta"].get("content") or "")
            reason = choice.get("finish_reason") or ""
    return "", _CUT
