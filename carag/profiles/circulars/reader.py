"""Make a document of each circular in a folder: its facts, its names, and its acts on other circulars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from carag.errors import InvalidArgument
from carag.labelling.document import Act, ActKind, Document
from carag.policy import parse_moment
from carag.profiles.circulars.facts import READ, Circular, circular_of
from carag.profiles.circulars.references import NUMBER, names_of
from carag.profiles.circulars.supersession import Statement, statements
from carag.readers.outcome import several

if TYPE_CHECKING:
    from collections.abc import Iterable

    from carag.readers import ReadDocument


_ACTS: Final = {
    "supersedes": ActKind.REPLACES,
    "replaces": ActKind.REPLACES,
    "withdraws": ActKind.WITHDRAWS,
    "amends": ActKind.AMENDS,
}
"""Fields that list the numbers or ids of other circulars, with the acts that the fields state."""
_MOST: Final = 1000
"""Greatest number of acts of a document, and of texts in one fact."""
_LONGEST: Final = 2_000_000
"""Greatest number of characters of a text that is searched for statements; the longest direction of the Reserve Bank of
India seen has 266,237."""
_SHOWN: Final = 400
"""Greatest number of characters kept of a fact."""
_TIMES: Final = ("public_at", "expires_at", "retain_until", "erase_after")
_OWN: Final = {"title", "entities", "allow", "deny", "language", *_TIMES, *_ACTS}


def document_of(read: ReadDocument) -> Document:
    """Make a document of a file or row.

    A draft does nothing to other circulars. Circulars that are only compiled stay in force, so their compilation is
    recorded as a fact and not as an act.

    Raises
    ------
    InvalidArgument
        If a field has the wrong type; the row is then reported, and is not a document.
    """
    stated = read.facts
    one = circular_of(stated, read.text, read.title)
    if len(read.text) > _LONGEST:
        one.trouble.append(
            f"its text has {len(read.text)} characters, too many to find its acts on others; want {_LONGEST} at most"
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
    own = {name: parse_moment(_text(name, stated[name])) for name in _TIMES if name in stated}
    later = one.effective if one.issued and one.effective and one.effective > one.issued else None
    # Facts that no rule reads are kept: a misspelt name of a fact that is read must quarantine.
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
        allow=several(stated["allow"]) if "allow" in stated else None,
        deny=several(stated.get("deny", "")),
        public_at=own.get("public_at", one.issued),
        expires_at=own.get("expires_at"),
        retain_until=own.get("retain_until"),
        erase_after=own.get("erase_after"),
        names=names_of(numbers, one.title, one.issued),
        acts=acts,
        in_force_at=None if one.status == "draft" else later,
        language=stated.get("language"),  # type: ignore[arg-type] # Document checks it
        pages=read.pages,
    )


def leaves_out(field: str) -> bool:
    """Tell whether a nested field of a circular's row, such as ``sections``, may be left out."""
    return field not in READ | _OWN


def _metadata(one: Circular) -> dict[str, Any]:
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
    """Turn statements into acts on the circulars they name: by number if there is one, else by title and date."""
    acts = []
    for one in said:
        if one.other is None or one.consolidates:
            continue
        names = one.other.names
        if one.other.numbers:  # a title without a date would only add doubt to the number
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
        raise InvalidArgument(f"{name} is {value!r}; want a string, or a list of strings")
    return value.strip()


def _entities(stated: Any) -> tuple[int, ...]:
    try:
        return tuple(int(one) for one in (stated if isinstance(stated, list) else [stated]))
    except (TypeError, ValueError):
        raise InvalidArgument(f"entities is {stated!r}; want integers") from None
