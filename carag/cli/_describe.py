"""Name the bits in records and receipts, using the profiles that ship with the package or one that is given."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from carag.audit.auditor import describe
from carag.errors import InvalidArgument
from carag.policy.shipped import bits_named, shipped_bits

if TYPE_CHECKING:
    from carag.audit import Record, Verification


Texts: TypeAlias = tuple[str, str]
"""``profile.toml`` and ``roles.toml`` of a profile."""


def describe_record(record: Record, profile: Texts | None = None) -> dict[str, Any]:
    """Return :func:`carag.audit.auditor.describe.describe_record`, with its bits named."""
    return describe.describe_record(record, partial(_meanings, profile))


def describe_receipt(checked: Verification, profile: Texts | None = None) -> dict[str, Any]:
    """Return :func:`carag.audit.auditor.describe.describe_receipt`, with its bits named."""
    return describe.describe_receipt(checked, partial(_meanings, profile))


def _meanings(profile: Texts | None, table: str) -> dict[str, str] | None:
    own = None if profile is None else bits_named(table, profile)
    if profile is not None and own is None:
        raise InvalidArgument(
            f"the profile given is not the one that the record names, {table}; give that profile's two files as they "
            "were when the question was asked"
        )
    return own or shipped_bits(table)
