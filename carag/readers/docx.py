"""Read the text of a DOCX file: headers, body, notes and footers, in this order.

A DOCX file is a ZIP archive of XML parts (ECMA-376). Only the parts with text are unpacked, piece by piece into a
parser that builds no tree, so a ZIP or XML bomb costs no more than the limit it exceeds. Inserted text, fields, content
controls and text boxes are text of the document; deleted and hidden text, and comments, are not. What shows text that
is not read, such as another document within, is refused rather than left out.
"""

from __future__ import annotations

import posixpath
from contextlib import suppress
from io import BytesIO
from typing import TYPE_CHECKING, Final, Protocol
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

from lxml import etree

from carag.readers.flow import Flow
from carag.readers.outcome import Content, ProblemKind, Unreadable

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["read_docx"]

MAX_UNPACKED: Final = 1 << 25
"""Greatest number of bytes, decompressed, of all parts that are read of one file: of nothing but tags, they take a
quarter of a minute. Pictures are not among them."""
MAX_PARTS: Final = 8192
"""Greatest number of parts of a file: each picture is one."""
MAX_NESTING: Final = 1024
"""Greatest depth of elements in a part: a table in a table in a text box has about 40."""
_PIECE: Final = 1 << 16
"""Bytes unpacked at a time."""
_OLE: Final = bytes.fromhex("d0cf11e0a1b11ae1")
_ENCRYPTED_STREAM: Final = "EncryptedPackage".encode("utf-16-le")
_ENTRY: Final = b"PK\x01\x02"
_BEFORE: Final = ("header",)
_AFTER: Final = ("footnotes", "endnotes", "footer")
_UNREAD: Final = {
    "aFChunk": "another document, imported when it is opened",
    "subDocument": "another document, shown within",
    "diagramData": "a diagram with text (SmartArt)",
    "chart": "a chart with text",
}
"""Ends of the types of relationships whose parts show text that is not read."""
_WORD: Final = {
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",
}
_SIGNS: Final = {"tab": "\t", "ptab": "\t", "noBreakHyphen": "\u2011", "softHyphen": "\u00ad"}
_FALSE: Final = {"0", "false", "off"}
_NOT_SHOWN: Final = {"del", "moveFrom", "Fallback"}
"""Deleted text, where text was moved from, and the repetition of a text box for programs of before 2010."""


class _Target(Protocol):
    def start(self, tag: str, attributes: Mapping[str, str]) -> None: ...
    def end(self, tag: str) -> None: ...
    def data(self, text: str) -> None: ...


def read_docx(content: bytes) -> Content:
    """Return the text and title of a DOCX file.

    Raises
    ------
    Unreadable
        If it is encrypted, too large, no DOCX file, or holds text in a way that is not read.
    BadZipFile, zlib.error
        If the archive is damaged.
    """
    if content.startswith(_OLE):
        if _ENCRYPTED_STREAM in content:
            raise Unreadable(ProblemKind.ENCRYPTED, "is encrypted; want a file saved without a password")
        raise Unreadable(ProblemKind.BROKEN, "is a DOC file of before 2007; want it saved as DOCX")
    if content.count(_ENTRY) > MAX_PARTS:  # counted before a list of them is made
        raise Unreadable(ProblemKind.TOO_LARGE, f"more than {MAX_PARTS} parts; want fewer")
    with ZipFile(BytesIO(content)) as archive:
        return _Package(archive).content()


class _Package:
    """The parts of a file and how they lead to one another (ECMA-376, part 2)."""

    def __init__(self, archive: ZipFile) -> None:
        self._archive = archive
        self._parts = {part.filename.lower(): part for part in archive.infolist()}
        self._left = MAX_UNPACKED
        if len(self._parts) != len(archive.infolist()):
            raise Unreadable(ProblemKind.BROKEN, "two parts have one name; want each once")

    def content(self) -> Content:
        whole = self._related("")
        main = next((part for kind, part in whole if kind == "officeDocument"), None)
        if main is None:
            raise Unreadable(ProblemKind.BROKEN, "an archive that names no document in it; want a DOCX file")
        related = self._related(main)
        for kind, _ in related:
            if kind in _UNREAD:
                raise Unreadable(
                    ProblemKind.BROKEN, f"holds {_UNREAD[kind]}, which is not read; want it as text, or a PDF"
                )
        parts = [part for end in _BEFORE for kind, part in related if kind == end]
        parts += [main, *(part for end in _AFTER for kind, part in related if kind == end)]
        texts = dict.fromkeys(self._text(part) for part in dict.fromkeys(parts))
        title = _Title()
        for kind, part in whole:
            if kind == "core-properties":
                self._parse(part, title)
        return Content("\n\n".join(filter(None, texts)), title="".join(title.pieces).strip())

    def _text(self, part: str) -> str:
        text = _Text()
        self._parse(part, text)
        return text.flow.text()

    def _related(self, part: str) -> list[tuple[str, str]]:
        """Return the parts of this package that a part, or the package itself, names, each with the end of its type."""
        folder, name = posixpath.split(part)
        listed = posixpath.join(folder, "_rels", f"{name}.rels")
        if listed.lower() not in self._parts:
            if not part:
                raise Unreadable(ProblemKind.BROKEN, "an archive without _rels/.rels; want a DOCX file")
            return []
        found = _Relationships()
        self._parse(listed, found)
        return [
            (kind.rpartition("/")[2], posixpath.normpath(posixpath.join("/", folder, target))[1:])
            for kind, target in found.listed
        ]

    def _parse(self, name: str, target: _Target) -> None:
        part = self._parts.get(name.lower())
        if part is None:
            raise Unreadable(ProblemKind.BROKEN, f"the part {name!r} is missing; want a complete file")
        if part.flag_bits & 1:
            raise Unreadable(ProblemKind.ENCRYPTED, "is encrypted; want a file saved without a password")
        if part.compress_type not in {ZIP_STORED, ZIP_DEFLATED}:
            raise Unreadable(
                ProblemKind.BROKEN, "is compressed in a way that DOCX does not know; want Deflate"
            )
        parser = etree.XMLParser(
            target=_Guarded(target), resolve_entities=False, no_network=True, huge_tree=False
        )
        try:
            with self._archive.open(part) as stream:
                while piece := stream.read(_PIECE):
                    self._left -= len(piece)
                    if self._left < 0:
                        raise Unreadable(
                            ProblemKind.TOO_LARGE,
                            f"unpacks to more than {MAX_UNPACKED} bytes of text; want fewer",
                        )
                    parser.feed(piece)
            parser.close()
        except (etree.LxmlError, NotImplementedError) as error:
            raise Unreadable(ProblemKind.BROKEN, f"the part {name!r} is no XML ({error})") from None


class _Guarded:
    """Hands elements of bounded depth on, and refuses a DTD, as does ECMA-376: it would define entities."""

    def __init__(self, target: _Target) -> None:
        self._target = target
        self._depth = 0

    def doctype(self, *_: object) -> None:
        raise Unreadable(ProblemKind.BROKEN, "a part declares a document type; DOCX has none")

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise Unreadable(
                ProblemKind.TOO_LARGE, f"elements nested more than {MAX_NESTING} deep; want fewer"
            )
        self._target.start(tag, attributes)

    def end(self, tag: str) -> None:
        self._target.end(tag)
        self._depth -= 1

    def data(self, text: str) -> None:
        self._target.data(text)

    def close(self) -> None:
        """Return nothing: what was handed on is the result."""


class _Relationships:
    """Lists types and targets of the relationships within the package; those outside of it are never followed."""

    def __init__(self) -> None:
        self.listed: list[tuple[str, str]] = []

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if _split(tag)[1] == "Relationship" and attributes.get("TargetMode") != "External":
            self.listed.append((attributes.get("Type", ""), attributes.get("Target", "")))

    def end(self, tag: str) -> None:
        """Nothing ends."""

    def data(self, text: str) -> None:
        """Nothing is stated by text."""


class _Title:
    """Keeps the title of a file's core properties."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._inside = False

    def start(self, tag: str, _: Mapping[str, str]) -> None:
        self._inside = _split(tag)[1] == "title"

    def end(self, _: str) -> None:
        self._inside = False

    def data(self, text: str) -> None:
        if self._inside:
            self.pieces.append(text)


class _Text:
    """Turns the elements of a part into lines: a paragraph is one, a table row too."""

    def __init__(self) -> None:
        self.flow = Flow()
        self._path: list[str] = []
        self._unseen_from = 0
        """Depth of the outermost element that is not shown; 0 if none."""
        self._hidden_run = 0
        """Depth of the run that is marked as hidden; 0 if none."""

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        space, name = _split(tag)
        self._path.append(name)
        if self._unseen_from:
            return
        if name in _NOT_SHOWN:
            self._unseen_from = len(self._path)
        elif space not in _WORD:
            return
        elif name == "p":
            self.flow.end_line(kept=True)
        elif name == "tbl":
            self.flow.start_table()
        elif name == "tc" and self.flow.in_table:
            self.flow.start_cell()
        elif name == "tr" and self.flow.in_table:
            self.flow.end_row()
        elif name == "vanish" and self._path[-3:-1] == ["r", "rPr"]:
            if _attribute(attributes, "val") not in _FALSE:
                self._hidden_run = len(self._path) - 2
        elif not self._hidden_run and self._path[-2:-1] == ["r"]:
            self._sign(name, attributes)

    def end(self, tag: str) -> None:
        depth, name = len(self._path), self._path.pop()
        if self._unseen_from:
            if self._unseen_from == depth:
                self._unseen_from = 0
            return
        if self._hidden_run == depth:
            self._hidden_run = 0
        if _split(tag)[0] not in _WORD:
            return
        if name == "p":
            self.flow.end_line(blank=True, kept=True)
        elif name == "tbl" and self.flow.in_table:
            self.flow.end_table()
        elif name == "tc" and self.flow.in_table:
            self.flow.end_cell()
        elif name == "tr" and self.flow.in_table:
            self.flow.end_row()

    def data(self, text: str) -> None:
        if not (self._unseen_from or self._hidden_run) and self._path and self._path[-1] == "t":
            self.flow.write(text)  # of a run, a formula or a drawing

    def _sign(self, name: str, attributes: Mapping[str, str]) -> None:
        if name in _SIGNS:
            self.flow.write(_SIGNS[name])
        elif name in {"br", "cr"}:
            self.flow.end_line(kept=True)
        elif name == "sym":
            with suppress(ValueError, OverflowError):
                self.flow.write(chr(int(_attribute(attributes, "char"), 16)))


def _split(tag: str) -> tuple[str, str]:
    space, brace, name = tag.removeprefix("{").rpartition("}")
    return (space, name) if brace else ("", tag)


def _attribute(attributes: Mapping[str, str], name: str) -> str:
    return next((value for key, value in attributes.items() if _split(key)[1] == name), "")
