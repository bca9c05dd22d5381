"""Record every request in a signed Merkle log, and hand out receipts that verify offline.

This room imports no other (only ``carag.errors``): callers hand it plain values. It needs the standard
library and ``cryptography``, so an auditor can run it alone.
"""

from __future__ import annotations

from carag.audit._clock import Clock
from carag.audit.access import Access, IndexState, Models
from carag.audit.anchor_event import Anchored
from carag.audit.backend import Backend, BackendOpener, Batch
from carag.audit.begin import Begin
from carag.audit.changes import IndexChange, ModelChange, PolicyChange
from carag.audit.checkpoint import Checkpoint
from carag.audit.commitment import Opening
from carag.audit.denial import Denial
from carag.audit.disclose_values import disclose
from carag.audit.disclosure import Disclosure
from carag.audit.erase_values import erase
from carag.audit.erasure import Basis, Erasure
from carag.audit.evaluation import Evaluation
from carag.audit.event import Event
from carag.audit.expiry import erase_expired, expired
from carag.audit.hold import Hold, HoldAction, HoldScope
from carag.audit.ingest import Ingest
from carag.audit.key_change import KeyAction, KeyChange
from carag.audit.keys import SigningKey, VerifierKey
from carag.audit.kinds import ListKind, Outcome, RecordKind, SessionSource
from carag.audit.legal_holds import place_hold, release_hold
from carag.audit.log import AuditLog
from carag.audit.note import Note
from carag.audit.policy_applied import EntityRule, PolicyApplied
from carag.audit.proof import ConsistencyProof, InclusionProof
from carag.audit.receipt import Receipt
from carag.audit.record import MAX_RECORD_BYTES, Hit, Passage, Record, text_hash
from carag.audit.recovery import Recovery
from carag.audit.redact import redact
from carag.audit.retention import DEFAULT_CLASS, RETENTION, RetentionClass, retain_until
from carag.audit.state_proof import Label, StateProof, place, state_entry
from carag.audit.state_tree import StateTree, StateView
from carag.audit.verify import Check, Verdict, Verification, verify_receipt

__all__ = [
    "DEFAULT_CLASS",
    "MAX_RECORD_BYTES",
    "RETENTION",
    "Access",
    "Anchored",
    "AuditLog",
    "Backend",
    "BackendOpener",
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
