"""Change the keys of a log: rotate, add a second algorithm, revoke.

**Rotation.** The new key signs along first; then a ``key`` record says which key it is, under the old key's
signature; then it takes over. The old key signs along for a stated time (seven days), so that nobody's
verification stops on the day. A verifier holds the old vkey, the new one, or both (one a line): a receipt is
the log's if a key it was given signed it. Old receipts verify with the old vkey for ever; :func:`successor`
leads a verifier that trusts the old key to the new one. A rotation that died half way is finished by asking again.

**Revocation.** A stolen key can sign anything, dated back, so a signature alone proves nothing any more. What
was confirmed outside in time does: a revocation names the last size that an anchor confirmed before the theft.
Records up to there are believed if a proof leads them to that anchor's checkpoint; later ones are not. The log
then ends: go on in a new one with another origin (by custom the old with a suffix), and take the vkey off the
list verifiers hold. :func:`revoke` writes the record and nothing else; who may sign is for people to decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carag.audit.receipts.verify import Verdict, verify_receipt
from carag.audit.records.key_change import ED25519, ML_DSA_44, KeyAction, KeyChange
from carag.audit.tlog.keys import MlDsaKey, MlDsaSigningKey, VerifierKey
from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from carag.audit.log.log import AuditLog
    from carag.audit.receipts.receipt import Receipt

__all__ = ["OVERLAP_SECONDS", "add_mldsa", "revoke", "rotate", "successor"]

OVERLAP_SECONDS: Final = 7 * 86_400
"""How long the key before signs along."""


def rotate(log: AuditLog, *, overlap: int = OVERLAP_SECONDS, why: str = "SCHEDULED") -> Receipt:
    """Give the log a new key, made here, and return the receipt of the record that says so.

    Parameters
    ----------
    log : AuditLog
    overlap : int
        Seconds for which the old key signs along.
    why : str
        A stable code.

    Raises
    ------
    InvalidArgument
        If the overlap is negative.
    AuditUnavailable
        If the record cannot be written; the old key stays. Ask again.

    Examples
    --------
    >>> import tempfile
    >>> from carag.audit import AuditLog, Recovery, verify_receipt
    >>> with tempfile.TemporaryDirectory() as directory, AuditLog.open(directory) as log:
    ...     old, receipt = log.vkey, rotate(log)
    ...     later = log.append(Recovery("DRILL"))
    ...     print(log.vkey == old, log.vkey == successor(receipt.to_bytes(), old))
    ...     print(*(verify_receipt(later.to_bytes(), vkey).verdict for vkey in (old, log.vkey)))
    False True
    verified verified
    """
    if overlap < 0:
        raise InvalidArgument(f"the keys overlap by {overlap} seconds; want 0 or more")
    fresh = log.keys.stage()
    until = log.keys.now() + overlap * 1_000_000
    event = KeyChange(action=KeyAction.ROTATE, algorithm=ED25519, public=fresh.public, until=until, why=why)
    receipt = log.append(event)
    log.keys.promote(until=until)
    return receipt


def successor(receipt: bytes, vkey: str) -> str:
    """Return the vkey that took over from ``vkey``, as a receipt of the rotation says.

    Parameters
    ----------
    receipt : bytes
        The receipt file that :func:`rotate` returned.
    vkey : str
        The key trusted so far.

    Raises
    ------
    InvalidArgument
        If the receipt does not verify under that key, or its record is of no rotation.
    """
    checked = verify_receipt(receipt, vkey)
    if checked.verdict is not Verdict.VERIFIED or checked.record is None:
        raise InvalidArgument(f"the receipt does not verify under that key: {checked.reason}")
    event = checked.record.event
    if not isinstance(event, KeyChange) or event.action is not KeyAction.ROTATE:
        raise InvalidArgument(f"record {checked.record.seq} is about {checked.record.kind}; want a rotation")
    return str(VerifierKey(checked.record.log, event.public))


def add_mldsa(log: AuditLog, *, why: str = "POST_QUANTUM") -> Receipt:
    """Give the log an ML-DSA-44 key, which signs the checkpoints that are anchored beside the Ed25519 one.

    Raises
    ------
    MissingExtra
        If the installed ``cryptography`` has no ML-DSA.
    InvalidArgument
        If the log has one already.
    """
    if any(isinstance(key, MlDsaKey) for key in log.keys.listed):
        raise InvalidArgument(f"{log.origin} has an ML-DSA-44 key already")
    key = MlDsaSigningKey.generate(log.origin)
    event = KeyChange(action=KeyAction.ADD, algorithm=ML_DSA_44, public=key.verifier.public, why=why)
    receipt = log.append(event)
    log.keys.add(key)
    return receipt


def revoke(log: AuditLog, vkey: str, *, good: int, why: str = "STOLEN") -> Receipt:
    """Record that a key of this log is believed no longer, and how many records are.

    Parameters
    ----------
    log : AuditLog
    vkey : str
        An Ed25519 key of the log.
    good : int
        The size of the newest checkpoint that an anchor confirmed before the theft.
    why : str
        A stable code.

    Raises
    ------
    InvalidArgument
        If the key is not the log's or the log was never so long.
    """
    key = VerifierKey.parse(vkey)
    if key not in log.keys.listed:
        raise InvalidArgument(f"{vkey} is no key of {log.origin}; want a line of its vkey file")
    if not 0 <= good <= log.size:
        raise InvalidArgument(f"{good} records are to be believed; the log has {log.size}")
    return log.append(
        KeyChange(action=KeyAction.REVOKE, algorithm=ED25519, public=key.public, good=good, why=why)
    )
