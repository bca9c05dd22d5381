"""Check that a PDF file is whole before its text is taken: every stream, form and layer that text comes from.

PDFium, which extracts the text, repairs damage silently. pypdf repairs damage too, but warns of it. It therefore reads
the same streams first, and a file with a warning is refused.
"""

from __future__ import annotations

import unicodedata
import zlib
from typing import TYPE_CHECKING, Any, Final

import pypdf
from pypdf.generic import (
    ContentStream,
    EncodedStreamObject,
    IndirectObject,
    NameObject,
    NullObject,
    StreamObject,
)

from carag.limits import quoted
from carag.readers.outcome import broken, too_large
from carag.readers.pdf.names import characters_of, map_of

if TYPE_CHECKING:
    from io import BytesIO

    from pypdf import PageObject
    from pypdf.generic import PdfObject


MAX_STREAM: Final = 1 << 24
"""Greatest number of decompressed bytes of one stream, such as the operators of a page."""
MAX_FONT: Final = 1 << 26
"""Greatest number of decompressed bytes of one font stream."""
MAX_FORMS: Final = 5000
"""Greatest number of times that a page may draw a form XObject."""
MAX_STRING: Final = 32_767
"""Greatest number of bytes in a string on a page; PDFium silently drops the rest of a longer string."""
_KEPT_UNPACKED: Final = 8
"""Greatest number of streams kept unpacked at a time."""
_OF_PAGE: Final = (
    "Type Parent LastModified Resources MediaBox CropBox BleedBox TrimBox ArtBox BoxColorInfo Rotate Group Thumb B Dur"
    " Trans Annots AA Metadata PieceInfo StructParents ID PZ SeparationInfo Tabs TemplateInstantiated PresSteps"
    " UserUnit VP AF OutputIntents DPart"
)
"""The entries of a page other than ``/Contents`` (ISO 32000-2, 7.7.3.3)."""
_LATIN: Final = ("LATIN", "FEMININE", "MASCULINE", "MICRO")
_SHOWS: Final = frozenset({b"Tj", b"TJ", b"'", b'"'})


class Reader(pypdf.PdfReader):
    """Releases unpacked streams, which pypdf would keep, and checks that each is whole, which pypdf does not check."""

    def __init__(self, stream: BytesIO) -> None:
        self._used: list[StreamObject] = []
        self._checked: set[int] = set()
        super().__init__(stream)

    def get_object(self, indirect_reference: int | IndirectObject) -> PdfObject | None:
        """Return an object as pypdf does."""
        found = super().get_object(indirect_reference)
        if isinstance(found, StreamObject):
            self._used.append(found)
            if len(self._used) > _KEPT_UNPACKED:
                self.release()
        return found

    def release(self) -> None:
        """Check the streams unpacked since the last call, and drop their unpacked data.

        Raises ``Unreadable`` if a stream is truncated or fails its checksum (RFC 1950).
        """
        used, self._used = self._used, []
        for one in used:
            if isinstance(one, EncodedStreamObject) and one.decoded_self is not None:
                one.decoded_self = None
                self.check(one)

    def check(self, stream: object) -> None:
        """Verify the checksum of a Deflate stream, once; other streams have no checksum."""
        if not isinstance(stream, EncodedStreamObject) or id(stream) in self._checked:
            return
        self._checked.add(id(stream))  # the reader keeps it alive, so its id is unique
        named = stream.get("/Filter")
        if isinstance(named, list):
            named = named[0].get_object() if named else None
        if named in {"/FlateDecode", "/Fl"} and not _is_whole(
            stream._data  # noqa: SLF001 - pypdf's interface has only the unpacked bytes
        ):
            raise broken("a stream is truncated or altered; get a complete copy")


def _is_whole(packed: bytes) -> bool:
    unpacking, size = zlib.decompressobj(), 0
    try:
        while packed and not unpacking.eof:
            size += len(unpacking.decompress(packed, 1 << 20))
            packed = unpacking.unconsumed_tail
            if size > MAX_FONT:
                raise too_large(f"a stream has more than {MAX_FONT} bytes; want a smaller one")
    except zlib.error:
        return False
    return unpacking.eof


class Walk:
    """Walks through what the pages of a file draw, and finds the text on hidden layers."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._layers = _Layers(reader)
        self.shows_text: set[int] = set()
        """Pages that show text directly and not through forms."""
        self.all_fonts = True
        """Whether all fonts for non-Latin scripts are embedded."""
        self.altered: dict[int, ContentStream] = {}
        """The contents, without hidden text, of the pages that have hidden text."""
        self._forms: dict[int, int] = {}
        """The number of forms that each form draws, including itself; 0 while it is being counted."""
        self._seen: dict[int, Any] = {}
        """The fonts, by object id."""

    def page(self, at: int, page: PageObject) -> None:
        """Check everything that a page draws, and record what is hidden.

        Raises ``Unreadable`` if a part is missing, too large or draws itself, or the state of a layer cannot be told.
        """
        contents = page.get_contents()
        if contents is None:
            _check_empty(page)
            return
        stated = _part(page, "/Contents")
        if isinstance(stated, list) and not all(isinstance(_got(one), StreamObject) for one in stated):
            raise broken("some of its contents are missing; get a complete copy")
        shown, drawn = self._content(contents, _part(page, "/Resources"))
        if drawn > MAX_FORMS:
            raise too_large(f"draws more than {MAX_FORMS} forms; split the page")
        if any(operator in _SHOWS and _strings(operands) for operands, operator in shown):
            self.shows_text.add(at)
        if len(shown) < len(contents.operations):
            contents.operations = shown
            self.altered[at] = contents

    def name_glyphs(self) -> bool:
        """Give fonts a ToUnicode map made from their glyph names; tell whether any font got one."""
        maps = [(font, made) for font in self._seen.values() if (made := map_of(font)) is not None]
        for font, made in maps:
            font[NameObject("/ToUnicode")] = made
        return bool(maps)

    def hides(self, one: Any) -> bool:
        """Tell whether an annotation or form is on a hidden layer."""
        return "/OC" in one and self._layers.hide(one.raw_get("/OC"))

    def _content(self, contents: ContentStream, resources: Any) -> tuple[list[Any], int]:
        """Return the visible operations, and the number of forms they draw."""
        self._fonts(resources)
        forms = _got(resources.get("/XObject"))
        properties, fonts = _got(resources.get("/Properties")), _got(resources.get("/Font"))
        marks: list[bool] = []
        shown: list[Any] = []
        drawn = 0
        for operands, operator in contents.operations:
            if operator in {b"BDC", b"BMC"}:
                layer = operator == b"BDC" and operands[0] == "/OC" and isinstance(operands[1], str)
                marks.append(
                    bool(layer) and self._layers.stated and self._layers.hide(_raw(properties, operands[1]))
                )
            elif operator == b"EMC" and marks:
                marks.pop()
            elif operator == b"Tf" and fonts and operands:
                if isinstance(font := operands[0], str) and font not in fonts:
                    raise broken(f"uses the font {quoted(font)}, which is missing")
            elif operator == b"Do" and operands:
                form = _got(_raw(forms, operands[0]))
                if any(marks) or self.hides(form):
                    continue
                drawn += self._form(form, resources)
            elif operator in _SHOWS and any(marks):
                if operator in b"'\"":
                    shown.append(([], b"T*"))
                continue
            elif operator in _SHOWS and max(map(len, _strings(operands)), default=0) > MAX_STRING:
                raise too_large(f"a string has more than {MAX_STRING} bytes; split it")
            shown.append((operands, operator))
        return shown, drawn

    def _form(self, form: Any, above: Any) -> int:
        if form and form.get("/Subtype") != "/Form":
            return 0
        if not isinstance(form, StreamObject):
            raise broken("draws an object that is missing; get a complete copy")
        if id(form) not in self._forms:
            self._forms[id(form)] = 0
            contents = ContentStream(form, self._reader)
            shown, drawn = self._content(contents, _got(form.get("/Resources")) or above)
            if len(shown) < len(contents.operations):
                raise broken("a form has hidden layers; want a file without layers")
            self._forms[id(form)] = 1 + drawn
        if not self._forms[id(form)]:
            raise broken("a form draws itself")
        return self._forms[id(form)]

    def _fonts(self, resources: Any) -> None:
        for name in _got(resources.get("/Font")):
            font = _part(resources["/Font"], name)
            if id(font) in self._seen:
                continue
            self._seen[id(font)] = font
            within = [_got(one) for one in _part(font, "/DescendantFonts")]
            for one in (font, *within):
                for key in ("/ToUnicode", "/Encoding", "/CIDToGIDMap"):
                    self._reader.check(_part(one, key))
                file = _part(one, "/FontDescriptor")
                files = [_part(file, key) for key in ("/FontFile", "/FontFile2", "/FontFile3")]
                for stream in files:
                    self._reader.check(stream)
                if not any(files) and (one is not font or _is_foreign(font)):
                    self.all_fonts = False


class _Layers:
    """The layers that the file's own configuration turns off (ISO 32000-1, 8.11.4.3)."""

    def __init__(self, reader: Reader) -> None:
        layers = _got(reader.root_object.get("/OCProperties"))
        stated = _got(layers.get("/D"))
        self.stated = bool(layers)
        self._off: set[int] = _numbers(stated.get("/OFF"))
        if stated.get("/BaseState") == "/OFF":
            self._off |= _numbers(layers.get("/OCGs")) - _numbers(stated.get("/ON"))

    def hide(self, layer: Any) -> bool:
        found = _got(layer)
        if found.get("/Type") != "/OCMD":
            return isinstance(layer, IndirectObject) and layer.idnum in self._off
        if "/VE" in found:
            raise broken("the state of its layers is an expression; want a file without layers")
        groups = found.get("/OCGs")
        groups = [found.raw_get("/OCGs")] if isinstance(groups, dict) else groups or []
        on = [one.idnum not in self._off for one in groups if isinstance(one, IndirectObject)]
        if not on:
            return False
        policy = found.get("/P", "/AnyOn")
        seen = {"/AllOn": all(on), "/AnyOff": not all(on), "/AllOff": not any(on)}.get(policy, any(on))
        return not seen


def _is_foreign(font: Any) -> bool:
    """Tell whether a single-byte font has letters of a script other than Latin."""
    text = "".join(characters_of(font).values())
    return any(
        not unicodedata.name(char, "").startswith(_LATIN) for char in text if char.isupper() or char.islower()
    )


def _strings(operands: list[Any]) -> list[Any]:
    shown = operands[-1] if operands else ""
    return [
        one for one in (shown if isinstance(shown, list) else [shown]) if isinstance(one, str | bytes) and one
    ]


def _check_empty(page: PageObject) -> None:
    """Refuse a page that is empty because its contents, or their key, were altered."""
    foreign = [key for key in page if key[1:] not in _OF_PAGE.split()]
    if "/Contents" in page or foreign:
        named = f" but an entry {quoted(foreign[0])}, which is unknown" if foreign else ""
        raise broken(f"has no contents{named}; get a complete copy")


def _part(whole: Any, key: str) -> Any:
    """Return the object of an entry, or an empty dictionary if there is no such entry; refuse a dangling reference."""
    found = whole.raw_get(key) if key in whole else None
    if isinstance(found, IndirectObject) and found.get_object() in (None, NullObject()):
        raise broken(f"{quoted(key)} is missing; get a complete copy")
    return _got(found)


def _numbers(references: Any) -> set[int]:
    return {one.idnum for one in _got(references) if isinstance(one, IndirectObject)}


def _got(found: Any) -> Any:
    """Resolve a reference; give an empty dictionary for a missing or null one."""
    found = found.get_object() if found is not None else None
    return {} if found is None or isinstance(found, NullObject) else found


def _raw(names: Any, name: str) -> Any:
    if name not in names:
        raise broken(f"draws {quoted(name)}, which is missing")
    return names.raw_get(name)
