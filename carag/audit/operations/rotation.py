"""Change the keys of a log: rotate, add a second algorithm, revoke.

**Rotation.** First the new key also signs; then a ``key`` record names it, under the old key's signature; then it
becomes the log's key. The old key also signs for a stated time (seven days), so that no verifier fails on that day. A
verifier holds the old vkey, the new one, or both (one per line), and accepts a receipt that any of these keys signed.
Old receipts always verify with the old vkey; :func:`successor` gives the new vkey to a verifier that trusts the old
one. To finish an interrupted rotation, call :func:`rotate` again.

**Revocation.** A thief of a key can sign anything, and backdate it, so the key's signature alone no longer proves
anything. A checkpoint that an anchor confirmed in time still does: a revocation names the last size confirmed before
the theft. Records up to that size are trusted if a proof leads from them to that anchor's checkpoint; later ones are
not. The log then ends: continue in a new log with another origin (by custom, the old origin with a suffix), and remove
the vkey from the list that verifiers hold. :func:`revoke` only writes the record; who may sign is for people to decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carag.audit.receipts.verify import Verdict, verify_receipt
from carag.audit.records.upkeep import ED25519, ML_DSA_44, KeyAction, KeyChange
from carag.audit.tlog.keys import MlDsaKey, MlDsaSigningKey, VerifierKey
from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from carag.audit.log.log import AuditLog
    from carag.audit.receipts.receipt import Receipt


OVERLAP_SECONDS: Final = 7 * 86_400
"""Default time for which the previous key also signs: seven days."""


def rotate(log: AuditLog, *, overlap: int = OVERLAP_SECONDS, why: str = "SCHEDULED") -> Receipt:
    """Generate a new key for the log, and return the receipt of the record that names it.

    Parameters
    ----------
    overlap : int
        Seconds for which the old key also signs.
    why : str
        A stable code.

    Raises
    ------
    InvalidArgument
        If the overlap is negative.
    AuditUnavailable
        If the record cannot be written; the old key stays. Call it again.

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
        raise InvalidArgument(f"overlap is {overlap} seconds; want 0 or more")
    log.check_unshared("a change of keys")
    fresh = log.keys.stage()
    until = log.keys.now() + overlap * 1_000_000
    event = KeyChange(action=KeyAction.ROTATE, algorithm=ED25519, public=fresh.public, until=until, why=why)
    receipt = log.append(event)
    log.keys.promote(until=until)
    return receipt


def successor(receipt: bytes, vkey: str) -> str:
    """Return the vkey that replaced ``vkey``, from the receipt of the rotation.

    Raises
    ------
    InvalidArgument
        If the receipt does not verify under that key, or its record does not record a rotation.
    """
    checked = verify_receipt(receipt, vkey)
    if checked.verdict is not Verdict.VERIFIED or checked.record is None:
        raise InvalidArgument(f"the receipt does not verify under that key: {checked.reason}")
    event = checked.record.event
    if not isinstance(event, KeyChange) or event.action is not KeyAction.ROTATE:
        raise InvalidArgument(
            f"record {checked.record.seq} records a {checked.record.kind} event; want a rotation"
        )
    return str(VerifierKey(checked.record.log, event.public))


def add_mldsa(log: AuditLog, *, why: str = "POST_QUANTUM") -> Receipt:
    """Give the log an ML-DSA-44 key, which signs anchored checkpoints in addition to the Ed25519 key.

    Raises
    ------
    MissingExtra
        If the installed ``cryptography`` has no ML-DSA.
    InvalidArgument
        If the log has such a key already.
    """
    log.check_unshared("a second key")
    if any(isinstance(key, MlDsaKey) for key in log.keys.listed):
        raise InvalidArgument(f"{log.origin} has an ML-DSA-44 key already")
    key = MlDsaSigningKey.generate(log.origin)
    event = KeyChange(action=KeyAction.ADD, algorithm=ML_DSA_44, public=key.verifier.public, why=why)
    receipt = log.append(event)
    log.keys.add(key)
    return receipt


def revoke(log: AuditLog, vkey: str, *, good: int, why: str = "STOLEN") -> Receipt:
    """Record that a key of this log is no longer trusted, and how many records still are.

    Parameters
    ----------
    vkey : str
        An Ed25519 key of the log.
    good : int
        The size of the newest checkpoint that an anchor confirmed before the theft.

    Raises
    ------
    InvalidArgument
        If the key is not the log's or the log is shorter than ``good``.
    """
    key = VerifierKey.parse(vkey)
    if key not in log.keys.listed:
        raise InvalidArgument(f"{vkey} is not a key of {log.origin}; want a line of its vkey file")
    if not 0 <= good <= log.size:
        raise InvalidArgument(f"good is {good}; want at most {log.size}, the size of the log")
    return log.append(
        KeyChange(action=KeyAction.REVOKE, algorithm=ED25519, public=key.public, good=good, why=why)
    )
