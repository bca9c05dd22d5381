"""Define the policy of a request in a record: masks as plain integers, lists of entities by kind and length only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from carag.audit.records import _fields
from carag.audit.records.kinds import ListKind
from carag.audit.tlog.encoding import Json, b64url, unb64url
from carag.errors import InvalidArgument

__all__ = ["EntityRule", "PolicyApplied"]

# Records are read for years without carag.policy, so these constants repeat its version 1.
_CONTROL: Final = 0xF800_0000
_VERSION_WORD: Final = 1 << 27
_POLICY_BITS: Final = (1 << 27) - 1
_MAX_MASKS: Final = 8


@dataclass(frozen=True, slots=True)
class EntityRule:
    """Kind and length of a list of entities. The record commits to the entities on it.

    Not even their hash is a field: there are so few companies that all could be tried.

    Parameters
    ----------
    denied : int
        Length of a deny list that applied in addition to an allow list; 0 is not encoded.
    """

    kind: ListKind
    count: int
    denied: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", _fields.member(ListKind, self.kind))
        _fields.integer("listed entities", self.count, 0)
        _fields.integer("denied entities", self.denied, 0)
        if self.denied and self.kind is ListKind.DENY:
            raise InvalidArgument(
                f"a deny list of {self.count} entities has {self.denied} denied ones; want one number"
            )

    def to_json(self) -> Json:
        """Return the JSON form."""
        beside: dict[str, Json] = {"denied": int(self.denied)} if self.denied else {}
        return {"count": int(self.count), **beside, "kind": self.kind.value}

    @classmethod
    def from_json(cls, fields: Any) -> EntityRule:
        """Read the JSON form."""
        return cls(fields["kind"], fields["count"], fields.get("denied", 0))


@dataclass(frozen=True, slots=True)
class PolicyApplied:
    """The policy of a request. Parts that did not apply are not encoded.

    Parameters
    ----------
    table : bytes
        SHA-256 of the role and purpose table.
    masks : tuple of (required, forbidden)
        Up to eight pairs of 27-bit vectors; without any, nothing is admitted.
    entities : EntityRule, optional
        The list that applied to them.
    reopened : tuple of (required, forbidden)
        Further pairs that admitted, under their own list, ``reopened_entities``.
    cooling : int
        Minutes for which a report of a material event must have been public.
    """

    table: bytes
    masks: tuple[tuple[int, int], ...] = ()
    entities: EntityRule | None = None
    reopened: tuple[tuple[int, int], ...] = ()
    reopened_entities: EntityRule | None = None
    cooling: int = 0

    def __post_init__(self) -> None:
        _fields.digest("policy table hash", self.table)
        for masks in (self.masks, self.reopened):
            if len(masks) > _MAX_MASKS:
                raise InvalidArgument(f"a policy has at most {_MAX_MASKS} masks, got {len(masks)}")
            for required, forbidden in masks:
                _fields.integer("required bits", required, 0, _POLICY_BITS)
                _fields.integer("forbidden bits", forbidden, 0, _POLICY_BITS)
                if required & forbidden:
                    raise InvalidArgument(f"bits {required & forbidden:#x} are both required and forbidden")
        if self.reopened_entities is not None and not self.reopened:
            raise InvalidArgument("a list of reopened entities has no masks; give the masks it applies to")
        _fields.integer("cooling minutes", self.cooling, 0)

    def admits(self, word: int) -> bool:
        """Tell whether any mask admits a word: the same test as in the search, implemented independently."""
        for masks in (self.masks, self.reopened):
            for required, forbidden in masks:
                if word & (required | forbidden | _CONTROL) == required | _VERSION_WORD:
                    return True
        return False

    @property
    def lists_entities(self) -> bool:
        """Whether the record must commit to lists of entities."""
        return self.entities is not None or self.reopened_entities is not None

    def to_json(self) -> Json:
        """Return the JSON form."""
        fields: dict[str, Json] = {"masks": _pairs(self.masks), "table": b64url(self.table)}
        if self.entities is not None:
            fields["entities"] = self.entities.to_json()
        if self.reopened:
            fields["reopened"] = _pairs(self.reopened)
        if self.reopened_entities is not None:
            fields["reopened_entities"] = self.reopened_entities.to_json()
        if self.cooling:
            fields["cooling"] = int(self.cooling)
        return fields

    @classmethod
    def from_json(cls, fields: Any) -> PolicyApplied:
        """Read the JSON form."""
        rules = [
            None if name not in fields else EntityRule.from_json(fields[name])
            for name in ("entities", "reopened_entities")
        ]
        return cls(
            table=unb64url(fields["table"], _fields.DIGEST_SIZE),
            masks=tuple((req, ban) for req, ban in fields["masks"]),
            entities=rules[0],
            reopened=tuple((req, ban) for req, ban in fields.get("reopened", ())),
            reopened_entities=rules[1],
            cooling=fields.get("cooling", 0),
        )


def _pairs(masks: tuple[tuple[int, int], ...]) -> Json:
    return [[int(req), int(ban)] for req, ban in masks]
