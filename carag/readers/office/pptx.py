"""Read the text of a PPTX file slide by slide: the title, the other shapes, then the notes, stated as notes.

A slide is a page of the text; one that is hidden is an empty page, so that the numbers stay those of the slides. What a
layout or a master draws on its slides, such as the word "Confidential", is read with the first of them.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Final

from carag.readers.office.docx_styles import attribute, child
from carag.readers.office.package import Package, related_id
from carag.readers.office.shapes import shapes_text
from carag.readers.outcome import Content

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lxml.etree import _Element


_TITLES: Final = {"title", "ctrTitle"}
_NUMBER: Final = {"sldNum"}
_OFF: Final = {"0", "false"}


def read_pptx(content: bytes) -> Content:
    """Return the text of a PPTX file, with the offset of each slide, and its title.

    Charts, diagrams and embedded objects are named as left out. Raises ``Unreadable`` if the file is encrypted, too
    large or not a PPTX file. Raises ``BadZipFile`` or ``zlib.error`` if the archive is damaged.
    """
    package = Package(content, "PPTX")
    parts = {one.id: one.part for one in package.related(package.main)}
    drawn: set[str] = set()
    texts: list[str] = []
    left_out: list[str] = []
    for number, listed in enumerate(package.root("presentation").iterfind("{*}sldIdLst/{*}sldId"), 1):
        said: list[str] = []
        for text, unread in _slide(package, parts.get(related_id(listed), ""), drawn):
            said += filter(None, [text])
            left_out += [f"slide {number}: {one}" for one in unread]
        texts.append("\n\n".join(said) + "\n")
    pages = (*accumulate(map(len, texts), initial=0),)[:-1]
    return Content("".join(texts), package.title(), pages, left_out=(*left_out,))


def _slide(package: Package, part: str, drawn: set[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the text of each part that belongs to a slide, and what was not read of it."""
    slide = package.parsed(part)
    if attribute(slide, "show") in _OFF:
        return
    below = slide, part
    for kind in ("slideLayout", "slideMaster"):
        found = next((one.part for one in package.related(below[1]) if one.kind == kind), None)
        if found is None or attribute(below[0], "showMasterSp") in _OFF:
            break
        below = package.parsed(found), found
        if found not in drawn:
            drawn.add(found)
            yield shapes_text(one for one in _shapes(below[0]) if _placeholder(one) is None)
    shapes = sorted(_shapes(slide), key=lambda one: _placeholder(one) not in _TITLES)
    yield shapes_text(one for one in shapes if _placeholder(one) not in _NUMBER)
    for notes in (one.part for one in package.related(part) if one.kind == "notesSlide"):
        bodies = (one for one in _shapes(package.parsed(notes)) if _placeholder(one) == "body")
        text, unread = shapes_text(bodies)
        yield f"Notes: {text}" if text else "", unread


def _shapes(root: _Element) -> list[_Element]:
    tree = child(root, "cSld", "spTree")
    return [] if tree is None else [*tree.iterchildren("{*}*")]


def _placeholder(shape: _Element) -> str | None:
    """Return the type of a placeholder; None for another shape."""
    found = shape.find("{*}nvSpPr/{*}nvPr/{*}ph")
    return None if found is None else attribute(found, "type")
