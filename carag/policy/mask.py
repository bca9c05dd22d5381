"""Define masks and policies: an OR of (required, forbidden) pairs, ``(word & mask) == value``, and entity lists."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

from carag.errors import InvalidArgument, PolicyConflict
from carag.limits import quoted
from carag.policy.audience import EVERYBODY, MAX_AUDIENCE
from carag.policy.bits import bit_names, bits_of, flags_of
from carag.policy.entities import NOBODY, EntityList, entity_list
from carag.policy.word import CONTROL, VERSION_WORD, PolicyBit, same_bits

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from carag.policy.bits import Bits
    from carag.policy.word import PolicyFlag


MAX_MASKS: Final = 8
"""Greatest number of masks in a policy."""
MAX_ENTITY: Final = 0xFFFF_FFFF
"""Greatest entity number of a row of the index, in 32 bits."""
_MAX_NAMED: Final = 10
"""Greatest number of bits that a repr names; more are shown as a vector in hex."""
NO_ENTITY: Final = 0
"""Stands for no entity in a row about none, and for further unnamed entities that a passage may be about."""
ANY_AUDIENCE: Final = EntityList((), b"any")
"""Given as a policy's ``audiences``, admits every audience: for work on all rows, never for a session."""


_EVERYBODY: Final = entity_list("audiences", [EVERYBODY])


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Mask:
    """A conjunction: every required bit set, no forbidden bit set. ``Mask()`` admits every labelled, live row.

    Bits are read by :func:`carag.policy.bits_of`. ``flags`` gives the names of bits in errors and in the ``repr``; it
    does not change what a mask admits. Raises PolicyConflict if a bit is both required and forbidden.

    Examples
    --------
    >>> from carag.policy import PolicyBit
    >>> Mask(required="FS_AUDITED", forbidden=PolicyBit.PD_SPECIAL).admits(0x0800_0021)
    True
    """

    required: int
    forbidden: int
    flags: type[PolicyFlag] = field(compare=False)

    def __init__(
        self, required: Bits = 0, forbidden: Bits = 0, *, flags: type[PolicyFlag] | None = None
    ) -> None:
        if flags is None:
            flags = flags_of(required, forbidden)
        wanted = bits_of(required, name="required", flags=flags)
        barred = bits_of(forbidden, name="forbidden", flags=flags)
        if both := wanted & barred:
            raise PolicyConflict(
                f"bits {', '.join(bit_names(both, flags))} are both required and forbidden; "
                "drop them from one side, or refuse the session"
            )
        object.__setattr__(self, "required", wanted)
        object.__setattr__(self, "forbidden", barred)
        object.__setattr__(self, "flags", flags)

    def __repr__(self) -> str:
        sides = (("required", self.required), ("forbidden", self.forbidden))
        shown = ", ".join(f"{side}={_shown(bits, self.flags)}" for side, bits in sides if bits)
        return f"Mask({shown})" if shown else "Mask() <admits every labelled row>"

    @property
    def mask(self) -> int:
        """The bits that the test reads: the required, the forbidden and the control bits."""
        return self.required | self.forbidden | CONTROL

    @property
    def value(self) -> int:
        """The value that those bits must have: required bits and current schema version set, all others clear."""
        return self.required | VERSION_WORD

    def admits(self, word: int) -> bool:
        """Test one word."""
        return (word & self.mask) == self.value

    def tightened(self, required: int = 0, forbidden: int = 0) -> Mask:
        """Return the mask with additional required and forbidden bits."""
        return Mask(self.required | required, self.forbidden | forbidden, flags=self.flags)


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Policy:
    """An OR of up to eight masks, lists of entities, and audiences. ``Policy()`` has no mask, so it admits nothing.

    Parameters
    ----------
    *masks : Mask
        A word is admitted if any mask admits it.
    allow_entities : iterable of int, optional
        The only entities (for EDGAR, the filer's CIK) that rows may be about; an empty list admits nothing. Rows about
        no entity carry the number 0, and are admitted only if 0 is listed.
    deny_entities : iterable of int
        Entities that rows must not be about. Given both lists, denied entities are removed from the allowed ones.
    allow_if_any : bool
        Whether one entity on the allow list is enough for a passage about several. By default all must be on it, as
        behind an information barrier. One denied entity makes the passage inadmissible in either case.
    audiences : iterable of int
        The audiences whose rows are admitted, in addition to rows for everybody. An audience is a number that stands
        for lists of groups and persons (:class:`carag.policy.Audience`); 0 is everybody and need not be listed.

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
    >>> shared = Policy(Mask(), audiences=[3])
    >>> [shared.admits(0x0800_0001, audience=audience) for audience in (0, 3, 4)]
    [True, True, False]
    """

    masks: tuple[Mask, ...] = field(compare=False)
    allow_entities: tuple[int, ...] | None = field(compare=False)
    deny_entities: tuple[int, ...] = field(compare=False)
    allow_if_any: bool = field(compare=False)
    audiences: tuple[int, ...] = field(compare=False)
    _same: tuple[tuple[tuple[int, int], ...], bytes | None, bytes, bool, bytes]
    """All other fields, with the lists as bytes, which compare a hundred times faster."""

    def __init__(
        self,
        *masks: Mask,
        allow_entities: Iterable[int] | None = None,
        deny_entities: Iterable[int] = (),
        allow_if_any: bool = False,
        audiences: Iterable[int] | EntityList = NOBODY,
    ) -> None:
        for mask in masks:
            if type(mask) is not Mask:  # a subclass could give different answers at each call
                raise InvalidArgument(f"a policy is made of Mask objects; got {quoted(mask)}")
            if not same_bits(mask.flags, masks[0].flags):
                raise InvalidArgument(
                    f"{mask!r} and {masks[0]!r} are masks from two profiles; want masks from one profile"
                )
        if len(masks) > MAX_MASKS:
            raise InvalidArgument(f"a policy holds at most {MAX_MASKS} masks; got {len(masks)}")
        denied, allowed = entity_list("deny_entities", deny_entities), None
        if allow_entities is not None:
            # If all entities must be allowed, the remaining allow list is the whole condition.
            allowed = entity_list("allow_entities", allow_entities).without(denied)
            denied = denied if allow_if_any else NOBODY
        shared = audiences if isinstance(audiences, EntityList) else _audience_list(audiences)
        self._set(masks, allowed, denied, shared, allow_if_any=bool(allow_if_any) and allowed is not None)

    def _set(
        self,
        masks: tuple[Mask, ...],
        allowed: EntityList | None,
        denied: EntityList,
        shared: EntityList,
        *,
        allow_if_any: bool,
    ) -> None:
        pairs = tuple([(mask.required, mask.forbidden) for mask in masks])
        object.__setattr__(self, "masks", masks)
        object.__setattr__(self, "allow_entities", None if allowed is None else allowed.numbers)
        object.__setattr__(self, "deny_entities", denied.numbers)
        object.__setattr__(self, "allow_if_any", allow_if_any)
        object.__setattr__(self, "audiences", shared.numbers)
        packed = None if allowed is None else allowed.packed
        object.__setattr__(self, "_same", (pairs, packed, denied.packed, allow_if_any, shared.packed))

    def __repr__(self) -> str:
        # The repr shows that a list exists, never its entries: deal lists are inside information.
        listed = {
            "allow_entities": self.allow_entities is not None,
            "deny_entities": self.deny_entities,
            "audiences": self._same[4],
        }
        shown = ", ".join(
            [*map(repr, self.masks), *(f"{name}=<listed>" for name, there in listed.items() if there)]
        )
        return f"Policy({shown})" if self.masks else f"Policy({shown}) <admits nothing>"

    @property
    def flags(self) -> type[PolicyFlag]:
        """The flag type of the masks; EDGAR's without masks."""
        return self.masks[0].flags if self.masks else PolicyBit

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The masks as pairs (required, forbidden), in the form that records hold."""
        return self._same[0]

    @property
    def packed_entities(self) -> tuple[bytes | None, bytes]:
        """The allow list, if any, and the deny list, as unsigned 64-bit integers."""
        return self._same[1:3]

    @property
    def audience_list(self) -> EntityList:
        """The audiences as a list that was checked before: another policy takes it over without checking it again."""
        return EntityList(self.audiences, self._same[4])

    @property
    def any_audience(self) -> bool:
        """Whether every audience is admitted; ``audiences`` is then empty."""
        return self.audience_list == ANY_AUDIENCE

    def admits(self, word: int, entity: int | Collection[int] = NO_ENTITY, audience: int = EVERYBODY) -> bool:
        """Test one row: any mask must admit its word, the lists its audience and the entities it is about."""
        return (
            self.admits_audience(audience)
            and self.admits_entity(entity)
            and any(mask.admits(word) for mask in self.masks)
        )

    def admits_audience(self, audience: int) -> bool:
        """Test only the audience of a row."""
        return audience == EVERYBODY or self.any_audience or _is_listed(self.audiences, audience)

    def admits_entity(self, entity: int | Collection[int]) -> bool:
        """Test only the entities that a passage is about: one, or all possible ones; empty means :data:`NO_ENTITY`."""
        about = members(entity)
        if self.deny_entities and any(_is_listed(self.deny_entities, one) for one in about):
            return False
        if self.allow_entities is None:
            return True
        enough = any if self.allow_if_any else all
        return enough(_is_listed(self.allow_entities, one) for one in about)

    def denied_of(self, entity: int | Collection[int]) -> tuple[int, ...]:
        """Return the entities of a passage that are on the deny list, ascending."""
        return tuple(one for one in sorted(members(entity)) if _is_listed(self.deny_entities, one))

    def with_masks(self, *masks: Mask) -> Policy:
        """Return a policy with the same lists of entities and audiences, and different masks."""
        return self._like(masks, self.audience_list)

    def with_audiences(self, audiences: EntityList) -> Policy:
        """Return a policy that admits these audiences instead, with the same masks and lists of entities."""
        return self._like(self.masks, audiences)

    def _like(self, masks: tuple[Mask, ...], audiences: EntityList) -> Policy:
        other = Policy(*masks)
        allowed, denied = self.packed_entities  # checked already, and they may have thousands of entries
        lists = (
            None if self.allow_entities is None else EntityList(self.allow_entities, allowed or b""),
            EntityList(self.deny_entities, denied),
        )
        other._set(masks, *lists, audiences, allow_if_any=self.allow_if_any)
        return other


def _audience_list(audiences: Iterable[int]) -> EntityList:
    listed = entity_list("audiences", audiences)
    if listed.numbers and listed.numbers[-1] > MAX_AUDIENCE:
        raise InvalidArgument(
            f"audiences holds {listed.numbers[-1]}; want numbers of audiences, 1 to {MAX_AUDIENCE}"
        )
    return listed.without(_EVERYBODY) if listed.numbers[:1] == _EVERYBODY.numbers else listed


def members(entity: int | Collection[int]) -> Collection[int]:
    """Return all entities that a passage is about; :data:`NO_ENTITY` alone if it is about no entity."""
    return (entity or (NO_ENTITY,)) if isinstance(entity, (tuple, frozenset, set, list)) else (entity,)


def _shown(bits: int, flags: type[PolicyFlag]) -> str:
    names = bit_names(bits, flags)
    return f"{bits:#x}" if len(names) > _MAX_NAMED else repr(names[0] if len(names) == 1 else list(names))


def _is_listed(ascending: tuple[int, ...], entity: int) -> bool:
    at = bisect_left(ascending, entity)
    return at < len(ascending) and ascending[at] == entity


def check_policy(policy: object) -> None:
    """Check that the argument is exactly a Policy or a Mask, because a subclass could admit more."""
    if type(policy) is not Policy and type(policy) is not Mask:
        raise InvalidArgument(
            f"policy is {quoted(policy)}; want a carag.Policy or carag.Mask: nothing is searched without one"
        )
