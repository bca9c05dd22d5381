"""Map EDGAR and ISO location codes to the five jurisdictions of the policy word.

EDGAR's codes are not ISO 3166: ``DE`` is Delaware, ``CA`` California, ``2M`` Germany, ``X0`` the United
Kingdom. ``dei:EntityAddressCountry`` *is* ISO (EDGAR Filer Manual 6.5.48). So the two have separate tables
and separate functions, and a code in neither table is *other*, never a guess.
"""

from __future__ import annotations

from typing import Final

from carag.policy import PolicyBit

__all__ = ["edgar_jurisdiction", "iso_jurisdiction", "state_or_province"]

_EDGAR_US: Final = {
    "AL", "AK", "AZ", "AR", "CA", "CO", "CT", "DE", "DC", "FL", "GA", "HI", "ID", "IL", "IN", "IA", "KS",
    "KY", "LA", "ME", "MD", "MA", "MI", "MN", "MS", "MO", "MT", "NE", "NV", "NH", "NJ", "NM", "NY", "NC",
    "ND", "OH", "OK", "OR", "PA", "RI", "SC", "SD", "TN", "TX", "UT", "VT", "VA", "WA", "WV", "WI", "WY",
    # Puerto Rico, Guam, Virgin Islands, American Samoa, Northern Marianas, United States
    "PR", "GU", "VI", "B5", "1V", "X1",
}  # fmt: skip
_EDGAR_EU: Final = {
    # Austria Belgium Bulgaria Croatia Cyprus Czechia Denmark Estonia Finland France Germany Greece Hungary
    "C4", "C9", "E0", "1M", "G4", "2N", "G7", "1H", "H9", "I0", "2M", "J3", "K5",
    # Ireland Italy Latvia Lithuania Luxembourg Malta Netherlands Poland Portugal Romania Slovakia Slovenia
    "L2", "L6", "1R", "1Q", "N4", "O1", "P7", "R9", "S1", "S5", "2B", "2A",
    # Spain Sweden; of the EEA: Iceland Liechtenstein Norway
    "U3", "V7", "K6", "N2", "Q8",
    # The Union's outermost regions (TFEU Art. 349), and Åland
    "I3", "J6", "O2", "2P", "S4", "Z1", "Y6",
}  # fmt: skip
_EDGAR_UK: Final = {"X0"}
_EDGAR_CA: Final = {"A0", "A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8", "A9", "B0", "Z4"}

_ISO_EU: Final = {
    "AT": "AUSTRIA", "BE": "BELGIUM", "BG": "BULGARIA", "HR": "CROATIA", "CY": "CYPRUS", "CZ": "CZECHIA",
    "DK": "DENMARK", "EE": "ESTONIA", "FI": "FINLAND", "FR": "FRANCE", "DE": "GERMANY", "GR": "GREECE",
    "HU": "HUNGARY", "IE": "IRELAND", "IT": "ITALY", "LV": "LATVIA", "LT": "LITHUANIA", "LU": "LUXEMBOURG",
    "MT": "MALTA", "NL": "NETHERLANDS", "PL": "POLAND", "PT": "PORTUGAL", "RO": "ROMANIA", "SK": "SLOVAKIA",
    "SI": "SLOVENIA", "ES": "SPAIN", "SE": "SWEDEN", "IS": "ICELAND", "LI": "LIECHTENSTEIN", "NO": "NORWAY",
    "GF": "FRENCH GUIANA", "GP": "GUADELOUPE", "MQ": "MARTINIQUE", "YT": "MAYOTTE", "RE": "REUNION",
    "AX": "ALAND ISLANDS",
}  # fmt: skip
_ISO_US: Final = {
    "US": "UNITED STATES", "PR": "PUERTO RICO", "GU": "GUAM", "VI": "U.S. VIRGIN ISLANDS",
    "AS": "AMERICAN SAMOA", "MP": "NORTHERN MARIANA ISLANDS",
}  # fmt: skip
_ISO_UK: Final = ("GB", "UNITED KINGDOM", "GREAT BRITAIN", "ENGLAND", "SCOTLAND", "WALES", "NORTHERN IRELAND")
_ISO_CA: Final = ("CA", "CANADA")

_BY_EDGAR: Final = {
    code: bit
    for bit, codes in (
        (PolicyBit.J_US, _EDGAR_US),
        (PolicyBit.J_EU, _EDGAR_EU),
        (PolicyBit.J_UK, _EDGAR_UK),
        (PolicyBit.J_CA, _EDGAR_CA),
    )
    for code in codes
}
_BY_ISO: Final = {
    key: bit
    for bit, keys in (
        (PolicyBit.J_US, (*_ISO_US, *_ISO_US.values())),
        (PolicyBit.J_EU, (*_ISO_EU, *_ISO_EU.values())),
        (PolicyBit.J_UK, _ISO_UK),
        (PolicyBit.J_CA, _ISO_CA),
    )
    for key in keys
}


def edgar_jurisdiction(code: str) -> PolicyBit:
    """Return the jurisdiction bit of an EDGAR state or country code.

    Examples
    --------
    >>> edgar_jurisdiction("DE").name, edgar_jurisdiction("2M").name, edgar_jurisdiction("E9").name
    ('J_US', 'J_EU', 'J_OTHER')
    """
    return _BY_EDGAR.get(code.strip().upper(), PolicyBit.J_OTHER)


def iso_jurisdiction(country: str) -> PolicyBit:
    """Return the jurisdiction bit of an ISO 3166 alpha-2 code or English country name.

    Examples
    --------
    >>> iso_jurisdiction("DE").name, iso_jurisdiction("Ireland").name
    ('J_EU', 'J_EU')
    """
    return _BY_ISO.get(" ".join(country.upper().split()), PolicyBit.J_OTHER)


_STATES: Final = {
    "ALABAMA": "AL", "ALASKA": "AK", "ARIZONA": "AZ", "ARKANSAS": "AR", "CALIFORNIA": "CA", "COLORADO": "CO",
    "CONNECTICUT": "CT", "DELAWARE": "DE", "DISTRICT OF COLUMBIA": "DC", "FLORIDA": "FL", "GEORGIA": "GA",
    "HAWAII": "HI", "IDAHO": "ID", "ILLINOIS": "IL", "INDIANA": "IN", "IOWA": "IA", "KANSAS": "KS",
    "KENTUCKY": "KY", "LOUISIANA": "LA", "MAINE": "ME", "MARYLAND": "MD", "MASSACHUSETTS": "MA",
    "MICHIGAN": "MI", "MINNESOTA": "MN", "MISSISSIPPI": "MS", "MISSOURI": "MO", "MONTANA": "MT",
    "NEBRASKA": "NE", "NEVADA": "NV", "NEW HAMPSHIRE": "NH", "NEW JERSEY": "NJ", "NEW MEXICO": "NM",
    "NEW YORK": "NY", "NORTH CAROLINA": "NC", "NORTH DAKOTA": "ND", "OHIO": "OH", "OKLAHOMA": "OK",
    "OREGON": "OR", "PENNSYLVANIA": "PA", "RHODE ISLAND": "RI", "SOUTH CAROLINA": "SC", "SOUTH DAKOTA": "SD",
    "TENNESSEE": "TN", "TEXAS": "TX", "UTAH": "UT", "VERMONT": "VT", "VIRGINIA": "VA", "WASHINGTON": "WA",
    "WEST VIRGINIA": "WV", "WISCONSIN": "WI", "WYOMING": "WY", "PUERTO RICO": "PR", "GUAM": "GU",
}  # fmt: skip
_PROVINCES: Final = {
    "ALBERTA": "A0", "AB": "A0", "BRITISH COLUMBIA": "A1", "BC": "A1", "MANITOBA": "A2", "MB": "A2",
    "NEW BRUNSWICK": "A3", "NB": "A3", "NEWFOUNDLAND AND LABRADOR": "A4", "NL": "A4", "NOVA SCOTIA": "A5",
    "NS": "A5", "ONTARIO": "A6", "ON": "A6", "PRINCE EDWARD ISLAND": "A7", "PE": "A7", "QUEBEC": "A8",
    "QC": "A8", "SASKATCHEWAN": "A9", "SK": "A9", "YUKON": "B0", "YT": "B0",
}  # fmt: skip


def state_or_province(stated: str) -> str:
    """Return EDGAR's code of a state or province given as in ``dei:EntityAddressStateOrProvince``.

    That is a name or a postal code of the United States or Canada; EDGAR has codes of its own for the provinces.
    Empty if it is neither.

    Examples
    --------
    >>> state_or_province("California"), state_or_province("NY"), state_or_province("ON")
    ('CA', 'NY', 'A6')
    >>> state_or_province("Bavaria")
    ''
    """
    text = " ".join(stated.upper().replace(".", "").split()).strip(" ,")
    known = _STATES.get(text) or _PROVINCES.get(text)
    return known or (text if text in _EDGAR_US and len(text) == 2 else "")
