"""Anchor a log's checkpoints outside its owner's reach: S3 Object Lock, RFC 3161 timestamps, witnesses.

A signed log shows edits to the holders of its public key. It does not show that its newest records were truncated, that
the directory was rolled back, that two askers are shown two histories, or that a thief of the key wrote a different
history: for that, a third party must keep a checkpoint. The records after the newest such checkpoint are *exposed*, and
the exposure is measured.

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

from typing import TYPE_CHECKING

from carag.audit.anchors.review import review as review  # not lazily, because a module has this name
from carag.lazy import lazily

if TYPE_CHECKING:
    from carag.audit.anchors.anchor import Anchor as Anchor
    from carag.audit.anchors.anchor import Submission as Submission
    from carag.audit.anchors.anchoring import Anchoring as Anchoring
    from carag.audit.anchors.evidence import Evidence as Evidence
    from carag.audit.anchors.evidence import Shelf as Shelf
    from carag.audit.anchors.exposure import Exposure as Exposure
    from carag.audit.anchors.exposure import Standing as Standing
    from carag.audit.anchors.exposure import Window as Window
    from carag.audit.anchors.pin import Pinned as Pinned
    from carag.audit.anchors.pin import check_pin as check_pin
    from carag.audit.anchors.pin import leads_to as leads_to
    from carag.audit.anchors.review import Reviewed as Reviewed
    from carag.audit.anchors.s3 import S3Anchor as S3Anchor
    from carag.audit.anchors.targets import anchors_named as anchors_named
    from carag.audit.anchors.timestamp import TimestampAnchor as TimestampAnchor
    from carag.audit.anchors.trust_policy import TrustPolicy as TrustPolicy
    from carag.audit.anchors.witness import WitnessAnchor as WitnessAnchor
else:
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "anchor": "Anchor Submission",
            "anchoring": "Anchoring",
            "evidence": "Evidence Shelf",
            "exposure": "Exposure Standing Window",
            "pin": "Pinned check_pin leads_to",
            "review": "Reviewed",
            "s3": "S3Anchor",
            "targets": "anchors_named",
            "timestamp": "TimestampAnchor",
            "trust_policy": "TrustPolicy",
            "witness": "WitnessAnchor",
        },
    )
    __all__ += ["review"]
