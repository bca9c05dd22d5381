"""Parse EDGAR full submissions: the header, then each ``<DOCUMENT>`` as plain text.

Graphics, archives, spreadsheets and XBRL files keep their place and type but have no text: labelling needs to know
which exhibits a filing has (such as EX-32).
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from carag.errors import CorruptFile
from carag.profiles.edgar.facts.cover_page import with_cover_facts
from carag.profiles.edgar.facts.cross_check import compare, of_main_document
from carag.profiles.edgar.facts.filing import Disagreement, Filing, FilingDocument
from carag.profiles.edgar.facts.xbrl_cover import facts_of_cover
from carag.profiles.edgar.reading.header import parse_header
from carag.profiles.edgar.reading.markup import DeiFact, ReadsHtml, html_text, is_html, xml_text

if TYPE_CHECKING:
    from collections.abc import Iterator


_BEGINNING: Final = 20_000
"""Characters of a file that are searched for a submission's first tag."""
_MARK: Final = re.compile(r"<(?:SEC-HEADER|IMS-HEADER|SEC-DOCUMENT|IMS-DOCUMENT|SUBMISSION)>", re.IGNORECASE)
_START: Final = re.compile(r"^[ \t]*<(?:SEC-HEADER|IMS-HEADER|SUBMISSION)>", re.IGNORECASE | re.MULTILINE)
_DOCUMENT: Final = re.compile(r"^[ \t]*<(/?)DOCUMENT>[ \t]*$", re.IGNORECASE | re.MULTILINE)
_TAG: Final = re.compile(r"^[ \t]*<(TYPE|SEQUENCE|DESCRIPTION)>([^\n]*)", re.IGNORECASE | re.MULTILINE)
_TAG_LINES: Final = re.compile(r"^[ \t]*<[A-Z][A-Z-]*>[^\n]*", re.IGNORECASE | re.MULTILINE)
_TEXT: Final = re.compile(r"<(/?)TEXT>", re.IGNORECASE)
_WRAPPER: Final = re.compile(r"\s*<(PDF|XBRL|XML|HTML)>[ \t]*\n", re.IGNORECASE)
_UUENCODED: Final = re.compile(r"\s*(?:<PDF>\s*)?begin [0-7]{3} \S", re.IGNORECASE)
_ASCII_TAG: Final = re.compile(
    r"^[ \t]*</?(?:PAGE|TABLE|CAPTION|S|C|FN|F\d+)>[^\n<]{0,8}$|<(?:S|C|PAGE|FN)>", re.MULTILINE
)
# Graphics, spreadsheets, archives, and XBRL with the report pages rendered from it.
_NO_PROSE: Final = re.compile(
    r"GRAPHIC|ZIP|EXCEL|XML|JSON|PDF|EX-27(?:\.\d+)?|EX-100.*|EX-101.*|EX-104.*|XBRL.*", re.IGNORECASE
)


def is_submission(beginning: str) -> bool:
    """Tell whether a file begins like an EDGAR full submission."""
    return _MARK.search(beginning[:_BEGINNING]) is not None


def parse_submission(text: str, *, html: ReadsHtml = html_text) -> Filing:
    """Parse a full submission: header, documents as plain text, and the cover-page facts tagged in them.

    ``html`` converts an HTML document, in this process or in a process that can be ended.

    Raises ``CorruptFile`` if the text ends inside a document, holds several submissions, or its header cannot be read.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    marks = list(_DOCUMENT.finditer(text))
    header_end = marks[0].start() if marks else len(text)
    blocks = list(_blocks(text, marks))
    outside = (
        text[:header_end] + "".join(gap for gap, _ in blocks) + (text[marks[-1].end() :] if marks else "")
    )
    if len(_START.findall(outside)) > 1:
        raise CorruptFile("the file holds several submissions; want one per file")
    filing, stated = parse_header(text[:header_end])
    read = [_read_document(block, html) for _, block in blocks]
    documents = tuple(document for document, _ in read)
    facts = [fact for _, found in read for fact in found]
    cover = facts_of_cover(_values(read[0][1] if read else ()))
    contradictions = (
        *filing.disagreements,
        *_more_documents(filing.documents_counted, len(documents)),
        *of_main_document(filing.form or "", documents),
        *compare(stated, cover).disagreements,
    )
    filing = replace(filing, documents=documents, disagreements=contradictions)
    return with_cover_facts(_with_dei_facts(filing, facts))


def _more_documents(counted: int | None, found: int) -> Iterator[Disagreement]:
    """Yield a disagreement if there are more documents than the header counts: a text can imitate a document's end.

    Fewer documents are not a disagreement: of 544 real filings, 14 list fewer documents than the header counts (9
    because the source truncated or selected them, while 5 are complete), and none lists more.
    """
    if counted is not None and found > counted:
        yield Disagreement(
            "documents", "PUBLIC DOCUMENT COUNT", str(counted), "the text", str(found), "exhibits decide bits"
        )


def _values(facts: tuple[DeiFact, ...]) -> dict[str, list[str]]:
    values: dict[str, list[str]] = defaultdict(list)
    for fact in facts:
        values[fact.name].append(fact.text if fact.truth is None else str(fact.truth).lower())
    return values


def _blocks(text: str, marks: list[re.Match[str]]) -> Iterator[tuple[str, str]]:
    closed = 0
    opened: int | None = None
    for number, mark in enumerate(marks):
        if mark[1] and opened is not None:
            yield text[closed:opened] if closed else "", text[opened : mark.start()]
            opened, closed = None, mark.end()
        elif not mark[1] and opened is None:
            opened = mark.end()
        else:
            raise CorruptFile(f"<DOCUMENT> tag number {number + 1} has no partner; want each document closed")
    if opened is not None:
        raise CorruptFile("the text ends inside a document (no </DOCUMENT>); fetch the file again")


def _read_document(block: str, html: ReadsHtml) -> tuple[FilingDocument, tuple[DeiFact, ...]]:
    head, body = _head_and_body(block)
    tags = {name.upper(): value.strip() for name, value in _TAG.findall(head)}
    kind = tags.get("TYPE", "").upper()
    if not kind:  # which exhibits a filing has decides bits
        raise CorruptFile("a document states no <TYPE>; fetch the file again")
    text, facts = _prose(body, kind, html)
    sequence = tags.get("SEQUENCE", "")
    document = FilingDocument(
        type=kind,
        text=text,
        sequence=int(sequence) if re.fullmatch(r"[0-9]{1,9}", sequence) else 1,
        description=tags.get("DESCRIPTION", ""),
    )
    return document, facts


def _head_and_body(block: str) -> tuple[str, str]:
    """Split at the first ``<TEXT>`` and the last ``</TEXT>``, in one pass.

    An unclosed text extends to the end of its document.
    """
    marks = list(_TEXT.finditer(block))
    start = next((mark for mark in marks if not mark[1]), None)
    end = next((mark for mark in reversed(marks) if mark[1]), None)
    if start is None:
        if end is not None or _TAG_LINES.sub("", block).strip():
            raise CorruptFile("a document has text outside <TEXT>; fetch the file again")
        return block, ""
    if end is None or end.start() < start.end():
        return block[: start.start()], block[start.end() :]
    return block[: start.start()], block[start.end() : end.start()] + block[end.end() :]


def _prose(body: str, kind: str, html: ReadsHtml) -> tuple[str, tuple[DeiFact, ...]]:
    if _NO_PROSE.fullmatch(kind) or _UUENCODED.match(body):
        return "", ()
    wrapper = _WRAPPER.match(body)
    if wrapper and wrapper[1].upper() == "PDF":
        return "", ()
    if (wrapper and wrapper[1].upper() == "XML") or (
        body.lstrip().startswith("<?xml") and not re.search(r"<html", body[:4000], re.IGNORECASE)
    ):
        return xml_text(body), ()
    if is_html(body):
        return html(body)
    lines = (line.rstrip() for line in _ASCII_TAG.sub("", body).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip(), ()


def _with_dei_facts(filing: Filing, facts: list[DeiFact]) -> Filing:
    """Add the cover-page facts that labelling reads; a fact tagged twice with different values stays unknown."""
    truths: dict[str, set[bool]] = defaultdict(set)
    texts: dict[str, list[str]] = defaultdict(list)
    for fact in facts:
        texts[fact.name].append(fact.text)
        if fact.truth is not None:
            truths[fact.name].add(fact.truth)
    return replace(
        filing,
        emerging_growth=_agreed(truths["EntityEmergingGrowthCompany"]),
        shell_company=_agreed(truths["EntityShellCompany"]),
        exchanges=tuple(dict.fromkeys(texts["SecurityExchangeName"])),
        address_countries=tuple(dict.fromkeys(texts["EntityAddressCountry"])),
        filer_category=next(iter(texts["EntityFilerCategory"]), ""),
    )


def _agreed(values: set[bool]) -> bool | None:
    return values.pop() if len(values) == 1 else None
