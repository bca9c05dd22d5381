"""Name what a record can be about, how a request ended and how its session was known."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["ListKind", "Outcome", "RecordKind", "SessionSource"]


class RecordKind(StrEnum):
    """What a record is about."""

    QUERY = "query"
    RETRIEVE = "retrieve"
    EXPLAIN = "explain"
    BEGIN = "begin"
    INGEST = "ingest"
    DENIAL = "denial"
    POLICY = "policy"
    MODEL = "model"
    INDEX = "index"
    EVALUATION = "evaluation"
    RECOVERY = "recovery"
    ERASURE = "erasure"
    HOLD = "hold"
    DISCLOSURE = "disclosure"
    ANCHOR = "anchor"
    KEY = "key"


class Outcome(StrEnum):
    """How a request ended."""

    ANSWER = "answer"
    DECLINE = "decline"
    REFUSE = "refuse"
    ERROR = "error"


class SessionSource(StrEnum):
    """Whether the session's role and purpose were claimed by the caller or proved by a token."""

    ASSERTED = "asserted"
    VERIFIED = "verified"


class ListKind(StrEnum):
    """What being on a list means."""

    ALLOW = "allow"
    DENY = "deny"
