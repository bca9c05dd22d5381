"""Anchor a log's checkpoints in the background, and measure the records that no anchor has confirmed yet.

A round submits the newest checkpoint to every anchor, writes each confirmation to ``anchors/`` and records it in the
log. Rounds run in a thread: at the start, every minute, every 1,000 records, and at the end. A failed round is repeated
a minute later and delays nothing; only if the exposure exceeds the window does the log refuse (or warn). If an anchor
contradicts the log, it refuses at once. One anchor's confirmation is enough, but configure two or three of different
kinds, because each detects what the others do not.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Final, Self

from carag.audit._clock import Clock, system_clock
from carag.audit.anchors.anchor import Submission, check_known
from carag.audit.anchors.evidence import Evidence, Shelf
from carag.audit.anchors.exposure import Exposure, Standing, Window
from carag.audit.records.kinds import RecordKind
from carag.audit.records.upkeep import Anchored
from carag.audit.tlog.note import Note
from carag.errors import AnchorUnavailable, AuditUnavailable, CorruptFile, InvalidArgument
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from carag.audit.anchors.anchor import Anchor
    from carag.audit.log.log import AuditLog
    from carag.audit.records.event import Event


EVERY_SECONDS: Final = 60.0
"""Default time between rounds."""
EVERY_RECORDS: Final = 1000
"""Default number of records that start a round early."""
_ALARM_AFTER_ROUNDS: Final = 3  # that failed in a row

# Kinds of record that the window never refuses: they describe the log itself, and anchoring must be able to catch up.
_EXEMPT: Final = frozenset({RecordKind.ANCHOR, RecordKind.KEY, RecordKind.RECOVERY})

_logger = logger(__name__)
_UNRECORDED: Final = {"event": "ANCHOR_UNRECORDED"}


class Anchoring:
    """Keeps a log anchored. Safe to share between threads; close it before the log.

    Parameters
    ----------
    anchors : sequence of Anchor
        May be empty: then nothing is anchored and the exposure is ``NO_ANCHOR``.
    directory : Path
        Directory of the evidence, ``anchors`` in the log's directory.
    every_seconds : float
        Seconds between rounds.
    every_records : int
        Records after which a round begins early.
    clock : callable, optional
        The log's clock, in microseconds since 1970 UTC.
    monotonic : callable, optional
        A monotonic clock, in seconds.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from carag.audit import AuditLog
    >>> home = pathlib.Path(tempfile.mkdtemp())
    >>> with AuditLog.open(home) as log, Anchoring(log, [], home / "anchors") as anchoring:
    ...     print(anchoring.exposure().standing)
    no anchor
    """

    def __init__(
        self,
        log: AuditLog,
        anchors: Sequence[Anchor],
        directory: Path,
        *,
        window: Window | None = None,
        every_seconds: float = EVERY_SECONDS,
        every_records: int = EVERY_RECORDS,
        clock: Clock = system_clock,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        if not (every_seconds > 0 and every_records > 0):
            raise InvalidArgument(
                f"anchoring every {every_seconds} seconds and {every_records} records; want more than 0"
            )
        self._log, self._anchors, self._window = log, tuple(anchors), window or Window()
        self._every_seconds, self._every_records = every_seconds, every_records
        self._clock, self._monotonic = clock, monotonic
        self._shelf = Shelf(directory) if self._anchors else None
        self._round, self._state = threading.Lock(), threading.Lock()
        self._wake, self._stop = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._anchored, self._confirmed_at = 0, None  # type: tuple[int, int | None]
        self._own = 0  # number of anchor records after these, which do not count as exposed
        self._exposed_since: tuple[int, float] | None = None  # by both clocks; None: none counts
        self._failures: dict[str, str] = {}
        self._missed: dict[str, int] = {}
        self._warned = False
        self._contradiction: str | None = None
        if self._shelf is not None:
            self._remember(self._shelf)

    # -- running

    def start(self) -> None:
        """Run a first round, start the thread, and make the log ask :meth:`check` before each record.

        Raises
        ------
        CorruptFile
            If an anchor, or the evidence in the log's directory, contradicts the log.
        """
        if not self._anchors:
            return
        self._log.watch(self.check)
        self.anchor()
        self._thread = threading.Thread(target=self._run, name="carag-anchoring", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Run a last round and stop; idempotent. :meth:`exposure` shows whether it succeeded."""
        if self._thread is not None:
            self._stop.set()
            self._wake.set()
            self._thread.join()
            self._thread = None
            try:
                self.anchor()
            except (CorruptFile, AuditUnavailable) as error:
                _logger.error("the last anchoring failed: %s", error, extra=_UNRECORDED)  # noqa: TRY400 - the message says it all
        self._log.watch(None)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def anchor(self, *, always: bool = False) -> tuple[Evidence, ...]:
        """Run one round now and return the confirmations; :meth:`exposure` shows unavailable anchors.

        Parameters
        ----------
        always : bool
            Ask every anchor. By default, if no record is exposed, only anchors that failed last time are asked.

        Raises
        ------
        CorruptFile
            If an anchor contradicts the log.
        AuditUnavailable
            If evidence or record cannot be written.
        """
        with self._round:
            if self._shelf is None or self._log.size == 0:
                return ()
            asked = self._anchors
            if not always and self.exposure().standing is Standing.COVERED:
                asked = tuple(anchor for anchor in self._anchors if anchor.place in self._failures)
            if not asked:
                return ()
            note = self._log.keys.cosign(Note.parse(self._log.checkpoint()))
            submission = Submission(note, self._log.keys.listed, self._log.consistency_hashes, self._clock())
            confirmed: list[Evidence] = []
            failures: dict[str, str] = {}
            for anchor in asked:
                try:
                    evidence = anchor.submit(submission)
                except AnchorUnavailable as error:
                    failures[anchor.place] = str(error)
                except CorruptFile as error:
                    with self._state:
                        self._contradiction = str(error)
                    raise
                else:
                    self._shelf.put(evidence)
                    confirmed.append(evidence)
            _logger.info(
                "%d of %d anchors confirm %d records",
                len(confirmed),
                len(asked),
                submission.tree.size,
                extra={"event": "ANCHORED"},
            )
            self._settle(submission.tree.size if confirmed else None, failures)
            for evidence in confirmed:
                event = Anchored(
                    anchor=evidence.kind,
                    size=evidence.tree.size,
                    evidence=evidence.digest,
                    seen=evidence.seen,
                )
                with self._state:  # before it is in the log: to count it a moment too early refuses no record
                    self._own += 1
                self._log.append(event)
            return tuple(confirmed)

    # -- measuring

    def exposure(self) -> Exposure:
        """Measure the records that no anchor has confirmed yet."""
        size = self._log.size
        if not self._anchors:
            return Exposure(Standing.NO_ANCHOR, size, records=size)
        self._look_for_exposed(size)
        with self._state:
            anchored, since, contradiction = self._anchored, self._exposed_since, self._contradiction
            own = self._own
            failures = tuple(self._failures.items())
            confirmed_at = self._confirmed_at
        records = 0 if since is None else max(1, size - anchored - own)
        seconds = 0.0 if since is None else self._age(since)
        if contradiction is not None:
            standing = Standing.CONTRADICTED
        elif since is None:
            standing = Standing.COVERED
        else:
            too_much = self._window.exceeded_by(records, seconds)
            standing = Standing.EXCEEDED if too_much else Standing.OPEN
        return Exposure(standing, size, anchored, records, seconds, confirmed_at, failures)

    def check(self, event: Event) -> None:
        """Accept or refuse a record; the log asks before each one.

        Raises
        ------
        AuditUnavailable
            If the window refuses and is exceeded, or an anchor has contradicted the log.
        """
        if event.kind in _EXEMPT or not self._anchors:
            return
        now, size = (self._clock(), self._monotonic()), self._log.size + 1
        with self._state:  # never call the log under this lock: it may hold its own while it calls this
            contradiction = self._contradiction
            since = self._exposed_since = self._exposed_since or now
            records = size - self._anchored - self._own
        if contradiction is not None:
            raise AuditUnavailable(
                f"an anchor contradicts this log, so nothing is added to it: {contradiction}"
            )
        if (
            records > self._every_records
        ):  # this record is not in the log yet; a round now covers earlier ones
            self._wake.set()
        seconds = self._age(since)
        if not self._window.exceeded_by(records, seconds):
            self._warned = False
            return
        why = "; ".join(f"{place}: {reason}" for place, reason in self._failures.items()) or "no answer yet"
        message = (
            f"{records} records, the oldest {seconds:.0f} s old, are not confirmed by any anchor; the window allows "
            f"{self._window.records} records and {self._window.seconds:.0f} s; make an anchor reachable: {why}"
        )
        self._wake.set()
        if self._window.refuse:
            raise AuditUnavailable(message)
        if not self._warned:
            self._warned = True
            _logger.warning(message, extra={"event": "ANCHOR_WINDOW"})

    def _age(self, since: tuple[int, float]) -> float:
        """Return the greater age by the two clocks, in seconds: setting one clock back must not hide an exposure."""
        wall, steady = since
        return max((self._clock() - wall) / 1e6, self._monotonic() - steady)

    # -- inside

    def _run(self) -> None:
        while not self._stop.is_set():
            self._wake.wait(self._every_seconds)
            self._wake.clear()
            if self._stop.is_set():
                return
            try:
                self.anchor()
            except CorruptFile as error:
                said = {"event": "ANCHOR_CONTRADICTS"}
                _logger.critical("an anchor contradicts the log %s: %s", self._log.origin, error, extra=said)
            except AuditUnavailable as error:
                _logger.error("anchoring could not be recorded: %s", error, extra=_UNRECORDED)  # noqa: TRY400
            if self._failures:  # the cause of this round may persist, so do not hammer an anchor that is down
                self._stop.wait(min(1.0, self._every_seconds))

    def _settle(self, size: int | None, failures: dict[str, str]) -> None:
        with self._state:
            self._failures = failures
            self._missed = {place: self._missed.get(place, 0) + 1 for place in failures}
            if size is not None and size > self._anchored:
                self._anchored, self._confirmed_at, self._own = size, self._clock(), 0
                self._exposed_since = None
            missed = dict(self._missed)
        self._look_for_exposed(self._log.size)
        for place, reason in failures.items():
            level = logging.ERROR if missed[place] >= _ALARM_AFTER_ROUNDS else logging.WARNING
            told = (place, missed[place], reason)
            _logger.log(
                level,
                "no confirmation by %s (%d rounds in a row): %s",
                *told,
                extra={"event": "ANCHOR_MISSED"},
            )

    def _look_for_exposed(self, size: int) -> None:
        """Find the first exposed record that counts, and its commit time."""
        with self._state:
            start, known = self._anchored, self._exposed_since is not None
        if known:
            return
        for seq in range(start, size):
            record = self._log.record(seq)
            if record.kind is not RecordKind.ANCHOR:
                age = max(0.0, (self._clock() - record.committed) / 1e6)
                with self._state:
                    if self._exposed_since is None and self._anchored == start:
                        self._exposed_since = (record.committed, self._monotonic() - age)
                return

    def _remember(self, shelf: Shelf) -> None:
        newest = shelf.newest()
        if newest is None:
            return
        known = newest.check_signed(self._log.keys.listed)
        note = Note.parse(self._log.checkpoint())
        keys, hashes = self._log.keys.listed, self._log.consistency_hashes
        check_known(known, Submission(note, keys, hashes, self._clock()), str(shelf.directory))
        self._anchored, self._confirmed_at = known.size, newest.seen
        while self._anchored + self._own < self._log.size:
            if self._log.record(self._anchored + self._own).kind is not RecordKind.ANCHOR:
                break
            self._own += 1
