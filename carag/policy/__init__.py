"""The policy room: words, masks, sessions and decisions. Pure: no I/O, no clock, nothing of EDGAR."""

from __future__ import annotations

from carag.policy.explain import Reason, Rule, reasons, withheld_kinds
from carag.policy.inference import Decision, infer
from carag.policy.mask import Mask, Policy
from carag.policy.session import Session, SessionSource
from carag.policy.table import Cell, PolicyTable
from carag.policy.time import EASTERN, NEVER, as_of_minutes, from_minutes, known_at_microseconds
from carag.policy.vocabulary import (
    CONTROL,
    POLICY_BITS,
    QUARANTINE,
    SCHEMA_VERSION,
    TOMBSTONE,
    VERSION_WORD,
    BitMeaning,
    PolicyBit,
    bit_names,
    bits_of,
    meaning,
    policy_word,
)

__all__ = [
    "CONTROL",
    "EASTERN",
    "NEVER",
    "POLICY_BITS",
    "QUARANTINE",
    "SCHEMA_VERSION",
    "TOMBSTONE",
    "VERSION_WORD",
    "BitMeaning",
    "Cell",
    "Decision",
    "Mask",
    "Policy",
    "PolicyBit",
    "PolicyTable",
    "Reason",
    "Rule",
    "Session",
    "SessionSource",
    "as_of_minutes",
    "bit_names",
    "bits_of",
    "from_minutes",
    "infer",
    "known_at_microseconds",
    "meaning",
    "policy_word",
    "reasons",
    "withheld_kinds",
]
