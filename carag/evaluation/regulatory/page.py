"""Write a result as one page of HTML, on which every verdict links to the passage that it rests on, and back.

The file contains no script and loads nothing, and all text that strangers wrote is escaped.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from carag.evaluation.regulatory.agreement import agreement
from carag.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from carag.evaluation.regulatory.run import MetricRun
    from carag.evaluation.regulatory.schemas import (
        Claim,
        RegulatoryChunk,
        RegulatoryInteraction,
        RegulatoryMetric,
    )
    from carag.evaluation.regulatory.variants import Settings

__all__ = ["page"]

_HEAD: Final = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>Regulatory compliance</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
pre { white-space: pre-wrap; font: inherit; margin: .25rem 0 }
details, .passage { border: 1px solid #ddd; border-radius: .3rem; margin: .5rem 0; padding: .4rem .8rem }
table { border-collapse: collapse } td, th { text-align: left; padding: .1rem .8rem .1rem 0; vertical-align: top }
.COMPLIANT, .SUPPORTS { color: #1b6e3c } .NON_COMPLIANT, .CONTRADICTS { color: #a11d1d }
.IRRELEVANT, .NEUTRAL { color: #666 } .NO_VERDICT, .UNDECIDED { color: #8a5a00 }
mark { background: #fff3b0 } :target { outline: 3px solid #1f5fa8 }
</style>
"""


def page(sessions: Iterable[RegulatoryMetric], settings: Settings, run: MetricRun) -> Iterator[str]:
    """Yield the page in pieces."""
    counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(run.sessions.items()))
    record = "not recorded" if run.record is None else f"record {run.record} in the audit log"
    yield _HEAD
    yield (
        f"<h1>Regulatory compliance</h1><p>Variant {settings.variant.value}. Sessions: {counts}. "
        f"{run.turns} turns over {run.passages} passages; {record}.</p>"
        f"<p>Similarity at least {settings.similarity_threshold:g}, {settings.top_k} passages a turn, compliant from "
        f"{settings.compliance_threshold:g}. SHA-256 of the result: <code>{run.sha256}</code></p>"
        f"<p>{_line(agreement(settings.variant))}</p>\n"
    )
    for at, session in enumerate(sessions):
        yield from _session(f"s{at}", session)


def _session(anchor: str, session: RegulatoryMetric) -> Iterator[str]:
    low, high = session.compliance_score_ci_low, session.compliance_score_ci_high
    interval = "" if low is None or high is None else f" (95 % between {low:.3f} and {high:.3f})"
    yield (
        f'<h2 id="{anchor}">{_line(session.session_id)}: {_verdict(session.verdict)}</h2>'
        f"<p>{_line(session.assistant_id)}; score {session.compliance_score:.3f}{interval}; "
        f"{session.coverage:.0%} covered by the corpus.</p>\n"
    )
    for at, one in enumerate(session.interactions):
        yield from _turn(f"{anchor}t{at}", one)


def _turn(anchor: str, one: RegulatoryInteraction) -> Iterator[str]:
    yield (
        f'<details id="{anchor}"><summary>{_line(one.qa_id)}: {_verdict(one.verdict)}, '
        f"score {one.compliance_score:.3f}</summary>"
        f"<p>{_line(one.insight)}</p><h3>Asked</h3><pre>{_text(one.query)}</pre>"
        f"<h3>Answered</h3><pre>{_text(one.assistant)}</pre>\n"
    )
    places = {
        (chunk.source, chunk.chunk_index): f"{anchor}p{at}" for at, chunk in enumerate(one.retrieved_chunks)
    }
    if one.claims:
        rows = "".join(_claim(one.assistant, claim, places) for claim in one.claims)
        yield f"<h3>Sentence by sentence</h3><table>{rows}</table>\n"
    if one.retrieved_chunks:
        rows = "".join(
            _link(chunk, places[chunk.source, chunk.chunk_index]) for chunk in one.retrieved_chunks
        )
        yield f"<h3>Passages</h3><table><tr><th>verdict<th>score<th>cosine<th>passage</tr>{rows}</table>\n"
    marked = [(claim, (claim.source, claim.chunk_index)) for claim in one.claims]
    for chunk in one.retrieved_chunks:
        name = chunk.source, chunk.chunk_index
        yield _passage(anchor, places[name], chunk, [claim for claim, of in marked if of == name])
    yield "</details>\n"


def _claim(response: str, claim: Claim, places: dict[tuple[str, int], str]) -> str:
    said = _verdict(claim.verdict)
    if claim.source is not None and claim.chunk_index is not None:
        said = f'<a href="#{places[claim.source, claim.chunk_index]}">{said}</a>'
    return f"<tr><td>{said}<td>{claim.score:.2f}<td>{_text(response[claim.start : claim.end])}</tr>"


def _link(chunk: RegulatoryChunk, place: str) -> str:
    where = f"{_line(chunk.source)}, characters {chunk.start} to {chunk.end}"
    return (
        f'<tr><td><a href="#{place}">{_verdict(chunk.verdict)}</a><td>{chunk.reranker_score:.2f}'
        f"<td>{chunk.similarity:.2f}<td>{where}</tr>"
    )


def _passage(turn: str, place: str, chunk: RegulatoryChunk, claims: list[Claim]) -> str:
    decided = f"; named by {len(claims)} of the sentences" if claims else ""
    return (
        f'<div class="passage" id="{place}"><b>{_line(chunk.source)}</b>, characters {chunk.start} to {chunk.end}: '
        f'{_verdict(chunk.verdict)} {chunk.reranker_score:.2f}{decided} (<a href="#{turn}">back</a>)'
        f"<pre>{_text(chunk.text)}</pre></div>\n"
    )


def _verdict(verdict: object) -> str:
    said = str(verdict)
    return f'<span class="{said}">{said}</span>'


def _line(text: str) -> str:
    return escape(" ".join(visible(text).split()))


def _text(text: str) -> str:
    return escape(visible(text))
