"""Define the `evaluation` event: a suite of tests ran over an index state, with its thresholds and result."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from carag.audit.records import _fields
from carag.audit.records.kinds import RecordKind
from carag.audit.tlog.encoding import b64url, unb64url

if TYPE_CHECKING:
    from collections.abc import Mapping

    from carag.audit.tlog.encoding import Json

__all__ = ["Evaluation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A suite of questions or checks was run.

    Parameters
    ----------
    started, ended : int
        Microseconds since 1970 UTC.
    suite : str
        Name of the suite, a code.
    suite_hash : bytes
        SHA-256 of its questions and settings.
    snapshot : bytes
        Root hash of the tested index state.
    table : bytes
        SHA-256 of the role and purpose table in force.
    thresholds : mapping of str to int
        Required results by measure: integers, such as millionths.
    result : bytes
        SHA-256 of the whole result, which is stored elsewhere.
    """

    started: int
    ended: int
    suite: str
    suite_hash: bytes
    snapshot: bytes
    table: bytes
    result: bytes
    passed: bool
    thresholds: Mapping[str, int] = field(default_factory=dict)

    kind: ClassVar = RecordKind.EVALUATION
    KINDS: ClassVar[tuple[RecordKind, ...]] = (RecordKind.EVALUATION,)
    COMMITS: ClassVar[tuple[str, ...]] = ("subject",)

    def __post_init__(self) -> None:
        _fields.integer("started", self.started, 0)
        _fields.integer("ended", self.ended, 0)
        _fields.code("suite", self.suite)
        for name in ("suite_hash", "snapshot", "table", "result"):
            _fields.digest(name.replace("_", " "), getattr(self, name))
        for name, value in self.thresholds.items():
            _fields.key("threshold", name)
            _fields.integer(f"threshold {name}", value, -_fields.MAX_INTEGER)

    def to_json(self) -> dict[str, Json]:
        """Return the JSON form."""
        return {
            "passed": int(self.passed),
            "result": b64url(self.result),
            "snapshot": b64url(self.snapshot),
            "suite": self.suite,
            "suite_hash": b64url(self.suite_hash),
            "t0": int(self.started),
            "t1": int(self.ended),
            "table": b64url(self.table),
            "thresholds": {name: int(value) for name, value in self.thresholds.items()},
        }

    @classmethod
    def from_json(cls, fields: Any) -> Evaluation:
        """Read the JSON form."""
        return cls(
            started=fields["t0"],
            ended=fields["t1"],
            suite=fields["suite"],
            suite_hash=unb64url(fields["suite_hash"], _fields.DIGEST_SIZE),
            snapshot=unb64url(fields["snapshot"], _fields.DIGEST_SIZE),
            table=unb64url(fields["table"], _fields.DIGEST_SIZE),
            result=unb64url(fields["result"], _fields.DIGEST_SIZE),
            passed=fields["passed"] == 1,
            thresholds=dict(fields["thresholds"]),
        )
