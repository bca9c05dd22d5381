"""Open the packages of DOCX, XLSX and PPTX files: ZIP archives of XML parts that name each other (ECMA-376, part 2).

Only the parts that are asked for are unpacked, piece by piece within a limit for the whole file, so a ZIP or XML bomb
costs no more than that limit.
"""

from __future__ import annotations

import posixpath
from io import BytesIO
from typing import TYPE_CHECKING, Final, NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

from lxml import etree

from carag.readers.office.docx_styles import name_of
from carag.readers.outcome import ProblemKind, Unreadable, broken, too_large

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
TRUE: Final = {"1", "true"}
"""What attributes of shapes and sheets are if they are on."""


class Related(NamedTuple):
    """A part that another part names."""

    id: str
    kind: str
    """The last segment of the relationship's type."""
    part: str


class Package:
    """The parts of a file and their relationships; ``called`` is the format's name.

    Raises ``Unreadable`` if the file is encrypted, too large or of another format. Raises ``BadZipFile`` or
    ``zlib.error`` if the archive is damaged.
    """

    def __init__(self, content: bytes, called: str) -> None:
        self._called = called
        if content.startswith(_OLE):
            if _ENCRYPTED_STREAM in content:
                raise Unreadable(ProblemKind.ENCRYPTED, "is encrypted; want a file saved without a password")
            raise broken(f"is a {called[:-1]} file in the format before 2007; save it as {called}")
        if content.count(_ENTRY) > MAX_PARTS:  # the parts are counted before a list of them is made
            raise too_large(f"the archive has more than {MAX_PARTS} parts; split the file")
        self._archive = ZipFile(BytesIO(content))
        self._parts = {part.filename.lower(): part for part in self._archive.infolist()}
        self._left = MAX_UNPACKED
        if len(self._parts) != len(self._archive.infolist()):
            raise broken("two parts have the same name; save the file again")
        self._whole = self.related("")
        main = next((one.part for one in self._whole if one.kind == "officeDocument"), None)
        if main is None:
            raise broken(f"the archive names no main document; want the format {called}")
        self.main = main
        """The main part's name."""

    def title(self) -> str:
        """Return the title among the file's properties, which may be empty."""
        return "".join(
            "".join(title.itertext()).strip()
            for one in self._whole
            if one.kind == "core-properties"
            for title in self.parsed(one.part).iter("{*}title")
        )

    def root(self, name: str) -> _Element:
        """Return the main part's root; raises ``Unreadable`` unless it has this name."""
        root = self.parsed(self.main)
        if name_of(root) != name:
            raise broken(f"its main part is a {name_of(root)}; want the format {self._called}")
        return root

    def related(self, part: str) -> list[Related]:
        """Return each part of this package that a part names."""
        folder, name = posixpath.split(part)
        listed = posixpath.join(folder, "_rels", f"{name}.rels")
        if listed.lower() not in self._parts:
            if not part:
                raise broken(f"the archive has no _rels/.rels; want the format {self._called}")
            return []
        return [
            Related(
                one.get("Id", ""),
                one.get("Type", "").rpartition("/")[2],
                posixpath.normpath(posixpath.join("/", folder, one.get("Target", "")))[1:],
            )
            for one in self.parsed(listed).iter("{*}Relationship", "Relationship")
            if one.get("TargetMode") != "External"
        ]

    def parsed(self, name: str) -> _Element:
        """Return the root of a part."""
        part = self._parts.get(name.lower())
        if part is None:
            raise broken(f"the part {name!r} is missing; get a complete copy of the file")
        if part.flag_bits & 1:
            raise Unreadable(ProblemKind.ENCRYPTED, "is encrypted; want a file saved without a password")
        if part.compress_type not in {ZIP_STORED, ZIP_DEFLATED}:
            raise broken(f"is compressed with a method that {self._called} does not allow; want Deflate")
        parser = etree.XMLParser(
            resolve_entities=False, no_network=True, huge_tree=True, remove_comments=True, remove_pis=True
        )
        try:
            with self._archive.open(part) as stream:
                while piece := stream.read(_PIECE):
                    self._left -= len(piece)
                    if self._left < 0:
                        raise too_large(f"unpacks to more than {MAX_UNPACKED} bytes of text; split the file")
                    parser.feed(piece)
            root = parser.close()
        except (etree.LxmlError, NotImplementedError) as error:
            if "depth" in str(error):
                raise too_large("its elements are nested too deep; want fewer levels") from None
            raise broken(f"the part {name!r} is not XML ({error})") from None
        if root.getroottree().docinfo.doctype:
            raise broken(f"a part declares a document type, which {self._called} does not allow")
        return root


def related_id(element: _Element) -> str:
    """Return the id of the relationship that an element names."""
    return next((value for name, value in element.attrib.items() if name.endswith("}id")), "")
