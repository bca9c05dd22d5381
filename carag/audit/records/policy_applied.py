"""Define the policy of a request in a record: masks as plain integers, lists of entities by kind and length only."""

from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

from carag.audit.records.codec import OPTIONAL, Count, Digest, Fields, integer
from carag.audit.records.kinds import ListKind
from carag.errors import InvalidArgument

# Records are read for years without carag.policy, so these constants repeat its version 1.
_CONTROL: Final = 0xF800_0000
_VERSION_WORD: Final = 1 << 27
_POLICY_BITS: Final = (1 << 27) - 1
_MAX_MASKS: Final = 8

Bits: TypeAlias = Annotated[int, integer(0, _POLICY_BITS)]
Masks: TypeAlias = tuple[tuple[Bits, Bits], ...]
"""Pairs of required and forbidden bits."""


@dataclass(frozen=True, slots=True)
class EntityRule(Fields):
    """Kind and length of a list of entities. The record commits to the entities on it.

    Not even the hash of these is a field: there are so few companies that all could be tried.

    Parameters
    ----------
    denied : int
        Length of a deny list that applied in addition to an allow list; 0 is not encoded.
    """

    kind: ListKind
    count: Count
    denied: Annotated[Count, OPTIONAL] = 0

    def _check(self) -> None:
        if self.denied and self.kind is ListKind.DENY:
            raise InvalidArgument(
                f"a deny list of {self.count} entities has {self.denied} denied ones; want equal numbers"
            )


@dataclass(frozen=True, slots=True)
class PolicyApplied(Fields):
    """The policy of a request. Parts that did not apply are not encoded.

    Parameters
    ----------
    table : bytes
        SHA-256 of the role and purpose table.
    masks : tuple of (required, forbidden)
        Up to eight pairs of 27-bit vectors; without any pair, nothing is admitted.
    entities : EntityRule, optional
        The list that applied to them.
    reopened : tuple of (required, forbidden)
        Further pairs that admitted passages, under their own list, ``reopened_entities``.
    cooling : int
        Minutes for which a report of a material event must have been public.
    """

    table: Digest
    masks: Masks = ()
    entities: Annotated[EntityRule | None, OPTIONAL] = None
    reopened: Annotated[Masks, OPTIONAL] = ()
    reopened_entities: Annotated[EntityRule | None, OPTIONAL] = None
    cooling: Annotated[Count, OPTIONAL] = 0

    def _check(self) -> None:
        for masks in (self.masks, self.reopened):
            if len(masks) > _MAX_MASKS:
                raise InvalidArgument(f"a policy has at most {_MAX_MASKS} masks, got {len(masks)}")
            for required, forbidden in masks:
                if required & forbidden:
                    raise InvalidArgument(f"bits {required & forbidden:#x} are both required and forbidden")
        if self.reopened_entities is not None and not self.reopened:
            raise InvalidArgument("a list of reopened entities has no masks; give the masks it applies to")

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
