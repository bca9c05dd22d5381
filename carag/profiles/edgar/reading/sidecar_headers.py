"""Compare the rows of a data set with their filings' SGML headers, kept in files of the same directory.

``headers*.jsonl`` (or with ``.gz``) holds one SGML header per line, as ``{"accession": ..., "header": ...}``. Each row
in the directory's other files is compared with the header of its accession number, if there is one, and takes the
header's facts: the header states the filing's own facts, while a row may state those of the company today. All of a
directory's headers, about two kilobytes each, are held in memory while its rows are read.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from carag.errors import CorruptFile
from carag.limits import check_text, quoted
from carag.profiles.edgar.facts.cross_check import compare
from carag.profiles.edgar.facts.form_8k_items import ITEM_NUMBERS
from carag.profiles.edgar.facts.xbrl_cover import facts_of_cover
from carag.profiles.edgar.reading.bounded import READ_ERRORS, line_text, opened
from carag.profiles.edgar.reading.dataset import load_row
from carag.profiles.edgar.reading.door import check_filing, problem_of
from carag.profiles.edgar.reading.header import Header, parse_header
from carag.profiles.edgar.reading.submissions_json import facts_copied_from_header, facts_of_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from carag.profiles.edgar.facts.filing import Filing


_T = TypeVar("_T")
MAX_HEADER: Final = 1 << 20
"""Greatest number of characters in one header: 50 times the longest of 3,441 real ones, which are cut at 20,000."""
_NAMED: Final = 20
"""Greatest number of problems that are listed for one file."""


def is_headers_file(file: Path) -> bool:
    """Tell by its name whether a file holds headers."""
    name = file.name.lower().removesuffix(".gz")
    return name.startswith("headers") and name.endswith((".jsonl", ".ndjson"))


@dataclass(slots=True)
class SidecarHeaders:
    """The headers of one directory."""

    counts: dict[str, int] = field(default_factory=dict)
    """Headers read, by file name."""
    problems: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """Lines that could not be read or have a different filing's number, by file name."""
    _headers: dict[str, list[Header]] = field(default_factory=dict)

    @classmethod
    def load(cls, folder: Path) -> SidecarHeaders:
        """Read every headers file in a directory; what cannot be read is kept as a problem."""
        found = cls()
        for file in sorted(folder.iterdir()) if folder.is_dir() else ():
            if is_headers_file(file) and file.is_file():
                found._read(file)
        return found

    def compare_and_unite(self, filing: Filing, row: Mapping[str, Any]) -> Filing:
        """Return a row's filing with the header's facts and every disagreement between its sources.

        If the header is missing, the fields that the row copied from it are compared instead.
        """
        headers = self._headers.get(filing.accession_number, [])
        own, copied = facts_of_row(row), facts_copied_from_header(row)
        dei = row.get("dei")
        cover = facts_of_cover(
            {name: [value] for name, value in dei.items() if isinstance(value, str)}
            if isinstance(dei, dict)
            else {}
        )
        if headers:
            first = headers[0].facts
            pairs = [(first, other.facts) for other in headers[1:]]
            pairs += [(first, own), (first, copied), (first, cover)]
        else:
            pairs = [(copied, cover), (own, cover)]
        within = [*filing.disagreements, *(one for header in headers for one in header.filing.disagreements)]
        between = [one for pair in pairs for one in compare(*pair).disagreements]
        disagreements = _distinct([*within, *between])
        united = with_header(filing, headers[0].filing) if headers else filing
        return replace(united, disagreements=disagreements) if disagreements else united

    def account(self, file_name: str) -> str:
        """Summarise what was read from a headers file."""
        said = (
            f"headers without their filings: {self.counts.get(file_name, 0)} compared with this folder's rows"
        )
        problems = [f"line {number}: {problem}" for number, problem in self.problems.get(file_name, ())]
        more = [f"and {len(problems) - _NAMED} more"] if len(problems) > _NAMED else []
        return "; ".join([said, *problems[:_NAMED], *more])

    def _read(self, file: Path) -> None:
        self.counts[file.name] = 0
        problems = self.problems.setdefault(file.name, [])
        number = 0
        try:
            with opened(file) as source:
                for number, line in source.lines():
                    try:
                        problem = self._take(line)
                        self.counts[file.name] += 1
                    except Exception as error:  # noqa: BLE001 - nothing stops the reading, and each problem is reported
                        problem = problem_of(error).reason
                    if problem:
                        problems.append((number, problem))
        except (CorruptFile, *READ_ERRORS) as error:
            problems.append((number + 1, f"unreadable from here on: {problem_of(error).reason}"))

    def _take(self, line: bytes | None) -> str:
        """Keep one header; return a remark if something about it is wrong."""
        row = load_row(line_text(line))
        text = row.get("header", "")
        check_text("header", text, MAX_HEADER)
        header = parse_header(text)
        number = header.filing.accession_number
        if not number:
            raise CorruptFile(
                "the header states no ACCESSION NUMBER, so it cannot be matched with a filing; add it"
            )
        check_filing(header.filing)
        self._headers.setdefault(number, []).append(header)
        kept_as = row.get("accession") or number
        if kept_as != number:
            return f"the key is {quoted(kept_as)}, but the header states {number}, and counts for that filing only"
        return ""


def with_header(filing: Filing, header: Filing) -> Filing:
    """Replace a filing's facts by those that its header states; other facts stay.

    The header's items count, unless the header lists some items without naming them and the row names more.
    """
    own = filing.items
    header_reads_all = bool(header.items) and set(header.items) <= ITEM_NUMBERS
    row_reads_more = bool(own) and set(header.items) & ITEM_NUMBERS <= set(own) <= ITEM_NUMBERS
    return replace(
        filing,
        form=header.form or filing.form,
        company=filing.company or header.company,
        ciks=header.ciks or filing.ciks,
        parties=_parties(filing, header),
        filed=header.filed or filing.filed,
        period=header.period or filing.period,
        accepted=header.accepted or filing.accepted,
        accepted_earliest=None if header.accepted else filing.accepted_earliest,
        private_to_public=header.private_to_public or filing.private_to_public,
        released=header.released or filing.released,
        items=header.items if header_reads_all or (header.items and not row_reads_more) else own,
        business_codes=_stated(header.business_codes) or filing.business_codes,
        incorporation_codes=header.incorporation_codes or filing.incorporation_codes,
        sics=header.sics or filing.sics,
        party_roles=_distinct((*header.party_roles, *filing.party_roles)),
        file_numbers=_distinct((*header.file_numbers, *filing.file_numbers)),
        provenance={**filing.provenance, **header.provenance},
    )


def _parties(filing: Filing, header: Filing) -> tuple[int, ...]:
    """Unite the parties of a row and its header; 0 is added if a row counts more than a truncated header has."""
    named = (*header.parties, *(cik for cik in filing.parties if cik and cik not in header.parties))
    return (*named, 0) if len(filing.parties) > len(named) else named


def _stated(codes: tuple[str, ...]) -> tuple[str, ...]:
    """Drop empty codes if there are no others; next to others, an empty one is a co-registrant without a location."""
    return codes if any(codes) else ()


def _distinct(values: Iterable[_T]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys(values))
