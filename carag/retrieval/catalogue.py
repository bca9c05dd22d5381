"""Read what a question names, and put the documents that a session may use into the order that follows from it."""

from __future__ import annotations

import hashlib
import json
import sys
import threading
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from carag.errors import InvalidArgument
from carag.limits import MAX_LABEL
from carag.policy import in_one_form
from carag.retrieval.public_names import PublicNames
from carag.retrieval.reading import (
    Declared,
    Described,
    Documents,
    Lexicon,
    Names,
    Numbers,
    absent,
    is_void,
    read_question,
    tiers,
    unheard,
)
from carag.retrieval.reading.names import words_listed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from carag.policy import Profile
    from carag.retrieval.reading import Absent, Reading
    from carag.retrieval.reading.numbers import NumberPlace
    from carag.store.store import CorpusStore


_VERSION: Final = "reading-3"
"""Change this whenever questions may be read, or documents ordered, differently."""
_NO_ROW: Final = -1
"""Stands for the row of names where a document adds no name."""


@dataclass(frozen=True, slots=True, eq=False)
class Understood:
    """A question as it was read among the documents that a session may use."""

    question: str
    reading: Reading
    records: Documents
    """The documents, in the order given."""
    tiers: NDArray[np.float64]
    """The tier of each document, 0 or more; see :mod:`carag.retrieval.reading.order`."""
    absent: tuple[Absent, ...]
    """What the question names but none of the documents is about."""
    lexicon: Lexicon
    """The profile's lexicon."""
    fields: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The text fields of every document in the whole table, by name; see :meth:`stated`."""

    def stated(self, name: str) -> list[str]:
        """Return a text field of each document, in the form in which it is compared; empty if it is not stated."""
        column = self.fields.get(name, ())
        return [column[at] for at in self.records.positions] if column else [""] * len(self.records)

    @property
    def terms(self) -> tuple[str, ...]:
        """Terms that the lexicon adds to a search by words."""
        return self.lexicon.expand(self.question)

    @property
    def is_about(self) -> NDArray[np.bool_]:
        """Whether each document is about an entity that the question names, or has a title that it names."""
        return (self.tiers >= 1) & self.reading.is_about_somebody

    @property
    def is_void(self) -> bool:
        """Whether the question can mean none of the documents; see :func:`carag.retrieval.reading.is_void`."""
        return is_void(self.reading, self.absent)

    def unheard(self, occurs: Callable[[str], bool]) -> tuple[str, ...]:
        """Return unknown proper names; see :func:`carag.retrieval.reading.unheard`."""
        return unheard(self.question, self.reading, occurs)

    def described(self) -> str:
        """Return in one line what was understood, in the question's own words; empty if nothing was."""
        return self.reading.described()


@dataclass(slots=True)
class _Contents:
    """The documents of a store, and the names that questions are read by."""

    public: PublicNames
    kept: str | None
    """The hash stored with the public table."""
    ends: dict[int, str]
    """The end of the fiscal year by CIK, from the public table."""
    static: int
    """Number of rows of names that do not depend on the store: the public table's, and the profile's nicknames."""
    documents: Documents = field(default_factory=Documents)
    names: Names = field(default_factory=Names)
    """First the static rows, then each company and CIK of the documents once."""
    rows: dict[tuple[str, int], int] = field(default_factory=dict)
    own: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    """For each document the row of names that it adds, or ``_NO_ROW``."""
    titles: Names = field(default_factory=lambda: Names.of_titles(()))
    """One row for each document."""
    numbers: Numbers = field(default_factory=Numbers)
    """One row for each document."""
    fields: dict[str, list[str]] = field(default_factory=dict)
    """The text fields that the profile declares, one row for each document."""
    last: int = 0
    fingerprint: str = ""
    """Empty until it is needed."""


class Catalogue:
    """The metadata of a store's documents, for reading questions; shared by all threads and sessions.

    ``profile`` decides what is read from questions and documents; InvalidArgument if its ``reading.toml`` or one of its
    tables is not valid.
    """

    def __init__(self, store: CorpusStore, profile: Profile) -> None:
        self.declared = Declared.of(profile)
        self._fields = _text_fields(profile)
        self._store = store
        self._lock = threading.Lock()
        self._known: _Contents | None = None

    def follow(self, profile: Profile) -> None:
        """From now on, read questions and documents as another profile with the same bits declares."""
        declared, fields = Declared.of(profile), _text_fields(profile)
        with self._lock:
            if (declared.sha256, fields) != (self.declared.sha256, self._fields):
                self.declared, self._fields, self._known = declared, fields, None

    def forget(self) -> None:
        """Read all documents again, because some were erased; until they are read, questions are read as before."""
        declared, known = self.declared, self._begun()
        self._follow(known)
        with self._lock:
            self._known = known if declared is self.declared else None

    def refresh(self) -> None:
        """Read new documents from the store, or all of them the first time and after the public table was replaced.

        Raises CorruptFile if the store's public table of names does not match its hash.
        """
        with self._lock:
            self._refreshed()

    def _refreshed(self) -> _Contents:
        known, self._known = self._known, None  # after a failure, start from the beginning
        if known is None or known.kept != PublicNames.hash_in(self._store):
            known = self._begun()
        self._follow(known)
        self._known = known
        return known

    @property
    def fingerprint(self) -> str:
        """Hex digest of everything that a reading depends on, except the question and the documents."""
        with self._lock:
            known = self._known or self._refreshed()
            if not known.fingerprint:  # cached, because every record has it
                words = (
                    " ".join(sorted(words_listed(file))) for file in ("common_words.txt", "no_names.txt")
                )
                parts = (_VERSION, self.declared.sha256, known.kept or known.public.sha256, *words)
                known.fingerprint = hashlib.sha256("\n".join(parts).encode()).hexdigest()
            return known.fingerprint

    @property
    def public_names(self) -> Names | None:
        """The names that do not depend on the store's documents; None if companies are not read."""
        with self._lock:
            known = self._known or self._refreshed()
            return known.names.among(range(known.static).__contains__) if self.declared.companies else None

    def documents(self, numbers: ArrayLike) -> Documents:
        """Return the documents with some numbers, in this order; errors as for :meth:`read`."""
        with self._lock:
            return (self._known or self._refreshed()).documents.of(numbers)

    def read(self, question: str, documents: ArrayLike) -> Understood:
        """Read a question among the documents that the session may use, given as all their numbers in the store.

        InvalidArgument if the question is not a string, is empty or too long, or if a number belongs to no document
        read yet.
        """
        with self._lock:
            known = self._known or self._refreshed()
            given = known.documents.of(documents)
            reading = read_question(
                question,
                names=self._names(known, given),
                titles=self._titles(known, given),
                kinds=self._kinds(given),
                numbers=self._numbered(known, given),
                instants=self.declared.as_of is not None,
            )
        return Understood(
            question,
            reading,
            given,
            tiers(reading, given),
            absent(reading, given),
            self.declared.lexicon,
            known.fields,
        )

    # --- names that a session may know of ---

    def _names(self, known: _Contents, given: Documents) -> Names | None:
        if not self.declared.companies:
            return None
        public = known.static
        said = np.zeros(public + len(known.rows) + 1, np.bool_)  # the last is that of _NO_ROW
        said[:public] = True
        said[known.own[given.positions]] = True
        return known.names.among(said.__getitem__)

    def _titles(self, known: _Contents, given: Documents) -> Names | None:
        if self.declared.title is None:
            return None
        said = np.zeros(len(known.own), np.bool_)
        said[given.positions] = True
        return known.titles.among(said.__getitem__)

    def _numbered(self, known: _Contents, given: Documents) -> Callable[[str], Sequence[NumberPlace]] | None:
        if not self.declared.numbers:
            return None
        said = np.zeros(len(known.own), np.bool_)
        said[given.positions] = True
        return lambda text: known.numbers.find(text, said.__getitem__)

    def _kinds(self, given: Documents) -> Lexicon | None:
        if self.declared.kinds is not None or self.declared.kind is None:
            return self.declared.kinds
        return _kinds_of(given.kinds)

    # --- from the store ---

    def _begun(self) -> _Contents:
        kept, public = PublicNames.hash_in(self._store), PublicNames.kept_in(self._store)
        names = (
            [(name, tickers, cik) for cik, name, tickers, _ in public.rows] if self.declared.companies else []
        )
        names += [(name, (), cik) for name, cik in self.declared.nicknames.items()]
        ends = {row.cik: row.fiscal_year_end for row in public.rows if row.fiscal_year_end}
        return _Contents(public, kept, ends, len(names), names=Names(names))

    def _follow(self, known: _Contents) -> None:
        ends = known.ends
        records = []
        for row in self._store.documents.described(after=known.last):
            records.append(self._described(row, ends))
            for name in self._fields:
                known.fields.setdefault(name, []).append(_plain_text(_stated(row).get(name)))
        if not records:
            return
        if self.declared.companies:
            known.own = np.concatenate([known.own, self._rows_of_names(known, records)])
        else:
            known.own = np.concatenate([known.own, np.full(len(records), _NO_ROW, np.int32)])
        if self.declared.title is not None:
            known.titles.add((one.title, (), one.number) for one in records)
        known.numbers.add((one.numbers, one.number) for one in records)
        known.documents = known.documents.joined(records)
        known.last = records[-1].number

    def _rows_of_names(self, known: _Contents, records: Sequence[Described]) -> NDArray[np.int32]:
        """Add new names, but none for a filing of several entities, whose one name could belong to any of them."""
        public, new = known.static, []
        own = np.full(len(records), _NO_ROW, np.int32)
        for at, one in enumerate(records):
            if one.company and len(one.entities) == 1:
                key = (one.company, one.entities[0])
                if key not in known.rows:
                    known.rows[key] = public + len(known.rows)
                    new.append((one.company, (), one.entities[0]))
                own[at] = known.rows[key]
        known.names.add(new)
        return own

    def _described(self, row: tuple[Any, ...], ends: dict[int, str]) -> Described:
        number, id_, form, company, filed, period, ciks, _ = row
        declared = self.declared
        if declared.companies:
            stated: dict[str, Any] = {"form": form, "filed": filed, "period": period}
            entities = tuple(json.loads(ciks)) if ciks else ()
        else:
            stated, entities, company = _stated(row), (), ""
        kind = declared.kind_of(_text(stated, declared.kind))
        return Described(
            number=number,
            id=id_,
            kind=kind,
            entities=entities,
            company=company,
            title=_text(stated, declared.title),
            period=_date(stated, declared.period),
            dated=_date(stated, declared.dated),
            report=declared.report(kind),
            fiscal_year_end=next((ends[cik] for cik in entities if cik in ends), None),
            numbers=tuple(filter(None, (_text(stated, field) for field in declared.numbers))),
        )


def _text_fields(profile: Profile) -> tuple[str, ...]:
    declared = profile.vocabulary.metadata
    return (
        ("form",) if Declared.of(profile).companies else tuple(n for n in declared if declared[n] == "text")
    )


def _stated(row: tuple[Any, ...]) -> dict[str, Any]:
    return json.loads(row[-1]) if row[-1] else {}


def _plain_text(value: object) -> str:
    """Return a text in the form in which it is compared; documents share equal ones, of which there may be many."""
    return sys.intern(value.strip().casefold()) if isinstance(value, str) else ""


@lru_cache(maxsize=64)
def _kinds_of(values: tuple[str, ...]) -> Lexicon:
    return Lexicon.of_values(values)


def _text(stated: dict[str, Any], name: str | None) -> str:
    """Return a field's value if it is a text of one line, which a question could name; otherwise an empty text."""
    value = stated.get(name) if name else None
    return value if isinstance(value, str) and value.isprintable() and len(value) <= MAX_LABEL else ""


def _date(stated: dict[str, Any], name: str | None) -> date | None:
    """Return a field's value if it is a day, otherwise None, because only declared fields were checked."""
    try:
        day = in_one_form(name, stated.get(name), "date") if name else None
    except InvalidArgument:
        return None
    return date.fromisoformat(str(day)) if day else None
