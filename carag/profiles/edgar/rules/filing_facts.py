"""Keep the facts of a filing from which state bits are computed, and the earliest minute when it may be public."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any, Final, Self

from carag.policy import EASTERN, PolicyBit, as_of_minutes
from carag.profiles.edgar.facts.delisting import leaves_common_equity, lists_common_equity
from carag.profiles.edgar.facts.publication import PublicAtSource
from carag.profiles.edgar.rules.labeller import carries_certified_statements

if TYPE_CHECKING:
    from collections.abc import Mapping

    from carag.labelling.label import Label
    from carag.profiles.edgar.facts.filing import Filing


_STATEMENTS: Final = PolicyBit.FS_AUDITED.value | PolicyBit.FS_UNAUDITED.value
_LISTS: Final = ("ciks", "items", "file_numbers")
YEARS: Final = range(1971, 9000)
"""Supported years; a date in another year counts as not stated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilingFacts:
    """The facts of a filing from which state bits are computed, as plain values that a store can keep."""

    accession_number: str
    form: str
    """The form without its ``/A``."""
    is_amendment: bool
    ciks: tuple[int, ...]
    period: date | None
    since: int
    """Earliest minute since 1970 at which the filing may have become public."""
    public_at: int
    """Latest minute since 1970 at which the filing may have become public."""
    items: tuple[str, ...] = ()
    statements: bool = False
    """The filing carries financial statements (FS_AUDITED or FS_UNAUDITED)."""
    certified: bool = False
    """An amendment carries financial statements, as its exhibits (EX-32) or its text show."""
    file_numbers: tuple[str, ...] = ()
    """``SEC FILE NUMBER``, which a registration statement shares with its amendments."""
    leaves_common: bool = False
    """A Form 25 or 15 states that the filer's common equity stays listed or registered."""
    lists_common: bool = False
    """A periodic report's cover states that the filer's common equity is listed."""
    may_be_certified: bool = False
    """An amendment known only by its metadata may carry statements: nothing shows that it does not."""

    @classmethod
    def of(cls, filing: Filing, label: Label) -> Self:
        """Gather the facts of a labelled filing."""
        return cls(
            accession_number=filing.accession_number,
            form=filing.base_form,
            is_amendment=filing.is_amendment,
            ciks=filing.ciks,
            period=filing.period,
            since=_since(filing, label),
            public_at=label.public_at,
            items=filing.items,
            statements=bool(label.word & _STATEMENTS),
            certified=carries_certified_statements(filing),
            file_numbers=filing.file_numbers,
            leaves_common=leaves_common_equity(filing),
            lists_common=lists_common_equity(filing),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the facts as JSON values."""
        period = self.period.isoformat() if self.period else None
        lists = {name: list(getattr(self, name)) for name in _LISTS}
        return {**asdict(self), **lists, "period": period}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Restore the facts from the values of :meth:`to_json`."""
        period = date.fromisoformat(values["period"]) if values["period"] else None
        lists = {name: tuple(values[name]) for name in _LISTS}
        return cls(**{**values, **lists, "period": period})


def _since(filing: Filing, label: Label) -> int:
    return min(_since_stated(filing, label), _since_earliest_reading(filing, label))


def _since_earliest_reading(filing: Filing, label: Label) -> int:
    if filing.accepted_earliest is None or label.public_at_source is PublicAtSource.RELEASE:
        return label.public_at
    return as_of_minutes(filing.accepted_earliest)


def _since_stated(filing: Filing, label: Label) -> int:
    if label.public_at_source in {PublicAtSource.ACCEPTANCE, PublicAtSource.RELEASE}:
        return label.public_at
    year = filing.accession_year
    new_year = date(year, 1, 1) if year is not None and year in YEARS else None
    day = next((day for day in (filing.filed, filing.period, new_year) if day and day.year in YEARS), None)
    if day is None:
        return 0
    # A period after its filing is an impossible date; it cannot make the interval run backwards.
    return min(as_of_minutes(datetime.combine(day, time(), tzinfo=EASTERN)), label.public_at)
