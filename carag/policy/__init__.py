"""Decide what a session may use: policy words, masks, sessions and decisions. Reads no clock and no caller's file."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from carag.policy.bits import Bits, bit_names, bits_of, policy_word
from carag.policy.entities import MAX_LISTED
from carag.policy.intent import Intent, Intents
from carag.policy.mask import MAX_ENTITY, NO_ENTITY, Mask, Policy
from carag.policy.word import (
    CONTROL,
    POLICY_BITS,
    QUARANTINE,
    SCHEMA_VERSION,
    TOMBSTONE,
    VERSION_WORD,
    PolicyBit,
    PolicyFlag,
)

if TYPE_CHECKING:
    from carag.policy.claims import TokenVerifier
    from carag.policy.decision import Decision, Search
    from carag.policy.explain import Reason, Rule, reasons, withheld_kinds
    from carag.policy.inference import infer, tighten
    from carag.policy.profile import Profile
    from carag.policy.remedy import Explained, explained
    from carag.policy.restrictions import Basis, DealWindow, Ground, LawfulBasis, LegalBasis, WallCrossing
    from carag.policy.session import Session, SessionSource
    from carag.policy.table import Cell, PolicyTable
    from carag.policy.time import (
        EASTERN,
        NEVER,
        as_of_minutes,
        from_minutes,
        known_at_microseconds,
        parse_moment,
    )
    from carag.policy.vocabulary import BitMeaning, Vocabulary, intents, meaning, vocabulary_of
    from carag.policy.where import EVERYWHERE, FieldKind, Value, Where, in_one_form

__all__ = [
    "CONTROL",
    "EASTERN",
    "EVERYWHERE",
    "MAX_ENTITY",
    "MAX_LISTED",
    "NEVER",
    "NO_ENTITY",
    "POLICY_BITS",
    "QUARANTINE",
    "SCHEMA_VERSION",
    "TOMBSTONE",
    "VERSION_WORD",
    "AskedDay",
    "Basis",
    "BitMeaning",
    "Bits",
    "Cell",
    "DayUse",
    "DealWindow",
    "Decision",
    "Explained",
    "FieldKind",
    "Ground",
    "Intent",
    "Intents",
    "LawfulBasis",
    "LegalBasis",
    "Mask",
    "Policy",
    "PolicyBit",
    "PolicyFlag",
    "PolicyTable",
    "Profile",
    "Reason",
    "Rule",
    "Search",
    "Session",
    "SessionSource",
    "TokenVerifier",
    "Value",
    "Vocabulary",
    "WallCrossing",
    "Where",
    "as_of_minutes",
    "bit_names",
    "bits_of",
    "explained",
    "from_minutes",
    "in_one_form",
    "infer",
    "intents",
    "known_at_microseconds",
    "meaning",
    "parse_moment",
    "policy_word",
    "reasons",
    "tighten",
    "vocabulary_of",
    "withheld_kinds",
]

_LATER: Final = (
    *("time", "asked_day", "where", "vocabulary", "restrictions", "explain", "decision", "remedy"),
    *("claims", "session", "table", "inference", "profile"),
)
"""Modules loaded on first use, each after those it imports; the ``__all__`` of each says which names it has."""


def __getattr__(name: str) -> Any:
    if name in __all__:
        for later in _LATER:
            module = import_module(f"carag.policy.{later}")
            if name in module.__all__:
                return getattr(module, name)
    raise AttributeError(f"module 'carag.policy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
