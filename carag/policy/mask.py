"""Define masks and policies: what a session may see, as an OR of (required, forbidden) pairs and lists of entities.

A pair compiles to one AND and one compare, ``(word & mask) == value``. Because ``mask`` always covers the
control bits, deletion, quarantine and a missing label are the same test as the policy itself. What does not fit
in bits, whom a session may or may not read about, is a set of numbers beside the masks. A passage may be about
several: a filing has co-registrants, a Form 4 an issuer and its owner.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

from carag.errors import InvalidArgument, PolicyConflict
from carag.limits import quoted
from carag.policy.bits import bit_names, bits_of, whole_number
from carag.policy.vocabulary import CONTROL, VERSION_WORD

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from carag.policy.bits import Bits

__all__ = ["MAX_ENTITY", "MAX_LISTED", "MAX_MASKS", "NO_ENTITY", "Mask", "Policy"]

MAX_MASKS: Final = 8
MAX_ENTITY: Final = 0xFFFF_FFFF
"""The greatest number an index's row can have."""
MAX_LISTED: Final = 10**10 - 1
"""The greatest number a list can hold: EDGAR's CENTRAL INDEX KEY has ten digits."""
_MAX_NAMED: Final = 10
"""Bits that a repr names; no cell of the table has more on one side but for a few."""
NO_ENTITY: Final = 0
"""The entity of a row that is about none, and of whoever else a passage may be about without saying so."""


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Mask:
    """A conjunction: every required bit set, no forbidden bit set. ``Mask()`` admits every labelled, live row.

    Parameters
    ----------
    required, forbidden : PolicyBit, str, int, or iterable of PolicyBit and str
        Bits as :func:`carag.policy.bits_of` reads them; kept as 27-bit vectors.

    Raises
    ------
    InvalidArgument
        If a value is no bits, or could be taken for others.
    PolicyConflict
        If a bit is both required and forbidden.

    Examples
    --------
    >>> from carag.policy import PolicyBit
    >>> Mask(required="FS_AUDITED", forbidden=PolicyBit.PD_SPECIAL).admits(0x0800_0021)
    True
    """

    required: int
    forbidden: int

    def __init__(self, required: Bits = 0, forbidden: Bits = 0) -> None:
        object.__setattr__(self, "required", bits_of(required, name="required"))
        object.__setattr__(self, "forbidden", bits_of(forbidden, name="forbidden"))
        if both := self.required & self.forbidden:
            raise PolicyConflict(
                f"bits {', '.join(bit_names(both))} are both required and forbidden; "
                "drop them from one side, or refuse the session"
            )

    def __repr__(self) -> str:
        sides = (("required", self.required), ("forbidden", self.forbidden))
        shown = ", ".join(f"{side}={_shown(bits)}" for side, bits in sides if bits)
        return f"Mask({shown})" if shown else "Mask() <admits every labelled row>"

    @property
    def mask(self) -> int:
        """The bits the test looks at: required, forbidden and control."""
        return self.required | self.forbidden | CONTROL

    @property
    def value(self) -> int:
        """What those bits must equal: required set, the current schema version, nothing else."""
        return self.required | VERSION_WORD

    def admits(self, word: int) -> bool:
        """Test one word."""
        return (word & self.mask) == self.value


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Policy:
    """An OR of up to eight masks, and a rule about entities. ``Policy()`` has no mask, so it admits nothing.

    Parameters
    ----------
    *masks : Mask
        A word is admitted if any mask admits it.
    allow_entities : iterable of int, optional
        The only entities (for EDGAR, the filer's CIK) rows may be about; an empty one admits nothing. Rows about
        no entity carry the number 0, and are admitted only if it is listed.
    deny_entities : iterable of int
        Entities rows may not be about. Given both, what is denied is taken out of what is allowed.
    allow_if_any : bool
        Of a passage about several: whether one of them on the allow list is enough. By default all must be on it, as
        behind a wall. One denied closes it in either case.

    Attributes
    ----------
    masks : tuple of Mask
    allow_entities : tuple of int, or None
        Ascending, none twice.
    deny_entities : tuple of int
        Ascending, none twice; empty beside ``allow_entities`` unless one of those is enough.
    allow_if_any : bool
        False where there is no allow list.

    Examples
    --------
    >>> Policy(Mask(0x800, 0x10000), Mask(0x1000, 0x10000)).admits(0x0800_1002)
    True
    >>> Policy().admits(0x0800_0001)
    False
    >>> Policy(Mask(), deny_entities=[320193]).admits(0x0800_0001, entity=320193)
    False
    >>> Policy(Mask(), allow_entities=[7]).admits_entity((7, 8))
    False
    >>> Policy(Mask(), allow_entities=[7], allow_if_any=True).admits_entity((7, 8))
    True
    """

    masks: tuple[Mask, ...] = field(compare=False)
    allow_entities: tuple[int, ...] | None = field(compare=False)
    deny_entities: tuple[int, ...] = field(compare=False)
    allow_if_any: bool = field(compare=False)
    _same: bytes
    """All of these, packed: a list of thousands is compared at every search, which bytes do a hundred times faster."""

    def __init__(
        self,
        *masks: Mask,
        allow_entities: Iterable[int] | None = None,
        deny_entities: Iterable[int] = (),
        allow_if_any: bool = False,
    ) -> None:
        for mask in masks:
            if type(mask) is not Mask:  # a subclass could answer otherwise each time it is asked
                raise InvalidArgument(f"a policy is made of Mask objects; got {quoted(mask)}")
        if len(masks) > MAX_MASKS:
            raise InvalidArgument(f"a policy holds at most {MAX_MASKS} masks; got {len(masks)}")
        denied = entity_set("deny_entities", deny_entities)
        allowed = None
        if allow_entities is not None:
            # Where all must be allowed, what is left of the list says it all.
            allowed = tuple(sorted(entity_set("allow_entities", allow_entities) - denied))
            denied = denied if allow_if_any else frozenset()
        object.__setattr__(self, "masks", masks)
        object.__setattr__(self, "allow_entities", allowed)
        object.__setattr__(self, "deny_entities", tuple(sorted(denied)))
        object.__setattr__(self, "allow_if_any", bool(allow_if_any) and allowed is not None)
        self._pack()

    def __repr__(self) -> str:
        # That there is a list, never who is on it: deal lists are inside information.
        listed = (("allow", self.allow_entities is not None), ("deny", self.deny_entities))
        shown = ", ".join(
            [*map(repr, self.masks), *(f"{kind}_entities=<listed>" for kind, there in listed if there)]
        )
        return f"Policy({shown})" if self.masks else f"Policy({shown}) <admits nothing>"

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The masks as pairs (required, forbidden), as a record has them."""
        return tuple((mask.required, mask.forbidden) for mask in self.masks)

    def admits(self, word: int, entity: int | Collection[int] = NO_ENTITY) -> bool:
        """Test one row: admissible if any mask admits its word, and the rule about entities whom it is about."""
        return self.admits_entity(entity) and any(mask.admits(word) for mask in self.masks)

    def admits_entity(self, entity: int | Collection[int]) -> bool:
        """Test whom a passage is about, alone: one, or all it may be about; none of them is :data:`NO_ENTITY`."""
        about = members(entity)
        if self.deny_entities and any(_is_listed(self.deny_entities, one) for one in about):
            return False
        if self.allow_entities is None:
            return True
        enough = any if self.allow_if_any else all
        return enough(_is_listed(self.allow_entities, one) for one in about)

    def denied_of(self, entity: int | Collection[int]) -> tuple[int, ...]:
        """Return those of whom a passage is about that are on the deny list, ascending."""
        return tuple(one for one in sorted(members(entity)) if _is_listed(self.deny_entities, one))

    def with_masks(self, *masks: Mask) -> Policy:
        """Return the same rule about entities under other masks.

        Examples
        --------
        >>> Policy(Mask(), deny_entities=[320193]).with_masks(Mask(0, 0x4000)).deny_entities
        (320193,)
        """
        other = Policy(*masks)
        # The lists are checked already, and may be of thousands.
        for name in ("allow_entities", "deny_entities", "allow_if_any"):
            object.__setattr__(other, name, getattr(self, name))
        other._pack()
        return other

    def _pack(self) -> None:
        allowed, denied = self.allow_entities or (), self.deny_entities
        pairs = [bits for mask in self.masks for bits in (mask.required, mask.forbidden)]
        shape = [len(self.masks), self.allow_entities is not None, self.allow_if_any, len(allowed)]
        object.__setattr__(self, "_same", array("Q", [*shape, *pairs, *allowed, *denied]).tobytes())


def members(entity: int | Collection[int]) -> Collection[int]:
    """Return all whom a passage is about; one that is about none is about :data:`NO_ENTITY`."""
    return (entity or (NO_ENTITY,)) if isinstance(entity, (tuple, frozenset, set, list)) else (entity,)


def _shown(bits: int) -> str:
    """Name a few bits; many are shorter as the vector."""
    names = bit_names(bits)
    return f"{bits:#x}" if len(names) > _MAX_NAMED else repr(names[0] if len(names) == 1 else list(names))


def _is_listed(ascending: tuple[int, ...], entity: int) -> bool:
    at = bisect_left(ascending, entity)
    return at < len(ascending) and ascending[at] == entity


def entity_set(name: str, numbers: Iterable[int]) -> frozenset[int]:
    """Check numbers of entities."""
    if isinstance(numbers, (str, bytes)) or not hasattr(numbers, "__iter__"):
        raise InvalidArgument(
            f"{name} is {quoted(numbers)}; want integers from 0 to {MAX_LISTED}, such as CIKs"
        )
    return frozenset(_entity(name, number) for number in numbers)


def _entity(name: str, number: object) -> int:
    try:
        entity = whole_number(number)
    except TypeError:
        entity = -1
    if not 0 <= entity <= MAX_LISTED:
        raise InvalidArgument(
            f"{name} holds {quoted(number)}; want integers from 0 to {MAX_LISTED}, such as CIKs"
        )
    return entity
