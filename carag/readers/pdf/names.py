"""Find the characters of a font's glyphs by the glyphs' names, where PDFium does not.

PDFium ignores names in Type 3 fonts, names of several letters such as ``f_i``, and names in some fonts that are not
embedded (ISO 32000-1, 9.10.2; Adobe Glyph List Specification, 2).
"""

from __future__ import annotations

import re
from typing import Any, Final

from pypdf._codecs import adobe_glyphs
from pypdf.generic import ArrayObject, DecodedStreamObject

_CODECS: Final = {"/WinAnsiEncoding": "cp1252", "/MacRomanEncoding": "mac_roman"}
_UNICODE: Final = re.compile(r"(?:uni|u)([0-9A-F]{4,6})")
_NUMBERED: Final = re.compile(r"a\d+")
"""A meaningless name, which pypdf takes for a code."""
_HEAD: Final = (
    "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /Names def /CMapType 2 def\n"
    "1 begincodespacerange <00> <FF> endcodespacerange\n"
)


def map_of(font: Any) -> DecodedStreamObject | None:
    """Return a ToUnicode map for a single-byte font that has no such map and whose encoding names its glyphs."""
    found = {} if "/ToUnicode" in font else characters_of(font)
    rows = [f"<{code:02X}> <{text.encode('utf-16-be').hex()}>" for code, text in found.items()]
    if not rows:
        return None
    blocks = [rows[at : at + 100] for at in range(0, len(rows), 100)]  # the most that a block may have
    chars = "".join(f"{len(block)} beginbfchar\n" + "\n".join(block) + "\nendbfchar\n" for block in blocks)
    made = DecodedStreamObject()
    made.set_data(f"{_HEAD}{chars}endcmap end end".encode())
    return made


def characters_of(font: Any) -> dict[int, str]:
    """Return the characters that the encoding of a single-byte font names, by code."""
    if font.get("/Subtype") not in {"/Type1", "/MMType1", "/TrueType", "/Type3"}:
        return {}
    encoding = font.get("/Encoding")
    encoding = encoding.get_object() if encoding is not None else None
    base = encoding.get("/BaseEncoding") if isinstance(encoding, dict) else encoding
    found = {}
    if base in _CODECS:
        found = {code: bytes([code]).decode(_CODECS[base], "ignore") for code in range(32, 256)}
    code = 0
    for one in encoding.get("/Differences", ArrayObject()).get_object() if isinstance(encoding, dict) else ():
        if isinstance(one, str):
            found[code] = _text_of(one[1:])
            code += 1
        else:
            code = int(one.get_object())
    return {code: text for code, text in found.items() if text and 0 <= code < 256}


def _text_of(name: str) -> str:
    chars = []
    for part in name.partition(".")[0].split("_"):
        number = _UNICODE.fullmatch(part)
        if number:
            chars.append(chr(int(number.group(1), 16)))
        elif _NUMBERED.fullmatch(part) or f"/{part}" not in adobe_glyphs:
            return ""
        else:
            chars.append(adobe_glyphs[f"/{part}"])
    return "".join(chars)
