"""Draft answers with any model that Bedrock's ``Converse`` serves; by default Nova Micro, in the paper's settings.

The prompt (:mod:`carag.generation.prompts`: question, admissible passages, the policy's rules) leaves this machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from carag.errors import InvalidArgument, ModelUnavailable
from carag.generation.generator import Draft, Stop
from carag.generation.marks import cited_positions
from carag.generation.prompts import ANSWER, render
from carag.retrieval.bedrock import BedrockSettings, bedrock_client, converse, malformed_answer
from carag.retrieval.model_files import fingerprint
from carag.visible import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.retrieval.evidence import Passage, Withheld


_STOPS: Final = {
    "end_turn": Stop.END,
    "stop_sequence": Stop.END,
    "max_tokens": Stop.LENGTH,
    "guardrail_intervened": Stop.FILTERED,
    "content_filtered": Stop.FILTERED,
}
"""Stop reasons that leave a draft; any other (a tool call, malformed output) is a failure."""


class NovaMicro:
    """Draft answers with a Bedrock model at temperature 0: by default the paper's.

    Parameters
    ----------
    model_id : str
        A model or inference profile that ``Converse`` takes.
    max_tokens : int
        Longest answer, in tokens; 80 in the paper.

    Raises
    ------
    MissingExtra
        If boto3 is not installed.
    ModelUnavailable
        If no region is configured.
    """

    remote: Final = True

    def __init__(
        self,
        model_id: str = "amazon.nova-micro-v1:0",
        *,
        max_tokens: int = 80,
        settings: BedrockSettings | None = None,
    ) -> None:
        if max_tokens < 1:
            raise InvalidArgument(f"max_tokens is {max_tokens}; want at least 1")
        self.name = f"bedrock:{model_id}"
        self.fingerprint = fingerprint(self.name, ANSWER.sha256, max_tokens)
        self._model_id = model_id
        self._max_tokens = max_tokens
        self._client = bedrock_client(settings or BedrockSettings())

    def generate(self, question: str, passages: Sequence[Passage], withheld: Withheld) -> Draft:
        """Draft an answer, as :class:`~carag.generation.generator.Generator` defines it."""
        prompt = render(ANSWER, question, passages, withheld)
        return self._draft(
            converse(
                self._client,
                self._model_id,
                system=prompt.system,
                user=prompt.user,
                max_tokens=self._max_tokens,
            )
        )

    def _draft(self, reply: dict[str, Any]) -> Draft:
        reason = reply.get("stopReason")
        if reason not in _STOPS:
            raise ModelUnavailable(
                f"Bedrock, {self._model_id}: the model stopped with {reason!r} and gave no usable answer; "
                "ask for fewer passages, or choose another model"
            )
        try:
            content = reply["output"]["message"]["content"]
            text = visible("".join(block["text"] for block in content if "text" in block))
        except (KeyError, TypeError) as malformed:
            raise malformed_answer(self._model_id, type(malformed).__name__) from malformed
        return Draft(text, cited_positions(text), _STOPS[reason])
