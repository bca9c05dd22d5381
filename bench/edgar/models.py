"""Ask real generators development questions, and count what comes: ``python -m bench.edgar.models --model NAME``.

Each question goes through the engine: its ranker, prompt, gate, guard and audit log. ``smollm2-server`` starts
llama.cpp's HTTP server with the small packaged weights and asks it through the OpenAI-compatible port.

With ``--double`` a ``bedrock:`` model is the double of ``tests/bedrock/double.py``. It checks every request against the
service's own model, and its signature, and answers by a fixed rule: what it cites means nothing. What is shown is that
all requests are such as the service takes, and that every bad citation is refused. No question of the reported split is
asked.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import secrets
import statistics
import sys
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.edgar.generator import development_pairs
from carag.engine import Engine
from carag.errors import ModelUnavailable
from carag.evaluation.cases.corpus import SIZES, build_corpus
from carag.evaluation.cases.ground_truth import GroundTruth
from carag.evaluation.models import RecordingGenerator, TimedEmbedder
from carag.evaluation.run import NOW
from carag.generation import DeclineCode, NovaMicro, OpenAiGenerator, generator_by_name
from carag.generation.local import _SMOLLM2
from carag.generation.prompts import INSUFFICIENT_EVIDENCE
from carag.retrieval import embedder_by_name
from carag.retrieval.bedrock import BedrockSettings
from tests.bedrock.double import ENVIRONMENT, REGION, UNSET, ServiceModel
from tests.bedrock.double import serving as serving_double
from tests.models.llama_server import serving as serving_llama

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from carag.evaluation.cases.pairs import Pair
    from carag.generation import Draft, Generator
    from carag.retrieval import Passage, Withheld
    from tests.bedrock.double import Double

__all__ = ["Counted", "FirstPassages", "ask", "fixed_rule"]

SMOLLM2_SERVER: Final = "smollm2-server"
_KEY_ENV: Final = "BENCH_SERVER_KEY"
_CONTEXT: Final = 8192
"""Tokens; the prompts of eight passages are shorter."""
_TIMEOUT: Final = 600.0
"""Seconds for one answer, on a machine that may have other work."""
_ONE_IN: Final = 10
"""The double cites what it was not given once, and declines once, in so many requests."""


@dataclass(slots=True)
class Counted:
    """What came of the questions put to one model."""

    model: str
    pairs: int = 0
    why: Counter[str] = field(default_factory=Counter)
    """Outcomes by the engine's own code; ``FAILED`` where the model could not be reached or read."""
    answerable: int = 0
    cite_gold: int = 0
    """Of the answerable."""
    uncited: int = 0
    """Of the bad citations those that are none at all: the draft cites nothing."""
    seconds: list[float] = field(default_factory=list)
    """Of each call of the model."""

    def row(self) -> str:
        """Return a line of the table."""
        not_asked = self.pairs - len(self.seconds)
        mean = f"{statistics.mean(self.seconds):.2f}" if self.seconds else "-"
        return (
            f"| {self.model} | {self.pairs} | {len(self.seconds)} | {self.why['ANSWERED']} "
            f"| {self.cite_gold} of {self.answerable} | {self.why[DeclineCode.BAD_CITATION]} ({self.uncited}) "
            f"| {self.why[DeclineCode.MODEL_DECLINED]} | {not_asked} | {self.why['FAILED']} | {mean} |"
        )


HEADINGS: Final = (
    "| model | pairs | asked of the model | answered | cites gold, of the answerable "
    "| bad citations, refused (of these none at all) | declined by the model | declined before it | failed "
    "| s a call, mean |\n" + "|---" * 10 + "|"
)


class FirstPassages:
    """A generator that is shown the best few passages; a citation of any other is one of nothing."""

    def __init__(self, generator: Generator, most: int) -> None:
        self._generator, self._most = generator, most
        self.name, self.remote, self.fingerprint = generator.name, generator.remote, generator.fingerprint
        self.cites = True

    def generate(self, question: str, passages: Sequence[Passage], withheld: Withheld) -> Draft:
        """Draft an answer; see :class:`~carag.generation.generator.Generator`."""
        shown = passages[: self._most]
        draft = self._generator.generate(question, shown, withheld)
        self.cites = bool(draft.cited)
        return replace(draft, cited=tuple(at if at < len(shown) else -1 for at in draft.cited))


def ask(
    model: str,
    generator: FirstPassages,
    pairs: Sequence[Pair],
    *,
    store: Path,
    truth: GroundTruth,
    embedder: TimedEmbedder,
    seconds: float,
) -> Counted:
    """Put pairs to a generator through the engine, until all are asked or the time is over."""
    found, recorded = Counted(model), RecordingGenerator(generator)
    end = time.monotonic() + seconds
    with Engine.open(
        store, create=False, embedder=embedder, generator=recorded, clock=lambda: truth.now
    ) as engine:
        for pair in pairs:
            if time.monotonic() > end:
                break
            recorded.forget()
            found.pairs += 1
            found.answerable += pair.answerable
            try:
                answer = engine.ask(pair.question.text, pair.session)
            except ModelUnavailable as failure:
                found.why["FAILED"] += 1
                print(f"  failed: {failure}", file=sys.stderr)
            else:
                found.why[answer.why] += 1
                found.uncited += answer.why == DeclineCode.BAD_CITATION and not generator.cites
                mask = truth.admissible(pair.session, pair.question.text)
                gold = {truth.ids[row] for row in pair.gold_rows if mask is not None and mask[row]}
                cited = {one.chunk_id for one in answer.citations}
                found.cite_gold += pair.answerable and not gold.isdisjoint(cited)
            if recorded.milliseconds:
                found.seconds.append(recorded.milliseconds / 1000)
    return found


def fixed_rule(request: dict[str, Any]) -> dict[str, Any]:
    """Answer a request of ``Converse`` as Bedrock would, with words that follow from the prompt's hash alone."""
    text = request["messages"][0]["content"][0]["text"]
    match hashlib.sha256(text.encode()).digest()[0] % _ONE_IN:
        case 0:
            said = INSUFFICIENT_EVIDENCE
        case 1:
            said = "It is said in a passage that was not given [99]."
        case _:
            said = "It is said in the first passage [1]."
    return {
        "output": {"message": {"role": "assistant", "content": [{"text": said}]}},
        "stopReason": "end_turn",
        "usage": {"inputTokens": len(text) // 4, "outputTokens": 12, "totalTokens": len(text) // 4 + 12},
        "metrics": {"latencyMs": 1},
    }


@contextmanager
def generator_of(
    name: str, *, url: str | None, key_env: str | None, double: bool
) -> Iterator[tuple[Generator, list[Double]]]:
    """Make a generator, with what must run for it; the second is the double that it asks, if any."""
    if name == SMOLLM2_SERVER:
        os.environ[_KEY_ENV] = secrets.token_urlsafe(32)
        with serving_llama(_SMOLLM2.checked_path(), "chat", key=os.environ[_KEY_ENV], context=_CONTEXT) as at:
            yield OpenAiGenerator("smollm2", url=at, key_env=_KEY_ENV, timeout=_TIMEOUT, retries=0), []
    elif name.startswith("bedrock:") and double:
        for unset in UNSET:
            os.environ.pop(unset, None)
        os.environ.update(ENVIRONMENT)
        with serving_double(ServiceModel()) as one:
            one.answers(fixed_rule)
            settings = BedrockSettings(region=REGION, endpoint_url=one.endpoint_url)
            yield NovaMicro(name.partition(":")[2], settings=settings), [one]
    elif name.startswith("openai:"):
        yield generator_by_name(name, {"url": url, "key_env": key_env, "timeout": _TIMEOUT}), []
    else:
        yield generator_by_name(name), []


def main() -> int:
    """Ask, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.edgar.models", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("CARAG_SHARED_DATA"))
    parser.add_argument("--cache", type=Path, required=True, help="where carag bench edgar keeps its corpora")
    parser.add_argument("--size", choices=SIZES, default="paper")
    parser.add_argument("--embedder", default="minilm")
    parser.add_argument(
        "--pairs", type=int, default=2_400, help="of both splits, from which those asked are drawn"
    )
    parser.add_argument(
        "--model", action="append", required=True, help=f"{SMOLLM2_SERVER}, or a generator's name"
    )
    parser.add_argument("--model-pairs", type=int, default=100)
    parser.add_argument("--most-passages", type=int, default=8, help="shown to a model")
    parser.add_argument("--minutes", type=float, default=15.0, help="for each model; the rest is left out")
    parser.add_argument("--url", help="of an openai: model's server")
    parser.add_argument("--key-env", help="the variable that holds its secret")
    parser.add_argument("--double", action="store_true", help="ask bedrock: models of the double")
    given = parser.parse_args()

    embedder = TimedEmbedder(embedder_by_name(given.embedder))
    built = build_corpus(given.size, cache=given.cache, embedder=embedder, data=given.data)
    truth = GroundTruth.open(built.store, now=NOW)
    try:
        pairs = development_pairs(truth, built, embedder, given.pairs)
        pairs = random.Random(0).sample(pairs, min(given.model_pairs, len(pairs)))  # noqa: S311 - sampling
        print(HEADINGS, flush=True)
        notes = []
        for name in given.model:
            with generator_of(name, url=given.url, key_env=given.key_env, double=given.double) as (
                one,
                doubles,
            ):
                asked = ask(
                    name,
                    FirstPassages(one, given.most_passages),
                    pairs,
                    store=built.store,
                    truth=truth,
                    embedder=embedder,
                    seconds=60 * given.minutes,
                )
            print(asked.row(), flush=True)
            notes += [
                f"{name}: a double that answers by a fixed rule; {len(double.requests)} requests passed the service's "
                f"model and its signature, {len(double.faults)} did not"
                for double in doubles
            ]
    finally:
        truth.store.close()
    print(
        "\n".join(
            ["", f"{given.size}, {given.embedder}, {given.most_passages} passages shown at most", *notes]
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
