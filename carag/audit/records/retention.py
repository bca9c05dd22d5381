"""Define retention classes: how long a record is kept, and under which law.

Records are never altered, so the class determines until when a record may not be pruned, and whether the values behind
its commitments must be kept as long. Where the duty is to keep the *content* (what was said to whom), a person's
request for erasure has to wait: GDPR Art. 17(3)(b). Where the duty is to keep *logs*, data protection law goes first:
AI Act Art. 19(1), "unless provided otherwise in ... Union law on the protection of personal data".

This is an engineering control with its sources, not legal advice; the operator decides which class applies.
"""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from carag.errors import InvalidArgument
from carag.limits import quoted

_MIN_MONTHS: Final = 6  # AI Act Art. 19(1) and 26(6)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class RetentionClass:
    """A duty to keep records.

    Parameters
    ----------
    months : int
        Retention from the commit time on; at least six.
    binds_values : bool
        Whether this is also a duty to keep the committed values.
    law : str
        The law that imposes the duty.
    """

    code: str
    months: int
    binds_values: bool
    law: str

    def __post_init__(self) -> None:
        if self.months < _MIN_MONTHS:
            raise InvalidArgument(
                f"class {self.code} keeps records for {self.months} months; want at least {_MIN_MONTHS}: "
                "Regulation (EU) 2024/1689 Art. 19(1) and 26(6)"
            )


RETENTION: Final = {
    each.code: each
    for each in (
        RetentionClass(
            "ai6m", 6, binds_values=False, law="Regulation (EU) 2024/1689 Art. 19(1), 26(6): six months"
        ),
        RetentionClass(
            "fin5y", 60, binds_values=True, law="Directive 2014/65/EU (MiFID II) Art. 16(7): five years"
        ),
        RetentionClass(
            "fin6y", 72, binds_values=True, law="FINRA Rule 4511(b) with 17 CFR 240.17a-4: six years"
        ),
        RetentionClass(
            "fin7y",
            84,
            binds_values=True,
            law="Directive 2014/65/EU (MiFID II) Art. 16(7): up to seven years; covers FINRA Rule 4511(b)",
        ),
    )
}
"""The classes by code."""

DEFAULT_CLASS: Final = "fin7y"
"""Code of the class of records that name none."""


def retention_class(code: str) -> RetentionClass:
    """Return a class by its code; InvalidArgument for an unknown one."""
    try:
        return RETENTION[code]
    except (KeyError, TypeError) as error:
        raise InvalidArgument(
            f"{quoted(code)} is not a retention class; want one of {', '.join(RETENTION)}"
        ) from error


def retain_until(committed: int, code: str = DEFAULT_CLASS) -> datetime:
    """Return the time until which a record is kept, from its commit time in microseconds since 1970 UTC.

    Examples
    --------
    >>> retain_until(1_709_200_000_000_000, "ai6m").isoformat(" ", "minutes")  # a 29 February
    '2024-08-29 09:46+00:00'
    """
    start = _EPOCH + timedelta(microseconds=committed)
    month = start.month - 1 + retention_class(code).months
    year, month = start.year + month // 12, month % 12 + 1
    day = min(start.day, monthrange(year, month)[1])
    return start.replace(year=year, month=month, day=day)
