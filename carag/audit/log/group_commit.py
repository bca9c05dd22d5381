"""Commit the records of many callers together (group commit): one thread writes them while the callers wait.

A disk sync takes as long for one record as for five hundred. Records that arrive while a batch is being written form
the next batch, so no caller waits for a batch to fill, and under load no caller pays for a sync alone. Every caller
gets a definite answer: its result, its own refusal, or that the batch failed. If the queue is full or closed, a caller
gets an error at once, and its record is not queued.

The callers of a batch are woken one after another, each by the previous one: threads that wake at the same time would
only contend for the interpreter lock, and be woken again every few milliseconds.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from carag.errors import AuditUnavailable, CaragError, without_frames

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


MAX_BATCH: Final = 512
"""Most records of a batch."""
MAX_WAITING: Final = 4096
"""Most waiting records; in batches of 64 with 2 ms per disk sync, an eighth of a second's work."""
_WAKE_SECONDS: Final = 0.05  # after which the writing thread itself wakes the next caller of a finished batch

Item = TypeVar("Item")
Result = TypeVar("Result")


class _Caller(Generic[Item, Result]):
    """One queued item, with a lock that is released when its result is known."""

    __slots__ = ("error", "gone", "item", "known", "result")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.result: Result | None = None
        self.error: BaseException | None = None
        self.known = threading.Lock()
        self.known.acquire()
        self.gone = False  # True after an exception in the caller's own thread, such as KeyboardInterrupt


class GroupCommit(Generic[Item, Result]):
    """A queue in front of one writing thread.

    ``commit`` takes at most ``most`` of at most ``room`` waiting items and makes them durable together. For each item
    it returns the item's result or error; if ``commit`` raises, all of them failed.
    """

    def __init__(
        self,
        commit: Callable[[Sequence[Item]], Sequence[Result | CaragError]],
        *,
        most: int = MAX_BATCH,
        room: int = MAX_WAITING,
    ) -> None:
        self._commit, self._most, self._room = commit, most, room
        self._waiting: deque[_Caller[Item, Result]] = deque()
        self._settled: deque[_Caller[Item, Result]] = deque()
        self._news = threading.Condition(threading.Lock())
        self._closed = False
        # A daemon thread: waiting callers keep the process alive, and without callers there is nothing to lose.
        self._thread = threading.Thread(target=self._run, name="carag-audit-appender", daemon=True)
        self._thread.start()

    def submit(self, item: Item) -> Result:
        """Queue an item and wait until it is durable.

        An interrupted wait (KeyboardInterrupt) leaves the item in the queue: it may still be written, and its result is
        dropped. Raises AuditUnavailable, at once if the queue is full or closed, later if the batch could not be
        written; or the item's own refusal.
        """
        caller = _Caller[Item, Result](item)
        with self._news:
            if self._closed:
                raise AuditUnavailable("the log is closed; open it again")
            if len(self._waiting) >= self._room:
                raise AuditUnavailable(
                    f"{self._room} records are waiting to be written; this one was not queued; try again later"
                )
            self._waiting.append(caller)
            self._news.notify()
        try:
            caller.known.acquire()
        except BaseException:
            caller.gone = True
            raise
        finally:
            self._let_go()
        if caller.error is None:
            return caller.result  # type: ignore[return-value]  # set before the lock is released
        raise _own(caller.error)

    def close(self) -> None:
        """Write the waiting items, then stop; idempotent."""
        with self._news:
            self._closed = True
            self._news.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._news:
                while not self._waiting and not self._closed:
                    self._news.wait(_WAKE_SECONDS if self._settled else None)
                    self._let_go()
                if not self._waiting:
                    break
                count = min(self._most, len(self._waiting))
                batch = [self._waiting.popleft() for _ in range(count)]
            self._settle(batch)
        while self._settled:
            self._let_go()

    def _settle(self, batch: list[_Caller[Item, Result]]) -> None:
        try:
            outcomes = self._commit([caller.item for caller in batch])
            for caller, outcome in zip(batch, outcomes, strict=True):
                if isinstance(outcome, CaragError):
                    caller.error = outcome
                else:
                    caller.result = outcome
        except BaseException as error:  # noqa: BLE001 - every caller of the batch gets this error
            without_frames(error)  # which hold the items of other callers
            for caller in batch:
                caller.error = error
        self._settled += batch
        self._let_go()

    def _let_go(self) -> None:
        """Wake one caller whose result is known; it wakes the next."""
        with contextlib.suppress(IndexError):
            while (caller := self._settled.popleft()).gone:
                pass
            caller.known.release()


def _own(error: BaseException) -> CaragError:
    """Return an exception for one caller: threads must not share a traceback."""
    if not isinstance(error, CaragError):
        unavailable = AuditUnavailable(f"the record could not be written: {error!r}; open the log again")
        unavailable.__cause__ = error
        return unavailable
    own = type(error)(*error.args)
    own.__cause__ = error
    return own
