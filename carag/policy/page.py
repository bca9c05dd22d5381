"""Write the page that documents a profile: its bits, the facts that set them, and who may use what, as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carag.policy.bits import bit_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.policy.mask import Mask
    from carag.policy.profile import Profile
    from carag.policy.table import Cell, PolicyTable
    from carag.policy.vocabulary import FactRule, Vocabulary
    from carag.policy.word import PolicyFlag


_OPERATORS = {"equals": "is", "one_of": "is one of", "contains": "lists", "at_least": "≥", "at_most": "≤"}


def profile_page(profile: Profile) -> str:
    """Return the page about a profile's bits, in Markdown."""
    said, table = profile.vocabulary, profile.table
    return "\n".join(
        [
            f"# The {len(said.flags)} bits of the profile {profile.name}",
            "",
            "<!-- Written by `carag policy bits`. Change profile.toml or roles.toml, not this page. -->",
            "",
            *_summary(said),
            *(line for bit in said.flags for line in _section(bit, said, table)),
            *_facts(said),
            *_intents(said),
            *_cells(table),
        ]
    )


def cells_with(table: PolicyTable, bit: PolicyFlag, *, required: bool) -> str:
    """Name the cells that hide every passage with the bit, or that have a mask requiring it."""
    found = []
    for cell in table.cells:
        masks = cell.policy.masks
        if required:
            concerned = any(mask.required & bit.value for mask in masks)
        else:
            concerned = all(mask.forbidden & bit.value for mask in masks)
        if concerned:
            one_of = " (one of)" if required and len(masks) > 1 else ""
            found.append(f"{cell.role}/{cell.purpose}{one_of}")
    return ", ".join(found)


_LIFECYCLE: Final = {
    "replaced": "from when another document replaces it",
    "withdrawn": "from when another document withdraws it",
    "amended": "from when another document amends it",
    "pending": "until it is in force",
}
"""When a document has a bit, keyed by the lifecycle field in the profile that sets the bit."""


def _summary(said: Vocabulary) -> Iterator[str]:
    yield "| bit | name | carried by |"
    yield "|---|---|---|"
    for bit in said.flags:
        yield (
            f"| {bit.number} | [{bit.name}](#{bit.number}-{bit.name.lower()}) | {said.meanings[bit.name].document} |"
        )
    yield ""


def _section(bit: PolicyFlag, said: Vocabulary, table: PolicyTable) -> Iterator[str]:
    meant = said.meanings[bit.name]
    yield f"## {bit.number} {bit.name}"
    yield ""
    yield f"{meant.document[0].upper()}{meant.document[1:]}."
    yield ""
    yield f"- word: `{bit.value:#010x}`"
    for rule in said.rules:
        if rule.bit == bit.name:
            yield f"- set where {_condition(rule)} ({rule.regulation})"
    for kind, name in said.lifecycle.names.items():
        if name == bit.name:
            yield f"- set {_LIFECYCLE[kind]}"
    yield f"- regulation: {meant.regulation}"
    yield f"- lifted by: {meant.lift}"
    yield f"- forbidden by: {cells_with(table, bit, required=False) or 'no cell'}"
    if required := cells_with(table, bit, required=True):
        yield f"- required by: {required}"
    yield ""


def _condition(rule: FactRule) -> str:
    if rule.operator == "is_true":
        return f"`{rule.field}` is true"
    values = rule.value if isinstance(rule.value, list) else [rule.value]
    return f"`{rule.field}` {_OPERATORS[rule.operator]} {', '.join(map(str, values))}"


def _facts(said: Vocabulary) -> Iterator[str]:
    yield "## Facts and metadata"
    yield ""
    for one in said.required:
        yield f"- `{one.field}` must be stated, as {', '.join(one.one_of)}; a document is quarantined otherwise"
    for field, kind in said.metadata.items():
        yield f"- a search can be narrowed by `{field}`, a {kind}"
    if not said.required and not said.metadata:
        yield "None is required, and none narrows a search."
    yield ""


def _intents(said: Vocabulary) -> Iterator[str]:
    if not said.intents.rules:
        return
    yield "## What a question can tighten"
    yield ""
    for rule in said.intents.rules:
        unless = "" if rule.unless is None else f", but for cells with {rule.unless}"
        yield f"- {rule.name}: {_bits(rule.mask)}{unless}"
    yield ""


def _cells(table: PolicyTable) -> Iterator[str]:
    yield "## Roles and purposes"
    yield ""
    yield "| role | purpose | may use documents with | rights | regulation |"
    yield "|---|---|---|---|---|"
    for cell in table.cells:
        masks = "; or ".join(map(_bits, cell.policy.masks))
        yield f"| {cell.role} | {cell.purpose} | {masks} | {_rights(cell)} | {cell.regulation} |"
    yield ""


def _bits(mask: Mask) -> str:
    needs, bans = (", ".join(bit_names(bits, mask.flags)) for bits in (mask.required, mask.forbidden))
    said = " and ".join(filter(None, (needs, bans and f"no {bans}")))
    return said or "any bits"


def _rights(cell: Cell) -> str:
    rights = {
        "may know of hidden passages": cell.may_know_existence,
        "personal data": cell.personal_data,
        "the past as it was public": "as_of" in cell.past,
        "the past as it was known": "known_at" in cell.past,
        "needs an allow-list": cell.allow_list == "mandatory",
        "opens by breaking the glass": cell.break_glass is not None,
    }
    return ", ".join(name for name, holds in rights.items() if holds) or "none"
