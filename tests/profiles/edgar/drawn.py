"""Draw filings: values that the rules tell apart, the edges of their dates, and any text in their place."""

from __future__ import annotations

from datetime import date
from typing import Final

from hypothesis import strategies as st

from carag.profiles.edgar.facts.filing import Filing, FilingDocument
from carag.profiles.edgar.facts.form_8k_items import ITEM_NUMBERS

TEXTS: Final = st.text(max_size=12)
_FORMS: Final = [
    "10-K", "10-K/A", "10-K405/A", "20-F/A", "40-F", "10-Q", "8-K", "8-K/A", "6-K", "ARS", "DEF 14A", "SC 13D",
    "SCHEDULE 13G", "4", "S-1", "F-1", "DRS", "UPLOAD", "CT ORDER", "NT 10-K", "25", "ZZ", "", None,
]  # fmt: skip
_EDGES: Final = [
    "1969-12-31", "1970-01-01", "1994-03-01", "2001-12-31", "2002-01-01", "2022-08-07", "2022-08-08", "2024-12-11",
    "2024-12-12", "8999-12-31", "9000-01-01",
]  # fmt: skip
_KINDS: Final = ["10-K", "EX-13", "EX-13.1", "EX-32.(1)", "ex-32", "EX-27", "EX-270", "EX-99.1"]
_PROSE: Final = ["", " \n", "text", "For the year ended May 1, 2020", "8-K Date of Report: May 9, 1969"]
_DATES: Final = st.none() | st.dates() | st.sampled_from(_EDGES).map(date.fromisoformat)
_YEARS: Final = (
    st.none() | st.integers(-9, 9999) | st.sampled_from([1969, 1994, 2001, 2002, 2021, 2022, 2024, 9000])
)


def _some(*known: str) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(known) | st.sampled_from(known) | TEXTS, max_size=3).map(tuple)


FILINGS: Final = st.builds(
    Filing,
    accession_number=TEXTS,
    form=st.sampled_from(_FORMS) | st.sampled_from(_FORMS) | TEXTS,
    filed=_DATES,
    period=_DATES,
    accepted=st.none() | st.datetimes() | st.datetimes(timezones=st.timezones()),
    accession_year=_YEARS,
    private_to_public=st.booleans(),
    released=_DATES,
    items=_some(*sorted(ITEM_NUMBERS), "99.1", "9.0"),
    business_codes=_some("NY", "L2", "X0", "A6", "E9", "", "??"),
    incorporation_codes=_some("DE", "L2", "E9"),
    address_countries=_some("DE", "Ireland", "CA"),
    sics=_some("6770", "3674"),
    party_roles=_some("FILER", "REPORTING-OWNER"),
    reporting_person_types=_some("IN", "HC"),
    exchanges=_some("NASDAQ", "NYSE"),
    filer_category=st.sampled_from(["", "Emerging growth company"]) | TEXTS,
    emerging_growth=st.none() | st.booleans(),
    shell_company=st.none() | st.booleans(),
    documents=st.lists(
        st.builds(FilingDocument, st.sampled_from(_KINDS) | TEXTS, st.sampled_from(_PROSE) | TEXTS),
        max_size=3,
    ).map(tuple),
)
