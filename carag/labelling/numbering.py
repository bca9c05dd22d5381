"""Follow the numbers of clauses through a text, so that each piece has a path such as ``Annex II, clause 4(b)(ii)``.

A number at the start of a line is a clause only if it continues a number above it or begins a list.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.labelling.clause_path import Path
from carag.labelling.numerals import readings_of

if TYPE_CHECKING:
    from collections.abc import Iterator


_RANKS: Final = {
    **dict.fromkeys(("annex", "annexe", "annexure", "appendix", "schedule"), 0),
    **dict.fromkeys(("book", "title", "part"), 1),
    "chapter": 2,
    **dict.fromkeys(("section", "item"), 3),
    **dict.fromkeys(("article", "rule", "regulation", "principle", "query", "question"), 4),
}
"""Words that begin a numbered heading; a heading of a smaller rank ends those of a greater rank."""
_SECTION: Final = 3
_ARTICLE: Final = 4
_LETTERED: Final = 5
"""The rank of ``A. Scope``, which only its form makes a heading."""
_CLAUSE: Final = 6
"""The rank of everything that is not a heading."""
_PARAGRAPH: Final = "¶"
"""The family of paragraphs without a number."""
_DEEPEST: Final = 12
"""Greatest depth of headings and clauses; anything deeper counts as text."""
_GAP: Final = 3
"""Greatest step from one number of a list to the next: a clause between them may have been deleted or lost."""

_HEADING: Final = re.compile(
    rf"""(?P<word>(?i:{"|".join(sorted(_RANKS, key=len, reverse=True))}))
        (?:[ \t]*[-–—]?[ \t]*(?P<number>\d{{1,3}}[A-Z]?|[IVXL]{{1,7}}|[A-Z])(?!\w))?
        (?P<rest>[ \t]*(?:[.:|–—-].*|[A-Z(“‘"'].*)?)""",
    re.VERBOSE,
)
_HEADINGS: Final = re.compile(rf"(?im)^[ \t\f]*(?:{'|'.join(_RANKS)})\b[^\n]*")
_CONTENTS: Final = 5
"""A heading in the first fifth of a text that occurs again later stood in a table of contents."""
_MARKER: Final = re.compile(
    r"""[ \t\f]*(?:\d{1,3}(?=\([a-z]))?                                   # may follow the number of a footnote
        (?: \((?P<bracketed>\d{1,3}|[A-Za-z]{1,2}|[ivxl]{1,7}|[IVXL]{1,7})\)(?=\s|[A-Z“‘"'\[(]|\Z)
          | (?P<decimal>(?:[A-Z]\.)?\d{1,3}(?:\.\d{1,3}){0,5})(?P<inserted>[A-Z]{0,2})(?P<stop>[.)]{0,2})
            (?=\s|[A-Z“‘"'\[(]|\Z)
          | (?P<plain>[A-Za-z]|[ivxl]{1,7}|[IVXL]{1,7})(?P<close>[.)])(?=\s|\Z)
          | (?P<bullet>[•●▪■○·](?=\s|\Z)|[*–-](?=\s))
        )[ \t]*""",
    re.VERBOSE,
)
_REFERS: Final = re.compile(
    r"\b(?:paragraphs?|paras?|sections?|clauses?|sub-\w+|articles?|rules?|regulations?|items?|annex(?:ure)?|schedules?)$",
    re.IGNORECASE,
)
"""The end of a line after which a number refers to a clause instead of beginning one."""
_COUNTS: Final = re.compile(
    r"(?:\b(?:nos?\.?|dated|of|in|to|under|than|by|per|with|from|at|is|rs\.?|inr|usd|eur)|[₹$€£])$", re.I
)
"""The end of a line after which a number is a quantity, an amount or a reference."""
_INITIAL: Final = re.compile(r"[A-Z]\.")
"""What follows a capital letter in the initials of a name."""
_AMOUNT: Final = re.compile(r"\d(?!\d?\.\d)")
_FOOTNOTE: Final = re.compile(r"\d{1,3}(?=[A-Z“‘\[])")
"""The number of a footnote, set before a word."""
_INSIDE: Final = re.compile(r"\(\w{1,4}\)")
"""What follows the number of a section in a citation, as in ``Section 20A(1)``."""
_PAGE_NUMBER: Final = re.compile(r"[\s.]\d{1,3}$")
"""The end of a line of a table of contents."""
_UNIT: Final = re.compile(
    r"(?:crores?|lakhs?|lacs?|thousand|[mb]illion|per ?cent|%|times|years?|months?|days?|hours?)\b", re.I
)
_MAY_END: Final = re.compile(r"(?:[.:;!?,。：；！？–—-]|\b(?:and|or))[\d\s'\"”’)\]]*$")
_OPENS: Final = re.compile(r"[:：–—-][\s'\"”’)\]]*$")
_DECIDING: Final = re.compile(r"(?m)^[ \t]*(?:\(?(ii?|j|II?|J)[.)]|(\d{1,3}(?:\.\d{1,3})*)(?:[.)]|\s))")
"""Numbers that decide whether an ``i`` above is a letter, and numbers of other clauses, up to which they may occur."""
_SAME_LINE: Final = ":"
"""Takes the place of the line above for a second number on a line."""
_A_LINE: Final = 3
"""Greatest number of clauses that begin on one line."""
_WRAPPED: Final = (40, 160)
"""Smallest and greatest length in characters of a wrapped line."""
_FULL: Final = 0.75
"""A sentence continues below a line of at least this share of the text's wrapping width."""
_LONGEST_HEADING: Final = 120
"""Greatest length of a heading in characters."""


class _OpenClause(NamedTuple):
    """An open heading or clause."""

    family: str
    """The kind of number of its siblings."""
    value: int
    levels: tuple[str, ...]
    """The components of a decimal number."""
    label: str
    rank: float = _CLAUSE


class _Marker(NamedTuple):
    """A possible clause number, and the text around it."""

    match: re.Match[str]
    after: str
    above: str
    runs_on: bool
    """Whether the sentence above continues here."""
    is_cited: bool
    """Whether the line above ends in a word such as ``paragraph``."""


class Numbering:
    """The open headings and clauses while a text is read from its beginning."""

    def __init__(self, text: str) -> None:
        self._open: list[_OpenClause] = []
        self._closed: dict[str, int] = {}
        self._missed: dict[str, int] = {}
        """For each family, the last number that seemed to be text."""
        self._lost: dict[tuple[str, ...], int] = {}
        """The same for decimal numbers, by the components before the last."""
        self._title = ""
        """The line of the innermost clause, where that is a title and no more."""
        self._next: dict[str, list[int]] = {one: [] for one in ("i", "ii", "j", "I", "II", "J", "")}
        for match in _DECIDING.finditer(text):
            self._next[match[1] or ""].append(match.start())
        self._text = text
        self._last_heading: dict[tuple[str, int], int] = {}
        """Where each numbered heading occurs for the last time, by its word and number."""
        for match in _HEADINGS.finditer(text):
            if found := _heading(match[0].strip()):
                self._last_heading[_kind(found)] = match.end()
        self._ranks: dict[str, float] = dict(_RANKS)
        self._seen: dict[str, int] = {}
        """The last number for each word that begins a heading."""
        self._outside: tuple[dict[str, int], dict[str, int]] = ({}, {})
        """What was closed and seen before the annexes."""
        least, most = _WRAPPED
        widths = sorted(len(line) for line in text.split("\n") if least < len(line) <= most)
        self._full = widths[len(widths) * 3 // 4] * _FULL if widths else least

    @property
    def depth(self) -> int:
        """The number of open headings and clauses."""
        return len(self._open)

    @property
    def in_heading(self) -> bool:
        """Whether the innermost is a heading."""
        return bool(self._open) and self._open[-1].rank < _CLAUSE

    @property
    def path(self) -> Path:
        """Their names."""
        headings = tuple(one.label for one in self._open if one.rank < _CLAUSE)
        labels: list[str] = []
        for one in self._open:
            if one.rank == _CLAUSE and one.label:
                if one.levels and len(one.levels) > 1 and labels:
                    labels.clear()  # a number such as 4.1 names its parents
                elif labels and one.label[0] != "(":
                    labels.append(f"({one.label})")
                    continue
                labels.append(one.label)
        return Path(headings, tuple(labels))

    def heading(self, line: str, above: str, at: int, *, blank: bool) -> bool:
        """Open the numbered heading on a line, such as ``Chapter III``; tell whether there is one."""
        found = None if self._refers(above, blank=blank) else _heading(line)
        if found is None or (not blank and self._runs_on(above)):
            return False
        word, number, label = found
        rank, here = self._ranks[word], at + len(line)
        if (
            rank < _SECTION
            and here < len(self._text) / _CONTENTS
            and self._last_heading.get(_kind(found), 0) > here
        ):
            return False  # in a table of contents
        outer = self._open[0].rank if self._open else None
        above_it = next((one for one in self._open if rank < one.rank <= _SECTION), None)
        if rank > 0 and word not in self._seen and above_it is not None and above_it.value > 1:
            rank = self._ranks[word] = above_it.rank + 0.5  # in this text Parts are inside Chapters
        returns = rank > 0 and outer == 0 and number > 1 and self._outside[1].get(word) == number - 1
        returns = returns and self._seen.get(word) != number - 1
        while self._open and (self._open[-1].rank >= rank or returns):
            self._close()
        if rank == 0:
            if outer != 0:
                self._outside = (self._closed, self._seen)
            self._closed, self._seen = {}, {}
        elif returns:  # an annex stood among the chapters
            self._closed, self._seen = self._outside
        self._seen[word] = number
        self._open.append(_OpenClause(word, number, (), label, rank))
        return True

    def paragraph(self) -> int:
        """Open a paragraph without a number, so that a list below is inside it; return its depth."""
        top = self._open[-1] if self._open else None
        self._put(
            len(self._open) - (top is not None and top.family == _PARAGRAPH),
            _OpenClause(_PARAGRAPH, 0, (), ""),
        )
        return len(self._open)

    def clauses(self, start: int, end: int, above: str, *, blank: bool) -> Iterator[int]:
        """Open the clauses that a line begins, such as both of ``4. (a)``; yield where each begins."""
        at = start
        for _ in range(_A_LINE):
            match = _MARKER.match(self._text, at, end)
            if match is None:
                return
            # A capital letter on a line of its own is judged by the line below.
            far = end if match.end() < end or match["plain"] is None else len(self._text)
            after = self._text[match.end() : min(far, match.end() + 2 * _LONGEST_HEADING)].strip()
            after = _FOOTNOTE.sub("", after if far == end else after.split("\n")[0], count=1)
            runs_on, is_cited = not blank and self._runs_on(above), self._refers(above, blank=blank)
            if not self._opened(_Marker(match, after, above, runs_on, is_cited)):
                return
            self._title = self._text[start:end].strip() if self._is_title(after) else ""
            yield at
            at, above, blank = match.end(), _SAME_LINE, False

    def _opened(self, line: _Marker) -> bool:
        match, after = line.match, line.after
        if match["bullet"]:
            return not line.runs_on and self._bullet(match["bullet"])
        if _UNIT.match(after) or line.is_cited:
            return False
        if match["decimal"]:
            levels = tuple(match["decimal"].split("."))
            if not match["stop"] and (
                (len(levels) == 1 and not match[0].endswith("\t")) or match["inserted"] or after[:1].islower()
            ):
                return False
            if (after[:1].islower() and line.runs_on) or _COUNTS.search(line.above):
                return False
            if match["inserted"]:
                return self._inserted(levels[-1], match["inserted"], line)
            if len(levels) > 1:
                return self._decimal(levels, line)
            return not _AMOUNT.match(after) and self._listed(
                [(f"{match['stop'][-1:] or '.'}#", int(levels[0]))], levels[0], line
            )
        if match["bracketed"]:
            readings = [("(" + kind, value) for kind, value in readings_of(match["bracketed"])]
            return self._listed(readings, f"({match['bracketed']})", line)
        token = match["plain"]
        readings = [(match["close"] + kind, value) for kind, value in readings_of(token)]
        if token.isupper() and _INITIAL.match(after):
            return False
        if token.isupper() and match["close"] == ".":
            goes_on = any(self._is_next_heading(family, value) for family, value in readings)
            if self._is_title(after) or (goes_on and after[:1].isupper() and after[-1] not in ".;,"):
                return self._lettered(readings, token, line)
        return self._listed(readings, token if token.isupper() else f"({token})", line)

    def _bullet(self, sign: str) -> bool:
        at = self._last(sign)
        return self._put(len(self._open) if at is None else at, _OpenClause(sign, 0, (), ""))

    def _inserted(self, number: str, letter: str, line: _Marker) -> bool:
        """Open a clause such as 4A, which an amendment inserted after 4."""
        at = self._last(".#", int(number))
        label = number + letter
        return (
            at is not None
            and not line.runs_on
            and self._put(at, _OpenClause(".#", int(number), (label,), label))
        )

    def _lettered(self, readings: list[tuple[str, int]], token: str, line: _Marker) -> bool:
        """Open a heading such as ``B. Eligible transactions``, under which the numbering of clauses continues."""
        for family, value in readings:
            at = self._last(family)
            if at is not None and 0 < value - self._open[at].value <= (1 if line.runs_on else _GAP):
                return self._put(at, self._open[at]._replace(value=value, label=token))
        if line.runs_on:
            return False
        for family, value in readings:
            if value == self._closed.get(family, 0) + 1 or value == 1:
                if self._open and self._open[-1].rank == _CLAUSE and line.above == self._title:
                    return self._put(
                        len(self._open), _OpenClause(family, value, (), f"({token})")
                    )  # under 9.1 Title
                inner = next((i for i, one in enumerate(self._open) if one.rank == _CLAUSE), len(self._open))
                return self._put(inner, _OpenClause(family, value, (), token, _LETTERED))
        return False

    def _listed(self, readings: list[tuple[str, int]], label: str, line: _Marker) -> bool:
        """Open the next item of a list, or its first, or an item that continues a number that seemed to be text."""
        if self._known(readings, label, line):
            return True
        if line.above == _SAME_LINE:
            return False
        for family, value in readings:
            if self._missed.get(family) == value - 1 and not line.runs_on and value > 1:
                same = self._last(family)
                del self._missed[family]
                if same is None or self._open[same].value > value:
                    same = len(self._open)
                return self._put(same, self._entry(family, value, label))
        self._missed.update(readings)
        return False

    def _known(self, readings: list[tuple[str, int]], label: str, line: _Marker) -> bool:
        begins = _OPENS.search(line.above) is not None
        following = [
            (at, family, value)
            for family, value in readings
            if (at := self._last(family, value - 1)) is not None
        ]
        fresh = next((family for family, value in readings if value == 1), None)
        if following and not (fresh and self._is_roman(line.match, begins=begins)):
            at, family, value = max(following)
            goes_on = not line.runs_on or line.after[:1].isupper() or not line.after
            return goes_on and self._put(at, self._entry(family, value, label))
        for family, value in readings:
            known = self._closed.get(family, 0)
            most = _GAP if family == ".#" and line.after[:1].isupper() else 1
            goes_on = not line.runs_on or (value == known + 1 and line.after[:1].isupper())
            if value > 1 and 0 < value - known <= most and goes_on and self._last(family) is None:
                return self._put(len(self._open), self._entry(family, value, label))
        if line.runs_on and not (fresh and line.after[:1].isupper()):
            return False
        if fresh is not None:
            same = None if begins else self._last(fresh)
            # A list inside a clause starts from 1 again; only a heading ends clauses with numbers of their own.
            inside = self._open[same + 1 :] if same is not None else []
            if any(len(one.levels) > (fresh == ".#") for one in inside) and not self._is_title(line.after):
                same = None
            return self._put(len(self._open) if same is None else same, self._entry(fresh, 1, label))
        for family, value in readings:
            same = self._last(family)
            # Where the first paragraph of a text has no number, the second has the number 2.
            if family == ".#" and value == 2 and (same is None or self._is_title(line.after)):
                return self._put(len(self._open) if same is None else same, self._entry(family, value, label))
            if same is not None and 1 < value - self._open[same].value <= _GAP:
                return self._put(same, self._entry(family, value, label))
        return False

    def _decimal(self, levels: tuple[str, ...], line: _Marker) -> bool:
        """Open a number such as 4.1 or B.5.2, and those of its leading parts that are not open."""
        inner = [at for at, one in enumerate(self._open) if one.levels]
        other = next(
            (at for at in inner if self._open[at].levels != levels[: len(self._open[at].levels)]), None
        )
        known = self._open[inner[-1]].levels if inner else ()
        begins = all(one in ("0", "1") for one in levels if one.isdigit()) and not line.runs_on
        found = (
            not line.runs_on
            and levels[:-1] in self._lost
            and 0 < int(levels[-1]) - self._lost[levels[:-1]] <= 1
        )
        if other is not None:
            step, rest = _step(self._open[other].levels, levels)
            if 1 <= step <= (1 if line.runs_on else _GAP) and all(int(one) <= 1 for one in rest):
                at = other
            elif begins or (levels[-1] == "1" and not line.runs_on and self._is_title(line.after)) or found:
                at = inner[0]  # the numbers of a table of contents, or of an earlier part, end here
            else:
                return self._miss(levels)
        elif len(known) < len(levels) and (begins or known or int(levels[-1]) <= 1):
            if (line.runs_on and known == ()) or (int(levels[-1]) > _GAP and not found):
                return self._miss(levels)
            at = inner[-1] + 1 if inner else len(self._open)
        elif found:
            at = inner[0] if inner else len(self._open)
        else:
            return self._miss(levels)
        below = len(self._open[at - 1].levels) if at and self._open[at - 1].levels else 0
        for length in range(max(below, 0) + 1, len(levels) + 1):
            part = levels[:length]
            if part[-1].isdigit():
                family = ".#" if length == 1 else "." + ".".join(part[:-1])
                if not self._put(at, _OpenClause(family, int(part[-1]), part, ".".join(part))):
                    return False
                at += 1
        return True

    def _miss(self, levels: tuple[str, ...]) -> bool:
        self._lost[levels[:-1]] = int(levels[-1])
        return False

    def _entry(self, family: str, value: int, label: str) -> _OpenClause:
        return _OpenClause(family, value, (label,) if family == ".#" else (), label)

    def _put(self, at: int, entry: _OpenClause) -> bool:
        if at >= _DEEPEST:
            return False
        while len(self._open) > at:
            self._close()
        self._open.append(entry)
        return True

    def _close(self) -> None:
        one = self._open.pop()
        self._closed[one.family] = one.value

    def _last(self, family: str, value: int | None = None) -> int | None:
        """Return the place of the innermost open clause of a family, with a given value if there is one."""
        for at in range(len(self._open) - 1, -1, -1):
            one = self._open[at]
            if one.rank >= _LETTERED and one.family == family and value in (None, one.value):
                return at
        return None

    def _runs_on(self, above: str) -> bool:
        """Tell whether the sentence of a line continues below it."""
        return self._full <= len(above) <= _WRAPPED[1] and not _MAY_END.search(above)

    def _refers(self, above: str, *, blank: bool) -> bool:
        """Tell whether a line ends in a word such as ``paragraph``, and is not a title ending in it."""
        return _REFERS.search(above) is not None and (not blank or len(above) >= self._full)

    def _is_next_heading(self, family: str, value: int) -> bool:
        at = self._last(family)
        return at is not None and self._open[at].rank < _CLAUSE and 0 < value - self._open[at].value <= _GAP

    def _is_title(self, after: str) -> bool:
        """Tell whether the text after a number is a title and not a sentence."""
        most = min(self._full, _LONGEST_HEADING)
        return 0 < len(after) < most and after[0].isupper() and after[-1] not in ".;,"

    def _is_roman(self, match: re.Match[str], *, begins: bool) -> bool:
        """Tell whether an ``i`` after an ``h`` begins a list, by what comes first below: ``ii``, or ``j`` or ``i``."""
        is_capital = match[0].strip(" \t\f(.)0123456789").isupper()
        end = self._first_below("", match.end())
        i, ii, j = (
            min(end, self._first_below(one.upper() if is_capital else one, match.end()))
            for one in ("i", "ii", "j")
        )
        return begins and i == end if ii == j else ii < min(i, j)

    def _first_below(self, which: str, at: int) -> int:
        places = self._next[which]
        found = bisect_left(places, at)
        return places[found] if found < len(places) else len(self._text) + 1


def _step(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    """Return the difference of two decimal numbers at the first component that differs, and the rest of the second."""
    for at, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            both = left.isdigit() and right.isdigit()
            return (int(right) - int(left) if both else ord(right[0]) - ord(left[0])), other[at + 1 :]
    return 0, ()


def _heading(line: str) -> tuple[str, int, str] | None:
    """Return the word, number and label of a numbered heading, judged by the form of the line."""
    head = line[: _LONGEST_HEADING + 1]  # bounds the time that a long line takes
    match = _HEADING.fullmatch(head) if line[:1].isupper() else None
    if match is None or _PAGE_NUMBER.search(match["rest"]) or _INSIDE.match(match["rest"]):
        return None
    word, number, rest = match["word"].lower(), match["number"], match["rest"].strip()
    rank = _RANKS[word]
    if number is None and (rank or (rest and rest[0] not in ".:|–—-(")):
        return None
    # A word such as Article numbers a clause, which may begin on the same line; other words number titles.
    is_clause = rank == _ARTICLE and rest[:1] in (".", ":", "–", "—", "-")
    if not is_clause and (len(line) > _LONGEST_HEADING or (len(rest) > 1 and rest[-1] == ".")):
        return None
    if rest == ".":
        return None
    if number is None:
        return word, 0, word.capitalize()
    readings = readings_of(number.rstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ") or number)
    return word, readings[-1][1] if readings else 0, f"{word.capitalize()} {number}"


def _kind(heading: tuple[str, int, str]) -> tuple[str, int]:
    """Return what ``Annex I`` and ``ANNEXURE-1`` have in common."""
    return heading[0][:5], heading[1]
