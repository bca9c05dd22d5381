"""Compare the facts of every real filing that two sources state."""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from carag.profiles.edgar.facts.cross_check import Compared, StatedFacts, Verdict, compare
from carag.profiles.edgar.facts.xbrl_cover import facts_of_cover
from carag.profiles.edgar.reading.header import parse_header
from carag.profiles.edgar.reading.submissions_json import _COLUMNS, facts_copied_from_header, facts_of_row

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

SECOND_OPINIONS: Final = ("header / submissions row", "header / data row", "header / XBRL cover")
"""Pairs of which each side was read from another source; the others check a reader, or the crawl."""


def facts_of_submissions_row(row: Mapping[str, Any]) -> StatedFacts:
    """Read one filing of a submissions file, by EDGAR's names or the short names of the index."""
    named = {_COLUMNS.get(key, key): value for key, value in row.items() if key != "meta_src"}
    return replace(facts_of_row(named), source="submissions row")


def facts_of_company(company: Mapping[str, Any]) -> StatedFacts:
    """Read the facts that a submissions file states about the company today."""
    today = {key: company[key] for key in ("cik", "business_state", "state_of_inc", "sic") if key in company}
    return replace(facts_of_row(today), source="company today")


@dataclass(slots=True)
class Findings:
    """What the comparisons found."""

    counts: Counter[tuple[str, str, Verdict]] = field(default_factory=Counter)
    """By pair, field and verdict."""
    accessions: dict[str, set[str]] = field(default_factory=dict)
    """By pair, those with at least one field both sources state."""
    misfiled: list[tuple[str, str]] = field(default_factory=list)
    """The accession a header is kept under, and the one it states."""

    def add(self, pair: str, accession: str, first: StatedFacts, second: StatedFacts) -> None:
        """Compare two sources of a filing."""
        agreement = compare(first, second)
        if not any(one.field != "accession_number" and _both(one) for one in agreement.fields):
            return
        self.accessions.setdefault(pair, set()).add(accession)
        for one in agreement.fields:
            self.counts[pair, one.field, one.verdict] += 1

    @property
    def second_opinions(self) -> set[str]:
        """The accessions whose header has a second opinion."""
        return set().union(*(self.accessions.get(pair, set()) for pair in SECOND_OPINIONS))


def _both(one: Compared) -> bool:
    return one.verdict in {Verdict.AGREE, Verdict.DIFFER, Verdict.DISAGREE}


def find(edgar: Path) -> Findings:
    """Compare everything in a directory of EDGAR data sets."""
    findings = Findings()
    headers: dict[str, StatedFacts] = {}
    for row in _lines(edgar / "headers.jsonl.gz"):
        facts = parse_header(row["header"]).facts
        headers[facts.accession_number] = facts
        if facts.accession_number != row["accession"]:
            findings.misfiled.append((row["accession"], facts.accession_number))
    submissions = {facts.accession_number: facts for facts in map(facts_of_submissions_row, _index(edgar))}
    companies = {}
    for row in _lines(edgar / "companies.jsonl.gz"):
        company = facts_of_company(row)
        companies.update(dict.fromkeys(company.ciks, company))
    for accession, header in headers.items():
        if accession in submissions:
            findings.add("header / submissions row", accession, header, submissions[accession])
        for cik in header.ciks[:1]:
            if cik in companies:
                findings.add("header / company today", accession, header, companies[cik])
    for file in sorted((*edgar.glob("filings-*.jsonl.gz"), edgar / "filings_meta_only.jsonl.gz")):
        for row in _lines(file):
            _row(findings, row, headers, submissions)
    return findings


def _row(
    findings: Findings,
    row: dict[str, Any],
    headers: dict[str, StatedFacts],
    submissions: dict[str, StatedFacts],
) -> None:
    accession = row.get("accession") or row.get("id") or ""
    copied = facts_copied_from_header(row)
    cover = facts_of_cover({name: [value] for name, value in (row.get("dei") or {}).items()})
    header = headers.get(accession)
    if header is not None:
        findings.add("header / data row", accession, header, facts_of_row(row))
        findings.add("header / XBRL cover", accession, header, cover)
        findings.add("header / the same header, read by another", accession, header, copied)
        return
    if accession in submissions:
        findings.add("header as read by another / submissions row", accession, copied, submissions[accession])
    findings.add("header as read by another / XBRL cover", accession, copied, cover)
    if not copied.form:
        findings.add("data row / XBRL cover, no header", accession, facts_of_row(row), cover)


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _index(edgar: Path) -> Iterator[dict[str, str]]:
    with gzip.open(edgar / "edgar_index.tsv.gz", "rt", encoding="utf-8") as lines:
        yield from csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
