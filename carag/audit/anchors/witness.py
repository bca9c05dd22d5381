"""Anchor checkpoints with witnesses: the client of ``c2sp.org/tlog-witness``.

Each witness is sent the checkpoint with a proof that it continues the one that this witness last cosigned, and returns
a timestamped cosignature. A witness never cosigns two diverging histories, so a quorum of witnesses excludes a rollback
and two histories for two askers.

An answer without a valid cosignature is only a claim. A claim that the witness knows a longer log (409), or that the
proof does not verify (422), may mean a rollback, a fork or an error by the witness. It is reported, and confirms
nothing.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from carag.audit.anchors._http import TIMEOUT_SECONDS, check_url, post
from carag.audit.anchors.evidence import Evidence
from carag.audit.tlog.note import Note, NoteSignature
from carag.audit.tlog.proof import ConsistencyProof
from carag.errors import AnchorUnavailable, CorruptFile, InvalidArgument

if TYPE_CHECKING:
    from carag.audit.anchors.anchor import Submission
    from carag.audit.anchors.trust_policy import TrustPolicy, Witness
    from carag.audit.tlog.checkpoint import Checkpoint
    from carag.audit.tlog.note import NoteKey
    from carag.http import Reply


CLOCK_TOLERANCE_SECONDS: Final = 300
"""Greatest difference between a fresh cosignature's time and this machine's; an older one is a replay."""

_TRIES: Final = 3
"""How many requests one witness gets in a round, because it may know a different size from the one expected."""
_REFUSALS: Final = {
    400: "calls the request malformed",
    403: "trusts none of the log's keys; give its operator the vkey",
    404: "does not know the log; give its operator the vkey",
}


class WitnessAnchor:
    """A quorum of witnesses.

    Parameters
    ----------
    policy : TrustPolicy
        The policy whose witnesses are asked at their URLs.
    timeout : float
        Seconds for one request.

    Raises
    ------
    InvalidArgument
        If the policy asks for no witness, or its quorum cannot be reached with the witnesses that have a URL.
    """

    kind: Final = "witness"

    def __init__(self, policy: TrustPolicy, *, timeout: float = TIMEOUT_SECONDS) -> None:
        self._policy, self._timeout = policy, timeout
        self._asked = tuple(witness for witness in policy.witnesses if witness.url)
        if policy.quorum == "none":
            raise InvalidArgument("the policy says 'quorum none'; name the witnesses that must cosign")
        if not policy.satisfied_by({witness.name for witness in self._asked}):
            raise InvalidArgument("the policy's quorum needs a witness without a URL; add the URLs")
        self._cosigned: dict[str, int] = {}
        names = "\n".join(sorted(str(witness.key) for witness in policy.witnesses))
        self.place = f"quorum/{policy.quorum}/{hashlib.sha256(names.encode()).hexdigest()[:16]}"

    def submit(self, submission: Submission) -> Evidence:
        """Collect the cosignatures of all witnesses."""
        note, failures = submission.checkpoint, []
        for witness in self._asked:
            try:
                note = note.signed_also([self._cosignature(witness, submission)])
            except AnchorUnavailable as error:
                failures.append(f"{witness.name}: {error}")
        evidence = Evidence(self.kind, self.place, note, self._seen(note) or 0)
        if not evidence.seen:
            raise AnchorUnavailable(f"no quorum of witnesses cosigned: {'; '.join(failures)}")
        return evidence

    def confirm(self, evidence: Evidence, keys: tuple[NoteKey, ...]) -> Checkpoint:
        """Check the cosignatures offline."""
        tree = evidence.check_signed(keys)
        if self._seen(evidence.checkpoint) != evidence.seen:
            raise CorruptFile(
                f"the evidence for {tree.size} records does not carry the cosignatures of a quorum of "
                f"{self.place} made at the time it states"
            )
        return tree

    def _seen(self, note: Note) -> int | None:
        """Return when the quorum was complete, in microseconds since 1970, or None if it is not."""
        times = {
            witness.name: at
            for witness in self._policy.witnesses
            if (at := witness.key.signed_at(note)) is not None and at > 0
        }
        return max(times.values()) * 1_000_000 if self._policy.satisfied_by(times) else None

    def _cosignature(self, witness: Witness, submission: Submission) -> NoteSignature:
        tree = submission.tree
        old = min(self._cosigned.get(witness.name, 0), tree.size)
        for _ in range(_TRIES):
            hashes = submission.hashes(old, tree.size) if old else ()
            body = ConsistencyProof(old, hashes, submission.checkpoint).to_text().encode()
            reply = post(
                f"{check_url(witness.url or '')}/add-checkpoint",
                body,
                {"Content-Type": "text/plain; charset=utf-8"},
                self._timeout,
            )
            if reply.status == 200:
                signature = _checked(witness, submission, reply)
                self._cosigned[witness.name] = tree.size
                return signature
            known = _conflict(reply)
            if known is None:
                raise AnchorUnavailable(_refusal(reply, old, tree.size))
            if known > tree.size:
                raise AnchorUnavailable(
                    f"says it cosigned {known} records of {tree.origin}, but this log has {tree.size}; if it is "
                    "right, the log was rolled back: compare with other anchors, restore the newest copy"
                )
            if known == old:
                raise AnchorUnavailable(
                    f"says that {old} records of {tree.origin} have another root than here; if it is right, "
                    "the log was forked: compare with other anchors"
                )
            old = known
        raise AnchorUnavailable(f"says each of {_TRIES} times that it knows another size of the log")


def _checked(witness: Witness, submission: Submission, reply: Reply) -> NoteSignature:
    """Extract this witness's line from the answer; lines of unknown keys are ignored."""
    try:
        text = (reply.body or b"").decode("utf-8")
        note = Note.parse(f"{submission.checkpoint.text}\n{text}")
    except (UnicodeDecodeError, CorruptFile) as error:
        raise AnchorUnavailable(f"answers with no signature lines: {error}") from error
    signature, at = witness.key.signature_on(note), witness.key.signed_at(note)
    if signature is None or at is None:
        raise AnchorUnavailable(
            f"answers without a valid cosignature by {witness.key.name} on this checkpoint"
        )
    if abs(at - submission.now // 1_000_000) > CLOCK_TOLERANCE_SECONDS:
        raise AnchorUnavailable(
            f"answers with a cosignature of time {at}, but here it is {submission.now // 1_000_000}: either an old "
            "cosignature was repeated, or one of the two clocks is wrong"
        )
    return signature


def _conflict(reply: Reply) -> int | None:
    """Read the tree size in a 409 answer."""
    size = (reply.body or b"").removesuffix(b"\n")
    sized = reply.kind == "text/x.tlog.size"
    if reply.status == 409 and sized and size.isdigit() and len(size) < 20 and size == b"%d" % int(size):
        return int(size)
    return None


def _refusal(reply: Reply, old: int, size: int) -> str:
    if reply.status == 422:
        return (
            f"says that {size} records do not continue the {old} it cosigned; if it is right, the log was "
            "forked or rolled back: compare with other anchors"
        )
    return _REFUSALS.get(reply.status, f"answers with HTTP status {reply.status}")
