"""Record every request in a signed Merkle log, and issue receipts that verify offline.

This package imports no other of CARAG but ``carag.postgres``, ``carag.errors`` and ``carag.limits``: callers pass it
plain values. It needs the standard library and ``cryptography``, so an auditor can run it alone.
"""

from __future__ import annotations

from carag.audit._clock import Clock
from carag.audit.log.backend import Backend, Batch
from carag.audit.log.log import AuditLog
from carag.audit.operations.disclosure import disclose
from carag.audit.operations.erasure import erase
from carag.audit.operations.expiry import erase_expired, expired
from carag.audit.operations.hold import place_hold, release_hold
from carag.audit.receipts.receipt import Receipt
from carag.audit.receipts.redact import redact
from carag.audit.receipts.verify import Check, Verdict, Verification, verify_receipt
from carag.audit.records.access import Access, BackendState, Begin, Denial, IndexState, Models
from carag.audit.records.changes import (
    Evaluation,
    IndexChange,
    Ingest,
    ModelChange,
    Move,
    PolicyChange,
    RowsIn,
)
from carag.audit.records.commitment import Opening
from carag.audit.records.custody import Basis, Disclosure, Erasure, Hold, HoldAction, HoldScope
from carag.audit.records.event import Event
from carag.audit.records.hits import HeadRows
from carag.audit.records.kinds import ListKind, Outcome, RecordKind, SessionSource
from carag.audit.records.policy_applied import EntityRule, PolicyApplied
from carag.audit.records.record import MAX_RECORD_BYTES, Hit, Passage, Record, text_hash
from carag.audit.records.retention import DEFAULT_CLASS, RETENTION, RetentionClass, retain_until
from carag.audit.records.upkeep import Anchored, KeyAction, KeyChange, Recovery
from carag.audit.state.proof import Label, StateProof, place, state_entry
from carag.audit.state.tree import StateTree, StateView
from carag.audit.tlog.checkpoint import Checkpoint
from carag.audit.tlog.keys import SigningKey, VerifierKey
from carag.audit.tlog.note import Note
from carag.audit.tlog.proof import ConsistencyProof, InclusionProof

__all__ = [
    "DEFAULT_CLASS",
    "MAX_RECORD_BYTES",
    "RETENTION",
    "Access",
    "Anchored",
    "AuditLog",
    "Backend",
    "BackendState",
    "Basis",
    "Batch",
    "Begin",
    "Check",
    "Checkpoint",
    "Clock",
    "ConsistencyProof",
    "Denial",
    "Disclosure",
    "EntityRule",
    "Erasure",
    "Evaluation",
    "Event",
    "HeadRows",
    "Hit",
    "Hold",
    "HoldAction",
    "HoldScope",
    "InclusionProof",
    "IndexChange",
    "IndexState",
    "Ingest",
    "KeyAction",
    "KeyChange",
    "Label",
    "ListKind",
    "ModelChange",
    "Models",
    "Move",
    "Note",
    "Opening",
    "Outcome",
    "Passage",
    "PolicyApplied",
    "PolicyChange",
    "Receipt",
    "Record",
    "RecordKind",
    "Recovery",
    "RetentionClass",
    "RowsIn",
    "SessionSource",
    "SigningKey",
    "StateProof",
    "StateTree",
    "StateView",
    "Verdict",
    "Verification",
    "VerifierKey",
    "disclose",
    "erase",
    "erase_expired",
    "expired",
    "place",
    "place_hold",
    "redact",
    "release_hold",
    "retain_until",
    "state_entry",
    "text_hash",
    "verify_receipt",
]
