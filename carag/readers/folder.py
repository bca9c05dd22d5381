"""Read a folder of files into documents: one outcome for each file, and for each row of JSON Lines.

Nothing is skipped silently, and no error stops the run: a file that cannot be read is reported as a problem with its
place. Nothing outside the folder is read. Only one file at a time is in memory, along with the sidecar's metadata and
the ids seen so far; formats that need a parser are read in a child process with a budget.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from carag.errors import CorruptFile, InvalidArgument
from carag.extras import require
from carag.limits import MAX_LABEL, check_id, check_text, quoted, shown
from carag.readers.child import Child
from carag.readers.facts import merged_facts, with_id_as_text
from carag.readers.formats import PACKED, PARSED, ROWS, WHOLE, ending_of, reader_of
from carag.readers.json_rows import content_of_row, lines_of
from carag.readers.outcome import (
    Content,
    Problem,
    ProblemKind,
    ReadDocument,
    Unreadable,
    broken,
    problem_of,
    too_large,
)
from carag.readers.packed import Unpacked
from carag.readers.plain import read_plain
from carag.readers.sidecar import MAX_SIDECAR, SIDECARS, Sidecar
from carag.readers.versions import READER_VERSIONS
from carag.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from carag.readers.outcome import Fact


MAX_FILE: Final = 1 << 27
"""Greatest number of bytes in a file that is read whole; a JSON Lines file may have any size."""
_FREE: Final = 1 << 25
"""Bytes that a gzipped file may unpack to in any case; beyond that, its growth is limited."""
_NAMED: Final = 20
"""Greatest number of fields or parts that one problem names."""
_PIECE: Final = 4096
"""Characters searched at a time for a visible one."""


def read_folder(
    path: Path | str, *, leaves_out: Callable[[str], bool] | None = None
) -> Iterator[ReadDocument | Problem]:
    r"""Read every file of a folder and its subfolders, in the order of their paths.

    Parameters
    ----------
    path : Path or str
        A folder, or one of its files. Formats: PDF, DOCX, XLSX, PPTX, e-mail (``.eml``), HTML (``.html``, ``.htm``,
        ``.xhtml``), Markdown (``.md``, ``.markdown``), plain text (``.txt``, ``.text``), tables (``.csv``, ``.tsv``),
        and JSON Lines (``.jsonl``, ``.ndjson``, gzipped or not) with the fields ``id`` and ``text``. Text is UTF-8
        unless a file states another encoding. Metadata comes from ``metadata.csv`` and ``metadata.jsonl`` in the
        folder, from front matter, and from further fields of JSON Lines.
    leaves_out : callable, optional
        Tells whether a JSON Lines field of this name may be left out if it is nested (an object, or a list of anything
        but texts). Left-out fields are reported once per file. Any other nested field makes its row a problem.

    Yields
    ------
    ReadDocument
        A document.
    Problem
        A file or row that could not be read, or parts or fields that were left out; the rows of the sidecar that name
        no document come last.

    Raises
    ------
    InvalidArgument
        If the path does not exist.
    MissingExtra
        If there are files that need a parser and the extra ``readers`` is not installed.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.md").write_text("---\nid: a-1\nyear: 2024\n---\n# Sales")
    ...     _ = Path(folder, "b.xyz").write_text("")
    ...     for one in read_folder(folder):
    ...         print(one)
    ReadDocument(id='a-1', text='# Sales', facts={'year': 2024}, pages=(), where='a.md', title='', read_by=None)
    Problem(where='b.xyz', kind=<ProblemKind.SKIPPED: 'skipped'>, reason="ends in '.xyz'; want .csv, ...")
    """
    named = Path(path)
    try:
        whole = named.resolve(strict=True)
    except (OSError, RuntimeError):  # a loop of links was a RuntimeError before Python 3.13
        raise InvalidArgument(f"{shown(str(path))} does not exist; want a folder, or one file") from None
    if whole.is_dir():
        files, problems = _listed(whole)
        folder = _Folder(whole, files, leaves_out)
    else:
        files, problems = [whole.name], {}
        folder = _Folder(whole.parent, files, leaves_out)
    if any(ending_of(file) in PARSED for file in files):
        require("reading PDF, office, HTML and e-mail files", "readers")
    return folder.outcomes(problems, one_file=not whole.is_dir())


class _Folder:
    def __init__(self, root: Path, files: list[str], leaves_out: Callable[[str], bool] | None) -> None:
        self._root = root
        self._files = files
        self._named_by_path = {one for one in files if ending_of(one) in WHOLE}
        """An id stated in one file must not be the path of another, which is that file's id."""
        self._leaves_out = leaves_out
        self._sidecar = Sidecar()
        self._child = Child()
        self._places: dict[str, str] = {}
        """The place of each document, by its id."""

    def outcomes(self, problems: dict[str, Problem], *, one_file: bool) -> Iterator[ReadDocument | Problem]:
        for name in SIDECARS:
            if os.path.lexists(self._root / name):
                try:
                    self._sidecar.add(name, self._bytes(name, MAX_SIDECAR))
                except (CorruptFile, OSError) as error:
                    self._sidecar.close(name, error)
        with self._child:
            for file in sorted([*self._files, *problems]):
                if file in problems:
                    yield problems[file]
                elif file in SIDECARS:
                    yield from self._sidecar.problems[file]
                else:
                    yield from self._read(file)
        if not one_file:
            yield from self._sidecar.unmatched({*self._files} - {*SIDECARS})

    def _read(self, file: str) -> Iterator[ReadDocument | Problem]:
        where = shown(file)
        try:
            if Path(file).name in SIDECARS:
                raise Unreadable(  # noqa: TRY301
                    ProblemKind.SKIPPED,
                    "is a sidecar in a subfolder; move its rows to the sidecar of the folder itself",
                )
            if ending_of(file) in ROWS:
                yield from self._rows(file, where)
            else:
                yield from self._whole(file, where)
        except Exception as error:  # noqa: BLE001 - reported, and the other files are read
            yield problem_of(where, error)

    def _whole(self, file: str, where: str) -> Iterator[ReadDocument | Problem]:
        reader, raw = reader_of(file), self._bytes(file, MAX_FILE)
        if not raw:
            raise Unreadable(ProblemKind.EMPTY, "is empty")
        content = self._content(reader, raw)
        yield self._document(file, where, content)
        if content.left_out:
            yield Problem(where, ProblemKind.LEFT_OUT, f"parts were not read: {_told(content.left_out)}")

    def _content(self, reader: Callable[[bytes], Content], content: bytes) -> Content:
        """Read text in this process, in time linear in its size; run a parser in the child process."""
        if reader is read_plain:
            return reader(content)
        found = self._child.call(reader, content)
        return Content(
            found["text"], found["title"], tuple(found["pages"]), left_out=tuple(found["left_out"])
        )

    def _rows(self, file: str, where: str) -> Iterator[ReadDocument | Problem]:
        number, left_out = 0, Counter[str]()
        with self._opened(file) as raw:
            stream = _unpacked(raw) if ending_of(file) in PACKED else raw
            for number, line in lines_of(stream):
                place = f"{where}:{number}"
                try:
                    content = content_of_row(line, leaves_out=self._leaves_out)
                    outcome: ReadDocument | Problem = self._document(file, place, content)
                    left_out.update(content.left_out)
                except Exception as error:  # noqa: BLE001 - reported, and the other rows are read
                    outcome = problem_of(place, error)
                yield outcome
        if not number:
            yield Problem(where, ProblemKind.EMPTY, "has no rows; want one document per line")
        if left_out:
            told = ", ".join(f"{quoted(name)} ({many})" for name, many in sorted(left_out.items())[:_NAMED])
            reason = f"nested fields were left out, of this many documents: {told}"
            yield Problem(where, ProblemKind.LEFT_OUT, reason)

    def _document(self, file: str, where: str, content: Content) -> ReadDocument:
        if not _has_visible(content.text):
            raise Unreadable(
                ProblemKind.EMPTY, "has no visible text; run text recognition (OCR) on a scan first"
            )
        check_text("the text", content.text)
        own = with_id_as_text(content.facts)
        # A row that names the document by its path may state the id by which another row names it.
        facts = merged_facts([(where, own), *self._sidecar.of(file, str(own.get("id", file)))])
        identity = str(facts.get("id", file))
        facts = merged_facts([(where, own), *self._sidecar.of(file, identity)])
        facts.pop("id", None)
        check_id("id", identity)
        if identity != file and identity in self._named_by_path:
            raise Unreadable(
                ProblemKind.DUPLICATE,
                f"states the id {quoted(identity)}, which is the path of another file; choose another id",
            )
        if identity in self._places:
            raise Unreadable(
                ProblemKind.DUPLICATE,
                f"has the same id as {self._places[identity]}, {quoted(identity)}; choose another id",
            )
        document = ReadDocument(
            identity,
            content.text,
            facts,
            content.pages,
            where,
            _title(facts, content.title),
            READER_VERSIONS.get(ending_of(file)),
        )
        self._places[identity] = where
        return document

    def _bytes(self, file: str, most: int) -> bytes:
        with self._opened(file) as stream:
            content = stream.read(most + 1)
        if len(content) > most:
            raise too_large(f"has more than {most} bytes; split the file")
        return content

    @contextmanager
    def _opened(self, file: str) -> Iterator[IO[bytes]]:
        """Open a regular file within the folder; a file replaced by a link in the meantime is not opened."""
        try:
            real = (self._root / file).resolve(strict=True)
        except RuntimeError:
            raise broken("is a symbolic link to itself; want a file") from None
        if not real.is_relative_to(self._root):
            raise Unreadable(
                ProblemKind.OUTSIDE,
                "is a symbolic link that leads out of the folder; put the file itself into the folder",
            )
        if not stat.S_ISREG(real.lstat().st_mode):
            raise Unreadable(ProblemKind.SKIPPED, "is not a regular file, or links to a folder; want a file")
        handle = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as stream:  # noqa: PTH123 - a handle
            yield stream


def _listed(root: Path) -> tuple[list[str], dict[str, Problem]]:
    """List all files below a folder, and the folders that cannot be listed, without following links to folders."""
    files: list[str] = []
    problems: dict[str, Problem] = {}
    folders = [root]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as entries:
                found = list(entries)
        except OSError as error:
            name = folder.relative_to(root).as_posix()
            problems[name] = problem_of(shown(name), error)
            continue
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                folders.append(Path(entry.path))
            else:
                files.append(Path(entry.path).relative_to(root).as_posix())
    return files, problems


def _unpacked(raw: IO[bytes]) -> Unpacked:
    return Unpacked(raw, os.fstat(raw.fileno()).st_size, free=_FREE)


def _told(parts: Sequence[str]) -> str:
    more = f"; and {len(parts) - _NAMED} more" * (len(parts) > _NAMED)
    return "; ".join(map(shown, parts[:_NAMED])) + more


def _title(facts: dict[str, Fact], own: str) -> str:
    stated = facts.get("title")
    if isinstance(stated, str):
        return stated
    line = " ".join(own.split())
    return line if len(line) <= MAX_LABEL and line.isprintable() else ""


def _has_visible(text: str) -> bool:
    return any(visible(text[start : start + _PIECE]).strip() for start in range(0, len(text), _PIECE))
