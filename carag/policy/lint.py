"""Find likely mistakes in a valid table: bits that no mask reads, roles without a cell, masks that do nothing."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from carag.policy.bits import bits_of
from carag.policy.diff import covers
from carag.policy.intents import Intent
from carag.policy.mask import Mask
from carag.policy.vocabulary import PolicyBit

if TYPE_CHECKING:
    from carag.policy.table import Cell, PolicyTable

__all__ = ["Finding", "lint", "users_of"]

_PLACES: Final = bits_of(["J_US", "J_EU", "J_UK", "J_CA", "J_OTHER"])
# Masks that match no word, from two laws of the vocabulary: a filer has at least one jurisdiction (J_OTHER if none is
# stated), and a superseded filing is also amended.
_IMPOSSIBLE: Final = (
    Mask(forbidden=_PLACES),
    Mask(required=PolicyBit.SUPERSEDED, forbidden=PolicyBit.AMENDED),
)
# Bits that sessions and questions test, whatever the table says.
_MODULATORS: Final = {
    "session residency": _PLACES,
    "session eu_transfer_basis": bits_of(["J_EU", "PD_INSIDER", "PD_COMP", "PD_NATURAL", "PD_SPECIAL"]),
    "session cooling": bits_of(["MATERIAL"]),
    **{f"intent {intent.value}": intent.required | intent.forbidden for intent in Intent},
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A likely mistake: a stable code, the place and an explanation."""

    code: str
    where: str
    text: str

    def to_json(self) -> dict[str, str]:
        """Return plain values."""
        return asdict(self)


def lint(table: PolicyTable) -> tuple[Finding, ...]:
    """Find likely mistakes in a valid table.

    Returns
    -------
    tuple of Finding
        ``UNREACHABLE_BIT``, ``UNUSED_ROLE``, ``UNUSED_PURPOSE``, ``ALWAYS_EMPTY``, ``EMPTY_MASK``
        and ``SUPERFLUOUS_MASK``.
    """
    found = [
        Finding("UNREACHABLE_BIT", bit.name, "no cell, session or intent requires or forbids it")
        for bit in PolicyBit
        if not users_of(bit, table)
    ]
    for kind, declared, used in (
        ("ROLE", table.roles, {cell.role for cell in table.cells}),
        ("PURPOSE", table.purposes, {cell.purpose for cell in table.cells}),
    ):
        found += [
            Finding(f"UNUSED_{kind}", name, "declared, and no cell has it")
            for name in declared
            if name not in used
        ]
    for cell in table.cells:
        found += _of_cell(cell)
    return tuple(found)


def users_of(bit: PolicyBit, table: PolicyTable) -> tuple[str, ...]:
    """List the cells, session terms and intents that test a bit."""
    cells = [
        f"{cell.role}/{cell.purpose}"
        for cell in table.cells
        if any((pair.mask.required | pair.mask.forbidden) & bit.value for pair in cell.masks)
    ]
    return (*cells, *(name for name, bits in _MODULATORS.items() if bits & bit.value))


def _of_cell(cell: Cell) -> list[Finding]:
    where = f"{cell.role}/{cell.purpose}"
    masks = [pair.mask for pair in cell.masks]
    is_empty = [any(covers([impossible], mask) for impossible in _IMPOSSIBLE) for mask in masks]
    found = []
    if all(is_empty):
        return [Finding("ALWAYS_EMPTY", where, "no labelled passage can meet any of its masks")]
    for number, (pair, mask) in enumerate(zip(cell.masks, masks, strict=True), start=1):
        if is_empty[number - 1]:
            found.append(Finding("EMPTY_MASK", where, f"no labelled passage can meet mask {number}"))
            continue
        # Of two equal masks, the later one is superfluous.
        others = [
            other.mask
            for at, other in enumerate(cell.masks, start=1)
            if at != number and other.when in (None, pair.when) and (other.mask != mask or at < number)
        ]
        if covers(others, mask):
            found.append(
                Finding("SUPERFLUOUS_MASK", where, f"mask {number} admits only what the others admit")
            )
    return found
