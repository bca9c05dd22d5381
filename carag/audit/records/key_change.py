"""Define the `key` event: a key of the log was rotated, added or revoked, signed under the key trusted until then."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Final

from carag.audit.records import _fields
from carag.audit.records.kinds import RecordKind
from carag.audit.tlog.encoding import Json, b64url, unb64url
from carag.errors import InvalidArgument
from carag.limits import quoted

__all__ = ["ED25519", "ML_DSA_44", "KeyAction", "KeyChange"]

ED25519: Final = 1
ML_DSA_44: Final = 6
_SIZES: Final = {ED25519: 32, ML_DSA_44: 1312}


class KeyAction(StrEnum):
    """What happens to the key that the event names."""

    ROTATE = "rotate"
    """The key becomes the log's; the previous one also signs, until ``until``."""
    ADD = "add"
    """The key signs in addition to the log's."""
    REVOKE = "revoke"
    """The key is no longer trusted; the log ends, and only its first ``good`` records count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyChange:
    """A key of the log was rotated, added or revoked. Its name is the log's.

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
    algorithm: int
    public: bytes
    why: str
    until: int | None = None
    good: int | None = None

    kind: ClassVar = RecordKind.KEY
    KINDS: ClassVar[tuple[RecordKind, ...]] = (RecordKind.KEY,)
    COMMITS: ClassVar[tuple[str, ...]] = ("subject",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "action", _fields.member(KeyAction, self.action))
        if self.algorithm not in _SIZES:
            raise InvalidArgument(
                f"signature type {quoted(self.algorithm)}; want 1 (Ed25519) or 6 (ML-DSA-44)"
            )
        _fields.digest("public key", self.public, _SIZES[self.algorithm])
        for name, value, action in (("until", self.until, "rotate"), ("good", self.good, "revoke")):
            if (value is not None) != (self.action == action):
                raise InvalidArgument(f"{name} is {quoted(value)}; only {action!r} has it, and must have it")
            if value is not None:
                _fields.integer(name, value, 0)
        _fields.code("why", self.why)

    def to_json(self) -> dict[str, Json]:
        """Return the JSON form."""
        return {
            "action": self.action.value,
            "algorithm": int(self.algorithm),
            "good": None if self.good is None else int(self.good),
            "public": b64url(self.public),
            "until": None if self.until is None else int(self.until),
            "why": self.why,
        }

    @classmethod
    def from_json(cls, fields: Any) -> KeyChange:
        """Read the JSON form."""
        return cls(
            action=fields["action"],
            algorithm=fields["algorithm"],
            public=unb64url(fields["public"], _SIZES[fields["algorithm"]]),
            until=fields["until"],
            good=fields["good"],
            why=fields["why"],
        )
