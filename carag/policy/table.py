"""Validate ``roles.toml``: unknown keys or bits, duplicate cells and conflicting masks are refused."""

from __future__ import annotations

import hashlib
from functools import cache, cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from carag.errors import InvalidArgument
from carag.limits import quoted
from carag.policy.bits import nearest
from carag.policy.mask import MAX_MASKS, Mask, Policy
from carag.policy.shipped import DEFAULT_PROFILE, shipped_text, table_hashes
from carag.policy.toml_lines import Toml
from carag.policy.vocabulary import Schema, Text, Vocabulary

if TYPE_CHECKING:
    from carag.policy.word import PolicyFlag


Past: TypeAlias = Literal["none", "as_of", "as_of+known_at"]
"""Rights to ask about the past; each includes the one before."""
_Name = Annotated[str, Field(pattern=r"^[a-z][a-z_]*$", max_length=64)]


class _RolesPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class Pair(_RolesPart):
    """One (required, forbidden) pair in a cell, given by the names of the bits."""

    required: list[str] = []
    forbidden: list[str] = []
    when: Literal["not_participating"] | None = None
    """If set, the pair admits only if a deal list is known, and only companies that are not on it."""

    @model_validator(mode="after")
    def _is_a_mask(self, info: ValidationInfo) -> Self:
        Mask(self.required, self.forbidden, flags=info.context)
        return self


class BreakGlass(_RolesPart):
    """The terms of a cell that opens only by breaking the glass."""

    minutes: Annotated[int, Field(ge=1, le=24 * 60)] = 60
    """How long the cell stays open."""
    two_persons: bool = False
    """Whether a second person must approve."""


class Cell(_RolesPart):
    """One cell of the table: what one role may use for one purpose."""

    role: _Name
    purpose: _Name
    regulation: Text
    may_know_existence: bool
    past: Past
    """The past that it may ask about: none, what was public at an instant, or also what was known at an instant."""
    allow_list: Literal["none", "mandatory"] = "none"
    personal_data: bool = False
    """Whether the role may look up persons by name."""
    break_glass: BreakGlass | None = None
    """If stated, the cell opens only by breaking the glass; ``true`` for the usual terms."""
    masks: list[Pair] = Field(min_length=1, max_length=MAX_MASKS)

    _flags: type[PolicyFlag] = PrivateAttr()

    @field_validator("break_glass", mode="before")
    @classmethod
    def _usual(cls, value: object) -> object:
        return BreakGlass() if value is True else value

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of all that the cell states, in hexadecimal."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    @cached_property
    def compiled(self) -> tuple[Mask, ...]:
        """All masks, as bits of the table's profile."""
        return tuple(Mask(pair.required, pair.forbidden, flags=self._flags) for pair in self.masks)

    @cached_property
    def policy(self) -> Policy:
        """The masks without ``when``, as the native core takes them."""
        return Policy(*self._when(conditional=False))

    @cached_property
    def reopened(self) -> Policy | None:
        """The masks with ``when``, which admit companies in whose offerings the firm takes no part."""
        masks = self._when(conditional=True)
        return Policy(*masks) if masks else None

    def _when(self, *, conditional: bool) -> list[Mask]:
        return [
            mask
            for pair, mask in zip(self.masks, self.compiled, strict=True)
            if (pair.when is not None) is conditional
        ]

    def model_post_init(self, context: Any, /) -> None:
        """Take the flag type of the table's profile from the validation context."""
        self._flags = context

    @model_validator(mode="after")
    def _compile(self) -> Self:
        # An unknown bit or a conflict is refused when the table is read, not at a later question.
        if not self.policy.masks:
            raise ValueError(f"{self.role}/{self.purpose} has only masks with `when`; add one without")
        for more in () if self.reopened is None else self.reopened.masks:
            for mask in self.policy.masks:
                if not more.required & mask.forbidden and not more.forbidden & mask.required:
                    raise ValueError(
                        f"{self.role}/{self.purpose}: a mask with `when` overlaps one without; make the first "
                        "require what the second forbids, so that no passage is admitted twice"
                    )
        return self


class _RolesFile(_RolesPart):
    schema_: Schema = Field(alias="schema")
    roles: list[_Name] = []
    purposes: list[_Name] = []
    cell: list[Cell] = Field(min_length=1)

    def check(self, toml: Toml) -> None:
        """Refuse undeclared roles and purposes, and a second cell for the same pair."""
        keys = [(cell.role, cell.purpose) for cell in self.cell]
        for number, (role, purpose) in enumerate(keys):
            for kind, used, declared in (("role", role, self.roles), ("purpose", purpose, self.purposes)):
                if declared and used not in declared:
                    with toml.at("cell", number, kind):
                        raise InvalidArgument(f"{quoted(used)} is not declared; {nearest(used, declared)}")
            if (role, purpose) in keys[:number]:
                with toml.at("cell", number):
                    raise InvalidArgument(f"{role}/{purpose} already has a cell; merge the two")


class PolicyTable:
    """A validated role x purpose table.

    ``hashes`` are all the digests by which a record may name the table: records of 0.2.0 name only the table's text.
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

    @classmethod
    def from_toml(cls, text: str, vocabulary: Vocabulary | None = None, *, file: str = "roles.toml") -> Self:
        """Validate a table whose bits are those of ``vocabulary``, by default EDGAR's; messages name ``file``."""
        vocabulary = vocabulary or Vocabulary.shipped()
        toml = Toml(file, text)
        document = toml.read(_RolesFile, context=vocabulary.flags)
        document.check(toml)
        both, alone = table_hashes(vocabulary.text, text)
        return cls(
            tuple(document.cell),
            both,
            vocabulary=vocabulary,
            hashes=frozenset({alone}),
            roles=tuple(document.roles),
            purposes=tuple(document.purposes),
        )

    @staticmethod
    def shipped(profile: str = DEFAULT_PROFILE) -> PolicyTable:
        """Read the table of a profile that ships with the package.

        Examples
        --------
        >>> PolicyTable.shipped().roles[0]
        'sell_side'
        """
        return _shipped(profile)

    def get(self, role: str, purpose: str) -> Cell | None:
        """Return the cell; None if there is no such cell, so that the caller refuses."""
        return self._by_key.get((role, purpose))


@cache  # every engine that is opened asks for this, some twice
def _shipped(profile: str) -> PolicyTable:
    return PolicyTable.from_toml(shipped_text(profile, "roles.toml"), Vocabulary.shipped(profile))
