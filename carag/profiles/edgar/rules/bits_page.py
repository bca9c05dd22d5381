"""Write the page that documents every policy bit (BITS.md) from the rules, the vocabulary and the policy table.

Nothing is stated twice: a rule keeps its field, text, passages and limits with its test; the vocabulary has a bit's
meaning and regulation; and the role x purpose table has the cells that forbid or require it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from carag.labelling.rule import Level
from carag.policy import PolicyBit, meaning
from carag.policy.page import cells_with
from carag.profiles.edgar.rules.rules import QUARANTINES, RULES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.policy import PolicyTable


class _StateRule(NamedTuple):
    field: str
    text: str
    limits: str = ""


# The state bits, which carag.profiles.edgar.rules.filing_events computes from other filings.
_STATE: Final = {
    PolicyBit.AMENDED: _StateRule(
        "CONFORMED SUBMISSION TYPE; CENTRAL INDEX KEY; CONFORMED PERIOD OF REPORT; SEC FILE NUMBER",
        "a later /A of the same CIK, form and period (for periodic reports, of periods within ten days); for a "
        "registration statement, of the same file number; for a periodic report, also a later /A within 380 days that "
        "has the period of no report, repeats the day of its filing as its period or states none, if no report came "
        "between",
        "if a filer's amendment is known and its report is not, the previous report counts as the one amended; any "
        "other amendment that states neither amends nothing; a post-effective amendment (POS AM) has its own form",
    ),
    PolicyBit.SUPERSEDED: _StateRule(
        "the same; document list; text",
        "AMENDED, and the amendment carries statements: EX-32 (of a 20-F EX-13), an accountant's opinion, or the "
        "titles of interim statements; for a report with statements, also if only the amendment's metadata is known",
        "most 10-K/As carry only Part III, and replace nothing; one without text counts as replacing, unless it is a "
        "10-K/A or 10-Q/A for a period after 15 June 2011 without XBRL (isXBRL), which statements must have "
        "(Regulation S-T 405), or an 8-K/A without item 2.02",
    ),
    PolicyBit.NON_RELIANCE: _StateRule(
        "ITEM INFORMATION; CENTRAL INDEX KEY; CONFORMED PERIOD OF REPORT",
        "carries statements, and a later 8-K item 4.02 of the CIK came within three years of the period, and no "
        "amendment with statements since",
        "the item names its periods only in its text, so all statements of those years are closed; an amendment "
        "known only by its metadata reopens none",
    ),
    PolicyBit.NOT_LATEST: _StateRule(
        "CONFORMED SUBMISSION TYPE; CENTRAL INDEX KEY; CONFORMED PERIOD OF REPORT",
        "a report of the same CIK and form has a later period, by more than ten days; for a report that states no "
        "period, a period that ends after the day it became public",
    ),
    PolicyBit.LATE: _StateRule(
        "CONFORMED SUBMISSION TYPE; CENTRAL INDEX KEY; CONFORMED PERIOD OF REPORT",
        "an NT 10-K or NT 10-Q of the same CIK and period, within ten days",
    ),
    PolicyBit.DELISTED: _StateRule(
        "CONFORMED SUBMISSION TYPE; CENTRAL INDEX KEY; text of the form",
        "a Form 25, 15 or 15F, or a revocation, of the CIK, unless the form says that it removes only debt, preferred "
        "stock, warrants or rights, or that the duty to report on common equity remains; until the cover of a "
        "periodic report, 90 days or more later, lists common equity on an exchange",
        "covers every document of the filer; a form known only by its metadata counts as one on common equity, so a "
        "filer whose notes matured is hidden until the text of one of its reports proves that it is listed; the list "
        "of an exchange's filings includes the forms it filed on other companies, which then count as its own",
    ),
}

_HEAD: Final = """\
# The 27 bits of the policy word

<!-- Written by `carag policy bits`; a test compares. Change carag/profiles/edgar/rules/rules.py, not this page. -->

Every passage carries one 32-bit word. Bits 27-29 hold the schema version (0 is unlabelled, which no policy admits),
bit 30 quarantine, bit 31 deletion. Bits 0-26 are set by these rules, each from a documented EDGAR field. The mapping
to regulations is an engineering control, not legal advice.

A bit's *level* says what it belongs to. **filing**: every passage of the filing carries it. **passage**: the filing
earns it, and only the passages it concerns keep it; where that cannot be told, all do. **state**: other filings set
it, and its history is kept.

A fact that is missing closes: no location is *elsewhere*, an 8-K whose items cannot be read is whatever an 8-K may be.
"""


def bits_page(table: PolicyTable) -> str:
    """Return the page as Markdown."""
    return "\n".join(
        [_HEAD, *_summary(), *(line for bit in PolicyBit for line in _section(bit, table)), *_quarantine()]
    )


def _summary() -> Iterator[str]:
    yield "| bit | name | level | set when |"
    yield "|---|---|---|---|"
    for bit in PolicyBit:
        _, text, level, *_ = _description_of(bit)
        yield f"| {bit.number} | [{bit.name}](#{bit.number}-{bit.name.lower()}) | {level} | {text} |"
    yield ""


def _section(bit: PolicyBit, table: PolicyTable) -> Iterator[str]:
    field, text, level, passages, limits = _description_of(bit)
    said = meaning(bit)
    yield f"## {bit.number} {bit.name}"
    yield ""
    yield f"{said.document[0].upper()}{said.document[1:]}."
    yield ""
    yield f"- word: `{bit.value:#010x}`; level: {level}"
    yield f"- set when: {text}"
    yield f"- field: {field}"
    yield f"- regulation: {said.regulation}"
    if passages:
        yield f"- kept by: {passages}"
    yield f"- forbidden by: {cells_with(table, bit, required=False) or 'no cell'}"
    if required := cells_with(table, bit, required=True):
        yield f"- required by: {required}"
    if limits:
        yield f"- known limits: {limits}"
    yield ""


def _description_of(bit: PolicyBit) -> tuple[str, str, Level, str, str]:
    for rule in RULES:
        if rule.bit is bit:
            field = "; ".join(part for part in (rule.field, rule.also) if part)
            return field, rule.text, rule.level, rule.passages, rule.limits
    state = _STATE[bit]
    return state.field, state.text, Level.STATE, "", state.limits


def _quarantine() -> Iterator[str]:
    yield "## Quarantine (bit 30)"
    yield ""
    yield "A filing that cannot be labelled is kept where no policy reaches it. The first of these that holds is its"
    yield "code:"
    yield ""
    yield "- `NO_FORM`: no CONFORMED SUBMISSION TYPE is stated"
    disagreements = "two sources of the filing's facts contradict each other"
    for rule in QUARANTINES:
        yield f"- `{rule.code}`: {rule.text.format(form='the form', disagreements=disagreements)}"
    yield ""
