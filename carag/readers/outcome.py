"""Define what reading a file yields: a document, or a problem with its place, kind and reason."""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeAlias

from carag.errors import CorruptFile, InvalidArgument, type_and_place
from carag.limits import shown
from carag.visible import logger

_logger = logger(__name__)

Fact: TypeAlias = str | int | float | bool | list[str]
"""What a metadata field may hold."""


class ProblemKind(StrEnum):
    """Why a file or row gave no document, or not all of it."""

    SKIPPED = "skipped"
    """The file's extension is not that of a supported format, or it is not a regular file."""
    OUTSIDE = "outside"
    """A symbolic link that leads out of the folder."""
    BROKEN = "broken"
    """The file or its metadata is damaged, incomplete or contradictory."""
    ENCRYPTED = "encrypted"
    TOO_LARGE = "too_large"
    """The file or row exceeds a limit on size, nesting, pages or time."""
    DUPLICATE = "duplicate"
    """Another file or row, named in the reason, has the same id."""
    EMPTY = "empty"
    """The file or row has no visible text, like a scan without text recognition."""
    LEFT_OUT = "left_out"
    """Nested fields of rows, or parts of a file, without which the document was read."""
    FAILED = "failed"
    """A fault of the program."""


class Problem(NamedTuple):
    """Why a file or row gave no document, or not all of it."""

    where: str
    """Path relative to the folder, with ``:line`` for a row."""
    kind: ProblemKind
    reason: str


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """One document of a file, with its metadata."""

    id: str
    """From the metadata, or else the path relative to the folder."""
    text: str
    facts: dict[str, Fact]
    """The metadata, without ``id`` and ``text``."""
    pages: tuple[int, ...]
    """Character offset of each page: ``text[pages[i]:pages[i + 1]]`` is page ``i + 1``. Empty for formats without
    pages."""
    where: str
    """Path relative to the folder, with ``:line`` for a row."""
    title: str
    """From the metadata, or else from the file itself; may be empty."""
    read_by: str | None = None
    """The name and version of the format's reader, such as ``pdf/2``; None for plain text and rows."""


@dataclass(frozen=True, slots=True)
class Content:
    """The contents of one file or row, before the sidecar's metadata is added."""

    text: str
    title: str = ""
    """The title that is stored in the file format."""
    pages: tuple[int, ...] = ()
    facts: dict[str, Fact] = field(default_factory=dict)
    """Metadata stated in the file itself, including its ``id``."""
    left_out: tuple[str, ...] = ()
    """The names of nested fields, whose values were left out, or what a file shows that was not read."""


class Unreadable(CorruptFile):
    """A file or row that cannot be made into a document, with the kind of problem."""

    def __init__(self, kind: ProblemKind, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


def broken(reason: str) -> Unreadable:
    """Return the error of a damaged or contradictory file or row."""
    return Unreadable(ProblemKind.BROKEN, reason)


def too_large(reason: str) -> Unreadable:
    """Return the error of a file or row that exceeds a limit."""
    return Unreadable(ProblemKind.TOO_LARGE, reason)


_EXPECTED: Final = (CorruptFile, InvalidArgument, OSError, EOFError, zlib.error, zipfile.BadZipFile)


def problem_of(where: str, error: Exception) -> Problem:
    """Explain why one file or row gave no document.

    Only the type and place of an unexpected error are reported, because its message may quote the document.
    """
    if isinstance(error, Unreadable):
        return Problem(where, error.kind, shown(str(error)))
    if isinstance(error, OSError):  # the error's text may name a path outside the folder
        return Problem(where, ProblemKind.BROKEN, f"cannot be read: {error.strerror or type(error).__name__}")
    if isinstance(error, _EXPECTED):
        return Problem(where, ProblemKind.BROKEN, shown(str(error)))
    _logger.debug("an unexpected error", exc_info=error)
    reason = f"{type_and_place(error)}: an unexpected fault of the program; please report it"
    return Problem(where, ProblemKind.FAILED, reason)


def several(stated: Fact) -> list[Any]:
    """Return a field's values as a list: one value stands for itself, and an empty text for no value."""
    if isinstance(stated, list):
        return stated
    return [] if stated == "" else [stated]
