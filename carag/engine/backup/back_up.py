"""Back up a store while it is in use, with every record acknowledged before, and no key next to the data."""

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

from carag.audit import AuditLog, Recovery
from carag.audit._files import sync_directory, write_atomically
from carag.audit.auditor.examine import examine_log
from carag.audit.receipts.verify import Verdict
from carag.engine.backup.manifest import ANCHORS, KEYS, MANIFEST, Held, Manifest, copied
from carag.engine.backup.pinned import Pinned
from carag.errors import AuditUnavailable, CorruptFile, InvalidArgument, StoreLocked
from carag.policy import known_at_microseconds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike


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

    The copy has every record that was acknowledged before, with what the record refers to: private values, and labels
    at least as new. If no engine holds the store, the backup is recorded in it, and in the copy.

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
                f"{place} is inside another of the directories for store, backup and keys; name three separate "
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
    """Make a temporary directory next to the place that it is to take, and remove it if it does not get there."""
    place.parent.mkdir(parents=True, exist_ok=True)
    making = place.with_name(f".{place.name}.{secrets.token_hex(4)}.partial")
    making.mkdir(mode=0o700)
    try:
        yield making
    finally:
        shutil.rmtree(making, ignore_errors=True)


def put(making: Path, place: Path) -> None:
    """Give a directory its final name, durably; whatever has taken the name meanwhile stays."""
    for below in (*(one for one in making.iterdir() if one.is_dir()), making):
        sync_directory(below)
    making.rename(place)
    sync_directory(place.parent)


@contextlib.contextmanager
def written(place: Path) -> Iterator[None]:
    """Add to an error of the system which directory could not be made."""
    try:
        yield
    except OSError as error:
        raise AuditUnavailable(
            f"{place} cannot be written: {error}; nothing was put in place: free space, or name another directory"
        ) from error
