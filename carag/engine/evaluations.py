"""Record that a store was measured, and read every passage that a session may use, for a metric."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from carag.audit import Evaluation
from carag.audit.tlog.encoding import encode
from carag.errors import Refused
from carag.policy import known_at_microseconds

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from carag.audit import Receipt
    from carag.audit.tlog.encoding import Json
    from carag.engine.directory import Lifetime
    from carag.engine.requests import Requests
    from carag.policy import Decision, Session
    from carag.store.values import StoredChunk


READ_SUITE: Final = "corpus-read"
"""The suite named in the record that all of a session's passages were read at once."""
_AT_ONCE: Final = 500
"""Labels read from the store at a time."""


class Evaluations:
    """Puts on record that a store was measured."""

    def __init__(self, requests: Requests, lifetime: Lifetime) -> None:
        self._requests = requests
        self._lifetime = lifetime

    def record(
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

        ``suite`` is a code; ``suite_hash`` and ``result`` are the SHA-256 of its questions and settings, and of the
        complete result, which is kept elsewhere. ``thresholds`` are integers, such as millionths.
        """
        self._lifetime.check()
        event = Evaluation(
            started=known_at_microseconds(started),
            ended=self._requests.recorder.now(),
            suite=suite,
            suite_hash=suite_hash,
            snapshot=self._requests.collection.state.root,
            table=bytes.fromhex(self._requests.in_force.rules.table.sha256),
            result=result,
            passed=passed,
            thresholds=thresholds or {},
        )
        return self._requests.recorder.log.append(event)

    def readable(self, session: Session) -> tuple[Decision, list[StoredChunk]]:
        """Return what a session may use, and every passage of it in the order of documents and places.

        This is for a metric that compares answers with all passages. First, an evaluation of the suite ``corpus-read``
        goes on record, with a hash of the asker and the purpose, and a hash of the passages.
        """
        self._lifetime.check()
        started, rules = self._requests.recorder.clock(), self._requests.in_force.keep_up()
        try:
            decision = rules.decide(None, session, started)
        except Refused:
            self._requests.retrieve("all that may be read", session)  # which puts the refusal on record
            raise
        store, known_at = self._requests.collection.store, decision.known_at
        keys = store.labels.open(known_at=known_at).tolist()
        found = [
            one
            for start in range(0, len(keys), _AT_ONCE)
            for one in store.chunks(keys[start : start + _AT_ONCE], known_at=known_at)
            if decision.admits_labelled(one)
        ]
        found.sort(key=lambda one: (one.document_id, int(one.chunk_id.rpartition(":")[2])))
        asked: Json = [session.role, session.purpose, decision.as_of, known_at]
        read: Json = [[one.chunk_id, one.text_sha256.hex()] for one in found]
        self.record(
            READ_SUITE,
            hashlib.sha256(encode(asked)).digest(),
            hashlib.sha256(encode(read)).digest(),
            started=started,
            passed=True,
            thresholds={"passages": len(found)},
        )
        return decision, found
