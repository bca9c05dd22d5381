"""Define the `anchor`, `key` and `recovery` events: what happened to the log itself.

The evidence of an anchor is in ``anchors/`` of the log's directory; the record has its digest, so that the evidence can
be lost but not exchanged. A change of keys is signed under the key trusted until then.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from carag.audit.records import _fields
from carag.audit.records.codec import OPTIONAL, Code, Count, Digest, Kind
from carag.audit.records.event import Event
from carag.audit.records.kinds import RecordKind
from carag.audit.tlog.encoding import b64url, unb64url
from carag.errors import InvalidArgument
from carag.limits import quoted

ED25519: Final = 1
ML_DSA_44: Final = 6
_SIZES: Final = {ED25519: 32, ML_DSA_44: 1312}
_PUBLIC: Final = Kind(lambda _, key: key, b64url, lambda text: unb64url(text, len(text) * 3 // 4))
"""The size of a public key depends on the algorithm, which is checked after both are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchored(Event):
    """An anchor confirmed a checkpoint.

    Parameters
    ----------
    anchor : str
        The kind: ``"s3"``, ``"tsa"``, ``"witness"``.
    size : int
        Number of records that the confirmed checkpoint covers.
    evidence : bytes
        SHA-256 of the evidence file.
    seen : int
        Microseconds since 1970 UTC, by the anchor's clock.
    """

    anchor: Code
    size: Count
    evidence: Digest
    seen: Count

    KINDS: ClassVar = (RecordKind.ANCHOR,)


class KeyAction(StrEnum):
    """What happens to the key that the event names."""

    ROTATE = "rotate"
    """The key becomes the log's key; the previous one also signs, until ``until``."""
    ADD = "add"
    """The key signs in addition to the log's key."""
    REVOKE = "revoke"
    """The key is no longer trusted; the log ends, and only its first ``good`` records count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyChange(Event):
    """A key of the log was rotated, added or revoked. The key has the log's name.

    Parameters
    ----------
    algorithm : int
        The signature type of ``c2sp.org/signed-note``: 1 Ed25519, 6 ML-DSA-44.
    until : int or None
        For a rotation: until when the old key also signs, in microseconds since 1970 UTC.
    good : int or None
        For a revocation: number of records that are still trusted, because an anchor confirmed them in time.
    why : str
        A stable code, such as ``"SCHEDULED"``.
    """

    action: KeyAction
    algorithm: Count
    public: Annotated[bytes, _PUBLIC]
    why: Code
    until: Count | None = None
    good: Count | None = None

    KINDS: ClassVar = (RecordKind.KEY,)
    COMMITS: ClassVar = ("subject",)

    def _check(self) -> None:
        if self.algorithm not in _SIZES:
            raise InvalidArgument(
                f"signature type {quoted(self.algorithm)}; want 1 (Ed25519) or 6 (ML-DSA-44)"
            )
        _fields.digest("public key", self.public, _SIZES[self.algorithm])
        for name, value, action in (("until", self.until, "rotate"), ("good", self.good, "revoke")):
            if (value is not None) != (self.action == action):
                raise InvalidArgument(
                    f"{name} is {quoted(value)}; {action!r} must have it, and nothing else may"
                )


@dataclass(frozen=True, slots=True)
class Recovery(Event):
    """Unfinished work was found when the log was opened, or the log's files were filled, backed up or restored.

    Parameters
    ----------
    why : str
        A stable code for the work; a restore adds the number of records, as ``RESTORED:17``.
    begins : tuple of int
        Sequence numbers of begin records without an end: a remote model may have been called.
    """

    why: Code
    begins: Annotated[tuple[Count, ...], OPTIONAL] = ()

    KINDS: ClassVar = (RecordKind.RECOVERY,)
