"""Find likely mistakes in a valid table: bits that no mask reads, roles without a cell, masks that do nothing."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from carag.policy.diff import covers

if TYPE_CHECKING:
    from carag.policy.table import Cell, PolicyTable
    from carag.policy.vocabulary import Vocabulary
    from carag.policy.word import PolicyFlag


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
    """Find likely mistakes in a valid table."""
    found = [
        Finding("UNREACHABLE_BIT", bit.name, "no cell, session or intent requires or forbids it")
        for bit in table.vocabulary.flags
        if not users_of(bit, table)
    ]
    for kind, declared, used in (
        ("ROLE", table.roles, {cell.role for cell in table.cells}),
        ("PURPOSE", table.purposes, {cell.purpose for cell in table.cells}),
    ):
        found += [
            Finding(f"UNUSED_{kind}", name, "declared, but not used by any cell")
            for name in declared
            if name not in used
        ]
    for cell in table.cells:
        found += _of_cell(cell, table.vocabulary)
    return tuple(found)


def users_of(bit: PolicyFlag, table: PolicyTable) -> tuple[str, ...]:
    """List the cells, session terms and intents that test a bit."""
    cells = [
        f"{cell.role}/{cell.purpose}"
        for cell in table.cells
        if any((mask.required | mask.forbidden) & bit.value for mask in cell.compiled)
    ]
    return (*cells, *(name for name, bits in _modulators(table.vocabulary).items() if bits & bit.value))


def _modulators(said: Vocabulary) -> dict[str, int]:
    """Return the bits that sessions and questions test, whatever the table says."""
    return {
        "session residency": said.groups.jurisdictions,
        "session eu_transfer_basis": said.groups.transfer | said.groups.personal,
        "session cooling": said.groups.cooling,
        **{f"intent {rule.name}": rule.mask.required | rule.mask.forbidden for rule in said.intents.rules},
    }


def _of_cell(cell: Cell, said: Vocabulary) -> list[Finding]:
    where = f"{cell.role}/{cell.purpose}"
    masks = cell.compiled
    is_empty = [any(covers([impossible], mask) for impossible in said.impossible) for mask in masks]
    found = []
    if all(is_empty):
        return [Finding("ALWAYS_EMPTY", where, "no labelled passage can meet any of its masks")]
    for number, (pair, mask) in enumerate(zip(cell.masks, masks, strict=True), start=1):
        if is_empty[number - 1]:
            found.append(Finding("EMPTY_MASK", where, f"no labelled passage can meet mask {number}"))
            continue
        # Of two equal masks, the later one is superfluous.
        others = [
            masks[at - 1]
            for at, other in enumerate(cell.masks, start=1)
            if at != number and other.when in (None, pair.when) and (masks[at - 1] != mask or at < number)
        ]
        if covers(others, mask):
            found.append(
                Finding("SUPERFLUOUS_MASK", where, f"mask {number} admits only what the others admit")
            )
    return found
