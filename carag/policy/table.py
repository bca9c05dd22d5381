"""Validate the role x purpose table of a profile: ``roles.toml``.

Unknown keys, unknown bits, duplicate cells and conflicting masks are refused, so a typing error cannot widen a policy.
"""

from __future__ import annotations

import tomllib
from functools import cached_property
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from carag.errors import CaragError, InvalidArgument
from carag.policy.mask import MAX_MASKS, Mask, Policy
from carag.policy.shipped import DEFAULT_PROFILE, shipped_text, table_hashes
from carag.policy.vocabulary import Vocabulary
from carag.policy.word import PolicyFlag

__all__ = ["Cell", "Pair", "Past", "PolicyTable"]

Past: TypeAlias = Literal["none", "as_of", "as_of+known_at"]
"""Rights to ask about the past; each includes the one before."""
_Name = Annotated[str, Field(pattern=r"^[a-z][a-z_]*$", max_length=64)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Pair(_Strict):
    """One (required, forbidden) pair of a cell, by the names of its bits."""

    required: list[str] = []
    forbidden: list[str] = []
    when: Literal["not_participating"] | None = None
    """If set, the pair admits only if a deal list is known, and only companies that are not on it."""

    def mask(self, flags: type[PolicyFlag]) -> Mask:
        """Return the pair as bits of a profile."""
        return Mask(self.required, self.forbidden, flags=flags)


class Cell(_Strict):
    """One cell of the table: what one role may use for one purpose."""

    role: _Name
    purpose: _Name
    regulation: str = Field(min_length=1)
    may_know_existence: bool
    past: Past
    """Which past it may ask about: none, what was public at an instant, or also what was known at one."""
    allow_list: Literal["none", "mandatory"] = "none"
    personal_data: bool = False
    """Whether the role may look up persons by name."""
    masks: list[Pair] = Field(min_length=1, max_length=MAX_MASKS)

    flags: type[PolicyFlag] = Field(default=PolicyFlag, exclude=True, repr=False)
    """Of which profile the names of bits are; the table that the cell stands in sets it."""

    @cached_property
    def policy(self) -> Policy:
        """The masks as the native core takes them."""
        return Policy(*(pair.mask(self.flags) for pair in self.masks if pair.when is None))

    @cached_property
    def reopened(self) -> Policy | None:
        """The further masks, which admit companies in whose offerings the firm takes no part."""
        masks = [pair.mask(self.flags) for pair in self.masks if pair.when is not None]
        return Policy(*masks) if masks else None

    def stated(self) -> dict[str, Any]:
        """Return what the table states of the cell, as plain values."""
        return self.model_dump()

    def check(self) -> None:
        """Compile the masks: an unknown bit or a conflict is refused when the table is read, not at a later question.

        Raises
        ------
        InvalidArgument
            If a mask is not valid, all masks are conditional, or a passage could be admitted twice.
        """
        where = f"policy table is not valid: {self.role}/{self.purpose}"
        try:
            masks, more = self.policy.masks, self.reopened
        except CaragError as error:
            raise InvalidArgument(f"{where}: {error}") from error
        if not masks:
            raise InvalidArgument(f"{where} has conditional masks only; want one without `when`")
        for one in () if more is None else more.masks:
            for mask in masks:
                if not one.required & mask.forbidden and not one.forbidden & mask.required:
                    raise InvalidArgument(
                        f"{where}: a mask with `when` overlaps one without; let it require what "
                        "the other forbids, so that no passage is admitted twice"
                    )


class _Document(_Strict):
    schema_: Literal[1] = Field(alias="schema")
    roles: list[_Name] = []
    purposes: list[_Name] = []
    cell: list[Cell] = Field(min_length=1)

    @model_validator(mode="after")
    def _declare(self) -> Self:
        for kind, declared, used in (
            ("role", self.roles, [cell.role for cell in self.cell]),
            ("purpose", self.purposes, [cell.purpose for cell in self.cell]),
        ):
            if declared and (unknown := sorted(set(used) - set(declared))):
                raise ValueError(
                    f"{kind} {', '.join(unknown)} is not declared; want some of {', '.join(declared)}"
                )
        return self


class PolicyTable:
    """A validated role x purpose table.

    Attributes
    ----------
    cells : tuple of Cell
        In the order of the text.
    sha256 : str
        Hex digest of the table and its vocabulary, as recorded in every audit record.
    hashes : frozenset of str
        All digests by which a record may name it: records of 0.2.0 name the text of the table alone.
    vocabulary : Vocabulary
        What its bits mean, and which words of a question tighten.
    roles, purposes : tuple of str
        As declared, or in the order of the cells.
    """

    __slots__ = ("_by_key", "cells", "hashes", "purposes", "roles", "sha256", "vocabulary")

    def __init__(
        self,
        cells: tuple[Cell, ...],
        sha256: str,
        *,
        vocabulary: Vocabulary,
        hashes: frozenset[str] = frozenset(),
        roles: tuple[str, ...] = (),
        purposes: tuple[str, ...] = (),
    ) -> None:
        self.cells = cells
        self.sha256 = sha256
        self.hashes = hashes | {sha256}
        self.vocabulary = vocabulary
        self.roles = roles or tuple(dict.fromkeys(cell.role for cell in cells))
        self.purposes = purposes or tuple(dict.fromkeys(cell.purpose for cell in cells))
        self._by_key = {(cell.role, cell.purpose): cell for cell in cells}
        if len(self._by_key) != len(cells):
            keys = [f"{cell.role}/{cell.purpose}" for cell in cells]
            double = sorted({key for key in keys if keys.count(key) > 1})
            raise InvalidArgument(f"policy table has {', '.join(double)} more than once; want one cell each")

    @classmethod
    def from_toml(cls, text: str, vocabulary: Vocabulary | None = None) -> Self:
        """Validate a table.

        Parameters
        ----------
        text : str
        vocabulary : Vocabulary, optional
            Of which profile the bits are; by default EDGAR's.

        Raises
        ------
        InvalidArgument
            If the text is not TOML, or breaks the schema; the message names the cell and field.
        """
        vocabulary = vocabulary or Vocabulary.shipped()
        try:
            document = _Document.model_validate(tomllib.loads(text))
        except (tomllib.TOMLDecodeError, ValidationError) as error:
            raise InvalidArgument(f"policy table is not valid: {error}") from error
        cells = tuple(cell.model_copy(update={"flags": vocabulary.flags}) for cell in document.cell)
        for cell in cells:
            cell.check()
        both, alone = table_hashes(vocabulary.text, text)
        return cls(
            cells,
            both,
            vocabulary=vocabulary,
            hashes=frozenset({alone}),
            roles=tuple(document.roles),
            purposes=tuple(document.purposes),
        )

    @classmethod
    def shipped(cls, profile: str = DEFAULT_PROFILE) -> Self:
        """Read the table of a profile that ships with the package.

        Examples
        --------
        >>> PolicyTable.shipped().roles[0]
        'sell_side'
        """
        return cls.from_toml(shipped_text(profile, "roles.toml"), Vocabulary.shipped(profile))

    def get(self, role: str, purpose: str) -> Cell | None:
        """Return the cell, or None: the caller refuses."""
        return self._by_key.get((role, purpose))
