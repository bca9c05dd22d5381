"""Keep a store as fresh as a folder, each night: content decides what is new, changed or gone, never a date.

Files that change while the folder is read are read again or left out. A document without a label is quarantined; what
cannot become a document is a problem. The store remembers which documents the folder gave, to tell those that vanished
from it from those of other origin.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import stat
import threading
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from functools import partial
from importlib import import_module
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from carag.errors import InvalidArgument, type_and_place
from carag.extras import require
from carag.labelling.canonical_json import canonical_json
from carag.labelling.document import Document
from carag.limits import quoted, shown
from carag.policy import parse_moment
from carag.readers.outcome import several
from carag.readers.sidecar import SIDECARS
from carag.visible import logger, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from zoneinfo import ZoneInfo

    from carag.engine.results import SyncReport
    from carag.readers import Fact, ReadDocument
    from carag.store.store import CorpusStore

__all__ = ["Nightly", "Source", "Still", "night_trigger", "read_still"]


PlacedReader: TypeAlias = "Callable[[Path], Iterable[tuple[str, Document | str]]]"
"""Reads a folder: yields documents, or problems in words, each with its place, which is empty if unknown."""

_TIMES: Final = ("public_at", "expires_at", "retain_until", "erase_after")
_TEXTS: Final = ("supersedes", "language")
_FIELD: Final = re.compile("[a-z][a-z0-9_]*", re.ASCII)


def placed_reader(reader: str) -> PlacedReader:
    """Return what reads a folder for a profile with this ``reader``: ``folder``, or the name of a shipped one."""
    if reader == "folder":
        return placed_documents
    own = import_module(f"carag.profiles.{reader}.reader")
    return partial(placed_documents, document_of=own.document_of, leaves_out=own.leaves_out)


def placed_documents(
    path: Path,
    *,
    document_of: Callable[[ReadDocument], Document] | None = None,
    leaves_out: Callable[[str], bool] | None = None,
) -> Iterator[tuple[str, Document | str]]:
    """Read every file of a folder; yield a document, or a problem in words, preceded by its file, or file and row."""
    made = document_of or _document
    from carag.readers import Problem, read_folder  # imported here, because most stores are given documents

    for one in read_folder(path, leaves_out=leaves_out):
        if isinstance(one, Problem):
            yield one.where, f"{one.where}: {one.kind.value}: {one.reason}"
            continue
        try:
            yield one.where, replace(made(one), read_by=one.read_by)
        except InvalidArgument as error:
            yield one.where, f"{one.where}: broken: {visible(str(error))}"
            if (closed := _shared_with_no_one(one, made)) is not None:
                yield one.where, closed


def _document(read: ReadDocument) -> Document:
    facts = dict(read.facts)
    own: dict[str, Any] = {name: _moment(name, facts.pop(name)) for name in _TIMES if name in facts}
    own |= {name: facts.pop(name) for name in _TEXTS if name in facts}
    if "entities" in facts:
        own["entities"] = _entities(facts.pop("entities"))
    own |= {name: several(facts.pop(name)) for name in ("allow", "deny") if name in facts}
    plain = {
        name: value for name, value in facts.items() if _FIELD.fullmatch(name) and not isinstance(value, list)
    }
    titled = {"title": read.title} if read.title else {}
    return Document(
        id=read.id, text=read.text, facts=facts, metadata={**plain, **titled}, pages=read.pages, **own
    )


def _shared_with_no_one(read: ReadDocument, made: Callable[[ReadDocument], Document]) -> Document | None:
    """Return a document whose lists cannot be read, so that an earlier, perhaps wider, list ends; None for others."""
    if not {"allow", "deny"} & read.facts.keys():
        return None
    facts = {name: value for name, value in read.facts.items() if name != "deny"} | {"allow": list[str]()}
    try:
        return replace(made(replace(read, facts=facts)), read_by=read.read_by)
    except InvalidArgument:
        return None


def _moment(name: str, stated: Fact) -> Any:
    if not isinstance(stated, str):
        raise InvalidArgument(f"{name} is {stated!r}; want a date or a time with its zone, in ISO 8601")
    return parse_moment(stated)


def _entities(stated: Fact) -> tuple[int, ...]:
    try:
        return tuple(int(one) for one in several(stated) if not isinstance(one, bool))
    except ValueError:
        raise InvalidArgument(f"entities are {stated!r}; want whole numbers") from None


_logger = logger(__name__)

_PASSES: Final = 3
"""The most times that a folder is read until nothing changes meanwhile."""
_PAUSE: Final = 1.0
"""Seconds before the folder is read again, to let writers finish."""


class Still(NamedTuple):
    """What a folder gave that did not change during the reading."""

    documents: list[Document]
    places: dict[str, str]
    """Maps each document's id to its file, as messages show it; empty if a reader does not say."""
    problems: list[str]
    troubled: frozenset[str]
    """Files and folders with a problem; the empty name stands for a reader that does not say which."""
    left: list[str]
    """Files that changed during every pass; nothing from them is among the documents."""

    def hides(self, file: str) -> bool:
        """Tell whether a file's former content may still be there, because it or a folder above could not be read."""
        doubtful = self.troubled | {*self.left}
        if not file or "" in doubtful:
            return bool(doubtful)
        return any(file == one or file.startswith(f"{one}/") for one in doubtful)


def read_still(path: Path, read: PlacedReader) -> Still:
    """Read a folder, or one file; ``read`` gives documents and messages with their places, empty if unknown."""
    for number in range(_PASSES):
        if number:
            sleep(_PAUSE)
        before = _states(path)
        outcomes = list(read(path))
        after = _states(path)
        changed = {file for file in before | after if before.get(file) != after.get(file)}
        if not changed:
            break
        _logger.info("%d files changed while they were read", len(changed))
    if changed & {*SIDECARS}:  # they state facts about any file
        changed |= {*after, ""}
    documents: list[Document] = []
    places: dict[str, str] = {}
    problems: list[str] = []
    troubled: set[str] = set()
    for place, one in outcomes:
        files = [*_files(place, after)]
        if changed & {*files} or (changed and not place):
            continue
        if isinstance(one, Document):
            documents.append(one)
            places[one.id] = files[0]
        else:
            problems.append(one)
            troubled |= {*files}
    return Still(documents, places, problems, frozenset(troubled), sorted(changed - {""}))


def _files(place: str, known: Iterable[str]) -> Iterator[str]:
    """Yield the files that a place may be in: ``a:7`` is row 7 of ``a``, or a file named ``a:7``."""
    yield place if place in known else place.rpartition(":")[0] or place
    if place in known and (row := place.rpartition(":"))[2].isdecimal() and row[0] in known:
        yield row[0]


def _states(path: Path) -> dict[str, tuple[object, ...]]:
    """Return the state of each file by the name that messages show; for one file, also of its folder's sidecars."""
    whole = path.resolve()
    if whole.is_dir():
        root, files = whole, [*_listed(whole)]
    else:
        root = whole.parent
        files = [Path(name) for name in (whole.name, *SIDECARS) if (root / name).exists()]
    states: dict[str, tuple[object, ...]] = {}
    for file in sorted(files):
        name = shown(file.as_posix())
        states[name] = (*states.get(name, ()), _state(root, file))
    return states


def _listed(root: Path) -> Iterator[Path]:
    for folder, _, files in os.walk(root):  # like the readers, this does not follow links to folders
        for file in files:
            yield Path(folder, file).relative_to(root)


def _state(root: Path, file: Path) -> tuple[object, ...] | None:
    """Return what tells one content of a file from another; None if no reader would open it."""
    try:
        real = (root / file).resolve(strict=True)
        if not real.is_relative_to(root) or not stat.S_ISREG(real.lstat().st_mode):
            return None
        handle = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as stream:  # noqa: PTH123 - a handle
            is_ = os.fstat(handle)
            digest = hashlib.file_digest(stream, "sha256").digest()
    except (OSError, RuntimeError):  # a loop of links was a RuntimeError before Python 3.13
        return None
    return is_.st_dev, is_.st_ino, is_.st_size, is_.st_mtime_ns, is_.st_ctime_ns, digest


class Source:
    """What a store knows about a folder: the file that each of its documents was in, by id.

    A withdrawn document is cleared from this by the following run, so a killed run forgets nothing.
    """

    def __init__(self, store: CorpusStore, path: Path) -> None:
        self._store = store
        self._name = (
            f"source_{hashlib.sha256(str(path.resolve()).encode('utf-8', 'surrogateescape')).hexdigest()}"
        )

    def known(self) -> dict[str, str]:
        """Return the ids and files of the documents that the folder gave and that are not known to be withdrawn."""
        return dict(json.loads(self._store.meta_get(self._name) or "{}"))

    def found(self, still: Still) -> None:
        """Note what the folder gives now, in addition to what it gave before."""
        self._keep(self.known() | still.places)

    def vanished(self, still: Still) -> list[str]:
        """Return what :meth:`missing` does, and forget those that were withdrawn."""
        missing, removed = self._gone(still)
        self._keep({id_: file for id_, file in self.known().items() if id_ not in removed})
        return missing

    def missing(self, still: Still) -> list[str]:
        """Return the ids that the folder gave and no longer gives, except those that an unreadable file may hold."""
        return self._gone(still)[0]

    def _gone(self, still: Still) -> tuple[list[str], set[str]]:
        known = self.known()
        gone = {id_ for id_ in known if id_ not in still.places}
        removed = {
            id_ for id_ in gone if (self._store.documents.facts_of(id_) or {"removed": True})["removed"]
        }
        return sorted(id_ for id_ in gone - removed if not still.hides(known[id_])), removed

    def _keep(self, places: dict[str, str]) -> None:
        if places != self.known():
            self._store.meta_set(self._name, canonical_json(places, "what a folder gave"))


_GRACE: Final = 6 * 3600
"""Seconds by which a run may begin late, such as on a machine that slept; a later one waits for the next night."""
_TIME: Final = re.compile("([01][0-9]|2[0-3]):([0-5][0-9])", re.ASCII)


def night_trigger(at: time, zone: ZoneInfo) -> Any:
    """Return a trigger of APScheduler that fires once a day, at a time of day in a zone.

    If clocks change, a time that a day lacks is reckoned as before the change, so that 02:00 comes when clocks show
    03:00; if a day has a time twice, the first counts. APScheduler's own ``CronTrigger`` (3.11.3) fires twice
    then, and after a day of 23 hours it skips a day if the time is in the hour after midnight.

    Examples
    --------
    >>> from zoneinfo import ZoneInfo
    >>> night = night_trigger(time(2), ZoneInfo("Asia/Kolkata"))
    >>> str(night.get_next_fire_time(None, datetime.fromisoformat("2026-03-01T12:00+00:00")))
    '2026-03-02 02:00:00+05:30'
    """
    require("a nightly run", "schedule")
    from apscheduler.triggers.base import BaseTrigger

    class _Night(BaseTrigger):  # type: ignore[misc] # of a package without types
        def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime:
            since = now if previous_fire_time is None else previous_fire_time + timedelta(microseconds=1)
            # Datetimes of one zone compare by wall clock, which is wrong where the clock goes back.
            since = since.astimezone(UTC)
            day = since.astimezone(zone).date()
            due = datetime.combine(day, at, zone)
            return (
                due if due.astimezone(UTC) >= since else datetime.combine(day + timedelta(days=1), at, zone)
            )

    return _Night()


class Nightly:
    """Runs something each night, one run at a time: a night that comes during a run is left out.

    A run that fails is logged by the type and place of its error, without its message, which may quote content; the
    next night tries again.

    ``run`` gets a function that tells whether to stop. It should open the store itself and close it at the end, so that
    the store is free all day.
    """

    def __init__(
        self, run: Callable[[Callable[[], bool]], SyncReport], *, at: str | time, zone: ZoneInfo
    ) -> None:
        if isinstance(at, str):
            if not (found := _TIME.fullmatch(at)):
                raise InvalidArgument(
                    f"the time of day is {quoted(at)}; want hours and minutes, such as 02:00"
                )
            at = time(int(found[1]), int(found[2]))
        self._run = run
        self._zone = zone
        self._trigger = night_trigger(at, zone)
        self._stopping = threading.Event()

    def next(self, now: datetime) -> datetime:
        """Return when the next run after a moment is due."""
        due: datetime = self._trigger.get_next_fire_time(None, now)
        return due

    def once(self) -> SyncReport | None:
        """Run now; return the report, or None if the run failed."""
        try:
            report = self._run(self._stopping.is_set)
        except Exception as error:  # noqa: BLE001 - logged, and the next night tries again
            _logger.error("the nightly run failed: %s; the next night tries again", type_and_place(error))  # noqa: TRY400 - its message may quote content
            return None
        _logger.info(
            "the nightly run %s: %d added, %d changed, %d unchanged, %d embedded, %d reused, %d vanished, "
            "%d withdrawn, %d left, %d problems",
            "was stopped" if report.stopped else "ends",
            *(report.added, report.changed, report.unchanged, report.embedded, report.reused),
            *(len(report.vanished), report.removed, len(report.left), len(report.problems)),
        )
        return report

    def start(self) -> None:
        """Wait for each night and run, until SIGTERM, which stops a run between two documents. Main thread only."""
        from apscheduler.schedulers.background import BackgroundScheduler

        scheduler = BackgroundScheduler(timezone=self._zone)
        scheduler.add_job(
            self.once,
            self._trigger,
            max_instances=1,
            coalesce=True,
            misfire_grace_time=_GRACE,
            name="nightly",
        )
        # The handler only writes to a pipe: raising an exception or taking a lock where the signal arrives could leave
        # a lock, such as the log's, held for good.
        told, tell = os.pipe()
        before = signal.signal(signal.SIGTERM, lambda *_: os.write(tell, b"."))
        try:
            _logger.info("the next nightly run is due at %s", self.next(datetime.now(self._zone)).isoformat())
            scheduler.start()
            os.read(told, 1)
            _logger.info("told to end")
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            self._stopping.set()
            if scheduler.running:
                scheduler.shutdown(wait=True)
            signal.signal(signal.SIGTERM, before)
            os.close(told)
            os.close(tell)
