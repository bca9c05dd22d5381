"""A record in plain values for a person to read: times as times, masks by the names of their bits."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from carag.audit import HitV1, retain_until
from carag.policy import bit_names, from_minutes

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.audit import Record

__all__ = ["described", "instant"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLION: Final = 1_000_000


def described(record: Record) -> dict[str, Any]:
    """Return what a record says, in the order in which a person asks for it; what it leaves out is left out.

    Examples
    --------
    >>> from carag.audit import Record, Recovery
    >>> said = described(Record("log.example", 3, bytes(16), 1_762_000_000_000_000, Recovery("DRILL")))
    >>> said["record"], said["kind"], said["logged"], said["code"]
    (3, 'recovery', '2025-11-01T12:26:40+00:00', 'DRILL')
    """
    said: dict[str, Any] = {
        "record": record.seq,
        "log": record.log,
        "kind": record.kind.value,
        "logged": instant(record.committed),
    }
    event = record.event.to_json()
    for key in sorted(event, key=_rank):
        name, read = _READ.get(key, (key, _itself))
        value = None if event[key] is None else read(event[key])
        if value not in (None, [], {}):
            said[name] = value
    if record.hits:
        said["passages"] = [
            {
                "passage": hit.chunk if isinstance(hit, HitV1) else hit.name,
                "similarity": hit.similarity / _MILLION,
                "bits": list(bit_names(hit.word)),
                "cited": hit.cited,
            }
            for hit in record.hits
        ]
    said["retained"] = f"{record.retain}, until {retain_until(record.committed, record.retain).date()}"
    return said


def instant(microseconds: int) -> str:
    """Write microseconds since 1970 as a time.

    Examples
    --------
    >>> instant(0)
    '1970-01-01T00:00:00+00:00'
    """
    return (_EPOCH + timedelta(microseconds=microseconds)).isoformat()


def _itself(value: Any) -> Any:
    return value


def _hex(text: str) -> str:
    """Write a hash as other commands print it."""
    return base64.urlsafe_b64decode(text + "=").hex()


def _minute(minutes: int) -> str:
    return from_minutes(minutes).isoformat(timespec="minutes")


def _policy(said: dict[str, Any]) -> dict[str, Any]:
    """Say which bits a passage needs and which it must not have; each pair of lists admits by itself."""
    read: dict[str, Any] = {"table": _hex(said["table"])}
    for masks, name in (("masks", "admits"), ("reopened", "admits besides")):
        pairs = said.get(masks, [])
        if pairs or masks == "masks":
            read[name] = [
                {"all of": list(bit_names(required)), "none of": list(bit_names(forbidden))}
                for required, forbidden in pairs
            ]
    for rule, name in (("entities", "about"), ("reopened_entities", "about, besides")):
        if rule in said:
            read[name] = _listed(said[rule])
    if "cooling" in said:
        read["cooling minutes"] = said["cooling"]
    return read


def _listed(rule: dict[str, Any]) -> str:
    verb = "only whom a list of" if rule["kind"] == "allow" else "nobody whom a list of"
    beside = f", and nobody whom one of {rule['denied']} names" if rule.get("denied") else ""
    return f"{verb} {rule['count']} names{beside}"


def _index(said: dict[str, Any]) -> dict[str, Any]:
    known = {"known at": instant(said["known"])} if "known" in said else {}
    return {
        "state": _hex(said["snapshot"]),
        **known,
        "admissible rows": said["admissible"],
        "plan": said["plan"],
    }


def _given(said: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in said.items() if value is not None}


_READ: Final[dict[str, tuple[str, Callable[[Any], Any]]]] = {
    "t0": ("started", instant),
    "t1": ("ended", instant),
    "role": ("role", _itself),
    "purpose": ("purpose", _itself),
    "source": ("session", _itself),
    "outcome": ("outcome", _itself),
    "why": ("code", _itself),
    "as_of": ("as of", _minute),
    "policy": ("policy", _policy),
    "table": ("table", _hex),
    "index": ("index", _index),
    "models": ("models", _given),
    "at": ("changed", instant),
    "seen": ("seen", instant),
    "until": ("until", instant),
}
"""How members of records are called and read here, in this order; all others as they are, after them."""


def _rank(key: str) -> tuple[int, str]:
    order = list(_READ)
    return (order.index(key) if key in _READ else len(order), key)
