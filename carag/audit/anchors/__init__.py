"""Anchor a log's checkpoints outside its owner's reach: S3 Object Lock, RFC 3161 timestamps, witnesses.

A signed log shows edits to the holders of its public key. It does not show that its newest records were truncated, that
the directory was rolled back, that two askers are shown two histories, or that a thief of the key wrote another one:
for that, a third party must keep a checkpoint. The records after the newest such checkpoint are *exposed*, and the
exposure is measured.

======================  ================================  ===================================================
anchor                  shows                             does not show
======================  ================================  ===================================================
receipts (``pin.py``)   rollback, rewrite, fork           anything newer than the newest receipt kept
S3 Object Lock          rollback, rewrite, fork; time     that askers elsewhere are shown this history
RFC 3161 timestamp      backdating                        rollback, fork
witnesses               rollback, rewrite, fork; time     a majority of witnesses in collusion
======================  ================================  ===================================================
"""

from __future__ import annotations

from carag.audit.anchors.anchor import Anchor, Submission
from carag.audit.anchors.anchoring import Anchoring
from carag.audit.anchors.evidence import Evidence, Shelf
from carag.audit.anchors.exposure import Exposure, Standing, Window
from carag.audit.anchors.pin import Pinned, check_pin, leads_to
from carag.audit.anchors.review import Reviewed, review
from carag.audit.anchors.s3 import S3Anchor
from carag.audit.anchors.targets import anchors_named
from carag.audit.anchors.timestamp import TimestampAnchor
from carag.audit.anchors.trust_policy import TrustPolicy
from carag.audit.anchors.witness import WitnessAnchor

__all__ = [
    "Anchor",
    "Anchoring",
    "Evidence",
    "Exposure",
    "Pinned",
    "Reviewed",
    "S3Anchor",
    "Shelf",
    "Standing",
    "Submission",
    "TimestampAnchor",
    "TrustPolicy",
    "Window",
    "WitnessAnchor",
    "anchors_named",
    "check_pin",
    "leads_to",
    "review",
]
