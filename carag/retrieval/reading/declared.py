"""Read what a profile declares of its questions: ``reading.toml``, and the tables that it names.

All of it orders what a session may use anyhow, so it is no part of the policy, and stands in files of its own. What a
profile does not declare is not read.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from carag.errors import InvalidArgument
from carag.limits import check_label, check_name, quoted
from carag.policy.bits import nearest
from carag.policy.shipped import GATE_FILE, READING_FILES
from carag.policy.toml_lines import Toml, a_number
from carag.retrieval.reading.lexicon import Lexicon
from carag.retrieval.reading.periods import ReportKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from carag.policy import Profile, Vocabulary

__all__ = ["Declared"]

_FILING: Final = {"kind": "form", "period": "period", "dated": "filed"}
"""What the reader of filings states: the only fields that EDGAR's profile can declare."""
_MAX_KINDS: Final = 1_000
"""Greatest number of kinds in a list, or of variants of one."""

_MAX_CIK: Final = 9_999_999_999
_MAX_NICKNAMES: Final = 10_000

_MAX_NUMBERS: Final = 16
"""Greatest number of fields with numbers of documents."""


_FieldName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=64)]
_Kinds = Annotated[list[str], Field(max_length=_MAX_KINDS)]


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    schema_: Annotated[Literal[1], BeforeValidator(a_number)] = Field(alias="schema")
    companies: bool = False
    title: _FieldName | None = None
    kind: _FieldName | None = None
    period: _FieldName | None = None
    dated: _FieldName | None = None
    kinds: Literal["kinds.tsv"] | None = None
    lexicon: Literal["lexicon.tsv"] | None = None
    numbers: Annotated[list[_FieldName], Field(max_length=_MAX_NUMBERS)] = []
    as_of: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    annual: _Kinds = []
    interim: _Kinds = []
    variants: Annotated[dict[str, _Kinds], Field(max_length=_MAX_KINDS)] = {}
    nicknames: Annotated[
        dict[str, Annotated[int, Field(gt=0, le=_MAX_CIK)]], Field(max_length=_MAX_NICKNAMES)
    ] = {}
    least_words: Annotated[float, Field(ge=0, le=1)] = 0.0
    relevance: Annotated[float, Field(ge=0, le=1)] = 1.0
    fetch: Annotated[int, Field(ge=1, le=1000)] = 20


@dataclass(frozen=True, slots=True, eq=False)
class Declared:
    """What is read of questions and of documents under one profile.

    Examples
    --------
    >>> from carag.policy import Profile
    >>> edgar = Declared.of(Profile.open("edgar"))
    >>> edgar.companies, edgar.kind_of("10-K405/A"), edgar.report("10-K").value
    (True, '10-K', 'annual')
    """

    companies: bool = False
    """Whether documents are known by the company that filed them, and questions by the companies they name."""
    title: str | None = None
    """The field of metadata that is a document's title; questions may name it."""
    kind: str | None = None
    """The field that says what kind of document it is."""
    period: str | None = None
    """The field with the last day for which it reports."""
    dated: str | None = None
    """The field with the day on which it came out."""
    kinds: Lexicon | None = None
    """From words of a question to kinds; None if the documents' own kinds are what a question may name."""
    lexicon: Lexicon = field(default_factory=Lexicon)
    """From words of a question to terms for the search by words."""
    numbers: tuple[str, ...] = ()
    """The fields of metadata with a document's numbers; questions may name them."""
    as_of: str | None = None
    """The intent of a question that names the day as of which it asks; None if no such day is read."""
    reports: Mapping[str, ReportKind] = field(default_factory=dict)
    """By kind, in small letters."""
    variants: Mapping[str, str] = field(default_factory=dict)
    """By another name of a kind, in small letters, the kind."""
    nicknames: Mapping[str, int] = field(default_factory=dict)
    """By a name that people use and filings do not state, the CIK of the company."""
    least_words: float = 0.0
    """Share of a question's words, 0 to 1, that the best passage by words must hold for the question to be answered."""
    relevance: float = 1.0
    """The weight on relevance, 0 to 1, where passages are chosen to repeat each other less; 1 does not choose."""
    fetch: int = 20
    """Of how many of the best passages those are chosen."""
    sha256: str = hashlib.sha256(b"").hexdigest()
    """Of the files, in hexadecimal."""

    @classmethod
    def of(cls, profile: Profile) -> Declared:
        """Read what a profile declares; nothing of one without ``reading.toml``.

        Raises
        ------
        InvalidArgument
            If a file is not valid, is named and missing, or is there and not named; the message names the line.
        """
        files = {name: text for name, text in profile.reading.items() if name != GATE_FILE}
        if unknown := sorted(profile.reading.keys() - set(READING_FILES)):
            raise InvalidArgument(
                f"a profile has no file {quoted(unknown[0])}; want {', '.join(READING_FILES)}"
            )
        if "reading.toml" not in files:
            if files:
                raise InvalidArgument(
                    f"{min(files)} is there and no reading.toml names it; add one, or remove the table"
                )
            return cls()
        toml = Toml("reading.toml", files["reading.toml"])
        said = toml.read(_Document)
        _check_fields(toml, said, profile.vocabulary)
        tables = {}
        for name, file in (("kinds", said.kinds), ("lexicon", said.lexicon)):
            if file is not None and file not in files:
                with toml.at(name):
                    raise InvalidArgument(
                        f"there is no {file} beside it; add the table, or leave the key out"
                    )
            if file is None and f"{name}.tsv" in files:
                raise InvalidArgument(
                    f'{name}.tsv is there; name it in reading.toml by: {name} = "{name}.tsv"'
                )
            if file is not None:
                tables[name] = Lexicon(files[file], file)
        if "kinds" in tables and said.kind is None:
            with toml.at("kinds"):
                raise InvalidArgument("no field says what kind a document is; declare one by: kind = FIELD")
        digest = hashlib.sha256()
        for name in sorted(files):
            digest.update(f"{name} {len(files[name].encode())}\n{files[name]}".encode())
        return cls(
            companies=said.companies,
            title=said.title,
            kind=said.kind,
            period=said.period,
            dated=said.dated,
            kinds=tables.get("kinds"),
            lexicon=tables.get("lexicon", Lexicon()),
            numbers=tuple(said.numbers),
            as_of=said.as_of,
            reports=_reports(toml, said),
            variants=_variants(toml, said),
            nicknames=_nicknames(toml, said),
            least_words=said.least_words,
            relevance=said.relevance,
            fetch=said.fetch,
            sha256=digest.hexdigest(),
        )

    def kind_of(self, stated: str) -> str:
        """Return a kind by the name that tables use: of a form its base, without ``/A``; else in small letters."""
        plain = " ".join(stated.split())
        plain = plain.upper().removesuffix("/A").strip() if self.companies else plain.casefold()
        return self.variants.get(plain.casefold(), plain)

    def report(self, kind: str) -> ReportKind:
        """Tell for how long documents of a kind report."""
        return self.reports.get(kind.casefold(), ReportKind.OTHER)


def _check_fields(toml: Toml, said: _Document, vocabulary: Vocabulary) -> None:
    """Check that fields can hold what they are declared for."""
    of_filings = vocabulary.reader == "edgar"
    if said.companies != of_filings:
        with toml.at("companies"):
            raise InvalidArgument(
                "companies are read of filings, and of nothing else; want it true where the reader is edgar, and left "
                "out where it is not"
            )
    if said.as_of is not None:
        known = [rule.name for rule in vocabulary.intents.rules]
        with toml.at("as_of"):
            if said.as_of not in known:
                raise InvalidArgument(
                    f"no intent is called {quoted(said.as_of)}; {nearest(said.as_of, known)}"
                )
    for place, number in enumerate(said.numbers):
        with toml.at("numbers", place):
            if of_filings:
                raise InvalidArgument("a filing has no such field; want it left out")
            if (of := vocabulary.metadata.get(number, "text")) != "text":
                raise InvalidArgument(f"{number} is declared as {of} in profile.toml; want a text")
    for name, wanted in (("title", "text"), ("kind", "text"), ("period", "date"), ("dated", "date")):
        stated = getattr(said, name)
        if stated is None:
            continue
        with toml.at(name):
            if of_filings and stated != _FILING.get(name):
                raise InvalidArgument(
                    f"a filing has no such field; want {_FILING.get(name) or 'it left out'}"
                )
            if (kind := vocabulary.metadata.get(stated, wanted)) != wanted and not of_filings:
                raise InvalidArgument(f"{stated} is declared as {kind} in profile.toml; want a {wanted}")


def _reports(toml: Toml, said: _Document) -> dict[str, ReportKind]:
    found: dict[str, ReportKind] = {}
    for name, report in (("annual", ReportKind.ANNUAL), ("interim", ReportKind.INTERIM)):
        for number, kind in enumerate(getattr(said, name)):
            with toml.at(name, number):
                check_label("a kind", kind)
                if found.setdefault(kind.casefold(), report) is not report:
                    raise InvalidArgument(f"{kind} reports for a year by annual; want each kind once")
    return found


def _variants(toml: Toml, said: _Document) -> dict[str, str]:
    found: dict[str, str] = {}
    for kind, others in said.variants.items():
        with toml.at("variants", kind):
            for other in others:
                check_label("a kind", other)
                base = kind if said.companies else kind.casefold()
                if other in said.variants or found.setdefault(other.casefold(), base) != base:
                    raise InvalidArgument(f"{other} is also another kind; want each name once")
    return found


def _nicknames(toml: Toml, said: _Document) -> dict[str, int]:
    for name in said.nicknames:
        with toml.at("nicknames", name):
            if not said.companies:
                raise InvalidArgument(
                    "nicknames are names of companies; want them left out without companies"
                )
            check_name("nickname", name)
    return dict(said.nicknames)
