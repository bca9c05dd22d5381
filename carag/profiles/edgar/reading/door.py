"""Validate a filing before it is accepted, and explain why one is rejected.

A filing that passes can be labelled, stored, indexed, searched, recorded and shown. Of one that fails nothing is kept,
and the failure is reported with place and reason. An unforeseen error does not stop the reading of other filings.
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

__all__ = ["Problem", "check_filing", "problem_of"]

_logger = logger(__name__)

_FORESEEN: Final = (CorruptFile, InvalidArgument, *READ_ERRORS)


class Problem(NamedTuple):
    """Why a filing was rejected."""

    reason: str
    foreseen: bool = True
    """False if the error is a fault of the program."""


def check_filing(filing: Filing) -> None:
    """Check every value of a filing that a store, an index or a record keeps.

    Raises
    ------
    InvalidArgument
        If a record could not name one of its passages, a database could not hold its text, or a value is impossible
        on EDGAR.
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
            raise InvalidArgument(f"CIK is {quoted(cik)}; want ten digits at most")


def problem_of(error: Exception) -> Problem:
    """Explain why one filing was rejected.

    An unforeseen error is a fault of the program: only its type and place are reported, because its message may hold
    text of the filing.
    """
    if isinstance(error, _FORESEEN):
        return Problem(shown(str(error)))
    _logger.debug("an error that nobody foresaw", exc_info=error)
    return Problem(
        f"{type_and_place(error)}: a fault of the program, not foreseen; please report it", foreseen=False
    )
