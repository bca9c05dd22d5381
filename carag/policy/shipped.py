"""Read the profiles that ship with the package, with the standard library alone: an auditor needs no pydantic."""

from __future__ import annotations

import hashlib
import tomllib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


SHIPPED: Final = ("circulars", "clinical", "edgar", "generic")
"""The profiles that ship with the package, by name."""
READERS: Final = ("circulars", "edgar", "folder")
"""Readers of documents: ``folder`` reads files with the facts that they state, and the others belong to profiles."""
GATE_FILE: Final = "gate.toml"
"""The file of a profile that sets the confidence gate; it does not affect how questions are read."""
READING_FILES: Final = ("reading.toml", "kinds.tsv", "lexicon.tsv", GATE_FILE)
"""A profile's optional files, apart from its policy, that put what is found in order or decline it."""
DEFAULT_PROFILE: Final = "edgar"
"""The profile of a new store that names none, and of masks made from names alone."""


def shipped_text(profile: str, file: str) -> str:
    """Return a file of a shipped profile."""
    return files("carag").joinpath("profiles", profile, file).read_text("utf-8")


@cache
def shipped_reading(profile: str) -> Mapping[str, str]:
    """Return those of ``READING_FILES`` that a shipped profile has, by name."""
    folder = files("carag").joinpath("profiles", profile)
    return {name: shipped_text(profile, name) for name in READING_FILES if folder.joinpath(name).is_file()}


def table_hashes(profile: str, roles: str) -> tuple[str, str]:
    """Return the hashes by which records name a profile: that of both files, and that of the roles alone (0.2.0)."""
    both = f"{hashlib.sha256(profile.encode()).hexdigest()}\n{roles}"
    return hashlib.sha256(both.encode()).hexdigest(), hashlib.sha256(roles.encode()).hexdigest()


@cache
def shipped_bits(table: str) -> dict[str, str] | None:
    """Return names and meanings of a record's bits, from bit 0, if the record names the hash of a shipped profile."""
    for name in SHIPPED:
        texts = shipped_text(name, "profile.toml"), shipped_text(name, "roles.toml")
        if (named := bits_named(table, texts)) is not None:
            return named
    return None


def bits_named(table: str, texts: tuple[str, str]) -> dict[str, str] | None:
    """Return names and meanings of a profile's bits, from bit 0, if its two files have the hash that a record names."""
    if table not in table_hashes(*texts):
        return None
    return {bit["name"]: bit["document"] for bit in tomllib.loads(texts[0])["bit"]}
