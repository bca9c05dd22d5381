"""Back up a store while it is in use, and restore it, reporting what the backup lacks.

A backup has every record acknowledged before it began, and no key next to the data. A restored store is first put
together next to its final place and checked against what was kept elsewhere; what is lost goes on record.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from carag.audit import AuditLog, Checkpoint, Recovery
from carag.audit._files import sync_directory, write_atomically
from carag.audit.anchors.anchor import Submission
from carag.audit.anchors.pin import check_pin
from carag.audit.anchors.review import ReaderHistory
from carag.audit.auditor.examine import examine_log
from carag.audit.auditor.reader import LogReader
from carag.audit.log.directory import SECOND_COPY
from carag.audit.receipts.verify import Verdict, verify_receipt
from carag.audit.records.custody import DocumentErasure
from carag.audit.tlog.log_verifier import parse_vkeys
from carag.audit.tlog.note import Note
from carag.engine.collection import Collection
from carag.engine.configuration import ConfigurationLog
from carag.engine.corpus import NO_EMBEDDER
from carag.engine.erasing.again import LostErasures, read_statements
from carag.engine.rows import leave_backend
from carag.engine.snapshot import ANCHORS, KEYS, MANIFEST, Held, Manifest, Pinned, copied
from carag.errors import AnchorUnavailable, AuditUnavailable, CorruptFile, InvalidArgument, StoreLocked
from carag.policy import known_at_microseconds
from carag.store.store import CorpusStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from os import PathLike

    from carag.audit.anchors import Anchor
    from carag.audit.anchors.pin import History

__all__ = ["BackedUp", "Behind", "Manifest", "Restored", "back_up", "restore"]


BACKED_UP: Final = "BACKED_UP"
"""Code of the recovery record that a backup writes."""


@dataclass(frozen=True, slots=True)
class BackedUp:
    """What :func:`back_up` made."""

    records: int
    """Records of the log, as many as its checkpoint covers."""
    origin: str
    bytes: int
    """Total size of all files."""
    has_keys: bool
    is_on_record: bool
    """False if a running engine held the log, which nothing else can then add to."""
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return what ``carag backup --json`` prints."""
        return asdict(self)


def back_up(
    store: str | PathLike[str], to: str | PathLike[str], *, keys: str | PathLike[str] | None = None
) -> BackedUp:
    """Copy a store into a new directory, while an engine may be using it.

    The copy has every record that was acknowledged before the call, with what the record refers to: private values, and
    labels at least as new as the record. If no engine holds the store, the backup is recorded in it, and in the copy.

    ``to`` must not exist yet; it appears, with ``manifest.json``, only once it is complete. ``keys``, another such
    directory, neither inside ``to`` nor around it, gets ``audit.key`` and ``private.key``: keep it apart, because both
    together open the private values. Raises StoreLocked if the store changes without a pause.

    Examples
    --------
    >>> import tempfile, carag
    >>> from pathlib import Path
    >>> home = Path(tempfile.mkdtemp())
    >>> with carag.Engine.open(home / "store", embedder="wordllama") as engine:
    ...     _ = engine.ask("Anything?", carag.Session(role="visitor", purpose="invest"))
    ...     done = back_up(home / "store", home / "backup", keys=home / "keys")
    ...     done.records == engine.log.size, done.is_on_record
    (True, False)
    """
    started = time.monotonic()
    home, data = Path(store), checked_place(Path(to))
    key_place = None if keys is None else checked_place(Path(keys))
    places = [place.resolve() for place in (data, key_place, home) if place is not None]
    for place in places:
        if any(place != other and place.is_relative_to(other) for other in places) or places.count(place) > 1:
            raise InvalidArgument(
                f"{place} is inside another directory that was named for store, backup or keys; name three separate "
                "directories, so that the data never comes with its keys"
            )
    with ExitStack() as stack:
        pinned, is_on_record = _held(home)
        stack.enter_context(pinned)
        with written(data):
            making = stack.enter_context(staged(data))
            if key_place is not None:
                apart = stack.enter_context(staged(key_place))
                for name in KEYS:
                    write_atomically(apart / name, pinned.keys[name])
            manifest = _filled(making, home, pinned)
        _check(making, manifest)
        with written(data):
            write_atomically(making / MANIFEST, manifest.to_bytes())
            if key_place is not None:  # first, because data without its keys is useless
                put(apart, key_place)
            put(making, data)
    return BackedUp(
        records=pinned.size,
        origin=manifest.tree.origin,
        bytes=sum(one.size for one in manifest.files.values()),
        has_keys=key_place is not None,
        is_on_record=is_on_record,
        seconds=time.monotonic() - started,
    )


def _held(home: Path) -> tuple[Pinned, bool]:
    if not (home / "vkey").is_file():
        raise InvalidArgument(f"{home} does not hold a store; name a store that carag ingest has made")
    try:
        log = AuditLog.open(home)
    except StoreLocked:
        return Pinned(home), False
    with log:
        log.append(Recovery(BACKED_UP))
        return Pinned(home), True


def _filled(making: Path, home: Path, pinned: Pinned) -> Manifest:
    files: dict[str, Held] = {}
    for name in pinned.names:
        pinned.copy(name, making / name)
        files[name] = Held.of(making / name)
    write_atomically(making / "vkey", pinned.keys["vkey"])
    files["vkey"] = Held.of_bytes(pinned.keys["vkey"])
    if (home / ANCHORS).is_dir():
        (making / ANCHORS).mkdir(mode=0o700)
        for evidence in sorted((home / ANCHORS).iterdir()):
            # The copy cannot prove a later checkpoint. The name of a checkpoint's file begins with its size.
            if evidence.name[:20].isdecimal() and int(evidence.name[:20]) <= pinned.size:
                name = f"{ANCHORS}/{evidence.name}"
                files[name] = copied(evidence, making / name)
    keys = {name: Held.of_bytes(pinned.keys[name]) for name in KEYS}
    return Manifest(pinned.checkpoint, files, keys, known_at_microseconds(datetime.now(UTC)))


def _check(making: Path, manifest: Manifest) -> None:
    """Hash the copied log from its records, so that a backup of a damaged log never replaces an earlier, sound one."""
    found = examine_log(making)
    if found.verdict is not Verdict.VERIFIED or found.checkpoint != manifest.checkpoint:
        raise CorruptFile(f"the log fails its own checks, and nothing was backed up: {found.reason}")


def checked_place(place: Path) -> Path:
    """Return the resolved path of a directory to make, if it would replace nothing."""
    try:
        if place.is_symlink() or (place.exists() and (not place.is_dir() or any(place.iterdir()))):
            raise InvalidArgument(f"{place} exists already; name a new or an empty directory")
    except OSError as error:
        raise InvalidArgument(f"{place} cannot be used: {error.strerror}; name another directory") from error
    return place


@contextlib.contextmanager
def staged(place: Path) -> Iterator[Path]:
    """Make a temporary directory next to its final place, and remove it if it is never moved there."""
    place.parent.mkdir(parents=True, exist_ok=True)
    making = place.with_name(f".{place.name}.{secrets.token_hex(4)}.partial")
    making.mkdir(mode=0o700)
    try:
        yield making
    finally:
        shutil.rmtree(making, ignore_errors=True)


def put(making: Path, place: Path) -> None:
    """Give a directory its final name, durably; anything that has taken the name meanwhile stays."""
    for below in (*(one for one in making.iterdir() if one.is_dir()), making):
        sync_directory(below)
    making.rename(place)
    sync_directory(place.parent)


@contextlib.contextmanager
def written(place: Path) -> Iterator[None]:
    """Turn a system error into one that says which directory could not be made."""
    try:
        yield
    except OSError as error:
        raise AuditUnavailable(
            f"{place} cannot be written: {error}; nothing was put in place: free space, or name another directory"
        ) from error


_RESTORED: Final = "RESTORED"
"""Code of the recovery record of a restore, followed by the backup's number of records."""
_LOST: Final = "RESTORED_WITH_LOSS"
"""The code if something kept elsewhere covers more records, followed by both numbers of records."""


_BACK: Final = "ERASED_BACK"
"""Added, with their number, if documents may be back that were erased after the backup."""


class Behind(CorruptFile):
    """A backup lacks records that something kept elsewhere proves; nothing was put in place.

    ``known`` is the most records that anything kept elsewhere covers; if it equals ``records``, the histories differ.
    """

    def __init__(self, records: int, known: int, findings: Sequence[str]) -> None:
        super().__init__(
            f"the backup is behind: it has {records} records, but {known} are known elsewhere: "
            f"{'; '.join(findings)}. Restore a newer backup, or accept the loss, which is put on record"
        )
        self.records, self.known, self.findings = records, known, tuple(findings)


@dataclass(frozen=True, slots=True)
class Restored:
    """What :func:`restore` put in place."""

    records: int
    """Records in the log, including the record of the restore."""
    origin: str
    backup_records: int
    """Records in the backup."""
    lost: int
    """Least number of lost records that something kept elsewhere proves."""
    findings: tuple[str, ...]
    """Which of the things kept elsewhere prove this."""
    compared: int
    """Receipts, checkpoints and anchors that the log continues."""
    rows: int
    """Rows of the index, which was built again."""
    erased: int
    """Documents that the backup brought back and that were erased again."""
    unerased: int
    """Documents that were erased after the backup, named by no statement: they may be back."""

    def to_json(self) -> dict[str, Any]:
        """Return what ``carag restore --json`` prints."""
        return asdict(self)


def restore(
    backup: str | PathLike[str],
    keys: str | PathLike[str],
    store: str | PathLike[str],
    *,
    kept: Mapping[str, bytes] | None = None,
    anchors: Sequence[Anchor] = (),
    accept_loss: bool = False,
    erased: bytes = b"",
) -> Restored:
    """Put a store in place from a backup and its keys. Its index is built again, from the backup's vectors.

    :func:`carag.engine.backup` made ``backup`` and ``keys``; ``store`` is new or empty. ``kept`` holds
    receipts, checkpoints, proofs and evidence of this log that were kept elsewhere, by name; the newer the better.
    Without these and without ``anchors``, a loss cannot be noticed. Unless ``accept_loss`` is given, raises Behind if
    they prove that records are missing or if an anchor cannot be asked; with it, the log says so. After an error
    nothing is in place.

    A backup from before an erasure still has what was erased, as the erasure's receipt in ``kept`` shows. ``erased``
    holds its statements: JSON lines, each with the erasure's ``record``, the ``id`` of a document and the ``salt`` of
    its hash. What they name is erased again before the store is put in place; the log says how many others may be back.

    Examples
    --------
    >>> import tempfile, carag
    >>> from pathlib import Path
    >>> from carag.engine.backup import back_up
    >>> home = Path(tempfile.mkdtemp())
    >>> visitor = carag.Session(role="visitor", purpose="invest")
    >>> with carag.Engine.open(home / "store", embedder="wordllama") as engine:
    ...     first = engine.ask("Anything?", visitor).receipt.to_bytes()
    ...     _ = back_up(home / "store", home / "backup", keys=home / "keys")
    ...     later = engine.ask("Anything else?", visitor).receipt.to_bytes()
    >>> restore(home / "backup", home / "keys", home / "again", kept={"first": first}).compared
    1
    >>> try:
    ...     restore(home / "backup", home / "keys", home / "other", kept={"later": later})
    ... except Behind as behind:
    ...     behind.records, behind.known
    (3, 4)
    """
    source, place = Path(backup), checked_place(Path(store))
    manifest = Manifest.read(source)
    with written(place), staged(place) as making:
        _copy(source, Path(keys), making, manifest)
        examined = examine_log(making)
        if examined.verdict is not Verdict.VERIFIED or examined.checkpoint != manifest.checkpoint:
            raise CorruptFile(f"{source} cannot be restored: {examined.reason}; take another backup")
        known = _Known(kept or {}, anchors, (making / "vkey").read_text("utf-8"))
        # Done before the log is opened, which may add to it, so that anchors are shown only the store's own history.
        with LogReader(making) as reader:
            known.compare(ReaderHistory(reader))
        if SECOND_COPY in manifest.files:
            known.findings.append("a server with a second copy may have later records; it is no longer read")
        lost = LostErasures(known.size, known.erasures, read_statements(erased))
        known.check(accept=accept_loss)
        with AuditLog.open(making) as log:
            rows = _checked(making, log, accept=accept_loss and bool(known.findings))
            log.append(Recovery(known.code(lost.unnamed)))
            records, origin = log.size, log.origin
        if again := lost.erase(making):
            with AuditLog.open(making) as log:
                rows, records = _checked(making, log, accept=False), log.size
        put(making, place)
    return Restored(
        records=records,
        origin=origin,
        backup_records=manifest.tree.size,
        lost=max(0, known.most - known.size),
        findings=tuple(known.findings),
        compared=known.continued,
        rows=rows,
        erased=again,
        unerased=lost.unnamed,
    )


class _Known:
    """What is known about a log elsewhere, compared with the restored log."""

    def __init__(self, kept: Mapping[str, bytes], anchors: Sequence[Anchor], vkey: str) -> None:
        self._kept, self._anchors, self._vkey, self._keys = kept, anchors, vkey, parse_vkeys(vkey)
        self.findings: list[str] = []
        self.erasures: dict[int, DocumentErasure] = {}
        self.continued = self.size = self.most = 0

    def compare(self, history: History) -> None:
        note = Note.parse(history.checkpoint())
        self.size = Checkpoint.parse(note.text).size
        for name, data in self._kept.items():
            found = check_pin(history, data, self._keys)
            if found.verdict is Verdict.UNDECIDED:
                raise InvalidArgument(f"{name} says nothing about this log: {found.reason}; leave it out")
            lost = found.verdict is not Verdict.VERIFIED
            self._found(f"{name}: {found.reason}{self._erased_by(data)}" if lost else None, found.size)
        submission = Submission(note, tuple(self._keys), history.consistency_hashes, _now())
        for anchor in self._anchors:
            try:
                self._found(None, anchor.submit(submission).tree.size)
            except (CorruptFile, AnchorUnavailable) as error:
                self._found(str(error), 0)

    def check(self, *, accept: bool) -> None:
        if self.findings and not accept:
            raise Behind(self.size, max(self.most, self.size), self.findings)

    def code(self, unerased: int) -> str:
        back = f":{_BACK}:{unerased}" if unerased else ""
        return f"{_LOST}:{self.size}/{self.most}{back}" if self.findings else f"{_RESTORED}:{self.size}"

    def _erased_by(self, data: bytes) -> str:
        """Keep the erasure that a lost record states, if its receipt verifies, and say so."""
        record = verify_receipt(data, self._vkey).record
        if record is None or not isinstance(record.event, DocumentErasure):
            return ""
        self.erasures[record.seq] = record.event
        return f"; it erases {len(record.event.ids)} documents, so the backup is from before an erasure"

    def _found(self, finding: str | None, size: int) -> None:
        self.most = max(self.most, size)
        if finding is None:
            self.continued += 1
        else:
            self.findings.append(finding)


def _copy(source: Path, keys: Path, making: Path, manifest: Manifest) -> None:
    if any(name.startswith(f"{ANCHORS}/") for name in manifest.files):
        (making / ANCHORS).mkdir(mode=0o700)
    for name, held in manifest.files.items():
        if name == SECOND_COPY:
            continue
        if copied(source / name, making / name) != held:
            raise CorruptFile(
                f"{source / name} is damaged, as its content differs from the manifest; take another backup"
            )
    for name, held in manifest.keys.items():
        if not (keys / name).is_file():
            raise InvalidArgument(
                f"{keys} has no {name}; name the directory that carag backup --keys made, for {source}"
            )
        if copied(keys / name, making / name) != held:
            raise CorruptFile(
                f"{keys / name} is not the key of this backup: it is damaged, or an erasure or a rotation lies "
                f"between the two; name the keys that were backed up with {source}"
            )
    # With this, the next opening notices if audit.db alone is replaced by an earlier copy.
    write_atomically(making / "pinned", manifest.checkpoint.encode(), mode=0o644)
    (making / "vkey").chmod(0o644)


def _checked(making: Path, log: AuditLog, *, accept: bool) -> int:
    """Build index, words and state again, and compare labels and gate with the records; return the index's rows."""
    with CorpusStore.open(making / "corpus.db", create=False) as store:
        if store.dim is None:
            return 0  # an empty store has no index, and only its embedder knows the dimension
        leave_backend(store)
    with Collection.open(making, create=False, embedder=NO_EMBEDDER, clock=_now) as collection:
        collection.check()
        rows, configuration = len(collection.index), ConfigurationLog(log, collection.store)
        configuration.gate(accept=accept)
        configuration.labels(collection.state, accept=accept, rows=rows, at=_now())
    return rows


def _now() -> int:
    return known_at_microseconds(datetime.now(UTC))
