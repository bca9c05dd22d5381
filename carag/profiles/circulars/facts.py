"""Read the facts of one circular from its row or front matter, or else from its text, each with its source.

An unknown fact closes: a circular without a day of issue is quarantined, and a circular without addressees is open only
to cells that see all classes. A circular whose field and text contradict each other is quarantined too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from carag.profiles.circulars.references import DATE, NUMBER, date_of, number_key
from carag.profiles.circulars.supersession import in_force_from

if TYPE_CHECKING:
    from collections.abc import Mapping


_HEAD: Final = 3000
"""Characters at the beginning of a text that are searched for its own number, date, addressees and title."""
_ADDRESS: Final = 900
"""Greatest number of characters in the lines that name the addressees."""
_TITLE_LINES: Final = 4
"""Greatest number of lines in a title."""

_FIELDS: Final = {
    "number": ("number", "circular_number"),
    "reference": ("reference", "department_number"),
    "title": ("title",),
    "issued": ("issued", "date"),
    "effective": ("effective", "effective_date"),
    "department": ("department",),
    "addressees": ("addressees", "meant_for"),
    "kind": ("kind", "doc_type"),
    "status": ("status",),
    "internal": ("internal",),
    "entity_classes": ("entity_classes",),
}
"""Names of each fact's field, in order of preference."""
READ: Final = frozenset(name for several in _FIELDS.values() for name in several)
"""All fields that are read."""

_BANKS: Final = ("commercial_bank", "small_bank", "co_operative_bank")
CLASSES: Final = {
    "commercial_bank": r"commercial banks?|public sector banks?|private sector banks?|foreign banks?|lead banks?"
    r"|agency banks?|currency chest|scheduled banks?|convenor banks?",
    "small_bank": r"small finance|payments? banks?|local area|regional rural|\bRRBs?\b|\bSFBs?\b|\bLABs?\b",
    "co_operative_bank": r"co-?\s?operative banks?|\bUCBs?\b|\bD?CCBs?\b|\bSt?CBs?\b",
    "nbfc": r"non-?\s?bank(?:ing)? financ|\bNBFCs?\b|housing finance compan|\bHFCs?\b|microfinance|peer to peer",
    "financial_institution": r"all[-\s]+india\s+financial|\bAIFIs?\b|exim bank|export-import bank"
    r"|\bNABARD\b|\bNHB\b|\bSIDBI\b|\bNaBFID\b",
    "payment_system": r"payment\s+system|system (?:operators|participants|providers)|prepaid payment|\bPPIs?\b"
    r"|card (?:payment )?networks?"
    r"|national payments corporation|\bNPCI\b|\bRTGS\b|\bNEFT\b",
    "authorised_person": r"authori[sz]ed\s+(?:dealer|person|money)|\bAD category|money transfer",
    "other_entity": r"reconstruction compan|\bARCs?\b|credit information compan|\bCICs?\b|central counterpart"
    r"|market participants|participants in government securities|primary dealers?|trade repositor|credit institutions",
}
"""The classes of regulated entities, and how addressees name them, in upper or lower case."""
_EXCLUDED: Final = re.compile(r"\b(?:exclud\w+|other than|except)\b[^();.\n]*?(?=[();.\n]|\bAll\b|$)", re.I)
_ALL_ENTITIES: Final = re.compile(r"\bregulated entit|\bentit(?:y|ies)\s+regulated\s+by", re.I)
_ALL_BANKS: Final = re.compile(
    r"\b(?:all|the)\s+banks\b|\bCEOs? of (?:all )?banks\b|Executive Officer\s+Banks\b", re.I
)

_DEPARTMENTS: Final = {
    "regulation": r"DOR|DBR|DBOD|DNBR|DCBR|UBD|DNBS|department of (?:banking )?regulation"
    r"|(?:urban|co-operative) banks department",
    "supervision": r"DOS|DBS|DCBS|CSITE|department of (?:banking |co-operative )?supervision",
    "payments": r"DPSS|department of payment",
    "foreign_exchange": r"FED|FEMA|AP|ECD|foreign exchange department",
    "markets": r"FMRD|FMOD|FMD|IDMD|IDMC|financial markets|internal debt",
    "inclusion": r"FIDD|RPCD|(?:department of )?financial inclusion|rural planning",
    "government_business": r"DGBA|department of government",
    "currency": r"DCM|department of currency",
    "consumer": r"CEPD|consumer education",
}
"""How a department's numbers begin, or the department's name."""

_SALUTATION: Final = re.compile(r"(?:^|\n)\s*(?:Dear\b|Madam\b|Sir\b|Respected\b|मह)[^\n]{0,40}(?=\n|$)")
_BODY_ENDS: Final = re.compile(
    r"\n\s*(?:Yours\s+(?:faithfully|sincerely)|Annex(?:ure)?\b|Appendix\b|Encl\b)", re.I
)
"""The end of the letter; numbers and dates after it belong to enclosures."""
_UPDATED: Final = re.compile(r"updated\s+as\s+on\s*$", re.I)
_APPLIES: Final = re.compile(
    r"(?:shall|will)\s+(?:be\s+applicable|apply)\s+to\s+(?P<whom>(?:all\s+|the\s+following|every\s+)?[^.]{5,500})",
    re.I,
)
_DRAFT: Final = re.compile(
    r"^\W*draft\b|\bdraft\s+(?:for\s+(?:public\s+)?comments?|circular|directions?|guidelines)\b", re.I
)
_WITHDRAWN: Final = re.compile(
    r"^\W*\(?withdrawn\b|\bthis\s+(?:circular|direction)s?\s+(?:stands?|has\s+been|is)\s+(?:\w+\s+)?(?:withdrawn|repealed)\b",
    re.I,
)
_INTERNAL: Final = re.compile(r"\bfor\s+internal\s+(?:use|circulation)\b|\binternal\s+circular\b", re.I)
_KINDS: Final = (
    "master direction",
    "master circular",
    "directions",
    "guidelines",
    "notification",
    "circular",
)


@dataclass(slots=True)
class Circular:
    """The facts of one circular; unknown facts are None or empty."""

    number: str = ""
    """The authority's number."""
    reference: str = ""
    """The issuing department's number."""
    title: str = ""
    issued: date | None = None
    effective: date | None = None
    department: str = ""
    """The issuing department as stated, in words."""
    issued_by: str = "other_department"
    """One of the departments that have bits of their own, or ``other_department``."""
    entity_classes: tuple[str, ...] = ("unknown",)
    kind: str = ""
    status: str = "issued"
    internal: bool = False
    sources: list[str] = field(default_factory=list)
    """The field or text offsets from which each fact was read."""
    trouble: list[str] = field(default_factory=list)
    """What is missing or contradictory, so that the circular is quarantined."""


def circular_of(stated: Mapping[str, Any], text: str, title: str = "") -> Circular:
    r"""Read the facts of a circular.

    Parameters
    ----------
    stated : mapping
        The fields of its row or front matter.
    text : str
    title : str
        The title stored in the file format, used if no field states one.

    Examples
    --------
    >>> text = "BAE/2024-25/7\nMay 2, 2024\nLimits"
    >>> read = circular_of({"title": "Limits", "meant_for": "All Small Finance Banks"}, text)
    >>> read.issued.isoformat(), read.entity_classes, read.trouble
    ('2024-05-02', ('small_bank',), [])
    """
    return _Reading(stated, text, title).circular


class _Reading:
    def __init__(self, stated: Mapping[str, Any], text: str, title: str) -> None:
        self.circular = Circular()
        self._stated, self._text = stated, text
        end = _BODY_ENDS.search(text, 0, _HEAD)
        self._head = text[: end.start() if end else _HEAD]
        self._numbers()
        self._issued()
        self._titled(title)
        self._addressed()
        self._by_department()
        self._kind_and_status()
        self._in_force()

    def _field(self, name: str) -> Any:
        for called in _FIELDS[name]:
            value = self._stated.get(called)
            if value is not None and value != "":
                self.circular.sources.append(f"{name}: field {called}")
                return value
        return None

    def _from_text(self, name: str, start: int, end: int) -> None:
        self.circular.sources.append(f"{name}: text {start}-{end}")

    def _text_field(self, name: str) -> str:
        value = self._field(name)
        if isinstance(value, list):
            return "; ".join(value)
        return "" if value is None else " ".join(str(value).split())

    def _numbers(self) -> None:
        lines = [one for one in NUMBER.finditer(self._head) if _alone(self._head, one.start(), one.end())]
        for name, is_own in (("number", True), ("reference", False)):
            given = self._text_field(name)
            found = next((one for one in lines if bool(one["own"]) == is_own), None)
            here = " ".join(found[0].split()) if found else ""
            if given and here and number_key(given) != number_key(here):
                self.circular.trouble.append(
                    f"the {name} is {given} in the field and {here} in the text at {found.start() if found else 0}"
                )
            elif not given and found:
                self._from_text(name, found.start(), found.end())
            setattr(self.circular, name, given or here)

    def _issued(self) -> None:
        value = self._field("issued")
        given = None if value is None else _day(value)
        if value is not None and given is None:
            self.circular.trouble.append(
                f"the day of issue is {str(value)[:80]!r}, which is not a date; want one such as 2025-04-01"
            )
            return
        here = next(
            (
                one
                for one in DATE.finditer(self._head)
                if _alone(self._head, one.start(), one.end())
                and not _UPDATED.search(self._head[: one.start()])
            ),
            None,
        )
        read = date_of(here) if here else None
        if here and given and read and given != read:
            self.circular.trouble.append(
                f"the day of issue is {given} in the field and {read} in the text at {here.start()}"
            )
        elif given is None and here and read:
            self._from_text("issued", here.start(), here.end())
        elif given is None:
            self.circular.trouble.append(
                "the text has no day of issue on a line of its own; "
                "state it in the field `issued` or `date`, such as 2025-04-01"
            )
        self.circular.issued = given or read

    def _titled(self, title: str) -> None:
        given = self._text_field("title") or " ".join(title.split())
        if not given and (hello := _SALUTATION.search(self._head)):
            lines = []
            at = hello.end()
            for line in self._head[at:].strip().split("\n")[:_TITLE_LINES]:
                if re.match(
                    r"\s*(?:Please|The\s+Reserve|In\s+terms|A\s+reference|Attention|\d+\.|$)", line
                ) or line.endswith("."):
                    break
                lines.append(line.strip())
            given = " ".join(lines).strip()
            if given:
                self._from_text("title", at, at + len(given))
        self.circular.title = given

    def _addressed(self) -> None:
        classes = self._field("entity_classes")
        if classes is not None:
            several = classes if isinstance(classes, list) else re.split(r"[;,]", str(classes))
            named = [re.sub(r"[\s-]+", "_", one.strip().lower()) for one in several if one.strip()]
            if unknown := [one for one in named if one not in {*CLASSES, "unknown"}]:
                self.circular.trouble.append(
                    f"entity_classes has the unknown class {unknown[0][:80]!r}; want some of {', '.join(CLASSES)}"
                )
            self.circular.entity_classes = tuple(dict.fromkeys(named)) or ("unknown",)
            return
        given = self._text_field("addressees")
        if found := _classes(given):
            self.circular.entity_classes = found
            return
        hello = _SALUTATION.search(self._head)
        if hello:
            dates = [one.end() for one in DATE.finditer(self._head, 0, hello.start())]
            start = max([0, hello.start() - _ADDRESS, *dates[-1:]])
            if found := _classes(self._head[start : hello.start()]):
                self._from_text("entity_classes", start, hello.start())
                self.circular.entity_classes = found
                return
        for one in _APPLIES.finditer(self._text):
            if found := _classes(one["whom"]):
                self._from_text("entity_classes", one.start(), one.end())
                self.circular.entity_classes = found
                return
        if found := _classes(self.circular.title):
            self.circular.sources.append("entity_classes: the title")
            self.circular.entity_classes = found

    def _by_department(self) -> None:
        one = self.circular
        one.department = self._text_field("department")
        prefix = re.sub(r"^(?:CO|RBI)\b\W*", "", re.sub(r"^A\W*P\W", "AP ", one.reference)).upper()
        for name, pattern in _DEPARTMENTS.items():
            words = [word for word in pattern.split("|") if word[:1].islower() or word[:1] == "("]
            if one.department and re.search("|".join(words) or "$^", one.department, re.I):
                one.issued_by = name
                return
        for name, pattern in _DEPARTMENTS.items():
            codes = [word for word in pattern.split("|") if word.isupper()]
            if re.match(rf"(?:{'|'.join(codes)})(?![A-Z])", prefix):
                one.issued_by = name
                if not one.department:
                    one.sources.append("issued_by: the beginning of the reference")
                return

    def _kind_and_status(self) -> None:
        one, named = self.circular, self.circular.title.lower()
        one.kind = self._text_field("kind").lower() or next(
            (kind for kind in _KINDS if kind in named), "circular"
        )
        given = self._text_field("status").lower().replace("_", " ")
        if given:
            one.status = {"in force": "issued", "draft for comment": "draft"}.get(given, given)
        elif _DRAFT.search(one.title) or _DRAFT.search(self._head[:400].strip()):
            one.status = "draft"
            one.sources.append("status: the title or the beginning of the text")
        elif _WITHDRAWN.search(one.title):
            one.status = "withdrawn"
            one.sources.append("status: the title")
        elif gone := _WITHDRAWN.search(self._head):
            one.status = "withdrawn"
            self._from_text("status", gone.start(), gone.end())
        internal = self._field("internal")
        if internal is not None:
            one.internal = internal
        elif marked := _INTERNAL.search(self._head):
            self._from_text("internal", marked.start(), marked.end())
            one.internal = True

    def _in_force(self) -> None:
        value = self._field("effective")
        if value is not None:
            self.circular.effective = _day(value)
            if self.circular.effective is None:
                self.circular.trouble.append(
                    f"the effective date is {str(value)[:80]!r}, which is not a date; want one such as 2025-04-01"
                )
        elif self.circular.status != "draft" and (found := in_force_from(self._text, self.circular.issued)):
            self.circular.effective = found.day
            self._from_text("effective", found.start, found.end)
            if found.day is None and self.circular.issued:
                words = " ".join(self._text[found.start : found.end].split())
                self.circular.trouble.append(
                    f"the day from which it is in force cannot be read in {words[:120]!r} "
                    f"(text {found.start}-{found.end}); state it in the field `effective`, such as 2025-04-01"
                )


def _alone(text: str, start: int, end: int) -> bool:
    """Tell whether a number or date has a line of its own, as at the head of a letter."""
    before = text[text.rfind("\n", 0, start) + 1 : start]
    newline = text.find("\n", end)
    after = text[end : newline if newline >= 0 else len(text)]
    return bool(
        re.fullmatch(
            r"\W*(?:Ref\w*\W*|No\W*|Notification\s+No\W*|Date\w*\W*|Master\s+\w+\s+)?(?:RBI\S*\W+)?", before
        )
    ) and not re.search(r"[^\W\d_]", after)


def _day(value: Any) -> date | None:
    text = str(value).strip()
    try:
        return date.fromisoformat(text)
    except ValueError:
        found = DATE.fullmatch(text)
        return date_of(found) if found else None


def _classes(addressees: str) -> tuple[str, ...]:
    named = _EXCLUDED.sub(" ", " ".join(addressees.split()))
    if _ALL_ENTITIES.search(named):
        return tuple(CLASSES)
    found = [name for name, pattern in CLASSES.items() if re.search(pattern, named, re.I)]
    if _ALL_BANKS.search(named):
        found += _BANKS
    return tuple(name for name in CLASSES if name in found)
