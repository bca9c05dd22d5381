"""Read ``reading.toml`` of a profile, which says what is read from questions and documents, and the tables it names.

What is read only orders what a session may use anyway, so the file is separate from the policy. What is not declared is
not read.
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


_FILING: Final = {"kind": "form", "period": "period", "dated": "filed"}
"""The fields that the reader of filings states; EDGAR's profile can declare no others."""
_MAX_KINDS: Final = 1_000
"""The most kinds in a list, or variants of one kind."""

_MAX_CIK: Final = 9_999_999_999
_MAX_NICKNAMES: Final = 10_000

_MAX_NUMBERS: Final = 16
"""The most fields with document numbers."""


_FieldName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=64)]
_Kinds = Annotated[list[str], Field(max_length=_MAX_KINDS)]


class _ReadingFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

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
    """What is read from questions and documents under a profile."""

    companies: bool = False
    """Whether documents are known by the company that filed them, and questions by the companies they name."""
    title: str | None = None
    """The field of metadata that is a document's title; questions may name it."""
    kind: str | None = None
    """The field with the kind of document."""
    period: str | None = None
    """The field with the last day of the period that a document reports for."""
    dated: str | None = None
    """The field with the day on which a document was published."""
    kinds: Lexicon | None = None
    """Maps words in a question to kinds; if None, a question may name the documents' own kinds."""
    lexicon: Lexicon = field(default_factory=Lexicon)
    """Maps words in a question to terms for the search by words."""
    numbers: tuple[str, ...] = ()
    """The fields of metadata with a document's numbers; questions may name them."""
    as_of: str | None = None
    """The intent of a question that names the day as of which it asks; None if no such day is read."""
    reports: Mapping[str, ReportKind] = field(default_factory=dict)
    """The kind of report by kind of document, in lower case."""
    variants: Mapping[str, str] = field(default_factory=dict)
    """Maps other names of kinds, in lower case, to the kind."""
    nicknames: Mapping[str, int] = field(default_factory=dict)
    """Maps names that people use but filings do not state to the CIK of the company."""
    least_words: float = 0.0
    """How well the best passage by words must match, 0 to 1, for the question to be answered."""
    relevance: float = 1.0
    """The weight on relevance, 0 to 1, when passages that repeat each other are avoided; 1 switches that off."""
    fetch: int = 20
    """The number of best passages that they are chosen from."""
    sha256: str = hashlib.sha256(b"").hexdigest()
    """Hash of the files, in hexadecimal."""

    @classmethod
    def of(cls, profile: Profile) -> Declared:
        """Read what a profile declares; without ``reading.toml`` that is nothing.

        Raises InvalidArgument if a file is not valid, or is missing, or is present but not named; the message names the
        line.
        """
        files = {name: text for name, text in profile.reading.items() if name != GATE_FILE}
        if unknown := sorted(profile.reading.keys() - set(READING_FILES)):
            raise InvalidArgument(
                f"the file {quoted(unknown[0])} is not part of a profile; want {', '.join(READING_FILES)}"
            )
        if "reading.toml" not in files:
            if files:
                raise InvalidArgument(
                    f"{min(files)} is there, but there is no reading.toml that names it; add one, or remove the table"
                )
            return cls()
        toml = Toml("reading.toml", files["reading.toml"])
        said = toml.read(_ReadingFile)
        _check_fields(toml, said, profile.vocabulary)
        tables = {}
        for name, file in (("kinds", said.kinds), ("lexicon", said.lexicon)):
            if file is not None and file not in files:
                with toml.at(name):
                    raise InvalidArgument(
                        f"there is no {file} in the same folder; add the table, or leave the key out"
                    )
            if file is None and f"{name}.tsv" in files:
                raise InvalidArgument(
                    f'{name}.tsv is there, but reading.toml does not name it; add: {name} = "{name}.tsv"'
                )
            if file is not None:
                tables[name] = Lexicon(files[file], file)
        if "kinds" in tables and said.kind is None:
            with toml.at("kinds"):
                raise InvalidArgument("no field has the kind of a document; declare it with: kind = FIELD")
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
        """Return the name of a kind in tables: of a form, its base without ``/A``; of others, the lower case."""
        plain = " ".join(stated.split())
        plain = plain.upper().removesuffix("/A").strip() if self.companies else plain.casefold()
        return self.variants.get(plain.casefold(), plain)

    def report(self, kind: str) -> ReportKind:
        """Return the period that documents of a kind report for."""
        return self.reports.get(kind.casefold(), ReportKind.OTHER)


def _check_fields(toml: Toml, said: _ReadingFile, vocabulary: Vocabulary) -> None:
    """Check that the fields have the types that they are declared for."""
    of_filings = vocabulary.reader == "edgar"
    if said.companies != of_filings:
        with toml.at("companies"):
            raise InvalidArgument(
                "companies are read from filings only; want true for the reader edgar, and leave it out for any other"
            )
    if said.as_of is not None:
        known = [rule.name for rule in vocabulary.intents.rules]
        with toml.at("as_of"):
            if said.as_of not in known:
                raise InvalidArgument(
                    f"there is no intent {quoted(said.as_of)}; {nearest(said.as_of, known)}"
                )
    for place, number in enumerate(said.numbers):
        with toml.at("numbers", place):
            if of_filings:
                raise InvalidArgument("a filing has no such field; leave it out")
            if (of := vocabulary.metadata.get(number, "text")) != "text":
                raise InvalidArgument(f"{number} is declared as {of} in profile.toml; want a text field")
    for name, wanted in (("title", "text"), ("kind", "text"), ("period", "date"), ("dated", "date")):
        stated = getattr(said, name)
        if stated is None:
            continue
        with toml.at(name):
            if of_filings and stated != _FILING.get(name):
                remedy = f"want {_FILING[name]}" if name in _FILING else "leave it out"
                raise InvalidArgument(f"a filing has no such field; {remedy}")
            if (kind := vocabulary.metadata.get(stated, wanted)) != wanted and not of_filings:
                raise InvalidArgument(
                    f"{stated} is declared as {kind} in profile.toml; want a {wanted} field"
                )


def _reports(toml: Toml, said: _ReadingFile) -> dict[str, ReportKind]:
    found: dict[str, ReportKind] = {}
    for name, report in (("annual", ReportKind.ANNUAL), ("interim", ReportKind.INTERIM)):
        for number, kind in enumerate(getattr(said, name)):
            with toml.at(name, number):
                check_label("a kind", kind)
                if found.setdefault(kind.casefold(), report) is not report:
                    raise InvalidArgument(f"{kind} is in both annual and interim; list each kind once")
    return found


def _variants(toml: Toml, said: _ReadingFile) -> dict[str, str]:
    found: dict[str, str] = {}
    for kind, others in said.variants.items():
        with toml.at("variants", kind):
            for other in others:
                check_label("a kind", other)
                base = kind if said.companies else kind.casefold()
                if other in said.variants or found.setdefault(other.casefold(), base) != base:
                    raise InvalidArgument(f"{other} also names another kind; list each name once")
    return found


def _nicknames(toml: Toml, said: _ReadingFile) -> dict[str, int]:
    for name in said.nicknames:
        with toml.at("nicknames", name):
            if not said.companies:
                raise InvalidArgument(
                    "nicknames are names of companies, but companies are not read; leave nicknames out"
                )
            check_name("nickname", name)
    return dict(said.nicknames)
