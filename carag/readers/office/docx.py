"""Read the text of a DOCX file: headers, then the body with its notes, then footers.

Only the parts with text, styles and lists are read. Text in a form that is not read, such as an embedded document, is
refused rather than left out.
"""

from __future__ import annotations

from typing import Final

from carag.readers.office.docx_story import Notes, Story
from carag.readers.office.docx_styles import Styles
from carag.readers.office.package import Package
from carag.readers.outcome import Content, broken

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
    package = Package(content, "DOCX")
    related = package.related(package.main)
    for one in related:
        if one.kind in _UNREAD:
            raise broken(f"holds {_UNREAD[one.kind]}, which cannot be read; save it as text or PDF")
    parts = {one.kind: package.parsed(one.part) for one in related if one.kind in _ASIDE}
    definitions = Styles(parts.get("styles")), parts.get("numbering")
    notes = Notes(*(parts.get(kind) for kind in ("footnotes", "endnotes", "settings")))

    def texts(end: str) -> list[str]:
        named = dict.fromkeys(one.part for one in related if one.kind == end)
        return [Story(*definitions).text(package.parsed(part)) for part in named]

    main = package.parsed(package.main)
    story = [*texts("header"), Story(*definitions, notes).text(main), *texts("footer")]
    return Content("\n\n".join(dict.fromkeys(filter(None, story))), title=package.title())
