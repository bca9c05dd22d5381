"""Compare what two sources state about a filing, field by field: a contradiction quarantines it.

The sources are the SGML header, the submissions row, and the cover page's XBRL (``dei``), each read independently. A
contradiction about a fact from which a policy bit, an entity list or the time of publication is derived is a
disagreement, and quarantines the filing. Different spellings agree. A difference without consequence, or with a source
that knows only the company's present state, is counted but quarantines nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from carag.policy import PolicyBit
from carag.profiles.edgar.facts.filing import Disagreement
from carag.profiles.edgar.facts.form_8k_items import ITEM_NUMBERS
from carag.profiles.edgar.facts.forms import FormFamily, form_families, renamed_form

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from datetime import date, datetime

    from carag.profiles.edgar.facts.filing import FilingDocument


class Place(NamedTuple):
    """A location as coded by a source, with its jurisdiction."""

    code: str
    jurisdiction: PolicyBit
    iso: bool = False
    """Whether the code is from ISO 3166, where ``DE`` is Germany; among EDGAR's codes, ``DE`` is Delaware."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedFacts:
    """The facts that one source states about a filing; a fact that it does not state is None or empty."""

    source: str
    accession_number: str = ""
    form: str = ""
    """The form, with ``/A`` if the filing amends another."""
    filed: date | None = None
    accepted: tuple[datetime, ...] = ()
    """Every moment that the stated time may mean; a time marked ``Z`` has two readings."""
    period: date | None = None
    items: tuple[str, ...] = ()
    ciks: tuple[int, ...] = ()
    """CIKs of every party, including ``FILED BY``."""
    business: tuple[Place, ...] = ()
    incorporation: tuple[Place, ...] = ()
    sics: tuple[str, ...] = ()
    private_to_public: bool | None = None
    party_roles: tuple[str, ...] = ()
    file_numbers: tuple[str, ...] = ()
    complete: bool = True
    """False if the source is truncated, so that its lists may be incomplete."""
    current_state: frozenset[str] = frozenset()
    """Fields that describe the company at the time of the crawl, not of the filing."""


class Verdict(StrEnum):
    """The result of comparing one field."""

    AGREE = "agree"
    ONLY_FIRST = "only the first states it"
    ONLY_SECOND = "only the second states it"
    NEITHER = "neither states it"
    DIFFER = "differ, and nothing rests on it"
    DISAGREE = "disagree"


class Compared(NamedTuple):
    """One field in two sources."""

    field: str
    verdict: Verdict
    first: str
    second: str
    reason: str = ""
    """Why different values agree, have no consequence, or disagree."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """The comparison of two sources, field by field."""

    first: str
    second: str
    fields: tuple[Compared, ...]

    @property
    def disagreements(self) -> tuple[Disagreement, ...]:
        """The contradictions, with both values."""
        return tuple(
            Disagreement(one.field, self.first, one.first, self.second, one.second, one.reason)
            for one in self.fields
            if one.verdict is Verdict.DISAGREE
        )

    @property
    def shared(self) -> int:
        """The number of fields that both sources state."""
        return sum(one.verdict in {Verdict.AGREE, Verdict.DIFFER, Verdict.DISAGREE} for one in self.fields)


def compare(first: StatedFacts, second: StatedFacts) -> Agreement:
    """Compare the facts that two sources state, field by field."""
    return Agreement(first.source, second.source, tuple(_field(name, first, second) for name in _RULES))


def of_main_document(form: str, documents: Sequence[FilingDocument]) -> tuple[Disagreement, ...]:
    """Return the disagreement between a filing's form and the ``<TYPE>`` of its main document, which is the first."""
    typed = StatedFacts(source="<TYPE> of its main document", form=documents[0].type if documents else "")
    return compare(StatedFacts(source="the filing", form=form), typed).disagreements


_AGREE: Final = (Verdict.AGREE, "")


def _field(name: str, first: StatedFacts, second: StatedFacts) -> Compared:
    a, b = getattr(first, name), getattr(second, name)
    shown = _shown(a), _shown(b)
    if not _states(a) or not _states(b):
        silent = {
            (True, False): Verdict.ONLY_FIRST,
            (False, True): Verdict.ONLY_SECOND,
            (False, False): Verdict.NEITHER,
        }
        return Compared(name, silent[_states(a), _states(b)], *shown)
    verdict, reason = _AGREE if a == b else _RULES[name](first, second)
    if verdict is Verdict.DISAGREE and name in first.current_state | second.current_state:
        verdict, reason = Verdict.DIFFER, "one source has it as of the crawl, not as of the filing"
    return Compared(name, verdict, *shown, reason)


def _states(value: Any) -> bool:
    return value is not None and value not in ((), "")


def _shown(value: Any) -> str:
    if isinstance(value, Place):
        return f"ISO {value.code}" if value.iso else value.code
    if isinstance(value, tuple):
        return ", ".join(_shown(one) or "?" for one in value)
    return "" if value is None else str(value)


# One rule per field, applied only if both sources state the field and the values differ.


def _accession_number(first: StatedFacts, second: StatedFacts) -> tuple[Verdict, str]:  # noqa: ARG001
    return Verdict.DISAGREE, "the two sources speak of different filings"


def _form(first: StatedFacts, second: StatedFacts) -> tuple[Verdict, str]:
    a, b = renamed_form(first.form), renamed_form(second.form)
    if a == b:
        return Verdict.AGREE, "EDGAR renamed the form"
    bases = a.removesuffix("/A"), b.removesuffix("/A")
    same_families = form_families(bases[0]) == form_families(bases[1]) != frozenset()
    if same_families and a.endswith("/A") == b.endswith("/A"):
        return Verdict.DIFFER, "forms of the same families"
    return Verdict.DISAGREE, "the form decides most bits"


def _filed(first: StatedFacts, second: StatedFacts) -> tuple[Verdict, str]:  # noqa: ARG001
    return Verdict.DISAGREE, "the time of publication rests on it"


def _accepted(first: StatedFacts, second: StatedFacts) -> tuple[Verdict, str]:
    if set(first.accepted) & set(second.accepted):
        both_latest = first.accepted[0] == second.accepted[0]
        return Verdict.AGREE, f"the time labelled Z is {'Eastern' if both_latest else 'UTC'}"
    return Verdict.DISAGREE, "the time of publication rests on it"


_DATED: Final = frozenset({FormFamily.ANNUAL, FormFamily.INTERIM, FormFamily.LATE_NOTICE})


def _period(first: StatedFacts, second: StatedFacts) -> tuple[Verdict, str]:
    forms = [renamed_form(form).removesuffix("/A") for form in (first.form, second.form) if form]
    if forms and not any(form_families(form) & _DATED for form in forms):
        return Verdict.DIFFER, "no bit rests on the period of this form"
    return Verdict.DISAGREE, "AMENDED, SUPERSEDED, NOT_LATEST and LATE rest on it"


_NO_BIT: Final = frozenset(
    {"3.02", "5.03", "5.04", "5.05", "5.06", "5.07", "5.08", "6.01", "6.02", "6.03", "6.04", "6.05", "6.06"}
    | {"8.01", "9.01"}
)
"""Items of Form 8-K that set no bit; 9.01 only lists the exhibits of the others."""


def _items(first: StatedFacts, second: StatedFacts) -> tuple[Verdict, str]:
    a, b = set(first.items), set(second.items)
    if a == b:
        return _AGREE
    if a - ITEM_NUMBERS and a & ITEM_NUMBERS <= b:
        return Verdict.ONLY_SECOND, "the first has an item that cannot be read"
    if b - ITEM_NUMBERS and b & ITEM_NUMBERS <= a:
        return Verdict.ONLY_FIRST, "the second has an item that cannot be read"
    if a ^ b <= _NO_BIT:
        return Verdict.DIFFER, "no bit rests on the items that differ"
    return Verdict.DISAGREE, "FURNISHED, MATERIAL, FS_UNAUDITED, PD_COMP and NON_RELIANCE rest on them"


def _ciks(first: StatedFacts, second: StatedFacts) -> tuple[Verdict, str]:
    if _nested(first.ciks, second.ciks):
        return Verdict.AGREE, "one names more of the co-registrants"
    if not (first.complete and second.complete):
        return Verdict.DIFFER, "one source was cut, and may have named the other's"
    return Verdict.DISAGREE, "entity lists and later events rest on them"


def _business(first: StatedFacts, second: StatedFacts) -> tuple[Verdict, str]:
    return _places(first.business, second.business, ignored=frozenset())


def _incorporation(first: StatedFacts, second: StatedFacts) -> tuple[Verdict, str]:
    return _places(first.incorporation, second.incorporation, ignored=frozenset({PolicyBit.J_US}))


def _places(a: tuple[Place, ...], b: tuple[Place, ...], ignored: frozenset[PolicyBit]) -> tuple[Verdict, str]:
    """Compare jurisdictions, and also codes if both sources use the same code list."""
    if _nested({(one.code, one.iso) for one in a}, {(one.code, one.iso) for one in b}):
        return Verdict.AGREE, "one names more of the co-registrants"
    bits = [{one.jurisdiction for one in places} for places in (a, b)]
    if _nested(*bits):
        if {one.iso for one in a} != {one.iso for one in b}:
            return Verdict.AGREE, "EDGAR's and ISO's code of the same jurisdiction"
        return Verdict.DIFFER, "another place of the same jurisdiction"
    if bits[0] - ignored == bits[1] - ignored:
        return Verdict.DIFFER, "no bit rests on it"
    return Verdict.DISAGREE, "the jurisdiction bits rest on it"


def _sics(first: StatedFacts, second: StatedFacts) -> tuple[Verdict, str]:
    if ("6770" in first.sics) == ("6770" in second.sics):
        return Verdict.DIFFER, "only 6770 sets a bit"
    return Verdict.DISAGREE, "SHELL rests on 6770"


def _private(first: StatedFacts, second: StatedFacts) -> tuple[Verdict, str]:  # noqa: ARG001
    return Verdict.DISAGREE, "PRIV2PUB rests on it"


def _party_roles(first: StatedFacts, second: StatedFacts) -> tuple[Verdict, str]:
    owner = "REPORTING-OWNER"
    if (owner in first.party_roles) == (owner in second.party_roles):
        return Verdict.DIFFER, "only REPORTING-OWNER sets a bit"
    if not (first.complete and second.complete):
        return Verdict.DIFFER, "one source was cut, and may have named the other's"
    return Verdict.DISAGREE, "PD_NATURAL rests on REPORTING-OWNER"


def _file_numbers(first: StatedFacts, second: StatedFacts) -> tuple[Verdict, str]:
    if _nested(*({_file_number(one) for one in facts.file_numbers} for facts in (first, second))):
        return Verdict.AGREE, "the same number, spelt otherwise or with a co-registrant's"
    return Verdict.DIFFER, "no bit rests on the file number"


def _file_number(stated: str) -> str:
    """Normalise an SEC file number: ``1-3526`` and ``001-03526`` are equal."""
    return "-".join(part.lstrip("0") for part in re.findall(r"\w+", stated))


def _nested(a: Collection[object], b: Collection[object]) -> bool:
    return set(a) <= set(b) or set(b) <= set(a)


_RULES: Final[dict[str, Callable[[StatedFacts, StatedFacts], tuple[Verdict, str]]]] = {
    "accession_number": _accession_number,
    "form": _form,
    "filed": _filed,
    "accepted": _accepted,
    "period": _period,
    "items": _items,
    "ciks": _ciks,
    "business": _business,
    "incorporation": _incorporation,
    "sics": _sics,
    "private_to_public": _private,
    "party_roles": _party_roles,
    "file_numbers": _file_numbers,
}
