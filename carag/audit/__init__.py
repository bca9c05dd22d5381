"""Record every request in a signed Merkle log, and issue receipts that verify offline.

Of CARAG, this package imports only ``carag.errors``: callers pass it plain values. It needs the standard
library and ``cryptography``, so an auditor can run it alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.lazy import lazily

if TYPE_CHECKING:
    from carag.audit._clock import Clock as Clock
    from carag.audit.log.backend import Backend as Backend
    from carag.audit.log.backend import Batch as Batch
    from carag.audit.log.log import AuditLog as AuditLog
    from carag.audit.operations.disclosure import disclose as disclose
    from carag.audit.operations.erasure import erase as erase
    from carag.audit.operations.expiry import erase_expired as erase_expired
    from carag.audit.operations.expiry import expired as expired
    from carag.audit.operations.hold import place_hold as place_hold
    from carag.audit.operations.hold import release_hold as release_hold
    from carag.audit.operations.statement import erasure_statement as erasure_statement
    from carag.audit.receipts.erased import ErasureStatement as ErasureStatement
    from carag.audit.receipts.erased import verify_erasure as verify_erasure
    from carag.audit.receipts.receipt import Receipt as Receipt
    from carag.audit.receipts.redact import redact as redact
    from carag.audit.receipts.verify import Check as Check
    from carag.audit.receipts.verify import Verdict as Verdict
    from carag.audit.receipts.verify import Verification as Verification
    from carag.audit.receipts.verify import verify_receipt as verify_receipt
    from carag.audit.records.access import Access as Access
    from carag.audit.records.access import BackendState as BackendState
    from carag.audit.records.access import Begin as Begin
    from carag.audit.records.access import Denial as Denial
    from carag.audit.records.access import GlassBroken as GlassBroken
    from carag.audit.records.access import IndexState as IndexState
    from carag.audit.records.access import Models as Models
    from carag.audit.records.changes import Evaluation as Evaluation
    from carag.audit.records.changes import GroupChange as GroupChange
    from carag.audit.records.changes import IndexChange as IndexChange
    from carag.audit.records.changes import Ingest as Ingest
    from carag.audit.records.changes import ModelChange as ModelChange
    from carag.audit.records.changes import Move as Move
    from carag.audit.records.changes import PolicyChange as PolicyChange
    from carag.audit.records.changes import RowsIn as RowsIn
    from carag.audit.records.commitment import Opening as Opening
    from carag.audit.records.custody import Basis as Basis
    from carag.audit.records.custody import Disclosure as Disclosure
    from carag.audit.records.custody import DocumentErasure as DocumentErasure
    from carag.audit.records.custody import Erasure as Erasure
    from carag.audit.records.custody import Hold as Hold
    from carag.audit.records.custody import HoldAction as HoldAction
    from carag.audit.records.custody import HoldScope as HoldScope
    from carag.audit.records.event import Event as Event
    from carag.audit.records.hits import HeadRows as HeadRows
    from carag.audit.records.hits import Hit as Hit
    from carag.audit.records.hits import Passage as Passage
    from carag.audit.records.hits import text_hash as text_hash
    from carag.audit.records.kinds import ListKind as ListKind
    from carag.audit.records.kinds import Outcome as Outcome
    from carag.audit.records.kinds import RecordKind as RecordKind
    from carag.audit.records.kinds import SessionSource as SessionSource
    from carag.audit.records.policy_applied import EntityRule as EntityRule
    from carag.audit.records.policy_applied import PolicyApplied as PolicyApplied
    from carag.audit.records.record import MAX_RECORD_BYTES as MAX_RECORD_BYTES
    from carag.audit.records.record import Record as Record
    from carag.audit.records.retention import DEFAULT_CLASS as DEFAULT_CLASS
    from carag.audit.records.retention import RETENTION as RETENTION
    from carag.audit.records.retention import RetentionClass as RetentionClass
    from carag.audit.records.retention import retain_until as retain_until
    from carag.audit.records.upkeep import Anchored as Anchored
    from carag.audit.records.upkeep import KeyAction as KeyAction
    from carag.audit.records.upkeep import KeyChange as KeyChange
    from carag.audit.records.upkeep import Recovery as Recovery
    from carag.audit.state.proof import Label as Label
    from carag.audit.state.proof import StateProof as StateProof
    from carag.audit.state.proof import place as place
    from carag.audit.state.proof import state_entry as state_entry
    from carag.audit.state.tree import StateTree as StateTree
    from carag.audit.state.tree import StateView as StateView
    from carag.audit.tlog.checkpoint import Checkpoint as Checkpoint
    from carag.audit.tlog.keys import SigningKey as SigningKey
    from carag.audit.tlog.keys import VerifierKey as VerifierKey
    from carag.audit.tlog.note import Note as Note
    from carag.audit.tlog.proof import ConsistencyProof as ConsistencyProof
    from carag.audit.tlog.proof import InclusionProof as InclusionProof
else:
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "_clock": "Clock",
            "log.backend": "Backend Batch",
            "log.log": "AuditLog",
            "operations.disclosure": "disclose",
            "operations.erasure": "erase",
            "operations.expiry": "erase_expired expired",
            "operations.hold": "place_hold release_hold",
            "operations.statement": "erasure_statement",
            "receipts.erased": "ErasureStatement verify_erasure",
            "receipts.receipt": "Receipt",
            "receipts.redact": "redact",
            "receipts.verify": "Check Verdict Verification verify_receipt",
            "records.access": "Access BackendState Begin Denial GlassBroken IndexState Models",
            "records.changes": "Evaluation GroupChange IndexChange Ingest ModelChange Move PolicyChange RowsIn",
            "records.commitment": "Opening",
            "records.custody": "Basis Disclosure DocumentErasure Erasure Hold HoldAction HoldScope",
            "records.event": "Event",
            "records.hits": "HeadRows Hit Passage text_hash",
            "records.kinds": "ListKind Outcome RecordKind SessionSource",
            "records.policy_applied": "EntityRule PolicyApplied",
            "records.record": "MAX_RECORD_BYTES Record",
            "records.retention": "DEFAULT_CLASS RETENTION RetentionClass retain_until",
            "records.upkeep": "Anchored KeyAction KeyChange Recovery",
            "state.proof": "Label StateProof place state_entry",
            "state.tree": "StateTree StateView",
            "tlog.checkpoint": "Checkpoint",
            "tlog.keys": "SigningKey VerifierKey",
            "tlog.note": "Note",
            "tlog.proof": "ConsistencyProof InclusionProof",
        },
    )
