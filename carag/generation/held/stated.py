"""Read what a passage states: each figure with its unit, its time and the words that say what it is a figure of.

A cell has the words of its row's label and its column's heads, and less of its section and the lines above. In prose a
figure has the words of its clause; the words between two figures belong to the one in whose clause they are, and a
neighbouring clause that has a figure of its own lends next to nothing.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from carag.generation.figures.entries import entries_of
from carag.generation.figures.units import Kind
from carag.generation.figures.whole import TIME_WORDS
from carag.generation.held.when import When, runs, times_in, times_of
from carag.generation.words import terms
from carag.labelling.quantities import figures
from carag.labelling.sentences import sentences
from carag.retrieval.tables.table import tables_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from carag.generation.figures.entries import Entry
    from carag.labelling.quantities import Figure
    from carag.retrieval.evidence import Passage


Words: TypeAlias = "Mapping[str, float]"
"""How much each word says what a figure is a figure of, from 0 to 1."""
DATE: Final = "date"
"""The kind of a time that a sentence states as its figure."""
_STEM: Final = 6
"""Letters by which words are compared: ``operating`` and ``operations`` are the same."""
_GENERIC: Final = frozenset(
    one[:_STEM]
    for one in (TIME_WORDS - terms("total share shares net first second third fourth"))
    | terms(
        "amount amounted approximately approx about around was were been being become became rose rise fell "
        "fall reach reached report reported record recorded respectively come came stood stand compare "
        "compared lakh crore rs inr percent cent per basis point points versus also only more less least most "
        "than up down between under over "
    )
)
"""Words that do not say what a figure is a figure of."""
_DELIMITER: Final = re.compile(
    r"[,;:—]|\b(?:and|or|but|while|whereas|compared|versus|including|inclusive)\b", re.IGNORECASE
)
_NUMBERED: Final = re.compile(r"^[^\S\n]*\(?\d{1,3}(?:\.\d{1,3})*[.)]?[^\S\n]+(?=[(“\"A-Z])", re.MULTILINE)
"""The number of a paragraph, which is not a figure of it."""
_RATE: Final = re.compile(
    r"\s*(?:,\s*)?(?:per|an?|each|every)\s(annum|year|quarter|month|week|day)\b", re.IGNORECASE
)
_ROLE: Final = re.compile(
    r"(?<!up )(?<!equal )(?<!limited )(?<!restricted )\b(?P<role>to|by)\s(?:(?:an?|the|about|approximately)\s)*$"
    r"|\b(?P<from>from)\b[^,;\d]{0,40}$|\b(?P<not>not)\s(?:(?:an?|the|about|approximately)\s)*$",
    re.IGNORECASE,
)
_MINUS: Final = re.compile(r"\b(?:minus|negative)\s$", re.IGNORECASE)
_TO: Final = re.compile(r"\s?(?:to|-|–)\s?")
_UP: Final = re.compile(
    r"\b(?:rose|risen|increas\w+|grew|grown|raised|higher|climbed|gained)\b", re.IGNORECASE
)
_DOWN: Final = re.compile(
    r"\b(?:fell|fallen|decreas\w+|declined?|cut|reduced|lowered|lower|dropped|shrank)\b", re.IGNORECASE
)
_ROLE_LENGTH: Final = 60
_PART_OF_TIME: Final = (
    re.compile(r"\b(?:first|last|past|next|previous|prior|preceding|for the|during the)\s*\Z", re.IGNORECASE),
    re.compile(r"\s*(?:ended|ending)\b", re.IGNORECASE),
)
"""What stands before and behind months that name a period, and are not a figure."""
_NAMED: Final = re.compile(r"\b[^\W\d_]+[-–]\d{1,4}\b")
_NOTE: Final = re.compile(r"(?<=\w)\s?\((?:[a-z]|\d{1,2})\)(?=\s?[,:(])|(?<=[^\W\d])\((?:[a-z]|\d{1,2})\)")
"""The mark of a note behind a label."""
_DEFINED: Final = re.compile(r"((?:[A-Za-z][\w’'-]*\s+){2,9})\(([A-Z]{2,7})s?\)")
_SMALL: Final = frozenset({"a", "and", "for", "in", "of", "on", "the", "to"})
_SIGNS: Final = {"$": "USD", "€": "EUR", "£": "GBP", "₹": "INR"}
_OF_LABEL, _OF_SECTION, _OF_CAPTION, _OF_SOURCE = 1.0, 0.6, 0.4, 0.3
_ALONE, _OF_SUBJECT, _OF_END, _SHARED, OF_SENTENCE, _BEFORE = 0.9, 0.8, 0.7, 0.6, 0.1, 0.05
"""What a word is worth by where it stands; a word of the figure's own clause is worth 1, and one of its sentence at
least :data:`OF_SENTENCE`."""


class Stated(NamedTuple):
    """One figure that a passage states."""

    kind: str
    """As for :class:`carag.labelling.quantities.Figure`, or :data:`DATE`."""
    value: float
    step: float
    words: Words
    when: When | None
    label: frozenset[str] = frozenset()
    """The words of a row's label."""
    said: str = ""
    """A row's label as printed; empty in prose."""
    role: str = ""
    """``from``, ``to`` or ``by``, as in "rose by 2 to 10"; ``least`` or ``most`` of a range; ``not`` if denied."""
    bound: str = ""
    """As for :class:`carag.labelling.quantities.Figure`."""
    rate: str = ""
    """``year`` or another time, as in "4 per cent per annum"."""
    turn: int = 0
    """1 if its sentence says that something rose, -1 if it fell."""


def words(text: str) -> frozenset[str]:
    """Return the words of a text that say what a figure is a figure of, cut to their stems."""
    stems = (one.removesuffix("ing")[:_STEM] for one in terms(text) if one[0].isalpha() and len(one) > 1)
    named = (one.lower().replace("–", "-") for one in _NAMED.findall(text))
    return frozenset(stems) - _GENERIC | frozenset(named)


def amounts(text: str) -> list[Figure]:
    """Return the figures of a text, without parts of times and marks of notes: "the first six months", "May 5"."""
    before, behind = _PART_OF_TIME
    aside = [one.span() for one in _NOTE.finditer(text)] + [one[:2] for one in times_in(text)]
    return [
        one
        for one in figures(text)
        if not any(one.start < end and start < one.end for start, end in aside)
        and (one.kind != "time" or not (before.search(text, 0, one.start) or behind.match(text, one.end)))
    ]


def stated_in(passage: Passage) -> list[Stated]:
    """Return every figure that a passage states with what it is a figure of."""
    head = "" if passage.head is None else passage.head.text
    about = dict.fromkeys(words(f"{passage.company} {passage.source}"), _OF_SOURCE)
    rows = [_of_cell(one, about) for one in entries_of(0, passage.text, head)]
    prose = _without_rows(passage.text)
    short = _acronyms(f"{passage.source} {passage.text}")
    found = [_spelt_out(one, short) for one in (*rows, *_of_prose(prose, about))]
    currencies = {one.kind for one in found} & {*_SIGNS.values()}
    currencies |= {kind for sign, kind in _SIGNS.items() if sign in f"{passage.text}{head}"}
    if len(currencies) == 1:  # tables print the sign in their first rows alone
        [currency] = currencies
        found = [one._replace(kind=currency) if one.kind == "?" else one for one in found]
    return found


def _acronyms(text: str) -> dict[str, frozenset[str]]:
    """Return the acronyms that a text explains, as "net worth (NW)" does, with the words that they stand for."""
    found = {}
    for name, acronym in _DEFINED.findall(text):
        own = [one for one in name.split() if one.lower() not in _SMALL][-len(acronym) :]
        if "".join(one[0] for one in own).upper() == acronym:
            found[acronym.lower()[:_STEM]] = words(" ".join(own))
    return found


def _spelt_out(one: Stated, short: Mapping[str, frozenset[str]]) -> Stated:
    """Add the words for which an acronym stands that the passage itself explains, and the acronym for its words."""
    both = dict(one.words)
    for acronym, name in short.items():
        _raise(both, name, one.words.get(acronym, 0.0))
        _raise(both, [acronym], min((one.words.get(word, 0.0) for word in name), default=0.0))
    return one._replace(words=both)


def _of_cell(entry: Entry, about: Words) -> Stated:
    unit, value = entry.unit, float(entry.number.value)
    label = words(entry.label.text)
    section = words(entry.section.text) if entry.section else frozenset()
    weights = {
        **about,
        **dict.fromkeys(words(" ".join(entry.captions)), _OF_CAPTION),
        **dict.fromkeys(section, _OF_SECTION),
        **dict.fromkeys(label | words(" ".join(one.text for one in entry.heads)), _OF_LABEL),
    }
    kinds = {Kind.PERCENT: "share", Kind.COUNT: _SIGNS.get(entry.number.currency, "")}
    kind = kinds.get(unit.kind, _SIGNS.get(unit.currency, unit.currency or "?"))
    scale = float(unit.scale or 1)
    step = scale * 10.0 ** int(entry.number.value.as_tuple().exponent)
    return Stated(kind, value * scale, step, weights, When.of(entry.time), label, entry.label.text)


def _without_rows(text: str) -> str:
    """Blank out the heads and rows of tables, which are read as cells."""
    for table in tables_of(text):
        cells = [one.span for row in table.rows for one in row.cells]
        cells += [one.span for head in table.heads for one in head]
        for start, _ in cells:
            first, last = text.rfind("\n", 0, start) + 1, text.find("\n", start)
            last = len(text) if last < 0 else last
            text = f"{text[:first]}{chr(10) * (last - first)}{text[last:]}"
    return text


def _of_prose(text: str, about: Words) -> Iterator[Stated]:
    before: frozenset[str] = frozenset()
    lead: frozenset[str] = frozenset()
    latest: When | None = None
    text = _NUMBERED.sub(lambda match: " " * len(match[0]), text)
    for start, end in sentences(text, wrapped=True):
        said = text[start:end]
        around = {**about, **dict.fromkeys(before, _BEFORE), **dict.fromkeys(lead, _OF_SECTION)}
        times = times_in(said)
        yield from figures_of(said, times, around, latest)
        yield from dates_of(said, times, around)
        before = words(said)
        is_item = said[:1] in "(•-" or said[:1].islower()
        lead = before if said.endswith(":") else lead if is_item else frozenset()
        latest = times[-1] if times else latest


def figures_of(text: str, times: Sequence[When], around: Words, latest: When | None = None) -> list[Stated]:
    """Read the figures of a sentence.

    ``around`` weighs words from outside of it, and ``latest`` is the last time that was named before it.
    """
    found = amounts(text)
    places = [(one.start, one.end) for one in found]
    has_units = any(one.kind for one in found)
    cutting = [number for number, one in enumerate(found) if one.kind or not has_units]
    weights = _weights(text, places, cutting, [one.kind for one in found])
    whens = times_of(text, places, times)
    turn = (_UP.search(text) is not None) - (_DOWN.search(text) is not None)
    values = [-one.value if _MINUS.search(text, 0, one.start) else one.value for one in found]
    read = [
        Stated(
            *(one.kind, value, one.step, {**around, **own}, when or latest),
            role=_role(text, one.start),
            rate=_rate(text, one.end),
            bound=one.bound,
            turn=turn,
        )
        for one, value, own, when in zip(found, values, weights, whens, strict=True)
    ]
    for at, (one, after) in enumerate(pairwise(places)):
        if _TO.fullmatch(text, one[1], max(one[1], after[0])) and read[at].role != "from" and not turn:
            read[at : at + 2] = read[at]._replace(role="least"), read[at + 1]._replace(role="most")
    return read


def dates_of(text: str, times: Sequence[When], around: Words) -> list[Stated]:
    """Read the times of a sentence as what it states."""
    weights = _weights(text, [one[:2] for one in times], range(len(times)), [DATE] * len(times))
    return [Stated(DATE, 0.0, 0.0, {**around, **own}, one) for one, own in zip(times, weights, strict=True)]


def _role(text: str, at: int) -> str:
    match = _ROLE.search(text[max(0, at - _ROLE_LENGTH) : at])
    return (match["role"] or match["from"] or match["not"]).lower() if match else ""


def _rate(text: str, at: int) -> str:
    match = _RATE.match(text, at)
    return match[1].lower().replace("annum", "year") if match else ""


def _weights(
    text: str, places: Sequence[tuple[int, int]], cutting: Iterable[int], kinds: Sequence[str]
) -> list[dict[str, float]]:
    """Weigh the words of a sentence for each of its figures; only those in ``cutting`` begin clauses of their own."""
    kept = [places[number] for number in cutting]
    groups = [(kept[one[0]][0], kept[one[-1]][1]) for one in runs(text, kept)]
    edges = [0, *(edge for one in groups for edge in one), len(text)]
    gaps = [(edges[at], edges[at + 1]) for at in range(0, len(edges), 2)]
    cuts = [_cut(text, *gap, is_last=number == len(groups)) for number, gap in enumerate(gaps)]
    found = []
    for which, (start, _) in enumerate(places):
        at = max((number for number, one in enumerate(groups) if one[0] <= start), default=0)
        own: dict[str, float] = {}
        for number, (gap, (first, last)) in enumerate(zip(gaps, cuts, strict=True)):
            parts = [(gap[0], first), (first, last), (last, gap[1])]
            if number == at:  # before the figure
                shares = (OF_SENTENCE, _SHARED, 1.0) if number else (1.0, 1.0, 1.0)
            elif number == at + 1:
                shares = (1.0, _SHARED, OF_SENTENCE)
            else:
                shares = (OF_SENTENCE,) * 3
            for part, share in zip(parts, shares, strict=True):
                _raise(own, words(text[slice(*part)]), share)
        if at:
            alone = _ALONE if kinds[which] in kinds[:which] else 1.0
            is_alone = not any(share == 1.0 for share in own.values())
            _raise(own, words(text[slice(*gaps[0])]), alone if is_alone else _OF_SUBJECT)
        if at + 1 < len(groups):
            _raise(own, words(text[slice(*gaps[-1])]), _OF_END)
        found.append(own)
    return found


def _cut(text: str, start: int, end: int, *, is_last: bool) -> tuple[int, int]:
    """Return where, between two figures, the clause of the one ends and that of the other begins."""
    if is_last:
        return end, end
    marks = [one.start() for one in _DELIMITER.finditer(text, start, end) if start]
    return (marks[0], marks[-1]) if marks else (start, end) if start else (start, start)


def _raise(weights: dict[str, float], own: Iterable[str], share: float) -> None:
    for word in own:
        weights[word] = max(weights.get(word, 0.0), share)
