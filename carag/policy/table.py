"""The role x purpose table as validated data.

The table is read from TOML text that the caller brings; this room opens no file. Unknown keys, unknown
bits, double cells and conflicting masks are refused, so a typing slip cannot widen a policy.
"""

from __future__ import annotations

import hashlib
import tomllib
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from carag.errors import InvalidArgument
from carag.policy.mask import MAX_MASKS, Mask, Policy
from carag.policy.vocabulary import bits_of

__all__ = ["Cell", "PolicyTable"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Pair(_Strict):
    required: list[str] = []
    forbidden: list[str] = []


class Cell(_Strict):
    """One role for one purpose."""

    role: str = Field(pattern=r"^[a-z][a-z_]*$", max_length=64)
    purpose: str = Field(pattern=r"^[a-z][a-z_]*$", max_length=64)
    regulation: str = Field(min_length=1)
    may_know_existence: bool
    allow_list: Literal["none", "mandatory"] = "none"
    masks: list[_Pair] = Field(min_length=1, max_length=MAX_MASKS)

    @property
    def policy(self) -> Policy:
        """The masks as the native core takes them."""
        return Policy(*(Mask(bits_of(p.required), bits_of(p.forbidden)) for p in self.masks))

    @model_validator(mode="after")
    def _compile(self) -> Self:
        _ = self.policy  # an unknown bit or a conflict refuses the table, not a later question
        return self


class _Document(_Strict):
    schema_: Literal[1] = Field(alias="schema")
    cell: list[Cell] = Field(min_length=1)


class PolicyTable:
    """A validated role x purpose table.

    Attributes
    ----------
    cells : tuple of Cell
        In the order of the text.
    sha256 : str
        Hex digest of the text, as recorded in every audit record.
    """

    __slots__ = ("_by_key", "cells", "sha256")

    def __init__(self, cells: tuple[Cell, ...], sha256: str) -> None:
        self.cells = cells
        self.sha256 = sha256
        self._by_key = {(cell.role, cell.purpose): cell for cell in cells}
        if len(self._by_key) != len(cells):
            keys = [f"{cell.role}/{cell.purpose}" for cell in cells]
            double = sorted({key for key in keys if keys.count(key) > 1})
            raise InvalidArgument(f"policy table has {', '.join(double)} more than once; want one cell each")

    @classmethod
    def from_toml(cls, text: str) -> Self:
        """Validate a table.

        Raises
        ------
        InvalidArgument
            If the text is no TOML, or breaks the schema; the message names the cell and field.
        """
        try:
            document = _Document.model_validate(tomllib.loads(text))
        except (tomllib.TOMLDecodeError, ValidationError) as error:
            raise InvalidArgument(f"policy table is not valid: {error}") from error
        return cls(tuple(document.cell), hashlib.sha256(text.encode()).hexdigest())

    @property
    def roles(self) -> tuple[str, ...]:
        """Roles in table order."""
        return tuple(dict.fromkeys(cell.role for cell in self.cells))

    @property
    def purposes(self) -> tuple[str, ...]:
        """Purposes in table order."""
        return tuple(dict.fromkeys(cell.purpose for cell in self.cells))

    def get(self, role: str, purpose: str) -> Cell | None:
        """Return the cell, or None: the caller refuses."""
        return self._by_key.get((role, purpose))
