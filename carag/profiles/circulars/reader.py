"""Make a document of each circular that a folder holds: its facts, its names, and its acts on other circulars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from carag.errors import InvalidArgument
from carag.labelling.document import Act, ActKind, Document
from carag.policy import parse_moment
from carag.profiles.circulars.facts import READ, Circular, circular_of
from carag.profiles.circulars.references import NUMBER, names_of
from carag.profiles.circulars.supersession import Statement, statements

if TYPE_CHECKING:
    from collections.abc import Iterable

    from carag.readers import ReadDocument

__all__ = ["document_of", "leaves_out"]

_ACTS: Final = {
    "supersedes": ActKind.REPLACES,
    "replaces": ActKind.REPLACES,
    "withdraws": ActKind.WITHDRAWS,
    "amends": ActKind.AMENDS,
}
"""Fields that list the numbers or ids of other circulars, and what they say of them."""
_MOST: Final = 1000
"""Most acts of a document, and most texts of one fact."""
_LONGEST: Final = 2_000_000
"""Most characters of a text that is read for statements; the longest direction of the Reserve Bank of India that was
read has 266,237."""
_SHOWN: Final = 400
"""Characters of a text that is kept as a fact."""
_OWN: Final = {"title", "entities", "language", "public_at", "expires_at", *_ACTS}


def document_of(read: ReadDocument) -> Document:
    """Make a document of a file or row.

    A draft does nothing to others, and what a circular only compiles stays in force: a compilation does not say that
    what it lists has ceased, so it is a fact and no act.

    Raises
    ------
    InvalidArgument
        If a field is not of its kind; the row is then no document, and reported.
    """
    stated = read.facts
    one = circular_of(stated, read.text, read.title)
    if len(read.text) > _LONGEST:
        one.trouble.append(
            f"its text has {len(read.text)} characters, and what it does to others is read in {_LONGEST}"
        )
    said = statements(read.text, issued=one.issued) if len(read.text) <= _LONGEST else []
    acts = [*_stated_acts(stated, one), *_acts(said)] if one.status != "draft" else []
    if len(acts) > _MOST:
        one.trouble.append(f"it acts on {len(acts)} others; want {_MOST} at most")
        acts = []
    facts: dict[str, Any] = {
        "checks": "; ".join(one.trouble)[:_SHOWN] or "passed",
        "status": one.status[:_SHOWN],
        "internal": one.internal,
        "entity_classes": list(one.entity_classes),
        "issued_by": one.issued_by,
        "sources": [source[:_SHOWN] for source in one.sources],
        "says": [_told(statement) for statement in said[:_MOST]],
    }
    numbers = tuple(number for number in (one.number, one.reference) if number)
    own = {
        name: parse_moment(_text(name, stated[name]))
        for name in ("public_at", "expires_at")
        if name in stated
    }
    later = one.effective if one.issued and one.effective and one.effective > one.issued else None
    # Facts that no rule reads stay: a slip of the pen in the name of one that is read must quarantine.
    others = {
        name: value[:_SHOWN] if isinstance(value, str) else value
        for name, value in stated.items()
        if name not in facts and name not in READ | _OWN and not isinstance(value, list)
    }
    return Document(
        id=read.id,
        text=read.text,
        facts={**others, **facts},
        metadata=_metadata(one),
        entities=_entities(stated.get("entities", [])),
        public_at=own.get("public_at", one.issued),
        expires_at=own.get("expires_at"),
        names=names_of(numbers, one.title, one.issued),
        acts=acts,
        in_force_at=None if one.status == "draft" else later,
        language=stated.get("language"),  # type: ignore[arg-type] # Document checks it
        pages=read.pages,
    )


def leaves_out(field: str) -> bool:
    """Tell whether a circular can do without a field of its row that is nested, as ``sections`` may be.

    Examples
    --------
    >>> leaves_out("sections"), leaves_out("internal")
    (True, False)
    """
    return field not in READ | _OWN


def _metadata(one: Circular) -> dict[str, Any]:
    """Return what a citation and a search may name; what is not known is left out."""
    found = {
        "number": one.number,
        "reference": one.reference,
        "title": one.title[:_SHOWN],
        "department": one.department[:_SHOWN]
        or one.issued_by.replace("_", " ").replace("other department", ""),
        "kind": one.kind[:_SHOWN],
        "issued": one.issued and one.issued.isoformat(),
        "effective": one.effective and one.effective.isoformat(),
        "status": "" if one.status == "issued" else one.status[:_SHOWN],
    }
    return {name: value for name, value in found.items() if value}


def _acts(said: Iterable[Statement]) -> list[Act]:
    """Turn statements into acts on whom they name; a number decides where there is one, else title and date."""
    acts = []
    for one in said:
        if one.other is None or one.consolidates:
            continue
        names = one.other.names
        if one.other.numbers:  # a title without a date is then one doubt more than the number
            names = tuple(name for name in names if name.startswith("number ") or " of " in name)
        acts += [Act(one.kind, name, one.effective) for name in names]
    return list(dict.fromkeys(acts))


def _stated_acts(stated: dict[str, Any], one: Circular) -> list[Act]:
    acts = []
    for field, kind in _ACTS.items():
        value = stated.get(field)
        if value is None:
            continue
        for other in value if isinstance(value, list) else [value]:
            text = _text(field, other)
            found = NUMBER.fullmatch(text)
            acts += [Act(kind, name) for name in (names_of((text,), "", one.issued) if found else ())] or [
                Act(kind, text)
            ]
    return acts


def _told(one: Statement) -> str:
    """Say in words what a statement does, to whom, and where it stands."""
    other = one.other
    whom = (
        "; ".join(
            [
                *other.numbers,
                *([other.title] if other.title else []),
                *([other.date.isoformat()] if other.date else []),
            ]
        )
        if other
        else "what it lists"
    )
    kind = "consolidates" if one.consolidates else one.kind.value
    since = f", from {one.effective}" if one.effective else ""
    return f"{kind} {whom}{since} (text {one.start}-{one.end})"[:_SHOWN]


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidArgument(f"{name} is {value!r}; want a text, or a list of texts")
    return value.strip()


def _entities(stated: Any) -> tuple[int, ...]:
    try:
        return tuple(int(one) for one in (stated if isinstance(stated, list) else [stated]))
    except (TypeError, ValueError):
        raise InvalidArgument(f"entities are {stated!r}; want whole numbers") from None
