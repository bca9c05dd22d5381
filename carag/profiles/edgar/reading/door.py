"""Validate a filing before it is accepted, and explain why one is rejected.

An accepted filing can be labelled, stored, indexed, searched, recorded and shown. Nothing is kept of a rejected filing,
which is reported with its place and the reason. An unexpected error does not stop the reading of other filings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from carag.errors import CorruptFile, InvalidArgument, type_and_place
from carag.limits import check_form, check_id, check_label, check_name, check_text, quoted, shown
from carag.policy import MAX_LISTED
from carag.profiles.edgar.reading.bounded import READ_ERRORS
from carag.visible import logger

if TYPE_CHECKING:
    from carag.profiles.edgar.facts.filing import Filing


_logger = logger(__name__)

_EXPECTED: Final = (CorruptFile, InvalidArgument, *READ_ERRORS)


class Problem(NamedTuple):
    """Why a filing was rejected."""

    reason: str
    foreseen: bool = True
    """False if the reason is a fault of the program."""


def check_filing(filing: Filing) -> None:
    """Check every value of a filing that a store, an index or a record keeps.

    Raises ``InvalidArgument`` if a record cannot name its passages, a database cannot hold its text, or a value is
    impossible on EDGAR.
    """
    check_id("accession", filing.accession_number)
    check_name("company", filing.company)
    if filing.form:
        check_form("form", filing.form)
    for number, document in enumerate(filing.documents, start=1):
        if document.type:
            check_form(f"type of document {number}", document.type)
        check_text(f"text of document {number}", document.text)
    for name in ("items", "file_numbers", "sics"):
        for value in filter(None, getattr(filing, name)):
            check_label(name, value)
    for cik in filing.subjects:
        if not 0 <= cik <= MAX_LISTED:
            raise InvalidArgument(f"the CIK is {quoted(cik)}; want at most ten digits")


def problem_of(error: Exception) -> Problem:
    """Explain why one filing was rejected.

    Only the type and place of an unexpected error are reported, because its message may quote the filing.
    """
    if isinstance(error, _EXPECTED):
        return Problem(shown(str(error)))
    _logger.debug("an unexpected error", exc_info=error)
    return Problem(
        f"{type_and_place(error)}: an unexpected fault of the program; please report it", foreseen=False
    )
