"""Put on record that a store was measured, so that an answer can be traced to the checks that its store passed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from carag.audit import Evaluation
from carag.policy import known_at_microseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from carag.audit import AuditLog, Receipt
    from carag.engine.collection import Collection
    from carag.policy import PolicyTable

__all__ = ["Measured"]


class Measured(ABC):
    """The part of :class:`carag.Engine` that records evaluations."""

    _log: AuditLog
    _table: PolicyTable
    _collection: Collection
    _clock: Callable[[], datetime]

    @abstractmethod
    def _check_open(self) -> None:
        """Raise if the engine is closed."""

    def evaluated(
        self,
        suite: str,
        suite_hash: bytes,
        result: bytes,
        *,
        started: datetime,
        passed: bool,
        thresholds: Mapping[str, int] | None = None,
    ) -> Receipt:
        """Record that this store was measured.

        Parameters
        ----------
        suite : str
            Its name, a code.
        suite_hash, result : bytes
            SHA-256 of its questions and settings, and of the whole result, which is kept elsewhere.
        started : datetime
            Aware.
        passed : bool
        thresholds : mapping of str to int, optional
            By measure; integers, such as millionths.

        Raises
        ------
        InvalidArgument
            If a value is not of its kind.
        AuditUnavailable
            If the record cannot be written.
        """
        self._check_open()
        event = Evaluation(
            started=known_at_microseconds(started),
            ended=known_at_microseconds(self._clock()),
            suite=suite,
            suite_hash=suite_hash,
            snapshot=self._collection.state.root,
            table=bytes.fromhex(self._table.sha256),
            result=result,
            passed=passed,
            thresholds=thresholds or {},
        )
        return self._log.append(event)
