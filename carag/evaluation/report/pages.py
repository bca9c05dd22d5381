"""Lay out the report as a page: summary, goals, figures, label noise, the paper's table, and how to read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carag.evaluation.report.document import Contents, Heading, Paragraph, Table
from carag.evaluation.report.figures import (
    figure_text,
    latency_figure,
    noise_figure,
    percentile_text,
    rows_of,
    strata_figure,
)
from carag.evaluation.report.measures import MEASURES, NOT_MEASURED, NOTICED
from carag.evaluation.report.paper import CLAIMED_QUERIES, SOURCE, TABLE_2, common_count
from carag.evaluation.report.strata import DATA_SET, DIMENSIONS, EVERYTHING
from carag.evaluation.report.summary import counted_states, summary
from carag.evaluation.row import ORACLE, STAGES
from carag.evaluation.statistics.binomial import clopper_pearson
from carag.evaluation.statistics.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.evaluation.report.document import Block
    from carag.evaluation.report.report import Report, Section
    from carag.evaluation.report.strata import Slice

__all__ = ["page"]

_OWN_TITLE: Final = "A store measured with its own questions: what leaks, what is answered, what is refused"
_TITLE: Final = "The SEC EDGAR benchmark: what leaks, what is answered, what is refused"

_CONFIDENTIAL: Final = (
    *("cvr_query", "cvr_chunk", "cvr_touch", "odr_canary", "odr_ngram", "existence"),
    "noninterference",
)
_FOUND: Final = ("admissible_recall", "evidence_recall", "ndcg")
_RIGHT: Final = ("cites_gold", "figure_right", "wrong_company")
_ANSWERED: Final = ("f1_raw", "f1_all", "f1_answerable", "f1_answered")
_REFUSED: Final = (
    "refusal",
    "over_refusal",
    "answered_partly",
    "answered_hidden",
    "under_refusal",
    "error",
    "cost",
)
_IN_STRATA: Final = ("cvr_query", "admissible_recall", "evidence_recall", "over_refusal", "under_refusal")
"""Measures of adversaries and strata, whose tables are short."""
_COMPARED: Final = ("real", "built")
"""Scopes for which systems are compared pair by pair."""
_BY_DATA_SET: Final = (ORACLE, "vanilla", "carag-certified")
"""Systems shown for each data set: the yardstick, ordinary retrieval, and CARAG as it runs by default."""
_TITLES: Final = {measure.name: measure.title for measure in MEASURES}

_INTERVALS: Final = (
    "Every figure reads: value (95 % interval; numerator/denominator; effective n). Intervals are percentiles of "
    "2,000 seeded replicates of a cluster bootstrap: filers are drawn with replacement, then questions of each; a "
    "question brings all its sessions. Where all rows agree (no violation, say) nothing varies to be drawn, and the "
    "bound is Clopper and Pearson's, exact, at the effective n that is left if a filer's rows always agree; the "
    "bound for independent rows, far lower, is given after it. Systems are compared on the same (question, session) "
    "pairs, under the same draws."
)
_OWN_INTERVALS: Final = (
    "Every figure reads: value (95 % interval; numerator/denominator; effective n). Intervals are percentiles of "
    "2,000 seeded replicates of a bootstrap: questions are drawn with replacement, and each brings all its sessions. "
    "Where all rows agree (no violation, say) nothing varies to be drawn, and the bound is Clopper and Pearson's, "
    "exact, at the effective n that is left if a question's rows always agree; the bound for independent rows, lower, "
    "is given after it. Gold is a document that holds the answer: found, if one of its passages is retrieved."
)
_ORACLE: Final = (
    "The oracle is the same models over an index that holds only the admissible chunks, searched exactly; "
    "admissible recall and noninterference are measured against its rows. Noninterference compares chunks, their "
    "order, prompt, outcome and answer; scores are not in the rows. Whether what was retrieved is admissible is "
    "decided again from the corpus's words and a plain reading of the table, not by the search."
)
_JUDGED: Final = (
    "The labels are an engineering control for a benchmark, not legal advice: all EDGAR filings are public."
)
_OWN_JUDGED: Final = "The labels are an engineering control, not legal advice."
_STRATA: Final = (
    "A stratum with fewer than 100 questions or 20 filers is not measured. Share: of the gold, what the session may "
    "see (loose: at least 0.8; tight: under 0.3; void: none). Selectivity: of the corpus. Correlation: whether what "
    "is admissible lies near the question. Real questions and those built from metadata are never mixed."
)


_DATA_SETS: Final = (
    "FinanceBench and Mobileye give the text of their evidence. Gold of docugami, and of live questions among the "
    "others, is guessed: they name filings, and the chunk of each with most of the numbers of the answer counts. Where "
    "a data set asks about few filers, an interval says little of other companies."
)


def page(report: Report) -> list[Block]:
    """Lay out the report: a summary in plain words, contents, and all figures."""
    if report.is_own:
        parts = (*map(_own_section, report.sections), _how(_OWN_INTERVALS, _OWN_JUDGED), _own_run(report))
    else:
        parts = (
            _goals(report),
            *map(_section, report.sections),
            _noise(report),
            _paper(report),
            _how(_INTERVALS, _JUDGED),
            _run(report),
        )
    rest = [block for part in parts for block in part]
    contents = Contents([block for block in rest if isinstance(block, Heading) and block.level == 2])
    return [
        Heading(1, _OWN_TITLE if report.is_own else _TITLE),
        *summary(report),
        Heading(2, "Contents"),
        contents,
        *rest,
    ]


def _run(report: Report) -> Iterator[Block]:
    yield Heading(2, "What was run")
    counts, metadata = report.counts, report.metadata
    kinds = ", ".join(f"{many:,} {kind}" for kind, many in counts.kinds.items())
    splits = ", ".join(f"{many:,} {split}" for split, many in counts.splits.items())
    yield Paragraph(
        f"{counts.rows:,} rows: {counts.questions:,} questions about {counts.filers:,} filers, "
        f"{counts.pairs:,} (question, session) pairs, {counts.real_pairs:,} of them with real questions. "
        f"By kind: {kinds}. By split: {splits}. SHA-256 of the rows: {counts.sha256}."
    )
    if metadata is None:
        yield Paragraph(
            "What corpus and machine the rows come from was not recorded (there is no run.json next to them)."
        )
        return
    window = f", filed {metadata.window}" if metadata.window else ""
    made = " ".join(f"CARAG {metadata.version} on {metadata.machine}.".split()) if metadata.machine else ""
    yield Paragraph(
        f"Corpus {metadata.corpus}: {metadata.chunks:,} chunks of {metadata.filings:,} filings of "
        f"{metadata.filers:,} filers{window}. {made}"
    )
    for note in metadata.notes:
        yield Paragraph(note)


def _goals(report: Report) -> Iterator[Block]:
    yield Heading(2, "Goals")
    yield Paragraph(
        "Each goal was set before the rows of its version were made; a report made again from older rows is judged by "
        "the same goals. Nothing is tuned on the reported split."
    )
    for section in report.sections:
        yield Heading(3, f"Goals with {section.models.embedder} and {section.models.generator}")
        yield Paragraph(f"{counted_states(section)}.")
        yield Table(
            ["goal", "state", "missed by", "figure"],
            [
                [
                    result.goal.statement,
                    result.state.value,
                    "" if result.by is None else f"{result.by:g}",
                    result.why,
                ]
                for result in section.results
            ],
        )


def _own_run(report: Report) -> Iterator[Block]:
    yield Heading(2, "What was run")
    counts, metadata = report.counts, report.metadata
    yield Paragraph(
        f"{counts.rows:,} rows: {counts.questions:,} questions, {counts.pairs:,} (question, session) pairs. "
        f"SHA-256 of the rows: {counts.sha256}."
    )
    if metadata is not None:
        yield Paragraph(
            f"{metadata.chunks:,} passages of {metadata.filings:,} documents. CARAG {metadata.version} on "
            f"{metadata.machine}."
        )
        yield from (Paragraph(f"{note}.") for note in metadata.notes)


def _own_section(section: Section) -> Iterator[Block]:
    yield Heading(2, f"Figures with {section.models.embedder} and {section.models.generator}")
    for name, part in section.slices.items():
        if name == ("real", "", ""):
            yield Paragraph(f"{part.pairs:,} pairs, {part.questions:,} questions.")
            yield from (_table(part, names) for names in (_CONFIDENTIAL, _FOUND, _REFUSED))
    yield from _latency(section, f"{section.models.embedder}-{section.models.generator}")


def _section(section: Section) -> Iterator[Block]:
    slug = f"{section.models.embedder}-{section.models.generator}"
    yield Heading(2, f"Figures with {section.models.embedder} and {section.models.generator}")
    for name, part in section.slices.items():
        if name.dimension:
            continue
        yield Heading(3, _SCOPES.get(name.scope, name.scope))
        yield Paragraph(f"{part.pairs:,} pairs, {part.questions:,} questions, {part.filers:,} filers.")
        if name.scope == EVERYTHING:
            groups: tuple[tuple[str, ...], ...] = (_CONFIDENTIAL,)
        elif name.scope in _COMPARED:
            groups = (_CONFIDENTIAL, _FOUND, _RIGHT, _REFUSED, _ANSWERED)
        else:
            groups = (_CONFIDENTIAL, _IN_STRATA)
        for measures in groups:
            yield _table(part, measures)
        if name.scope in _COMPARED:
            yield from _paired(part)
    yield from _data_sets(section)
    yield from _strata(section, slug)
    yield from _latency(section, slug)


_SCOPES: Final = {
    EVERYTHING: "All rows: every kind, both splits",
    "real": "Real questions, reported split",
    "built": "Questions built from metadata facts, reported split",
}


def _table(part: Slice, measures: tuple[str, ...]) -> Table:
    return Table(
        ["system", *(_TITLES[name] for name in measures)],
        [
            [system, *(figure_text(figures[name]) for name in measures)]
            for system, figures in part.systems.items()
        ],
    )


def _paired(part: Slice) -> Iterator[Block]:
    """Lay out the differences that goals are about; the others are in ``report.json``."""
    if part.paired:
        yield Table(
            ["pair by pair", "measure", "difference", "pairs that differ"],
            [
                [
                    f"{pair.system} minus {pair.other}",
                    _TITLES[pair.measure],
                    figure_text(pair.difference),
                    f"{pair.differing:,}",
                ]
                for pair in part.paired
                if pair.measure in _IN_STRATA
            ],
        )


def _data_sets(section: Section) -> Iterator[Block]:
    """Lay out what a user notices, by the data set of a real question."""
    parts = [part for name, part in section.slices.items() if name.dimension == DATA_SET]
    if not parts:
        return
    yield Heading(3, "Real questions by data set, reported split")
    yield Paragraph(_DATA_SETS)
    yield Table(
        ["data set", "questions", "filers", "system", *(_TITLES[name] for name in NOTICED)],
        [
            [
                *(part.name.stratum, f"{part.questions:,}", f"{part.filers:,}", system),
                *(figure_text(part.systems[system][name]) for name in NOTICED),
            ]
            for part in parts
            for system in _BY_DATA_SET
            if system in part.systems
        ],
    )


def _strata(section: Section, slug: str) -> Iterator[Block]:
    strata = [part for name, part in section.slices.items() if name.dimension in DIMENSIONS]
    if not strata:
        return
    yield Heading(3, "Strata")
    yield Paragraph(_STRATA)
    yield Table(
        ["questions", "by", "stratum", "pairs", "questions", "filers", ""],
        [
            [
                *(part.name.scope, part.name.dimension, part.name.stratum, f"{part.pairs:,}"),
                *(f"{part.questions:,}", f"{part.filers:,}"),
                "not measured" if part.too_small else "measured",
            ]
            for part in strata
        ],
    )
    for part in strata:
        if not part.too_small:
            yield Heading(4, f"{part.name.scope}: {part.name.dimension} {part.name.stratum}")
            yield _table(part, _IN_STRATA)
            yield from _paired(part)
    if any(part.paired for part in strata):
        yield strata_figure(strata, f"paired-{slug}")


def _latency(section: Section, slug: str) -> Iterator[Block]:
    yield Heading(3, "Times")
    yield Paragraph(
        "Milliseconds by nearest rank, real and built questions of the reported split; in brackets the values at "
        "the ranks between which the percentile lies with 95 % confidence, if rows were independent."
    )
    yield Table(
        ["system", "stage", "p50", "p95", "p99", "rows"],
        [
            [
                system,
                stage,
                *(percentile_text(p) for p in stages[stage].values()),
                rows_of(stages[stage]["p50"]),
            ]
            for system, stages in section.latency.items()
            for stage in STAGES
        ],
    )
    yield latency_figure(section.latency, f"latency-{slug}")


def _noise(report: Report) -> Iterator[Block]:
    yield Heading(2, "If labels are wrong")
    if not report.noise:
        yield Paragraph("Not measured: there is no words.json next to the rows.")
        return
    yield Paragraph(
        "A filter measured by the bits it filters with shows 0 whatever they say, and so does ours above. Here each of "
        "a chunk's 27 bits is flipped with the given probability, once for all questions; what vanilla retrieved "
        "passes through the filter with the false word; violations are counted by the true labels. A chunk closed by a "
        "date or a company stays closed. Counted by the false labels, CVR would be 0 in every line."
    )
    yield Table(
        [
            "bits flipped",
            "words wrong",
            "true CVR by query",
            "true CVR by chunk",
            "admissible held back",
            "skipped",
        ],
        [
            [
                f"{100 * point.rate:g} %",
                f"{point.wrong:,} of {point.chunks:,}",
                *(figure_text(figure) for figure in (point.cvr_query, point.cvr_chunk, point.hidden)),
                f"{point.skipped:,}",
            ]
            for point in report.noise
        ],
    )
    yield noise_figure(report.noise)


def _paper(report: Report) -> Iterator[Block]:
    yield Heading(2, "Compared with the paper's Table 2")
    lines = [
        [
            *(row.name, "paper", f"{row.cvr} %", f"{row.odr} %", "", f"{row.refusal} %"),
            *(f"{row.f1:.3f}", f"{row.p95_ms:,}", "not given"),
        ]
        for row in TABLE_2
    ]
    for section in report.sections:
        for real in (part for name, part in section.slices.items() if name == ("real", "", "")):
            lines += [
                _ours(section, real, row.name, system)
                for row in TABLE_2
                for system in row.ours
                if system in real.systems
            ]
    yield Table(
        [
            *("paper's system", "ours", "CVR by query", "ODR (paper: judge; ours: 8-gram)", "ODR by canary"),
            *("refusal", "F1 as the paper reads", "p95 ms, all", "p95 ms, retrieval"),
        ],
        lines,
    )
    yield Paragraph(f"Source: {SOURCE}.")
    bound = 100 * clopper_pearson(0, common_count()[0])[1]
    yield Paragraph(
        "Where its numbers do not fit. "
        f"The table says n = {CLAIMED_QUERIES}. A share of {CLAIMED_QUERIES} queries is a multiple of 1/6 per cent; "
        "none of the eight rates that are not 0 is one. All twelve fit "
        f"{common_count()[0]} queries, and below 1,300 only its multiples "
        f"({', '.join(map(str, common_count()[1:]))}); so '0.00 %' bounds the true rate at {bound:.1f} per cent and "
        "no lower. On its own figures the post-filter B1 beats CARAG: the same CVR and ODR of 0, F1 0.085 against "
        "0.048, refusal 23.69 against 40.56 per cent. A filter inside the search returns at least as many admissible "
        "chunks as one after it, so what was lost was lost after retrieval, in the prompt that shows withheld text or "
        "in the decision to refuse; the paper has no ablation to tell. Its text says that B2 reaches the "
        "same CVR floor as CARAG at a sharp loss of F1; its table gives B2 a CVR of 32.53 per cent and the F1 of B1. "
        "'Only 4.8 F1 points' is half of 0.096. Four bytes next to 1,024 half-precision numbers are 0.2 per cent, not "
        "0.4. 'Adds 0 ms' is 493 ms less on 41 seconds, which is noise, and 41 seconds say nothing about the "
        "retriever. Refusal is given without when refusing was right. CVR is measured with the bits that filter, so it "
        "is 0 for any filter and a wrong label cannot be seen. There are no intervals, no seeds, no exact search as a "
        "baseline, and no adversary."
    )
    yield Paragraph(
        "What our corpus is, and is not, compared with the paper's. The paper took 6,000 filings of 877 filers from "
        "EDGAR, 2024Q3 to 2026Q1: 26,595 chunks. Ours is what public repositories hold of EDGAR; at paper size it is "
        "cut to the same number of chunks by a stated rule: all chunks with gold evidence, then a seeded sample of the "
        "question sets' filings, which are older (mostly 10-K and 10-Q of 2015 to 2023), then filings of the paper's "
        "window, most of which are 8-K item bodies of three days in May 2025 without exhibits. Amendments, foreign "
        "issuers and staff letters are scarcer than in EDGAR. The labels, roles and purposes are ours, for the "
        "paper's bit layout, roles and purposes are "
        "not public. So the two tables do not come from one experiment; with a network, scripts/fetch_edgar.py fetches "
        "the paper's kind of corpus."
    )


def _ours(section: Section, real: Slice, name: str, system: str) -> list[str]:
    figures = real.systems[system]
    total, retrieve = (
        section.latency.get(system, {}).get(stage, {}).get("p95") for stage in ("total", "retrieve")
    )
    raw = figures["f1_raw"]
    return [
        *(name, f"{system}, {section.models.embedder}, {section.models.generator}"),
        *(figure_text(figures[key]) for key in ("cvr_query", "odr_ngram", "odr_canary", "refusal")),
        f"{raw.value:.3f}" if isinstance(raw, Estimate) else "not measured",
        *("not measured" if p is None else percentile_text(p) for p in (total, retrieve)),
    ]


def _how(intervals: str, judged: str) -> Iterator[Block]:
    yield Heading(2, "How to read this")
    yield Paragraph(intervals)
    yield Table(
        ["measure", "numerator", "denominator", "better"],
        [[measure.title, measure.over, measure.under, measure.better] for measure in MEASURES],
    )
    yield from (Paragraph(f"{name}: not measured; {why}.") for name, why in NOT_MEASURED.items())
    yield Paragraph(f"{_ORACLE} {judged}")
