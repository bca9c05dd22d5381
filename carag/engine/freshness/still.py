"""Read a folder whose files may be written meanwhile; files that change, by SHA-256, are read again or left out."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.labelling.document import Document
from carag.limits import shown
from carag.readers.sidecar import SIDECARS
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from carag.engine.folder import PlacedReader


_logger = logger(__name__)

_PASSES: Final = 3
"""How often a folder is read at most, until nothing changes meanwhile."""
_PAUSE: Final = 1.0
"""Seconds before it is read again, to let writers finish."""


class Still(NamedTuple):
    """What a folder gave that did not change during the reading."""

    documents: list[Document]
    places: dict[str, str]
    """By id, the file of each document as messages show it; empty if a reader does not say."""
    problems: list[str]
    troubled: frozenset[str]
    """Files and folders with a problem; the empty name stands for a reader that does not say which."""
    left: list[str]
    """Files that changed during every pass; nothing from them is among the documents."""

    def hides(self, file: str) -> bool:
        """Tell whether a file's former content may still be there, as it or a folder above could not be read."""
        doubtful = self.troubled | {*self.left}
        if not file or "" in doubtful:
            return bool(doubtful)
        return any(file == one or file.startswith(f"{one}/") for one in doubtful)


def read_still(path: Path, read: PlacedReader) -> Still:
    """Read a folder, or one file; ``read`` gives documents and messages with their places, empty if unknown."""
    for number in range(_PASSES):
        if number:
            time.sleep(_PAUSE)
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
    """Yield the files that a place may be in: ``a:7`` is row 7 of ``a``, or a file with this name."""
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
    for folder, _, files in os.walk(root):  # like the readers, without following links to folders
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
