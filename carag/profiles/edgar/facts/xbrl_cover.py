"""Read the facts of a filing from the XBRL tags of its cover page (``dei`` taxonomy).

Cover pages of periodic and current reports carry tags since 2019. Copies of filings hold either XBRL values or the text
on the page (``California`` for ``CA``, ``1-3526`` for ``001-03526``); both are read, and an ambiguous value counts as
not stated.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeVar

from carag.policy import PolicyBit
from carag.profiles.edgar.facts.cover_page import date_stated
from carag.profiles.edgar.facts.cross_check import Place, StatedFacts
from carag.profiles.edgar.facts.forms import form_families
from carag.profiles.edgar.facts.jurisdictions import edgar_jurisdiction, iso_jurisdiction, state_or_province

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


XBRL_COVER: Final = "XBRL cover"
_T = TypeVar("_T")


def facts_of_cover(dei: Mapping[str, Iterable[str]]) -> StatedFacts:
    """Read cover-page facts by their ``dei`` names, each with all its values in document order."""
    said = {
        name: [" ".join(value.split()) for value in values if value.split()] for name, values in dei.items()
    }

    def every(name: str) -> list[str]:
        return said.get(name, [])

    periods = {date_stated(value) for value in every("DocumentPeriodEndDate")}
    digits = [value for value in every("EntityCentralIndexKey") if value.isascii() and value.isdigit()]
    return StatedFacts(
        source=XBRL_COVER,
        form=_form(every("DocumentType"), every("AmendmentFlag")),
        period=periods.pop() if len(periods) == 1 else None,
        ciks=_distinct(int(value) for value in digits if len(value) <= 10),
        business=_business(every("EntityAddressStateOrProvince"), every("EntityAddressCountry")),
        incorporation=_distinct(
            place for value in every("EntityIncorporationStateCountryCode") for place in _incorporation(value)
        ),
        file_numbers=_distinct(every("EntityFileNumber")),
    )


def _form(types: list[str], flags: list[str]) -> str:
    truths = {{"true": True, "false": False}.get(flag.lower()) for flag in flags}
    if len(set(types)) != 1:
        return ""
    form = types[0].upper()
    if form.endswith("/A"):
        return form if form_families(form.removesuffix("/A")) else ""
    if len(truths) != 1 or None in truths or not form_families(form):
        return ""
    return f"{form}/A" if truths.pop() else form


def _business(states: list[str], countries: list[str]) -> tuple[Place, ...]:
    """Read countries by ISO 3166; states and provinces count unless a country outside the United States is stated."""
    places = [place for country in countries for place in _country(country)]
    if all(place.jurisdiction is PolicyBit.J_US for place in places):
        codes = [code for code in map(state_or_province, states) if code]
        places = [Place(code, edgar_jurisdiction(code)) for code in codes] or places
    return _distinct(places)


def _incorporation(stated: str) -> tuple[Place, ...]:
    """Read an EDGAR code or a name; ``Georgia``, a state and a country, is ambiguous and counts as not stated."""
    if stated.upper() == "GEORGIA":
        return ()
    if len(stated) == 2:
        return (Place(stated.upper(), edgar_jurisdiction(stated)),)
    if code := state_or_province(stated):
        return (Place(code, edgar_jurisdiction(code)),)
    return _country(stated)


def _country(stated: str) -> tuple[Place, ...]:
    """Read an ISO code or English name; an unknown name may be a different spelling and counts as not stated."""
    place = Place(stated.upper(), iso_jurisdiction(stated), iso=True)
    unknown = place.jurisdiction is PolicyBit.J_OTHER and not re.fullmatch("[A-Z]{2}", place.code)
    return () if unknown else (place,)


def _distinct(values: Iterable[_T]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys(values))
