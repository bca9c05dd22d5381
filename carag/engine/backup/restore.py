"""Restore a store next to its place, check it against what was kept elsewhere, and record what is lost."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from carag.audit import AuditLog, Checkpoint, Recovery
from carag.audit._files import write_atomically
from carag.audit.anchors.anchor import Submission
from carag.audit.anchors.pin import check_pin
from carag.audit.anchors.review import ReaderHistory
from carag.audit.auditor.examine import examine_log
from carag.audit.auditor.reader import LogReader
from carag.audit.log.directory import SECOND_COPY
from carag.audit.receipts.verify import Verdict
from carag.audit.tlog.log_verifier import parse_vkeys
from carag.audit.tlog.note import Note
from carag.engine.backup.back_up import checked_place, put, staged, written
from carag.engine.backup.manifest import ANCHORS, Manifest, copied
from carag.engine.collection import Collection
from carag.engine.configuration import ConfigurationLog
from carag.engine.kept_embedder import NO_EMBEDDER
from carag.engine.rows.backend import leave_backend
from carag.errors import AnchorUnavailable, CorruptFile, InvalidArgument
from carag.policy import known_at_microseconds
from carag.store.store import CorpusStore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from carag.audit.anchors import Anchor
    from carag.audit.anchors.pin import History
    from carag.audit.tlog.note import NoteKey


_RESTORED: Final = "RESTORED"
"""Code of the recovery record of a restore, followed by the backup's number of records."""
_LOST: Final = "RESTORED_WITH_LOSS"
"""Its code if something kept elsewhere covers more, followed by both numbers of records."""


class Behind(CorruptFile):
    """A backup lacks records that something kept elsewhere proves; nothing was put in place.

    ``known`` is the most records that something kept elsewhere covers; if equal to ``records``, of another history.
    """

    def __init__(self, records: int, known: int, findings: Sequence[str]) -> None:
        super().__init__(
            f"the backup is behind: it leads to {records} records, but {known} are known elsewhere: "
            f"{'; '.join(findings)}. Restore a newer backup, or accept the loss, which is put on record"
        )
        self.records, self.known, self.findings = records, known, tuple(findings)


@dataclass(frozen=True, slots=True)
class Restored:
    """What :func:`restore` put in place."""

    records: int
    """Records of the log, the one of the restore included."""
    origin: str
    backup_records: int
    """Records in the backup."""
    lost: int
    """Least number of lost records that something kept elsewhere proves."""
    findings: tuple[str, ...]
    """What was kept elsewhere that proves this."""
    compared: int
    """Receipts, checkpoints and anchors that the log continues."""
    rows: int
    """Rows of the index, which was built again."""

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
) -> Restored:
    """Put a store in place from a backup and its keys. Its index is built again, from the backup's vectors.

    :func:`carag.engine.backup.back_up` made ``backup`` and ``keys``; ``store`` is new or empty. ``kept`` holds
    receipts, checkpoints, proofs and evidence of this log that were kept elsewhere, by name, the newer the better:
    without these and without ``anchors``, a loss cannot be noticed. Raises Behind if they prove that records are
    missing, or an anchor cannot be asked, unless ``accept_loss``; then the log says so. After an error nothing is in
    place.

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
        known = _Known(kept or {}, anchors, parse_vkeys((making / "vkey").read_text("utf-8")))
        # Before the log is opened, which may add to it, so that anchors are shown the store's own history only.
        with LogReader(making) as reader:
            known.compare(ReaderHistory(reader))
        if SECOND_COPY in manifest.files:
            known.findings.append("a server with a second copy may have later records; it is no longer read")
        known.check(accept=accept_loss)
        with AuditLog.open(making) as log:
            rows = _checked(making, log, accept=accept_loss and bool(known.findings))
            log.append(Recovery(known.code()))
            records, origin = log.size, log.origin
        put(making, place)
    return Restored(
        records=records,
        origin=origin,
        backup_records=manifest.tree.size,
        lost=max(0, known.most - known.size),
        findings=tuple(known.findings),
        compared=known.continued,
        rows=rows,
    )


class _Known:
    """What is known of a log elsewhere, compared with the log as restored."""

    def __init__(self, kept: Mapping[str, bytes], anchors: Sequence[Anchor], keys: Sequence[NoteKey]) -> None:
        self._kept, self._anchors, self._keys = kept, anchors, keys
        self.findings: list[str] = []
        self.continued = self.size = self.most = 0

    def compare(self, history: History) -> None:
        note = Note.parse(history.checkpoint())
        self.size = Checkpoint.parse(note.text).size
        for name, data in self._kept.items():
            found = check_pin(history, data, self._keys)
            if found.verdict is Verdict.UNDECIDED:
                raise InvalidArgument(f"{name} says nothing about this log: {found.reason}; leave it out")
            self._found(None if found.verdict is Verdict.VERIFIED else f"{name}: {found.reason}", found.size)
        submission = Submission(note, tuple(self._keys), history.consistency_hashes, _now())
        for anchor in self._anchors:
            try:
                self._found(None, anchor.submit(submission).tree.size)
            except (CorruptFile, AnchorUnavailable) as error:
                self._found(str(error), 0)

    def check(self, *, accept: bool) -> None:
        if self.findings and not accept:
            raise Behind(self.size, max(self.most, self.size), self.findings)

    def code(self) -> str:
        return f"{_LOST}:{self.size}/{self.most}" if self.findings else f"{_RESTORED}:{self.size}"

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
                f"{keys / name} is not the key of this backup: it is damaged, or from before or after an erasure or a "
                f"rotation; name the keys that were backed up with {source}"
            )
    # So that the next opening notices if audit.db alone is put back to an earlier copy.
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
