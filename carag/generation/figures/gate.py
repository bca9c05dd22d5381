"""Answer a question with a figure from a table, or by a formula that it states, or not at all.

The gate is closed by default. A figure is given only if the question names one company and one period, asks for one
figure, and everything that it says is in the figure's row, heads and section; if the heads name that period and nothing
that was not asked for; and if no other figure fits equally well. The result depends only on the question and the
passages.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument
from carag.generation.figures.asked import (
    asked_numbers,
    asked_terms,
    clause,
    computes,
    wants_one_figure,
)
from carag.generation.figures.columns import time_of
from carag.generation.figures.compute import computed
from carag.generation.figures.concepts import concept_named
from carag.generation.figures.entries import entries_of
from carag.generation.figures.formulas import formula_asked
from carag.generation.figures.quoting import Figure, of_entry
from carag.generation.figures.rows import matches
from carag.generation.figures.stated import definitions_in
from carag.generation.figures.times import is_of, speaks_of_calendar_years
from carag.generation.figures.whole import (
    TIME_WORDS,
    foreign_words,
    is_whole,
    other_words,
    rows_of,
)
from carag.generation.words import terms
from carag.retrieval.reading import Names, Naming, Span, asking, read_question
from carag.retrieval.reading.names import LEGAL_FORMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from carag.generation.figures.entries import Entry
    from carag.generation.figures.formulas import Asked
    from carag.retrieval.evidence import Passage
    from carag.retrieval.reading import Lexicon, Mention, Period, Reading


_LEAST_COVERAGE: Final = 0.85
"""Share of the question's words, by weight, that row, heads and section must contain."""
_LEAST_OF_LABEL: Final = 0.7
"""Share of the label's words, by weight, that the question must contain."""
_CLEAR: Final = 0.3
"""How much the merit of a figure must exceed that of every other value."""
_INTERIM: Final = re.compile(r"(?:10-?Q|6-?K)", re.IGNORECASE)
"""Forms whose columns are quarters, and balances within a year."""
_FILLER: Final = terms(
    "approximate approximately reasonable metric calculate compute exact number possible please rough roughly overall "
    "generate generated generating earn earned incur incurred spend spent pay paid make made hold held achieve used "
    "consolidated year-end yearend over last three two four five trailing basis terms form its ttm round say tell"
)
"""Words that by themselves ask for nothing."""
_WHOLE: Final = terms("total consolidated overall")
"""Words that ask for a company-wide total, which an entry without further qualification is."""
_ENDS: Final = terms("beginning begin opening")
_US_MONEY: Final = re.compile(r"\bU\.?S\.?\s(?=dollars?\b|GAAP\b|\$)")
_LOOK_BEHIND: Final = 8
"""Characters before a word in which the end of a sentence, or of a part of one, is searched."""
_CAPITAL: Final = re.compile(r"(?<![\w&'’])(?:[A-Z][\w&'’-]*)")
_ACCOUNTING: Final = frozenset(
    {
        "FY",
        "CY",
        "USD",
        "GAAP",
        "YoY",
        "P&L",
        "DPO",
        "DSO",
        "DIO",
        "COGS",
        "ROA",
        "ROE",
        "PPNE",
        "PPE",
        "PP&E",
        "EPS",
    }
    | {"R&D", "SG&A", "D&A", "EBIT", "EBITDA", "FCF", "CAPEX", "CapEx", "Capex"}
)
"""Capitalised words that do not name anyone."""


def look_up(
    question: str,
    reading: Reading,
    passages: Sequence[Passage],
    *,
    lexicon: Lexicon | None = None,
    heads: Mapping[int, str] | None = None,
) -> Figure | None:
    r"""Look up the figure that a question asks for; None where the gate is closed.

    Parameters
    ----------
    reading : Reading
        The reading of the asking sentences, with a table of names whose keys are :func:`company_key` of the passages'
        companies.
    passages : sequence of Passage
        The admissible ones, and no others.
    lexicon : Lexicon, optional
        Terms that captions use for words of the question; they distinguish rows and do not open the gate.
    heads : mapping of int to str, optional
        For passages that begin inside a table, by position: the head rows of that table.

    Examples
    --------
    >>> from carag.retrieval.evidence import Passage
    >>> from carag.retrieval.reading import Names, read_question
    >>> text = "(in millions) | 2018 | 2017\nNet sales | $ 12,345 | $ 11,900"
    >>> passage = Passage(
    ...     chunk_id="1:0", text=text, similarity=0.7, word=0, accession_number="1", form="10-K",
    ...     company="Nail Co", filed="2019-02-01", document="10-K", start=0, end=len(text),
    ... )
    >>> asked = "What were Nail's net sales in 2018?"
    >>> look_up(asked, read_question(asked, names=Names([("Nail Co", (), "nail co")])), [passage]).text
    'Net sales, 2018: $ 12,345 (in millions) [1]'
    """
    sentence = asking(question)
    words = clause(sentence)
    period = reading.periods[0] if len(reading.periods) == 1 else None
    mention = _company(reading)
    months = time_of(words).months
    if period is None or mention is None or not wants_one_figure(words) or not _counts_in(period, months):
        return None
    sentence, words = (_without_legal_form(one, mention) for one in (sentence, words))
    mine = [at for at, one in enumerate(passages) if company_key(one.company) == mention.keys[0]]
    entries = _of_one_version(
        entry
        for at in mine
        if period.span is not Span.YEARS or not _INTERIM.match(passages[at].form)
        for entry in entries_of(at, passages[at].text, (heads or {}).get(at, ""))
        if entry.has_dated_head or entry.time_in_section
    )
    names = terms(" ".join([mention.text, *(passages[at].company for at in mine)]))
    by_calendar = speaks_of_calendar_years(entries)
    asked = asked_terms(sentence, reading) - _FILLER
    numbers = asked_numbers(words) - terms(mention.text)
    formula = formula_asked(question, words, period)
    if formula is not None:
        said = terms(" ".join(formula.said))
        if asked - _WHOLE - said or numbers - said or _names_others(sentence, mention, said):
            return None
        return _of_one_filing(formula, period, [one for one in entries if is_whole(one, names)], passages)
    if definitions_in(question):
        return None  # what the question defines is not the entry with that name
    usable = [one for one in entries if is_of(one.time, period, months=months, by_calendar=by_calendar)]
    more = terms(" ".join(lexicon.expand(question))) if lexicon else frozenset()
    whole = [one for one in usable if is_whole(one, names)]
    named = concept_named(words)
    if (
        named is not None
        and not asked - _WHOLE - terms(named[1][0])
        and not computes(words) - terms(named[1][0])
    ):
        found = _one_value(rows_of(named[0], whole))  # a row that merely sounds like the entry does not count
    else:
        found = _by_words(words, asked, more, names, usable)
    if found is None or numbers - _words_of(found) or _names_others(sentence, mention, _words_of(found)):
        return None
    return of_entry(found)


def look_up_alone(
    question: str,
    passages: Sequence[Passage],
    *,
    lexicon: Lexicon | None = None,
    heads: Mapping[int, str] | None = None,
) -> Figure | None:
    """Look up a figure, reading the question only by the names of the passages' own companies.

    What the session may not see therefore has no effect on how the question is read. Other filers, unknown here, may
    share a first word or initials, so a first word or initials do not name a company. The arguments are those of
    :func:`look_up`.
    """
    sentence = asking(question)
    if not wants_one_figure(clause(sentence)):
        return None
    companies = sorted({one.company for one in passages if company_key(one.company)})
    names = Names((one, (), company_key(one)) for one in companies)
    try:
        reading = read_question(sentence, names=names)
    except InvalidArgument:  # an unreadable question names nothing, so nothing is looked up
        return None
    if any(one.naming < Naming.FIRST_TWO_WORDS for one in reading.entities):
        return None
    return look_up(question, reading, passages, lexicon=lexicon, heads=heads)


def company_key(company: str) -> str:
    """Reduce a company's name to a form that does not depend on capitals, spaces and punctuation."""
    return " ".join(re.findall(r"\w+", company.casefold()))


def _of_one_version(entries: Iterable[Entry]) -> list[Entry]:
    """Leave out figures that their own row restates, because the question could mean either version of the year."""
    every = list(entries)
    restated = {(one.table, one.line, year) for one in every if one.time.restates for year in one.time.years}
    return [
        one for one in every if not any((one.table, one.line, year) in restated for year in one.time.years)
    ]


def _counts_in(period: Period, months: int | None) -> bool:
    """Tell whether the months in a question match its period: nine months of 2018 are not 2018."""
    return period.span is Span.DAYS or months in (None, 12 if period.span is Span.YEARS else 3)


def _company(reading: Reading) -> Mention | None:
    if len(reading.entities) != 1 or reading.titles:
        return None
    [mention] = reading.entities
    return mention if len(mention.keys) == 1 else None


def _of_one_filing(
    asked: Asked, period: Period, entries: Sequence[Entry], passages: Sequence[Passage]
) -> Figure | None:
    """Work out a formula within a single filing; None if two filings give different values."""
    by_filing: dict[str, list[Entry]] = {}
    for one in entries:
        by_filing.setdefault(passages[one.cell.position].accession_number, []).append(one)
    worked = (computed(asked, period, each) for each in by_filing.values())
    found = [one for one in worked if one is not None]
    return found[0] if len({one.value for one in found}) == 1 else None


def _without_legal_form(text: str, mention: Mention) -> str:
    """Leave out ``, Inc.`` after a name, which asks for nothing."""
    forms = "|".join(sorted(LEGAL_FORMS, key=len, reverse=True))
    return re.sub(rf"({re.escape(mention.text)})(?:,?\s(?i:{forms})\b\.?)+(?=\W|$)", r"\1", text)


def _by_words(
    words: str, asked: frozenset[str], more: frozenset[str], names: frozenset[str], entries: Sequence[Entry]
) -> Entry | None:
    found = matches(asked, more, entries)
    if not found:
        return None
    best = found[0]
    said = _words_of(best.entry)
    label = terms(best.entry.label.text)
    if (
        best.coverage < _LEAST_COVERAGE
        or best.of_label < _LEAST_OF_LABEL
        or computes(words) - said
        or (label & _ENDS) - asked
        or other_words(best.entry) - asked
        or foreign_words(best.entry) - asked - names
    ):
        return None
    near = [one.entry for one in found if one.merit > best.merit - _CLEAR]
    return _one_value(near)


def _one_value(entries: Sequence[Entry]) -> Entry | None:
    """Return the first entry if all entries have the same value, as printed or with their scales."""
    if not entries:
        return None
    first = entries[0]
    for other in entries[1:]:
        same_print = other.number == first.number and None in (other.unit.scale, first.unit.scale)
        if not same_print and _scaled(other) != _scaled(first):
            return None
    return first


def _scaled(entry: Entry) -> object:
    scale = entry.unit.scale
    return (
        entry.unit.kind,
        entry.number.value if scale is None else entry.number.value * scale,
        scale is None,
    )


def _words_of(entry: Entry) -> frozenset[str]:
    heads = " ".join(one.text for one in entry.heads)
    return terms(f"{entry.label.text} {heads} {entry.section.text if entry.section else ''}")


def _names_others(sentence: str, mention: Mention, said: frozenset[str]) -> bool:
    """Tell whether a capitalised word names something that neither the company nor the figure accounts for."""
    sentence = _US_MONEY.sub("", sentence)
    sentence = sentence.replace(mention.text, "\0" * len(mention.text))
    for match in _CAPITAL.finditer(sentence):
        word = match[0]
        if match.start() == 0 or re.search(
            r"[.?!:,]\s*[\"'“‘(]?$", sentence[max(0, match.start() - _LOOK_BEHIND) : match.start()]
        ):
            continue  # begins a sentence, or a part of one
        plain = re.sub(r"['’]s?$", "", word)
        if (
            plain in _ACCOUNTING
            or re.fullmatch(r"(?:FYE?|CY|F|Q[1-4])\d*|[1-4]Q\d*", plain)
            or terms(plain) <= TIME_WORDS
        ):
            continue
        if not terms(plain) or not terms(plain) <= said:
            return True
    return False
