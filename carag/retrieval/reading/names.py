"""Find the company names or document titles in a question, with a table of names.

**A name that a session must not know of must not be in the table.** "Apple" names a company by its first word only if
no other name begins with it; a hidden filer in the table would change how a question is read, and with it the order of
what the session sees. Two tables are safe: a static, public one, or the names that this session admits. For the same
reason common words are a fixed list (``common_words.txt``), never a count over a corpus. A table may hold more names if
every question is read by :meth:`Names.among`, which treats rows as absent.

Of several ways to read a spelling the strongest wins, so a whole name is never made ambiguous by longer names that
begin with it. At one place in a question, the longest spelling wins: "Apple Hospitality" is not Apple.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias
from unicodedata import category, normalize

from carag.errors import InvalidArgument
from carag.limits import check_name, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


Key: TypeAlias = int | str
"""What a name stands for: a CIK, or a document's id. All keys of a table have the same type."""
_Spelling: TypeAlias = tuple[str, ...]


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


LEGAL_FORMS: Final = _listed(
    "ab adr ads ag as asa bhd bv co com companies company corp corporation cos gmbh group groupe grp hldgs holding "
    "holdings inc incorporated kg kgaa limited llc llp lp ltd nv oy oyj plc pte pty sa sarl sas se spa tbk the"
)
"""Words of a legal form at the end of a name; EDGAR puts "the" there as well."""
_SMALL: Final = _listed("and at by de del der des di du for in of on the to van von")
"""Words that names write without a capital; no short form of a name ends with one."""
_STATE: Final = re.compile(r"\s*[/\\]\s*[^\W\d_]{2,12}(?: [^\W\d_]{2,12})?\s*[/\\]?\s*$")
"""EDGAR distinguishes namesakes by a state or a remark at the end: ``/NY/``, ``\\DE\\``, ``/NEW/``."""
_WORD: Final = re.compile(
    r"(?:[^\W\d_]\.){2,}(?:[^\W\d_](?![^\W_]))?"  # U.S., S.p.A., U.S.A
    r"|[^\W_]+(?:['’&][^\W_]+)*"  # McDonald's, AT&T
    r"|&"
)
_POSSESSIVE: Final = re.compile(r"['’][sS]$")
_JOINED: Final = re.compile(r"[\s,.\-‐‑–/()®™'’\"“”]*")
"""What can be between two words of one name."""
_ENDS_SENTENCE: Final = re.compile(r"(?:^|[.?!:;\n])[\s\"“”„«'‘(\[¿¡]*$")
_MARKED: Final = re.compile(r"(?:\$|\b(?:NYSE|NASDAQ|AMEX|LSE|ticker|symbol)\b\s*:?\s*)$", re.IGNORECASE)
"""What marks the next word as a ticker."""
_CURRENCIES: Final = ("$", "€", "£", "¥")
_LOOK_BEHIND: Final = 24
"""Characters before a word that are searched for a mark or the end of a sentence."""
_INITIALS: Final = 3
"""The least number of words in a name that can be called by its initials."""
_SHORT: Final = 3
"""The least number of characters in a first word that can stand for a name, and in a side of & that is a separate word;
a first word with a digit, such as 3M, may have one less."""


class Naming(IntEnum):
    """How words name something; for one spelling, the greatest wins."""

    INITIALS = 1
    FIRST_WORD = 2
    FIRST_TWO_WORDS = 3
    TICKER = 4
    NAME = 5


class NameRow(NamedTuple):
    """A name with tickers and its key; a key may have many rows, as for former names."""

    name: str
    tickers: Sequence[str]
    key: Key


@dataclass(frozen=True, slots=True)
class Mention:
    """Words in a question that name something."""

    text: str
    """As in the question."""
    keys: tuple[Key, ...]
    """Ascending; more than one if several have the name."""
    naming: Naming


class _NameBearer(NamedTuple):
    naming: Naming
    whole: str
    """The name without its legal form, or the ticker; a first word names all rows that share it."""
    key: Key
    row: int


class Word(NamedTuple):
    """A word in a text: as it is compared, as it is written, and its place."""

    folded: str
    stem: str
    """Without the genitive's 's, if any."""
    written: str
    start: int
    end: int


class Names:
    """A matcher of names, made from rows of (name, tickers, key) in any order.

    See the module on which names may be among them. InvalidArgument if a name or ticker is not printable text of at
    most 200 characters, or keys are not all int or all str.

    Examples
    --------
    >>> names = Names([("Apple Inc.", ["AAPL"], 320193), ("Apple Hospitality REIT, Inc.", ["APLE"], 1418121)])
    >>> [(one.text, one.keys) for one in names.find("Did Apple or AAPL pay Apple Hospitality's rent?")]
    [('Apple', (320193,)), ('AAPL', (320193,)), ('Apple Hospitality', (1418121,))]
    """

    def __init__(self, rows: Iterable[tuple[str, Sequence[str], Key]] = ()) -> None:
        self._spelt: Callable[[NameRow], Iterator[tuple[_Spelling, Naming, str]]] = _company_spellings
        self._bearers: dict[_Spelling, list[_NameBearer]] = {}
        self._longest: dict[str, int] = {}
        self._rows = 0
        self._kind: type[Key] | None = None
        self._said: Callable[[int], bool] | None = None
        self.add(rows)

    @classmethod
    def of_titles(cls, rows: Iterable[tuple[str, Key]]) -> Names:
        """Make a matcher of titles, which match only as a whole: no first words, initials or legal forms."""
        made = cls()
        made._spelt = _title_spellings
        made.add((title, (), key) for title, key in rows)
        return made

    def add(self, rows: Iterable[tuple[str, Sequence[str], Key]]) -> None:
        """Add all rows or, if one is invalid, none; they are numbered from 0. Not safe while other threads read."""
        checked = [_checked(*row) for row in rows]
        kinds = {type(row.key) for row in checked} | ({self._kind} if self._kind else set())
        if len(kinds) > 1:
            raise InvalidArgument("the table of names has int and str keys; want all of one type")
        self._kind = kinds.pop() if kinds else None
        for number, row in enumerate(checked, self._rows):
            for spelling, naming, whole in self._spelt(row):
                if _can_name(spelling, naming):
                    self._bearers.setdefault(spelling, []).append(_NameBearer(naming, whole, row.key, number))
                    self._longest[spelling[0]] = max(self._longest.get(spelling[0], 0), len(spelling))
        self._rows += len(checked)

    def among(self, is_said: Callable[[int], bool]) -> Names:
        """Return a view of the names without the rows whose numbers ``is_said`` refuses: they change no reading.

        Rows that are added later are in the view if the function accepts them.
        """
        made = Names()
        made._spelt, made._bearers, made._longest = self._spelt, self._bearers, self._longest
        made._rows, made._kind, made._said = self._rows, self._kind, is_said
        return made

    def _ways(self, spelling: _Spelling) -> Iterator[tuple[Naming, tuple[Key, ...]]]:
        """Yield the ways in which a spelling names something, the strongest first, and what it names."""
        bearers = self._bearers.get(spelling, ())
        if self._said is not None:
            bearers = [one for one in bearers if self._said(one.row)]
        for naming in sorted({one.naming for one in bearers}, reverse=True):
            keys = {one.key for one in bearers if one.naming is naming}
            wholes = {one.whole for one in bearers if one.naming is naming}
            if naming > Naming.FIRST_WORD or len(keys) == 1 or len(wholes) == 1:
                yield naming, tuple(sorted(keys))

    def __len__(self) -> int:
        """Return the number of spellings in the whole table."""
        return len(self._bearers)

    def find(self, question: str) -> tuple[Mention, ...]:
        """Return what a question names, in its order.

        A whole name of several words is found in any case, unless all are common words (Best Buy). Everything else must
        be written with capitals. A single common word (Target) must also not begin a sentence or precede another word
        with a capital, unless a legal form or the genitive follows.
        """
        text = normalize("NFKC", question)
        words = list(words_of(text))
        found = []
        at = 0
        while at < len(words):
            mention, length = self._at(text, words, at)
            if mention is not None:
                found.append(mention)
            at += length
        return tuple(found)

    def _at(self, text: str, words: list[Word], at: int) -> tuple[Mention | None, int]:
        """Return the longest name that begins at a word, with its number of words, or else None and 1."""
        first = words[at]
        most = max(self._longest.get(first.folded, 0), self._longest.get(first.stem, 0))
        for length in range(min(most, len(words) - at), 0, -1):
            said = words[at : at + length]
            known = [one for one in _readings(said) if one in self._bearers]
            if not known or not adjoin(text, said):
                continue
            best, genitive = None, False
            for spelling in known:
                for naming, keys in self._ways(spelling):
                    if (best is None or naming > best[0]) and _written_as(naming, text, words, at, length):
                        best = naming, keys
                        genitive = spelling[-1] != said[-1].folded
            if best is not None:
                written = text[first.start : said[-1].end]
                return Mention(
                    _POSSESSIVE.sub("", written) if genitive else written, best[1], best[0]
                ), length
        return None, 1


def _checked(name: str, tickers: Sequence[str], key: Key) -> NameRow:
    check_name("name of a table of names", name)
    if isinstance(tickers, str):
        raise InvalidArgument(f"tickers of {quoted(name)} are {quoted(tickers)}; want a list")
    for ticker in tickers:
        check_name(f"ticker of {quoted(name)}", ticker)
    if type(key) is not int and type(key) is not str:
        raise InvalidArgument(f"key of {quoted(name)} is {quoted(key)}; want an int or a str")
    return NameRow(name, tuple(tickers), key)


def words_of(text: str) -> Iterator[Word]:
    """Yield the words of a text, folded as names are compared."""
    for written, start in _written(text):
        yield Word(_folded(written), _stem(written), written, start, start + len(written))


def _spelling(text: str) -> _Spelling:
    return tuple(_folded(written) for written, _ in _written(text))


def _written(text: str) -> Iterator[tuple[str, int]]:
    """Yield the words of a text as they are written, and where each begins."""
    for match in _WORD.finditer(normalize("NFKC", text)):
        written, start = match[0], match.start()
        sides = written.split("&") if "&" in written else ()
        if sides and max(len(_stem(side)) for side in sides) >= _SHORT:  # Johnson&Johnson, but not AT&T
            for number, side in enumerate(sides):
                if number:
                    yield "&", start - 1
                if side:
                    yield side, start
                start += len(side) + 1
        else:
            yield written, start


def _stem(written: str) -> str:
    return _folded(_POSSESSIVE.sub("", written))


def _folded(written: str) -> str:
    if written == "&":
        return "and"
    if written.isascii():  # the same as below, in a tenth of the time
        return written.replace("'", "").replace(".", "").lower()
    plain = (one for one in normalize("NFKD", written) if category(one) != "Mn" and one not in "'’.")
    return "".join(plain).casefold()


def _core(name: str) -> _Spelling:
    """Return the words of a company's name without its legal form, unless nothing else is left."""
    every = _spelling(_STATE.sub("", name))
    core = every[1:] if len(every) > 1 and every[0] == "the" else every
    while len(core) > 1 and (core[-1] in LEGAL_FORMS or core[-1] == "and" or core[-2:] == ("a", "s")):
        core = core[:-2] if core[-2:] == ("a", "s") else core[:-1]
    return core


def _title_spellings(row: NameRow) -> Iterator[tuple[_Spelling, Naming, str]]:
    yield _spelling(row.name), Naming.NAME, row.name


def _company_spellings(row: NameRow) -> Iterator[tuple[_Spelling, Naming, str]]:
    core = _core(row.name)
    whole = " ".join(core)
    if core:
        yield core, Naming.NAME, whole
    if len(core) > 1:
        two = core[:2]
        if two[-1] in _SMALL:  # "Bank of America", "Procter & Gamble"
            two = core[:3]
        if two != core and two[-1] not in _SMALL:
            yield two, Naming.FIRST_TWO_WORDS, whole
        yield core[:1], Naming.FIRST_WORD, whole
        if len(core) == _INITIALS and core[1] == "and":
            yield (f"{core[0][0]}&{core[2][0]}",), Naming.INITIALS, whole  # P&G
        telling = [word[0] for word in core if word not in _SMALL]
        if len(telling) >= _INITIALS:
            yield ("".join(telling),), Naming.INITIALS, whole
    for ticker in row.tickers:
        yield _spelling(ticker), Naming.TICKER, ticker.casefold()


def _can_name(spelling: _Spelling, naming: Naming) -> bool:
    if not spelling:
        return False
    only = spelling[0]
    if naming is Naming.FIRST_TWO_WORDS:
        return "-".join(spelling) not in common_words()  # New York
    if naming is Naming.FIRST_WORD:
        if len(only) < _SHORT and not (len(only) == _SHORT - 1 and any(map(str.isdigit, only))):
            return False
        return not (only in common_words() or only in LEGAL_FORMS or only.isdigit())
    if naming is Naming.NAME and len(spelling) == 1:
        return len(only) > 1 and not only.isdigit()
    return True


def adjoin(text: str, said: list[Word]) -> bool:
    """Tell whether words of a text may be those of one name."""
    return all(_JOINED.fullmatch(text, one.end, other.start) for one, other in pairwise(said))


def _readings(said: list[Word]) -> Iterator[_Spelling]:
    """Yield a run of words as written and, if different, without the genitive at its end, and without any genitive."""
    full = tuple(word.folded for word in said)
    yield full
    for shorter in ((*full[:-1], said[-1].stem), tuple(word.stem for word in said)):
        if shorter != full:
            yield shorter


def _written_as(naming: Naming, text: str, words: list[Word], at: int, length: int) -> bool:
    """Tell whether words are written as such a name would be."""
    said = words[at : at + length]
    if naming is not Naming.TICKER and text.endswith(_CURRENCIES, 0, said[0].start):  # $3M
        return False
    if naming is Naming.TICKER or naming is Naming.INITIALS:
        before = text[max(0, said[0].start - _LOOK_BEHIND) : said[0].start]
        written = _POSSESSIVE.sub("", text[said[0].start : said[-1].end])
        if naming is Naming.TICKER and _MARKED.search(before):
            return written.isupper()
        if before.endswith("$") or any(word.stem in common_words() for word in said):
            return False
        capitals = sum(map(str.isupper, written))
        return written.isupper() and capitals > 1 if naming is Naming.INITIALS else capitals > 1
    if naming is not Naming.NAME:
        return all(map(_has_capital, said))
    common = all(word.stem in common_words() or word.stem in _SMALL for word in said)
    if length > 1:
        return not common or all(map(_has_capital, said))
    return is_capital(said[0]) and (not common or _stands_out(text, words, at))


def _has_capital(word: Word) -> bool:
    return word.folded in _SMALL or is_capital(word)


def is_capital(word: Word) -> bool:
    """Tell whether a word has a capital, or its script has no capitals."""
    letters = [one for one in _POSSESSIVE.sub("", word.written) if one.isalpha()]
    return not letters or any(one.isupper() for one in letters) or all(one.upper() == one for one in letters)


def _stands_out(text: str, words: list[Word], at: int) -> bool:
    """Tell by the words around it whether a common word with a capital is a name."""
    only = words[at]
    following = words[at + 1] if at + 1 < len(words) else None
    adjoins = following is not None and adjoin(text, [only, following])
    if following is not None and adjoins and following.folded in LEGAL_FORMS and is_capital(following):
        return True
    if any(map(str.isdigit, only.stem)):  # Q2 is a quarter, Q2 Holdings a company
        return False
    if only.stem != only.folded:
        return True
    if begins_sentence(text, only):
        return False
    return following is None or not adjoins or following.written.islower() or following.written[0].isdigit()


def begins_sentence(text: str, word: Word) -> bool:
    """Tell whether a word begins a sentence, where a capital means nothing."""
    return bool(_ENDS_SENTENCE.search(text[max(0, word.start - _LOOK_BEHIND) : word.start]))


@cache
def words_listed(file: str) -> frozenset[str]:
    """Return the words listed in a file next to this one, in lower case."""
    text = files("carag").joinpath("retrieval", "reading", file).read_text("utf-8")
    return _listed(" ".join(line for line in text.splitlines() if not line.startswith("#")))


def common_words() -> frozenset[str]:
    """Return words that are not names when they stand alone."""
    return words_listed("common_words.txt")
