"""Read the text of a DOCX file: headers, then the body with its notes, then footers.

A DOCX file is a ZIP archive of XML parts (ECMA-376). Only the parts with text, styles and lists are unpacked, piece by
piece within a limit, so a ZIP or XML bomb costs no more than that limit. Text in a form that is not read, such as an
embedded document, is refused rather than left out.
"""

from __future__ import annotations

import posixpath
from io import BytesIO
from typing import TYPE_CHECKING, Final
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

from lxml import etree

from carag.readers.docx_story import Notes, Story
from carag.readers.docx_styles import Styles
from carag.readers.outcome import Content, ProblemKind, Unreadable

if TYPE_CHECKING:
    from lxml.etree import _Element


MAX_UNPACKED: Final = 1 << 25
"""Greatest number of decompressed bytes in all the parts that are read from one file, without pictures: if everything
is tags, reading takes a quarter of a minute."""
MAX_PARTS: Final = 8192
"""Greatest number of parts in a file; each picture is one."""
_PIECE: Final = 1 << 16
"""Bytes unpacked at a time."""
_OLE: Final = bytes.fromhex("d0cf11e0a1b11ae1")
_ENCRYPTED_STREAM: Final = "EncryptedPackage".encode("utf-16-le")
_ENTRY: Final = b"PK\x01\x02"
_UNREAD: Final = {
    "aFChunk": "another document, imported when this one is opened",
    "subDocument": "an embedded document",
    "diagramData": "a diagram with text (SmartArt)",
    "chart": "a chart with text",
}
"""Last segments of the relationship types whose parts show text that is not read."""
_ASIDE: Final = {"styles", "numbering", "footnotes", "endnotes", "settings"}
"""Last segments of the relationship types whose parts say how the document is shown."""


def read_docx(content: bytes) -> Content:
    """Return the text and title of a DOCX file.

    Raises ``Unreadable`` if the file is encrypted, too large or not a DOCX file, or holds text in a form that is not
    read. Raises ``BadZipFile`` or ``zlib.error`` if the archive is damaged.
    """
    if content.startswith(_OLE):
        if _ENCRYPTED_STREAM in content:
            raise Unreadable(ProblemKind.ENCRYPTED, "is encrypted; want a file saved without a password")
        raise Unreadable(ProblemKind.BROKEN, "is a DOC file in the format before 2007; save it as DOCX")
    if content.count(_ENTRY) > MAX_PARTS:  # the parts are counted before a list of them is made
        raise Unreadable(
            ProblemKind.TOO_LARGE, f"the archive has more than {MAX_PARTS} parts; split the file"
        )
    with ZipFile(BytesIO(content)) as archive:
        return _Package(archive).content()


class _Package:
    """The parts of a file and their relationships (ECMA-376, part 2)."""

    def __init__(self, archive: ZipFile) -> None:
        self._archive = archive
        self._parts = {part.filename.lower(): part for part in archive.infolist()}
        self._left = MAX_UNPACKED
        if len(self._parts) != len(archive.infolist()):
            raise Unreadable(ProblemKind.BROKEN, "two parts have the same name; save the file again")

    def content(self) -> Content:
        whole = self._related("")
        main = next((part for kind, part in whole if kind == "officeDocument"), None)
        if main is None:
            raise Unreadable(ProblemKind.BROKEN, "the archive names no main document; want a DOCX file")
        related = self._related(main)
        for kind, _ in related:
            if kind in _UNREAD:
                raise Unreadable(
                    ProblemKind.BROKEN, f"holds {_UNREAD[kind]}, which cannot be read; save it as text or PDF"
                )
        parts = {kind: self._parsed(part) for kind, part in related if kind in _ASIDE}
        definitions = Styles(parts.get("styles")), parts.get("numbering")
        notes = Notes(*(parts.get(kind) for kind in ("footnotes", "endnotes", "settings")))

        def texts(end: str) -> list[str]:
            named = dict.fromkeys(part for kind, part in related if kind == end)
            return [Story(*definitions).text(self._parsed(part)) for part in named]

        story = [*texts("header"), Story(*definitions, notes).text(self._parsed(main)), *texts("footer")]
        titles = [
            "".join(one.itertext()).strip()
            for kind, part in whole
            if kind == "core-properties"
            for one in self._parsed(part).iter("{*}title")
        ]
        return Content("\n\n".join(dict.fromkeys(filter(None, story))), title="".join(titles))

    def _related(self, part: str) -> list[tuple[str, str]]:
        """Return each related part of this package, preceded by the last segment of its relationship type."""
        folder, name = posixpath.split(part)
        listed = posixpath.join(folder, "_rels", f"{name}.rels")
        if listed.lower() not in self._parts:
            if not part:
                raise Unreadable(ProblemKind.BROKEN, "the archive has no _rels/.rels; want a DOCX file")
            return []
        return [
            (
                one.get("Type", "").rpartition("/")[2],
                posixpath.normpath(posixpath.join("/", folder, one.get("Target", "")))[1:],
            )
            for one in self._parsed(listed).iter("{*}Relationship", "Relationship")
            if one.get("TargetMode") != "External"
        ]

    def _parsed(self, name: str) -> _Element:
        part = self._parts.get(name.lower())
        if part is None:
            raise Unreadable(
                ProblemKind.BROKEN, f"the part {name!r} is missing; get a complete copy of the file"
            )
        if part.flag_bits & 1:
            raise Unreadable(ProblemKind.ENCRYPTED, "is encrypted; want a file saved without a password")
        if part.compress_type not in {ZIP_STORED, ZIP_DEFLATED}:
            raise Unreadable(
                ProblemKind.BROKEN, "is compressed with a method that DOCX does not allow; want Deflate"
            )
        parser = etree.XMLParser(
            resolve_entities=False, no_network=True, huge_tree=True, remove_comments=True, remove_pis=True
        )
        try:
            with self._archive.open(part) as stream:
                while piece := stream.read(_PIECE):
                    self._left -= len(piece)
                    if self._left < 0:
                        raise Unreadable(
                            ProblemKind.TOO_LARGE,
                            f"unpacks to more than {MAX_UNPACKED} bytes of text; split the file",
                        )
                    parser.feed(piece)
            root = parser.close()
        except (etree.LxmlError, NotImplementedError) as error:
            if "depth" in str(error):
                raise Unreadable(
                    ProblemKind.TOO_LARGE, "its elements are nested too deep; want fewer levels"
                ) from None
            raise Unreadable(ProblemKind.BROKEN, f"the part {name!r} is not XML ({error})") from None
        if root.getroottree().docinfo.doctype:
            raise Unreadable(ProblemKind.BROKEN, "a part declares a document type, which DOCX does not allow")
        return root
