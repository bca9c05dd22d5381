"""Define what reading a file yields: a document, or a problem with its place, kind and reason."""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

from carag.errors import CorruptFile, InvalidArgument, type_and_place
from carag.limits import shown
from carag.visible import logger

__all__ = ["Content", "Fact", "Problem", "ProblemKind", "ReadDocument", "Unreadable", "problem_of"]

_logger = logger(__name__)

Fact: TypeAlias = str | int | float | bool | list[str]
"""What a metadata field may hold."""


class ProblemKind(StrEnum):
    """Why a file, or a row of one, is no document, or what of it is in none."""

    SKIPPED = "skipped"
    """Its name does not end as a format that is read, or it is no regular file."""
    OUTSIDE = "outside"
    """A symbolic link that leads out of the folder."""
    BROKEN = "broken"
    """It, or what is stated of it, is damaged, incomplete or contradictory."""
    ENCRYPTED = "encrypted"
    TOO_LARGE = "too_large"
    """It exceeds a stated limit of size, nesting, pages or time."""
    DUPLICATE = "duplicate"
    """Another file or row, named in the reason, has its id."""
    EMPTY = "empty"
    """It holds no visible text, as a scan without text recognition."""
    LEFT_OUT = "left_out"
    """A field of rows that is nested: they are documents without it."""
    FAILED = "failed"
    """A fault of the program."""


class Problem(NamedTuple):
    """Why a file, or a row of one, is no document, or what of it is in none."""

    where: str
    """Path relative to the folder, with ``:line`` for a row."""
    kind: ProblemKind
    reason: str


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """One document that a file holds, with what is stated of it."""

    id: str
    """Stated in the metadata, or else the path relative to the folder."""
    text: str
    facts: dict[str, Fact]
    """The metadata, without ``id`` and ``text``."""
    pages: tuple[int, ...]
    """Where each page begins, in characters: ``text[pages[i]:pages[i + 1]]`` is page ``i + 1``. Empty if the format has
    no pages."""
    where: str
    """Path relative to the folder, with ``:line`` for a row."""
    title: str
    """Stated in the metadata, or else in the file itself; empty if in neither."""
    read_by: str | None = None
    """The reader that took the text from a format, by version, such as ``pdf/2``; None of plain text and rows."""


@dataclass(frozen=True, slots=True)
class Content:
    """What one file or row holds, before its metadata is compared with the sidecar's."""

    text: str
    title: str = ""
    """The title that the format carries."""
    pages: tuple[int, ...] = ()
    facts: dict[str, Fact] = field(default_factory=dict)
    """What the file states of itself, its ``id`` included."""
    left_out: tuple[str, ...] = ()
    """The names of fields that are nested, and of which no more is kept."""


class Unreadable(CorruptFile):
    """A file or row that is no document, of a kind that is told."""

    def __init__(self, kind: ProblemKind, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


_FORESEEN: Final = (CorruptFile, InvalidArgument, OSError, EOFError, zlib.error, zipfile.BadZipFile)


def problem_of(where: str, error: Exception) -> Problem:
    """Explain why one file or row is no document.

    An unforeseen error is a fault of the program: only its type and place are reported, because its message may hold
    text of the document.
    """
    if isinstance(error, Unreadable):
        return Problem(where, error.kind, shown(str(error)))
    if isinstance(error, OSError):  # whose text would name a path outside of the folder
        return Problem(where, ProblemKind.BROKEN, f"cannot be read: {error.strerror or type(error).__name__}")
    if isinstance(error, _FORESEEN):
        return Problem(where, ProblemKind.BROKEN, shown(str(error)))
    _logger.debug("an error that nobody foresaw", exc_info=error)
    reason = f"{type_and_place(error)}: a fault of the program, not foreseen; please report it"
    return Problem(where, ProblemKind.FAILED, reason)
