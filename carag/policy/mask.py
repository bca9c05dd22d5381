"""Masks and policies: what a session may see, as an OR of (required, forbidden) pairs.

A pair compiles to one AND and one compare, ``(word & mask) == value``. Because ``mask`` always covers the
control bits, deletion, quarantine and a missing label are the same test as the policy itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from carag.errors import InvalidArgument, PolicyConflict
from carag.policy.vocabulary import CONTROL, POLICY_BITS, VERSION_WORD, bit_names

__all__ = ["MAX_MASKS", "Mask", "Policy"]

MAX_MASKS: Final = 8


@dataclass(frozen=True, slots=True)
class Mask:
    """A conjunction: every required bit set, no forbidden bit set.

    Parameters
    ----------
    required, forbidden : int
        27-bit vectors. ``Mask(0, 0)`` admits every labelled, live row.

    Raises
    ------
    InvalidArgument
        If a value is no integer in ``0 <= bits < 2**27``.
    PolicyConflict
        If a bit is both required and forbidden.

    Examples
    --------
    >>> Mask(required=0x20, forbidden=0x4000).admits(0x0800_0021)
    True
    """

    required: int = 0
    forbidden: int = 0

    def __post_init__(self) -> None:
        for name in ("required", "forbidden"):
            bits = getattr(self, name)
            if isinstance(bits, bool) or not hasattr(bits, "__index__"):
                raise InvalidArgument(f"{name} is {bits!r}; want an integer in 0 <= bits < 2**27")
            bits = bits.__index__()
            if not 0 <= bits <= POLICY_BITS:
                raise InvalidArgument(
                    f"{name} is {bits:#x}; want 0 <= bits < 2**27 (control bits are not policy)"
                )
            object.__setattr__(self, name, bits)
        if both := self.required & self.forbidden:
            raise PolicyConflict(
                f"bits {', '.join(bit_names(both))} are both required and forbidden; "
                "drop them from one side, or refuse the session"
            )

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


@dataclass(frozen=True, slots=True, init=False)
class Policy:
    """An OR of up to eight masks. ``Policy()`` has none, so it admits nothing.

    Examples
    --------
    >>> Policy(Mask(0x800, 0x10000), Mask(0x1000, 0x10000)).admits(0x0800_1002)
    True
    >>> Policy().admits(0x0800_0001)
    False
    """

    masks: tuple[Mask, ...]

    def __init__(self, *masks: Mask) -> None:
        for mask in masks:
            if not isinstance(mask, Mask):
                raise InvalidArgument(f"a policy is made of Mask objects; got {mask!r}")
        if len(masks) > MAX_MASKS:
            raise InvalidArgument(f"a policy holds at most {MAX_MASKS} masks; got {len(masks)}")
        object.__setattr__(self, "masks", masks)

    def admits(self, word: int) -> bool:
        """Test one word: admissible if any mask admits it."""
        return any(mask.admits(word) for mask in self.masks)
