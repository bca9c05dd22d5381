"""The facts of a filing as its SGML header states them: the derivation that is true as of the filing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from carag.corpus.cross_check import Place, StatedFacts
from carag.corpus.header import parse_header, party_ciks
from carag.corpus.jurisdictions import edgar_jurisdiction

if TYPE_CHECKING:
    from carag.corpus.filing import Filing

__all__ = ["SGML_HEADER", "facts_of_header", "stated_by_header"]

SGML_HEADER: Final = "SGML header"
_END: Final = re.compile(r"</(?:SEC|IMS)-HEADER>|</SUBMISSION>|<DOCUMENT>", re.IGNORECASE)


def facts_of_header(text: str) -> StatedFacts:
    """Read a header, complete or cut off.

    Raises
    ------
    CorruptFile
        If the text states neither an accession number nor a form.
    """
    return stated_by_header(parse_header(text), text)


def stated_by_header(filing: Filing, text: str) -> StatedFacts:
    """Return the same of a header that is already parsed.

    A party that states no location at all (an empty code of ``filing``) states nothing here.
    """
    return StatedFacts(
        source=SGML_HEADER,
        accession_number=filing.accession_number,
        form=filing.form or "",
        filed=filing.filed,
        accepted=(filing.accepted,) if filing.accepted else (),
        period=filing.period,
        items=filing.items if any(filing.items) else (),
        ciks=party_ciks(text),
        business=_places(filing.business_codes),
        incorporation=_places(filing.incorporation_codes),
        sics=filing.sics,
        private_to_public=filing.private_to_public,
        party_roles=filing.party_roles,
        file_numbers=filing.file_numbers,
        complete=_END.search(text) is not None,
    )


def _places(codes: tuple[str, ...]) -> tuple[Place, ...]:
    return tuple(Place(code, edgar_jurisdiction(code)) for code in codes if code)
