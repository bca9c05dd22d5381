"""When a filing became public: never earlier than its own facts prove."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pytest

from carag.policy import EASTERN, as_of_minutes
from carag.profiles.edgar.facts.filing import Filing, FilingDocument
from carag.profiles.edgar.facts.publication import PublicAtSource, PublicTime, public_time
from carag.profiles.edgar.rules.labeller import label


@pytest.mark.parametrize(
    ("form", "filed", "accepted", "public", "source"),
    [
        # accepted during the day, dated the same: public at once
        ("10-Q", "20260429", "20260429173000", (2026, 4, 29, 17, 30), "acceptance"),
        # accepted in the evening, dated the next business day: neither 21:02 nor midnight
        ("10-Q", "20260430", "20260429210200", (2026, 4, 30, 6, 0), "dissemination"),
        ("8-K", "20240705", "20240703180821", (2024, 7, 5, 6, 0), "dissemination"),
        ("10-K", "20230227", "20230224173001", (2023, 2, 27, 6, 0), "dissemination"),
        # dated the same day all the same: sent before 17:30, or a date adjusted; nothing tells which
        ("10-K", "20230227", "20230227173056", (2023, 2, 28, 6, 0), "dissemination"),
        # forms that may be sent until 22:00
        ("4", "20230623", "20230623194409", (2023, 6, 23, 19, 44), "acceptance"),
        ("S-1MEF", "20230623", "20230623220000", (2023, 6, 23, 22, 0), "acceptance"),
        ("4", "20230626", "20230623220001", (2023, 6, 26, 6, 0), "dissemination"),
        ("SCHEDULE 13D/A", "20241219", "20241219210000", (2024, 12, 19, 21, 0), "acceptance"),
        ("SC 13D", "20230623", "20230623194409", (2023, 6, 26, 6, 0), "dissemination"),  # not yet in 2023
        # a filing dated days after its acceptance is not public before that day
        ("10-K", "20240315", "20240311120000", (2024, 3, 15, 6, 0), "dissemination"),
        # dated before its acceptance (a date adjusted back): acceptance still counts
        ("10-K", "20240308", "20240311120000", (2024, 3, 11, 12, 0), "acceptance"),
        # EDGAR is closed at night and at the weekend
        ("10-K", "20240311", "20240311033000", (2024, 3, 11, 6, 0), "dissemination"),
        ("4", "20240311", "20240309120000", (2024, 3, 11, 6, 0), "dissemination"),
    ],
)
def test_a_filing_is_public_when_edgar_disseminates_it(
    form: str, filed: str, accepted: str, public: tuple[int, ...], source: str
) -> None:
    """T2: acceptance decides, not the filing date; after 17:30 Eastern the next opening does (Rule 13(a)(2))."""
    filing = Filing(
        accession_number="a",
        form=form,
        filed=date.fromisoformat(filed),
        accepted=datetime.strptime(accepted, "%Y%m%d%H%M%S").replace(tzinfo=EASTERN),
    )
    moment = as_of_minutes(datetime(*public, tzinfo=EASTERN))  # type: ignore[misc]
    assert public_time(filing) == PublicTime(moment, PublicAtSource(source))


@pytest.mark.parametrize(
    ("facts", "moment", "source"),
    [
        ({"filed": date(2024, 7, 3)}, "2024-07-05 09:30", "filing date"),
        # One filed on the last day is public in the first session of the next year
        ({"accession_year": 2016, "period": date(2015, 12, 31)}, "2017-01-03 09:30", "accession year"),
        ({"period": date(2015, 12, 31)}, "2016-12-31 23:59", "period of report"),
        ({"form": "10-Q", "text": "quarter ended March 31, 2023"}, "2024-12-31 23:59", "cover page"),
        # the source's period is older
        ({"period": date(2022, 6, 26), "text": "quarter ended June 25, 2023"}, "2024-12-31 23:59", "period of report"),
        ({"form": "UPLOAD", "filed": date(2024, 4, 2), "released": date(2024, 6, 14)}, "2024-06-17 09:30", "release"),
        # An order is public as it is entered; the later of its two dates counts, and no hour of EDGAR's
        ({"form": "SEC STAFF ACTION", "filed": date(2024, 7, 2),
          "accepted": datetime(2024, 7, 3, 10, 0, tzinfo=EASTERN)}, "2024-07-05 09:30", "filing date"),
        ({"form": "SEC STAFF ACTION", "accession_year": 2024}, "2025-01-02 09:30", "accession year"),
        # A proxy statement is filed before the meeting that it calls
        ({"form": "DEF 14A", "text": "The annual meeting will be held at noon on May 7, 2023."}, "2024-12-31 23:59",
         "cover page"),
        # A 6-K bears its date between the form's name and the registrant's
        ({"form": "6-K", "text": "FORM 6-K\nMay 7, 2023\nFICTION N.V.\n(Exact name of registrant)"},
         "2024-12-31 23:59", "cover page"),
    ],
)  # fmt: skip
def test_every_source_of_time_is_the_latest_its_fact_allows(
    facts: dict[str, Any], moment: str, source: str
) -> None:
    """Filing date, accession year, period, cover page and release, in that order."""
    text = facts.pop("text", "text")
    documents = (FilingDocument("x", text),)
    said = label(Filing(**{"accession_number": "a", "form": "10-K", "documents": documents} | facts))
    eastern = datetime.fromisoformat(moment).replace(tzinfo=EASTERN)
    assert (said.public_at, said.public_at_source) == (as_of_minutes(eastern), source)
    assert said.quarantine is None
