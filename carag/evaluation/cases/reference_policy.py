"""Decide admissibility from the text of a profile's two files, independently of the compiled masks.

This states the same rules a second time, with sets of names and no bit masks, so that an error in the masks is noticed
and not repeated. Values are plain (times in minutes since 1970, companies as CIKs), and :mod:`carag.policy` is not
used.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any, NamedTuple


class ReferenceLabel(NamedTuple):
    """A label: its word and the names of its bits, the CIKs its passage is about, and the minutes of its validity."""

    word: int
    names: frozenset[str]
    about: frozenset[int]
    public_at: int
    expires_at: int


def reference_session(role: str, purpose: str, **more: Any) -> dict[str, Any]:
    """Return a session as plain values; a value that is not given is absent from the session."""
    nothing: dict[str, Any] = {
        "as_of": None,
        "allow": None,
        "clients": None,
        "restricted": set(),
        "watched": set(),
        "deals": None,
        "crossed": [],
        "residency": set(),
        "transfer": None,
        "legal": None,
        "cooling": None,
        "intents": set(),
    }
    return {"role": role, "purpose": purpose, **nothing, **more}


class ReferencePolicy:
    """A profile's table of roles and purposes, read from the text of its two files (EDGAR's by default)."""

    def __init__(self, roles: str | None = None, profile: str | None = None) -> None:
        read, means = (
            tomllib.loads(
                files("carag").joinpath("profiles", "edgar", file).read_text("utf-8")
                if text is None
                else text
            )
            for file, text in (("roles.toml", roles), ("profile.toml", profile))
        )
        self.cells: dict[tuple[str, str], dict[str, Any]] = {
            (cell["role"], cell["purpose"]): cell for cell in read["cell"]
        }
        self.purposes: list[str] = read.get("purposes") or sorted({purpose for _, purpose in self.cells})
        self._names = tuple((1 << number, bit["name"]) for number, bit in enumerate(means["bit"]))
        self._intents: dict[str, dict[str, Any]] = {one["name"]: one for one in means.get("intent", ())}
        groups, kinds = means.get("groups", {}), means.get("purposes", {})
        self._personal, self._transfer, self._cooling = (
            frozenset(groups.get(name, ())) for name in ("personal", "transfer", "cooling")
        )
        self._advice, self._publishing, self._access_request, self._obliged = (
            frozenset(kinds.get(name, ())) for name in ("advice", "publishing", "access_request", "obliged")
        )

    def names(self, word: int) -> frozenset[str]:
        """Return the names of the policy bits set in a word."""
        return frozenset(name for bit, name in self._names if word & bit)

    def refused(self, said: dict[str, Any], *, now: int | None = None) -> str | None:
        """Return why a session is refused, or None. Without ``now`` the session may be on any day."""
        cell = self.cells.get((said["role"], said["purpose"]))
        if cell is None:
            return "NO_SUCH_CELL"
        if cell.get("allow_list") == "mandatory" and not said["allow"]:
            return "ALLOW_LIST_REQUIRED"
        if said["legal"] is not None:
            basis, consented, *_ = said["legal"]
            obliged = basis == "legal_obligation" and said["purpose"] not in self._obliged
            if obliged or (basis == "consent" and said["purpose"] not in consented):
                return "NO_LEGAL_BASIS"
        if now is not None and said["as_of"] is not None and said["as_of"] < now and cell["past"] == "none":
            return "PAST_NOT_GRANTED"
        for pair in cell["masks"]:
            if "when" not in pair or said["deals"] is not None:
                required, forbidden = self._bits(pair, said, cell)
                if required & forbidden:
                    return "CONFLICT"
        return None

    def admits(self, said: dict[str, Any], row: ReferenceLabel, *, now: int) -> bool:
        """Tell whether a session that is not refused may use a passage."""
        about = row.about or {0}
        cell, purpose = self.cells[said["role"], said["purpose"]], said["purpose"]
        as_of = min(now, now if said["as_of"] is None else said["as_of"])
        if row.word >> 27 != 1 or not row.public_at <= as_of < row.expires_at:
            return False
        if self._cools(said, row, as_of):
            return False
        if said["transfer"] is False and row.names & self._transfer and row.names & self._personal:
            return False
        if purpose in self._access_request and said["clients"] is None:
            if said["allow"] is not None and not about & said["allow"]:
                return False
        elif any(about - allowed for allowed in (said["allow"], said["clients"]) if allowed is not None):
            return False
        denied = self._denied(said, now, as_of)
        if denied and about & (denied | {0}):
            return False
        return any(self._holds(pair, said, cell, row, about) for pair in cell["masks"])

    def _cools(self, said: dict[str, Any], row: ReferenceLabel, as_of: int) -> bool:
        cooling = said["cooling"] if said["purpose"] in self._advice and row.names & self._cooling else 0
        return bool(cooling and as_of - row.public_at < cooling)

    def _denied(self, said: dict[str, Any], now: int, as_of: int) -> set[int]:
        purpose = said["purpose"]
        denied = {
            who for who in said["restricted"] | said["watched"] if (who, purpose) not in said["crossed"]
        }
        for who, begins, ends in said["deals"] or ():
            if purpose in self._publishing and (begins <= now <= ends or begins <= as_of <= ends):
                denied.add(who)
        if purpose in self._advice:
            denied |= {who for who, _ in said["crossed"]}
        if said["legal"] is not None and purpose not in self._access_request:
            denied |= said["legal"][3] | (
                set() if said["legal"][0] == "legal_obligation" else said["legal"][2]
            )
        return denied

    def _holds(
        self,
        pair: dict[str, Any],
        said: dict[str, Any],
        cell: dict[str, Any],
        row: ReferenceLabel,
        about: set[int] | frozenset[int],
    ) -> bool:
        if "when" in pair:
            issuers = None if said["deals"] is None else {who for who, *_ in said["deals"]}
            if issuers is None or (issuers and about & (issuers | {0})):
                return False
        required, forbidden = self._bits(pair, said, cell)
        return required <= row.names and not forbidden & row.names

    def _bits(
        self, pair: dict[str, Any], said: dict[str, Any], cell: dict[str, Any]
    ) -> tuple[set[str], set[str]]:
        required, forbidden = (
            set(pair.get("required", ())),
            set(pair.get("forbidden", ())) | said["residency"],
        )
        for name in said["intents"]:
            intent = self._intents[name]
            if not cell.get(intent.get("unless", "")):
                required |= set(intent.get("required", ()))
                forbidden |= set(intent.get("forbidden", ()))
        return required, forbidden
