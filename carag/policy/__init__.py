"""The policy room: words, masks, sessions and decisions. Pure: no I/O, no clock, nothing of EDGAR."""

from __future__ import annotations

from carag.policy.bits import Bits, bit_names, bits_of, policy_word
from carag.policy.claims import TokenVerifier
from carag.policy.decision import Decision, Search
from carag.policy.explain import Reason, Rule, reasons, withheld_kinds
from carag.policy.inference import infer
from carag.policy.intents import Intent, intents, tighten
from carag.policy.mask import MAX_ENTITY, MAX_LISTED, NO_ENTITY, Mask, Policy
from carag.policy.modulators import Basis, DealWindow, Ground, LawfulBasis, LegalBasis, WallCrossing
from carag.policy.remedy import Explained, explained
from carag.policy.session import Session, SessionSource
from carag.policy.table import Cell, PolicyTable
from carag.policy.time import EASTERN, NEVER, as_of_minutes, from_minutes, known_at_microseconds, parse_moment
from carag.policy.vocabulary import (
    CONTROL,
    POLICY_BITS,
    QUARANTINE,
    SCHEMA_VERSION,
    TOMBSTONE,
    VERSION_WORD,
    BitMeaning,
    PolicyBit,
    meaning,
)

__all__ = [
    "CONTROL",
    "EASTERN",
    "MAX_ENTITY",
    "MAX_LISTED",
    "NEVER",
    "NO_ENTITY",
    "POLICY_BITS",
    "QUARANTINE",
    "SCHEMA_VERSION",
    "TOMBSTONE",
    "VERSION_WORD",
    "Basis",
    "BitMeaning",
    "Bits",
    "Cell",
    "DealWindow",
    "Decision",
    "Explained",
    "Ground",
    "Intent",
    "LawfulBasis",
    "LegalBasis",
    "Mask",
    "Policy",
    "PolicyBit",
    "PolicyTable",
    "Reason",
    "Rule",
    "Search",
    "Session",
    "SessionSource",
    "TokenVerifier",
    "WallCrossing",
    "as_of_minutes",
    "bit_names",
    "bits_of",
    "explained",
    "from_minutes",
    "infer",
    "intents",
    "known_at_microseconds",
    "meaning",
    "parse_moment",
    "policy_word",
    "reasons",
    "tighten",
    "withheld_kinds",
]
