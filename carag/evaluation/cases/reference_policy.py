"""Decide admissibility from the text of the role and purpose table, independently of the compiled masks.

This is the benchmark's reference implementation of the policy: the same rules stated a second time, with sets of names
and no bit masks, so that an error of the masks is seen and not repeated. Values are plain (times in minutes since 1970,
companies as CIKs); of :mod:`carag.policy` it uses only the names of the bits.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any, Final, NamedTuple

from carag.policy import PolicyBit

__all__ = ["ReferenceLabel", "ReferencePolicy", "bit_names", "reference_session"]

_PERSONAL: Final = frozenset({"PD_INSIDER", "PD_COMP", "PD_NATURAL", "PD_SPECIAL"})
# Names of bits that each intent requires, and those that it forbids.
_MEANS: Final[dict[str, tuple[frozenset[str], frozenset[str]]]] = {
    "AUDITED": (frozenset({"FS_AUDITED"}), frozenset({"FS_UNAUDITED", "FURNISHED"})),
    "LATEST": (frozenset(), frozenset({"NOT_LATEST"})),
    "AS_AMENDED": (frozenset(), frozenset({"AMENDED", "SUPERSEDED"})),
    "CURRENT_HOLDINGS": (frozenset(), frozenset({"OWNERSHIP"})),
    "US_GAAP": (frozenset(), frozenset({"FPI"})),
    "PERSON_NAMED": (frozenset(), _PERSONAL),
}
_NAMES: Final = tuple((bit.value, bit.name) for bit in PolicyBit)


class ReferenceLabel(NamedTuple):
    """A label: word, names of its bits, CIKs its passage is about, and the minutes from and until which it holds."""

    word: int
    names: frozenset[str]
    about: frozenset[int]
    public_at: int
    expires_at: int


def bit_names(word: int) -> frozenset[str]:
    """Return the names of the policy bits that a word has.

    Examples
    --------
    >>> sorted(bit_names(0x0800_0021))
    ['FS_AUDITED', 'J_US']
    """
    return frozenset(name for bit, name in _NAMES if word & bit)


def reference_session(role: str, purpose: str, **more: Any) -> dict[str, Any]:
    """Return a session in plain values; values that are not given are absent from the session.

    Examples
    --------
    >>> reference_session("buy_side", "invest")["as_of"] is None
    True
    """
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
    """The role and purpose table, as its text says it.

    Parameters
    ----------
    text : str, optional
        TOML; the table of the package if absent.

    Examples
    --------
    >>> table = ReferencePolicy()
    >>> auditor = reference_session("auditor", "assure")
    >>> furnished = ReferenceLabel(0x0800_0081, bit_names(0x0800_0081), frozenset({7}), 0, 2**32 - 1)
    >>> table.refused(auditor) is None, table.admits(auditor, furnished, now=10)
    (True, False)
    """

    def __init__(self, text: str | None = None) -> None:
        read = tomllib.loads(text or files("carag").joinpath("profiles/edgar/roles.toml").read_text("utf-8"))
        self.purposes: list[str] = read["purposes"]
        self.cells: dict[tuple[str, str], dict[str, Any]] = {
            (cell["role"], cell["purpose"]): cell for cell in read["cell"]
        }

    def refused(self, said: dict[str, Any]) -> str | None:
        """Return why a session is refused; None if it is not."""
        cell = self.cells.get((said["role"], said["purpose"]))
        if cell is None:
            return "NO_SUCH_CELL"
        if cell.get("allow_list") == "mandatory" and not said["allow"]:
            return "ALLOW_LIST_REQUIRED"
        if said["legal"] is not None:
            basis, consented, *_ = said["legal"]
            obliged = basis == "legal_obligation" and said["purpose"] not in {"surveil", "assure"}
            if obliged or (basis == "consent" and said["purpose"] not in consented):
                return "NO_LEGAL_BASIS"
        for pair in cell["masks"]:
            if "when" not in pair or said["deals"] is not None:
                required, forbidden = _bits(pair, said, cell)
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
        if _cools(said, row, as_of):
            return False
        if said["transfer"] is False and "J_EU" in row.names and row.names & _PERSONAL:
            return False
        if purpose == "dsar" and said["clients"] is None:
            if not about & said["allow"]:
                return False
        elif any(about - allowed for allowed in (said["allow"], said["clients"]) if allowed is not None):
            return False
        denied = _denied(said, now, as_of)
        if denied and about & (denied | {0}):
            return False
        return any(_holds(pair, said, cell, row, about) for pair in cell["masks"])


def _cools(said: dict[str, Any], row: ReferenceLabel, as_of: int) -> bool:
    cooling = said["cooling"] if said["purpose"] in {"invest", "publish"} and "MATERIAL" in row.names else 0
    return bool(cooling and as_of - row.public_at < cooling)


def _denied(said: dict[str, Any], now: int, as_of: int) -> set[int]:
    purpose = said["purpose"]
    denied = {who for who in said["restricted"] | said["watched"] if (who, purpose) not in said["crossed"]}
    for who, begins, ends in said["deals"] or ():
        if purpose == "publish" and (begins <= now <= ends or begins <= as_of <= ends):
            denied.add(who)
    if purpose in {"invest", "publish"}:
        denied |= {who for who, _ in said["crossed"]}
    if said["legal"] is not None and purpose != "dsar":
        denied |= said["legal"][3] | (set() if said["legal"][0] == "legal_obligation" else said["legal"][2])
    return denied


def _holds(
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
    required, forbidden = _bits(pair, said, cell)
    return required <= row.names and not forbidden & row.names


def _bits(pair: dict[str, Any], said: dict[str, Any], cell: dict[str, Any]) -> tuple[set[str], set[str]]:
    required, forbidden = set(pair.get("required", ())), set(pair.get("forbidden", ())) | said["residency"]
    for name in said["intents"]:
        if name != "PERSON_NAMED" or not cell.get("personal_data"):
            required, forbidden = required | _MEANS[name][0], forbidden | _MEANS[name][1]
    return required, forbidden
