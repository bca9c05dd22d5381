"""Parse the SGML header of an EDGAR submission.

One scan reads all three forms: ``LABEL: value`` (``<SEC-HEADER>``, ``<IMS-HEADER>``), ``<TAG>value`` of the
dissemination feed (``<SUBMISSION>``), and labels that line wrapping broke in two. A field's value is therefore
everything up to the next label or tag, whatever the indentation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from carag.errors import CorruptFile
from carag.profiles.edgar.facts.cross_check import Place, StatedFacts
from carag.profiles.edgar.facts.filing import Disagreement, Filing
from carag.profiles.edgar.facts.form_8k_items import item_number
from carag.profiles.edgar.facts.forms import renamed_form
from carag.profiles.edgar.facts.jurisdictions import edgar_jurisdiction
from carag.profiles.edgar.facts.publication import accepted_in_private, eastern

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


SGML_HEADER: Final = "SGML header"
_T = TypeVar("_T")

_ACCESSION: Final = re.compile(r"(\d{10})-?(\d\d)-?(\d{6})\b")

_PARTIES: Final = (
    "FILER", "ISSUER", "REPORTING OWNER", "SUBJECT COMPANY", "FILED BY", "FILED FOR", "DEPOSITOR",
    "SECURITIZER", "SERIAL COMPANY", "ISSUING ENTITY", "UNDERWRITER",
)  # fmt: skip
_SECTIONS: Final = (
    "COMPANY DATA", "OWNER DATA", "FILING VALUES", "BUSINESS ADDRESS", "MAIL ADDRESS", "FORMER COMPANY",
    "FORMER NAME", "SERIES AND CLASSES CONTRACTS DATA",
)  # fmt: skip
# Tags of the feed that differ from the labels of the same fields.
_ALIASES: Final = {
    "TYPE": "CONFORMED SUBMISSION TYPE",
    "PERIOD": "CONFORMED PERIOD OF REPORT",
    "FILING DATE": "FILED AS OF DATE",
    "ITEMS": "ITEM INFORMATION",
    "CONFORMED NAME": "COMPANY CONFORMED NAME",
    "CIK": "CENTRAL INDEX KEY",
    "ASSIGNED SIC": "STANDARD INDUSTRIAL CLASSIFICATION",
    "FILE NUMBER": "SEC FILE NUMBER",
}
_FIELDS: Final = (
    "ACCESSION NUMBER", "ACCEPTANCE DATETIME", "PRIVATE TO PUBLIC", "PUBLIC REL DATE",
    "PUBLIC DOCUMENT COUNT", "STATE OF INCORPORATION", "STATE", "FORM TYPE", *_ALIASES.values(),
)  # fmt: skip

_KNOWN: Final = "|".join(
    re.escape(label).replace(r"\ ", r"[\s-]+")
    for label in sorted({*_PARTIES, *_SECTIONS, *_FIELDS}, key=len, reverse=True)
)
_LABEL: Final = re.compile(
    rf"^[ \t]*(?P<known>{_KNOWN})[ \t]*:"
    r"|^[ \t]*(?P<other>[A-Z][A-Z0-9 ,/&().'-]{0,60}):(?=\s)"
    r"|<(?P<tag>/?[A-Za-z][A-Za-z0-9-]*)>",
    re.MULTILINE | re.IGNORECASE,
)
_STATED: Final = (
    "form", "company", "filed", "period", "accepted", "released", "items", "business_codes", "sics",
)  # fmt: skip
_END: Final = re.compile(r"</(?:SEC|IMS)-HEADER>|</SUBMISSION>|<DOCUMENT>", re.IGNORECASE)
_NAMED: Final = re.compile(r"<(?:SEC|IMS)-HEADER>\s*(\S+?)\.hdr\.sgml\s*:\s*(\d{8})", re.IGNORECASE)


def accession_year(accession_number: str) -> int | None:
    """Return the year in an accession number, or None if the text is not one.

    Examples
    --------
    >>> accession_year("0000950123-95-001054"), accession_year("0000320193-23-000106")
    (1995, 2023)
    """
    match = _ACCESSION.fullmatch(accession_number)
    if match is None:
        return None
    year = int(match[2])
    return 1900 + year if year >= 93 else 2000 + year  # EDGAR's first accession numbers are from 1993


class Header(NamedTuple):
    """A parsed header: as a filing without documents, and as a source to compare with others."""

    filing: Filing
    facts: StatedFacts
    """``ciks`` includes ``FILED BY`` parties; ``complete`` tells whether the end of the header is present."""


def parse_header(text: str) -> Header:
    """Parse a header, complete or truncated.

    ``released`` is ``PUBLIC-REL-DATE``. For a letter, draft or private-to-public submission without that field, the
    date in the header's first line counts if it is after the filing date: EDGAR writes that line when it disseminates.

    Raises ``CorruptFile`` if the text states neither an accession number nor a form.
    """
    header = _scan(text.replace("\r\n", "\n").replace("\r", "\n"))
    named = _NAMED.search(text)
    number = _ACCESSION.search(header.first("ACCESSION NUMBER")) or (named and _ACCESSION.search(named[1]))
    form = header.line("CONFORMED SUBMISSION TYPE") or header.line("FORM TYPE")
    if number is None and not form:
        raise CorruptFile(
            "the header states neither ACCESSION NUMBER nor CONFORMED SUBMISSION TYPE; want both"
        )
    accession = "-".join(number.groups()) if number else ""
    filed = _date(header.first("FILED AS OF DATE"))
    parties = header.parties
    companies = [party for party in parties if party.role not in {"REPORTING OWNER", "FILED BY"}]
    present = {tag for tag, _ in header.fields}
    filing = Filing(
        accession_number=accession,
        form=form.upper() or None,
        company=next((party.line("COMPANY CONFORMED NAME") for party in companies), ""),
        ciks=_distinct(int(cik) for party in parties if party.role != "FILED BY" for cik in party.ciks),
        parties=_parties(parties, form),
        filed=filed,
        period=_date(header.first("CONFORMED PERIOD OF REPORT")),
        accepted=eastern(_digits(header.first("ACCEPTANCE DATETIME"), 14)),
        accession_year=accession_year(accession),
        private_to_public="PRIVATE TO PUBLIC" in present,
        released=_date(header.first("PUBLIC REL DATE")),
        items=_items(header, filed),
        business_codes=_business_codes(parties),
        incorporation_codes=_distinct(
            code for party in parties if (code := party.code("STATE OF INCORPORATION"))
        ),
        sics=_distinct(sic for party in parties if (sic := party.sic)),
        party_roles=_distinct(party.role.replace("REPORTING OWNER", "REPORTING-OWNER") for party in parties),
        file_numbers=_distinct(n for party in parties for n in party.all("SEC FILE NUMBER")),
        documents_counted=_count(header.first("PUBLIC DOCUMENT COUNT")),
        disagreements=_contradictions(header),
    )
    provenance = {name: SGML_HEADER for name in _STATED if getattr(filing, name)}
    if filing.released is None and named and accepted_in_private(filing):
        written = _date(named[2])
        if written and filed and written > filed:
            filing = replace(filing, released=written)
            provenance["released"] = "date of the header's first line"
    filing = replace(filing, provenance=provenance)
    every_cik = _distinct(int(cik) for party in parties for cik in party.ciks)
    return Header(filing, _stated_facts(filing, every_cik, complete=_END.search(text) is not None))


def _stated_facts(filing: Filing, ciks: tuple[int, ...], *, complete: bool) -> StatedFacts:
    return StatedFacts(
        source=SGML_HEADER,
        accession_number=filing.accession_number,
        form=filing.form or "",
        filed=filing.filed,
        accepted=(filing.accepted,) if filing.accepted else (),
        period=filing.period,
        items=filing.items if any(filing.items) else (),
        ciks=ciks,
        business=_places(filing.business_codes),
        incorporation=_places(filing.incorporation_codes),
        sics=filing.sics,
        private_to_public=filing.private_to_public,
        party_roles=filing.party_roles,
        file_numbers=filing.file_numbers,
        complete=complete,
    )


def _places(codes: tuple[str, ...]) -> tuple[Place, ...]:
    return tuple(Place(code, edgar_jurisdiction(code)) for code in codes if code)


@dataclass(slots=True)
class _Party:
    """One party's block of the header; each field comes with the section that contains it."""

    role: str
    fields: list[tuple[str, str, str]] = field(default_factory=list)

    def all(self, name: str, section: str | None = None) -> list[str]:
        values = (value for where, key, value in self.fields if key == name and section in {None, where})
        return [tokens[0] for value in values if (tokens := value.split())]

    def line(self, name: str) -> str:
        values = (value.strip() for _, key, value in self.fields if key == name)
        return next((value.split("\n")[0].strip() for value in values if value), "")

    def code(self, name: str, section: str | None = None) -> str:
        return next(iter(self.all(name, section)), "").upper()

    @property
    def ciks(self) -> list[str]:
        return [cik for cik in self.all("CENTRAL INDEX KEY") if re.fullmatch(r"[0-9]{10}", cik)]

    @property
    def sic(self) -> str:
        stated = next((v for _, k, v in self.fields if k == "STANDARD INDUSTRIAL CLASSIFICATION"), "")
        match = re.search(r"\[(\d{4})\]", stated) or re.fullmatch(r"\s*(\d{4})\s*", stated)
        return match[1] if match else ""


@dataclass(slots=True)
class _Scanned:
    fields: list[tuple[str, str]] = field(default_factory=list)
    parties: list[_Party] = field(default_factory=list)

    def every(self, name: str) -> list[str]:
        return [" ".join(value.split()) for key, value in self.fields if key == name and value.strip()]

    def first(self, name: str) -> str:
        return next(iter(self.every(name)), "")

    def stripped(self, name: str) -> list[str]:
        return [value.strip() for key, value in self.fields if key == name and value.strip()]

    def blank(self, name: str) -> list[str]:
        """Return one empty string for each time a field is listed without a value."""
        return ["" for key, value in self.fields if key == name and not value.strip()]

    def line(self, name: str) -> str:
        """Return the first line only: in a wrapped copy, the first word of the next label may follow."""
        return next((" ".join(value.split("\n")[0].split()) for value in self.stripped(name)), "")


def _scan(text: str) -> _Scanned:
    header, section = _Scanned(), ""
    marks = list(_LABEL.finditer(text))
    for place, mark in enumerate(marks, start=1):
        label = mark["known"] or mark["tag"]
        if label is None or label.startswith("/"):
            continue
        name = " ".join(re.split(r"[\s-]+", label.upper()))
        if mark["tag"]:
            name = _ALIASES.get(name, name)
        value = text[mark.end() : marks[place].start() if place < len(marks) else None]
        if name in _PARTIES and not value.strip():
            header.parties.append(_Party(name))
            section = ""
        elif name in _SECTIONS:
            section = name
        else:
            header.fields.append((name, value))
            if header.parties:
                header.parties[-1].fields.append((section, name, value))
    return header


def _parties(parties: list[_Party], form: str) -> tuple[int, ...]:
    """Return the CIKs that a filing may be about, without the exchange that files a Form 25."""
    delists = form.upper().startswith("25")
    about = [party for party in parties if not (delists and party.role == "FILED BY")]
    return tuple(int(cik) for party in about for cik in party.ciks or ("0",))


_ONCE: Final = (
    ("accession_number", "ACCESSION NUMBER"),
    ("form", "CONFORMED SUBMISSION TYPE"),
    ("filed", "FILED AS OF DATE"),
    ("accepted", "ACCEPTANCE DATETIME"),
    ("period", "CONFORMED PERIOD OF REPORT"),
    ("released", "PUBLIC REL DATE"),
    ("documents", "PUBLIC DOCUMENT COUNT"),
)


def _contradictions(header: _Scanned) -> tuple[Disagreement, ...]:
    """Return the fields that must occur once but have two different values.

    Only fields before the first party count, because a fund's header lists other filings after the parties. The
    exception is ``FORM TYPE``, which the filing values of every party repeat. Of 3,441 real headers, one contradicts
    itself: it amends a Schedule TO and a Schedule 13D at once.
    """
    head = _Scanned(header.fields[: len(header.fields) - sum(len(party.fields) for party in header.parties)])
    found = []
    for name, label in _ONCE:
        first, *others = dict.fromkeys(value.split("\n")[0] for value in head.stripped(label)) or [""]
        found += [
            Disagreement(name, SGML_HEADER, first, "the same header", other, "a header states it once")
            for other in others
        ]
    form = header.line("CONFORMED SUBMISSION TYPE")
    found += [
        Disagreement("form", SGML_HEADER, form, "its FORM TYPE", other, "the form decides most bits")
        for other in dict.fromkeys(
            " ".join(value.split("\n")[0].split()) for value in header.stripped("FORM TYPE")
        )
        if form and renamed_form(other) != renamed_form(form)
    ]
    return (*found, *_without_party(head, header.parties))


def _without_party(head: _Scanned, parties: list[_Party]) -> Iterator[Disagreement]:
    """Yield companies whose role is unknown, because the line that begins their block is lost."""
    for first, *others in [
        ["", *head.every("CENTRAL INDEX KEY")],
        *(party.ciks for party in parties if party.ciks),
    ]:
        for other in dict.fromkeys(others):
            if other != first:
                yield Disagreement(
                    "ciks",
                    SGML_HEADER,
                    first or "no party",
                    "the same header",
                    other,
                    "each block describes one party",
                )


def _items(header: _Scanned, filed: date | None) -> tuple[str, ...]:
    """Read the items, including blank lines: until 2004 the header had no description of item 12."""
    numbers = _distinct(item_number(item, filed) for item in header.every("ITEM INFORMATION"))
    return (*numbers, *header.blank("ITEM INFORMATION"))


def _business_codes(parties: list[_Party]) -> tuple[str, ...]:
    """Return one code per party; an empty string for a company without a location."""
    codes = []
    for party in parties:
        code = party.code("STATE", "BUSINESS ADDRESS")
        silent = not party.code("STATE OF INCORPORATION") and party.role not in {
            "REPORTING OWNER",
            "FILED BY",
        }
        if code or silent:
            codes.append(code)
    return _distinct(codes)


def _distinct(values: Iterable[_T]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys(values))


def _digits(value: str, count: int) -> str:
    match = re.match(rf"\d{{{count}}}", value)
    return match[0] if match else ""


def _count(value: str) -> int | None:
    return int(value) if re.fullmatch(r"[0-9]{1,9}", value) else None


def _date(value: str) -> date | None:
    try:
        return datetime.strptime(_digits(value, 8), "%Y%m%d").date()  # noqa: DTZ007 - a date has no zone
    except ValueError:
        return None
