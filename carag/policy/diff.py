"""Compare two policy tables: list exactly which cells admit more and which admit less.

Containment cannot be decided pair by pair (two halves cover a whole), so a pair is split until each part is contained
in one pair of the other side, or disjoint from all.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, get_args

from carag.errors import InvalidArgument
from carag.policy.bits import bit_names
from carag.policy.table import Past
from carag.policy.word import same_bits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.policy.mask import Mask
    from carag.policy.table import BreakGlass, Cell, Pair, PolicyTable


_PASTS: Final = get_args(Past)
"""Rights to ask about the past, from fewest to most."""


class Direction(StrEnum):
    """The effect of a change on what may be used."""

    WIDENS = "widens"
    TIGHTENS = "tightens"
    BOTH = "both"
    SAME = "same"
    """The cell is written differently, but admits the same passages."""


@dataclass(frozen=True, slots=True)
class CellChange:
    """One cell that differs between two tables; ``old`` or ``new`` is None where the table lacks it."""

    role: str
    purpose: str
    old: Cell | None
    new: Cell | None
    direction: Direction
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "role": self.role,
            "purpose": self.purpose,
            "change": "added" if self.old is None else "removed" if self.new is None else "changed",
            "direction": self.direction.value,
            "notes": list(self.notes),
        }


def covers(masks: Sequence[Mask], part: Mask) -> bool:
    """Tell whether every word that a mask admits is admitted by one of several masks."""
    met = [
        mask for mask in masks if not mask.required & part.forbidden and not mask.forbidden & part.required
    ]
    if not met:
        return False
    nearest = min(met, key=lambda mask: _open(mask, part).bit_count())
    free = _open(nearest, part)
    if not free:
        return True
    bit = free & -free
    return covers(met, part.tightened(required=bit)) and covers(met, part.tightened(forbidden=bit))


def compare(old: PolicyTable, new: PolicyTable) -> tuple[CellChange, ...]:
    r"""List the cells that differ, in the order of the new table and then of the old; both must have one profile."""
    if not same_bits(old.vocabulary.flags, new.vocabulary.flags):
        raise InvalidArgument(
            f"the tables belong to the profiles {old.vocabulary.profile} and {new.vocabulary.profile}, whose bits "
            "differ; compare two tables of one profile"
        )
    before = {(cell.role, cell.purpose): cell for cell in old.cells}
    after = {(cell.role, cell.purpose): cell for cell in new.cells}
    found = []
    for role, purpose in dict.fromkeys([*after, *before]):
        was, now = before.get((role, purpose)), after.get((role, purpose))
        if was is None or now is None or was.model_dump() != now.model_dump():
            found.append(CellChange(role, purpose, was, now, _direction(was, now), _notes(was, now)))
    return tuple(found)


def _open(mask: Mask, part: Mask) -> int:
    return (mask.required & ~part.required) | (mask.forbidden & ~part.forbidden)


def _direction(old: Cell | None, new: Cell | None) -> Direction:
    if old is None or new is None:
        return Direction.WIDENS if old is None else Direction.TIGHTENS
    widens = _admits_more(old, new)
    tightens = _admits_more(new, old)
    if widens and tightens:
        return Direction.BOTH
    if widens:
        return Direction.WIDENS
    return Direction.TIGHTENS if tightens else Direction.SAME


def _admits_more(old: Cell, new: Cell) -> bool:
    plain = old.policy.masks
    reopened = (*plain, *(old.reopened.masks if old.reopened else ()))
    return (
        any(not covers(plain, mask) for mask in new.policy.masks)
        or any(not covers(reopened, mask) for mask in (new.reopened.masks if new.reopened else ()))
        or (new.may_know_existence and not old.may_know_existence)
        or (new.personal_data and not old.personal_data)
        or (new.allow_list == "none" and old.allow_list == "mandatory")
        or _opens_longer(old.break_glass, new.break_glass)
        or _PASTS.index(new.past) > _PASTS.index(old.past)
    )


def _opens_longer(old: BreakGlass | None, new: BreakGlass | None) -> bool:
    """Tell whether a cell that opened only by breaking the glass opens always, longer, or without a second person."""
    if old is None or new is None:
        return old is not None
    return new.minutes > old.minutes or (old.two_persons and not new.two_persons)


def _notes(old: Cell | None, new: Cell | None) -> tuple[str, ...]:
    if old is None:
        return ("cell added: it was refused",)
    if new is None:
        return ("cell removed: it is refused",)
    notes = []
    if len(old.masks) == len(new.masks):
        compiled = zip(old.compiled, new.compiled, strict=True)
        for number, (was, now, (left, right)) in enumerate(
            zip(old.masks, new.masks, compiled, strict=True), start=1
        ):
            for verb, before, after in (
                ("forbids", left.forbidden, right.forbidden),
                ("requires", left.required, right.required),
            ):
                if more := bit_names(after & ~before, right.flags):
                    notes.append(f"mask {number}: also {verb} {', '.join(more)}")
                if less := bit_names(before & ~after, right.flags):
                    notes.append(f"mask {number}: no longer {verb} {', '.join(less)}")
            if was.when != now.when:
                notes.append(f"mask {number}: when {was.when or 'always'} is now {now.when or 'always'}")
    else:
        said, says = ([_read(pair) for pair in cell.masks] for cell in (old, new))
        notes += [f"mask removed: {text}" for text in said if text not in says]
        notes += [f"mask added: {text}" for text in says if text not in said]
    for name in ("may_know_existence", "personal_data", "past", "allow_list", "break_glass", "regulation"):
        before, after = getattr(old, name), getattr(new, name)
        if before != after:
            notes.append(f"{name}: {before} is now {after}")
    return tuple(notes)


def _read(pair: Pair) -> str:
    parts = [
        f"{verb} {', '.join(names)}"
        for verb, names in (("requires", pair.required), ("forbids", pair.forbidden))
        if names
    ]
    return "; ".join(parts or ["everything"]) + (f"; when {pair.when}" if pair.when else "")
