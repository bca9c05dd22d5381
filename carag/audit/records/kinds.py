"""Define the kinds of record, outcomes of requests, sources of sessions and kinds of entity list."""

from __future__ import annotations

from enum import StrEnum


class RecordKind(StrEnum):
    """The kind of a record's event."""

    QUERY = "query"
    RETRIEVE = "retrieve"
    EXPLAIN = "explain"
    BEGIN = "begin"
    INGEST = "ingest"
    DENIAL = "denial"
    POLICY = "policy"
    MODEL = "model"
    INDEX = "index"
    MOVE = "move"
    GROUPS = "groups"
    EVALUATION = "evaluation"
    RECOVERY = "recovery"
    ERASURE = "erasure"
    DOCUMENTS = "documents"
    HOLD = "hold"
    GLASS = "glass"
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
    """Whether the caller asserted the session's role and purpose, or a token proved them."""

    ASSERTED = "asserted"
    VERIFIED = "verified"


class ListKind(StrEnum):
    """Whether a list of entities allows or denies."""

    ALLOW = "allow"
    DENY = "deny"
