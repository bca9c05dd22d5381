"""Map EDGAR and ISO location codes to the five jurisdictions of the policy word.

EDGAR's codes are not ISO 3166: ``DE`` is Delaware, ``CA`` California, ``2M`` Germany, ``X0`` the United Kingdom.
``dei:EntityAddressCountry`` *is* ISO (EDGAR Filer Manual 6.5.48). So each kind of code has its own table and functions.
A code in neither table may mean anywhere, as a place that is not stated may.
"""

from __future__ import annotations

import re
from typing import Final

from carag.policy import PolicyBit

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
_EDGAR_OTHER: Final = frozenset(
    re.findall(
        r"\w\w",
        # Africa, America, Asia, Europe outside the EEA and the United Kingdom, Oceania; XX, unknown, is not among them
        "1A 1B 1C 1D 1E 1F 1G 1J 1K 1L 1N 1P 1S 1T 1U 1W 1X 1Y 1Z 2C 2D 2E 2G 2H 2J 2K 2L 2Q B1 B2 B3 B4 B6 "
        "B7 B8 B9 C0 C1 C3 C5 C6 C7 C8 D0 D1 D2 D3 D4 D5 D6 D7 D8 D9 E1 E2 E3 E4 E8 E9 F0 F1 F2 F3 F4 F5 F6 "
        "F7 F8 F9 G0 G1 G2 G3 G6 G8 G9 H1 H2 H3 H4 H5 H6 H7 H8 I4 I5 I6 J0 J1 J2 J4 J5 J8 J9 K0 K1 K2 K3 K4 "
        "K7 K8 K9 L0 L3 L7 L8 L9 M0 M2 M3 M4 M5 M6 M7 M8 M9 N0 N1 N5 N6 N7 N8 N9 O0 O3 O4 O5 O9 P0 P1 P2 P3 "
        "P4 P5 P6 P8 Q1 Q2 Q3 Q4 Q5 Q6 Q7 R0 R1 R2 R4 R5 R6 R8 S0 S3 S6 S8 S9 T0 T1 T2 T3 T6 T7 T8 U0 U1 U5 "
        "U7 U8 U9 V0 V1 V2 V3 V6 V8 V9 W0 W1 W2 W3 W4 W5 W6 W7 W8 W9 X2 X3 X4 X5 X8 Y0 Y3 Y4 Y5 Y7 Y8 Y9 Z0 "
        "Z2 Z3 Z5 ",
    )
)

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
_ISO_OTHER: Final = frozenset(
    re.findall(
        r"\w\w",
        "AD AE AF AG AI AL AM AO AQ AR AU AW AZ BA BB BD BF BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CC "
        "CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX DJ DM DO DZ EC EG EH ER ET FJ FK FM FO GA GD GE GG GH "
        "GI GL GM GN GQ GS GT GW GY HK HM HN HT ID IL IM IN IO IQ IR JE JM JO JP KE KG KH KI KM KN KP KR KW "
        "KY KZ LA LB LC LK LR LS LY MA MC MD ME MG MH MK ML MM MN MO MR MS MU MV MW MX MY MZ NA NC NE NF NG "
        "NI NP NR NU NZ OM PA PE PF PG PH PK PM PN PS PW PY QA RS RU RW SA SB SC SD SG SH SJ SL SM SN SO SR "
        "SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM UY UZ VA VC VE VG VN VU "
        "WF WS YE ZA ZM ZW ",
    )
) | {
    "ARGENTINA", "AUSTRALIA", "BAHAMAS", "BERMUDA", "BRAZIL", "CAYMAN ISLANDS", "CHILE", "CHINA", "GUERNSEY",
    "HONG KONG", "INDIA", "ISLE OF MAN", "ISRAEL", "JAPAN", "JERSEY", "MARSHALL ISLANDS", "MEXICO", "NEW ZEALAND",
    "PANAMA", "SINGAPORE", "SOUTH AFRICA", "SOUTH KOREA", "SWITZERLAND", "TAIWAN", "VIRGIN ISLANDS, BRITISH",
}  # fmt: skip
ANYWHERE: Final = PolicyBit.J_US | PolicyBit.J_EU | PolicyBit.J_UK | PolicyBit.J_CA | PolicyBit.J_OTHER
"""Every jurisdiction, for a place that is not stated or a code that is not known."""

_BY_EDGAR: Final = {
    code: bit
    for bit, codes in (
        (PolicyBit.J_US, _EDGAR_US),
        (PolicyBit.J_EU, _EDGAR_EU),
        (PolicyBit.J_UK, _EDGAR_UK),
        (PolicyBit.J_CA, _EDGAR_CA),
        (PolicyBit.J_OTHER, _EDGAR_OTHER),
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
        (PolicyBit.J_OTHER, _ISO_OTHER),
    )
    for key in keys
}


def edgar_jurisdiction(code: str) -> PolicyBit:
    """Return the jurisdiction bit of an EDGAR state or country code."""
    return _BY_EDGAR.get(code.strip().upper(), PolicyBit.J_OTHER)


def edgar_places(code: str) -> PolicyBit:
    """Return which jurisdictions an EDGAR code may mean: its own, or all of them for an unknown code."""
    return _BY_EDGAR.get(code.strip().upper(), ANYWHERE)


def iso_places(country: str) -> PolicyBit:
    """Return which jurisdictions an ISO code or country name may mean: its own, or all of them for an unknown one."""
    return _BY_ISO.get(" ".join(country.upper().split()), ANYWHERE)


def iso_jurisdiction(country: str) -> PolicyBit:
    """Return the jurisdiction bit of an ISO 3166 alpha-2 code or English country name."""
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
    """Return EDGAR's code of a state or province, given as in ``dei:EntityAddressStateOrProvince``.

    That form is a name or postal code in the United States or Canada; EDGAR has its own codes for provinces. The result
    is empty for anything else.

    Examples
    --------
    >>> state_or_province("California"), state_or_province("NY"), state_or_province("ON")
    ('CA', 'NY', 'A6')
    """
    text = " ".join(stated.upper().replace(".", "").split()).strip(" ,")
    known = _STATES.get(text) or _PROVINCES.get(text)
    return known or (text if text in _EDGAR_US and len(text) == 2 else "")
