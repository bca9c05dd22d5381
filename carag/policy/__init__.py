"""Decide what a session may use: policy words, masks, sessions and decisions. Reads no clock and no caller's file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.lazy import lazily

if TYPE_CHECKING:
    from carag.policy.asked_day import AskedDay as AskedDay
    from carag.policy.asked_day import DayUse as DayUse
    from carag.policy.audience import EVERYBODY as EVERYBODY
    from carag.policy.audience import NO_LISTS as NO_LISTS
    from carag.policy.audience import NOBODY as NOBODY
    from carag.policy.audience import Audience as Audience
    from carag.policy.audience import Identity as Identity
    from carag.policy.bits import Bits as Bits
    from carag.policy.bits import bit_names as bit_names
    from carag.policy.bits import bits_of as bits_of
    from carag.policy.bits import policy_word as policy_word
    from carag.policy.claims import TokenVerifier as TokenVerifier
    from carag.policy.decision import Decision as Decision
    from carag.policy.decision import Search as Search
    from carag.policy.entities import MAX_LISTED as MAX_LISTED
    from carag.policy.explain import Reason as Reason
    from carag.policy.explain import Rule as Rule
    from carag.policy.explain import reasons as reasons
    from carag.policy.explain import withheld_kinds as withheld_kinds
    from carag.policy.inference import infer as infer
    from carag.policy.inference import tighten as tighten
    from carag.policy.intent import Intent as Intent
    from carag.policy.intent import Intents as Intents
    from carag.policy.mask import MAX_ENTITY as MAX_ENTITY
    from carag.policy.mask import NO_ENTITY as NO_ENTITY
    from carag.policy.mask import Mask as Mask
    from carag.policy.mask import Policy as Policy
    from carag.policy.profile import Profile as Profile
    from carag.policy.remedy import Explained as Explained
    from carag.policy.remedy import explained as explained
    from carag.policy.restrictions import Basis as Basis
    from carag.policy.restrictions import DealWindow as DealWindow
    from carag.policy.restrictions import Ground as Ground
    from carag.policy.restrictions import LawfulBasis as LawfulBasis
    from carag.policy.restrictions import LegalBasis as LegalBasis
    from carag.policy.restrictions import WallCrossing as WallCrossing
    from carag.policy.session import Session as Session
    from carag.policy.session import SessionSource as SessionSource
    from carag.policy.table import Cell as Cell
    from carag.policy.table import PolicyTable as PolicyTable
    from carag.policy.time import EASTERN as EASTERN
    from carag.policy.time import NEVER as NEVER
    from carag.policy.time import as_of_minutes as as_of_minutes
    from carag.policy.time import from_minutes as from_minutes
    from carag.policy.time import known_at_microseconds as known_at_microseconds
    from carag.policy.time import parse_moment as parse_moment
    from carag.policy.vocabulary import BitMeaning as BitMeaning
    from carag.policy.vocabulary import Vocabulary as Vocabulary
    from carag.policy.vocabulary import intents as intents
    from carag.policy.vocabulary import meaning as meaning
    from carag.policy.vocabulary import vocabulary_of as vocabulary_of
    from carag.policy.where import EVERYWHERE as EVERYWHERE
    from carag.policy.where import STATED_FIELDS as STATED_FIELDS
    from carag.policy.where import FieldKind as FieldKind
    from carag.policy.where import Value as Value
    from carag.policy.where import Where as Where
    from carag.policy.where import in_one_form as in_one_form
    from carag.policy.word import CONTROL as CONTROL
    from carag.policy.word import POLICY_BITS as POLICY_BITS
    from carag.policy.word import QUARANTINE as QUARANTINE
    from carag.policy.word import SCHEMA_VERSION as SCHEMA_VERSION
    from carag.policy.word import TOMBSTONE as TOMBSTONE
    from carag.policy.word import VERSION_WORD as VERSION_WORD
    from carag.policy.word import PolicyBit as PolicyBit
    from carag.policy.word import PolicyFlag as PolicyFlag
else:
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "asked_day": "AskedDay DayUse",
            "audience": "Audience EVERYBODY Identity NOBODY NO_LISTS",
            "bits": "Bits bit_names bits_of policy_word",
            "claims": "TokenVerifier",
            "decision": "Decision Search",
            "entities": "MAX_LISTED",
            "explain": "Reason Rule reasons withheld_kinds",
            "inference": "infer tighten",
            "intent": "Intent Intents",
            "mask": "MAX_ENTITY Mask NO_ENTITY Policy",
            "profile": "Profile",
            "remedy": "Explained explained",
            "restrictions": "Basis DealWindow Ground LawfulBasis LegalBasis WallCrossing",
            "session": "Session SessionSource",
            "table": "Cell PolicyTable",
            "time": "EASTERN NEVER as_of_minutes from_minutes known_at_microseconds parse_moment",
            "vocabulary": "BitMeaning Vocabulary intents meaning vocabulary_of",
            "where": "EVERYWHERE FieldKind STATED_FIELDS Value Where in_one_form",
            "word": "CONTROL POLICY_BITS PolicyBit PolicyFlag QUARANTINE SCHEMA_VERSION TOMBSTONE VERSION_WORD",
        },
    )
