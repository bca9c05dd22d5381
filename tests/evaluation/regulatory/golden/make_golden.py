"""Write what the package gaussia 1.2.0 makes of the inputs: run by hand, in any environment that has it installed.

From the root of a checkout, ``python -m tests.evaluation.regulatory.golden.make_golden``; CARAG is not needed. The
inputs leave out what the package does not define, or CARAG refuses: two turns of one id, two documents of one source,
an empty corpus, vectors whose length is not 1, and thresholds outside [0, 1].
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from tests.evaluation.regulatory.golden.inputs import CASES, Case, case

GOLDEN = Path(__file__).with_name("golden.json.gz")


def digest(text: str) -> str:
    """Return what stands for a passage's text in the file."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def packed(metrics: Any) -> list[Any]:
    """Return the results of a case as JSON values, whichever side they come from."""
    return [
        [
            one.session_id,
            one.assistant_id,
            one.n_interactions,
            one.compliance_score,
            one.compliance_score_ci_low,
            one.compliance_score_ci_high,
            str(one.verdict),
            one.total_supporting_chunks,
            one.total_contradicting_chunks,
            [
                [
                    turn.qa_id,
                    turn.compliance_score,
                    str(turn.verdict),
                    turn.supporting_chunks,
                    turn.contradicting_chunks,
                    [
                        [
                            chunk.source,
                            chunk.chunk_index,
                            digest(chunk.text),
                            chunk.similarity,
                            chunk.reranker_score,
                            str(chunk.verdict),
                        ]
                        for chunk in turn.retrieved_chunks
                    ],
                ]
                for turn in one.interactions
            ],
        ]
        for one in metrics
    ]


def by_gaussia(given: Case) -> list[Any]:
    """Measure a case with the package."""
    from gaussia.connectors import CorpusConnector, RegulatoryDocument
    from gaussia.core import Retriever
    from gaussia.core.embedder import Embedder
    from gaussia.core.reranker import Reranker
    from gaussia.metrics.regulatory import Regulatory
    from gaussia.schemas import Batch, Dataset
    from gaussia.statistical import BayesianMode, FrequentistMode

    class Corpus(CorpusConnector):
        def load_documents(self) -> list[Any]:
            return [RegulatoryDocument(text=text, source=source) for source, text in given.documents]

    class Vectors(Embedder):
        def encode(self, sentences: list[str]) -> Any:
            return given.embedded(sentences)

    class Scores(Reranker):
        def score(self, query: str, documents: list[str]) -> list[float]:
            return given.scores(query, documents)

    class Sessions(Retriever):
        def load_dataset(self) -> list[Any]:
            return [
                Dataset(
                    session_id=name,
                    assistant_id="a",
                    context="",
                    conversation=[
                        Batch(
                            qa_id=one.qa_id,
                            query=one.query,
                            assistant=one.assistant,
                            ground_truth_assistant="",
                            weight=one.weight,
                        )
                        for one in turns
                    ],
                )
                for name, turns in given.sessions
            ]

    mode = (
        BayesianMode(mc_samples=given.mc_samples, rng_seed=given.rng_seed)
        if given.mc_samples
        else FrequentistMode()
    )
    return packed(
        Regulatory.run(
            Sessions,
            corpus_connector=Corpus(),
            embedder=Vectors(),
            reranker=Scores(),
            statistical_mode=mode,
            **given.settings,
        )
    )


def main() -> None:
    """Write the file."""
    from importlib.metadata import version

    found = {
        "gaussia": version("gaussia"),
        "python": list(sys.version_info[:2]),
        "cases": [by_gaussia(case(seed)) for seed in range(CASES)],
    }
    written = json.dumps(found, separators=(",", ":")).encode()
    GOLDEN.write_bytes(gzip.compress(written, 9, mtime=0))
    turns = sum(len(session[-1]) for one in found["cases"] for session in one)
    print(f"{GOLDEN}: {turns} turns, {GOLDEN.stat().st_size} bytes")  # noqa: T201 - run by hand


if __name__ == "__main__":
    main()
