"""Map characters of symbol fonts, which Word keeps as codes of the font, to Unicode: a tick, an empty box, ≥.

Sources: the tables of the fonts Symbol (Adobe, as published by Unicode) and Wingdings (Microsoft). A code without an
entry is marked with its font and code and never guessed, because a ticked box read as an empty one answers a question
wrongly. Boxes with a tick are written like those with a cross, so that one state has one sign.
"""

from __future__ import annotations

from typing import Final

_SYMBOL: Final = dict(
    zip(
        range(0x20, 0x7F),
        " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼",
        strict=True,
    )
) | dict(
    zip(
        range(0xA1, 0xD7),
        "ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√",
        strict=True,
    )
) | dict(zip(range(0xD7, 0xE0), "⋅¬∧∨⇔⇐⇑⇒⇓", strict=True)) | {0xE0: "◊", 0xE5: "∑", 0xF2: "∫"}  # fmt: skip
_WINGDINGS: Final = {
    0x20: " ", 0x6C: "●", 0x6D: "❍", 0x6E: "■", 0x6F: "☐", 0x70: "❐", 0x71: "❑", 0x72: "❒", 0x73: "⬧", 0x74: "⧫",
    0x75: "◆", 0x76: "❖", 0x77: "⬥", 0x78: "☒", 0x9E: "·", 0x9F: "•", 0xA1: "○", 0xA4: "◉", 0xA7: "▪", 0xA8: "☐",
    0xD8: "➢", 0xDF: "←", 0xE0: "→", 0xE1: "↑", 0xE2: "↓", 0xE8: "➔", 0xEF: "⇦", 0xF0: "⇨", 0xFB: "✗", 0xFC: "✓",
    0xFD: "☒", 0xFE: "☒",
}  # fmt: skip
_WINGDINGS_2: Final = {
    0x20: " ", 0x4F: "✗", 0x50: "✓", 0x51: "☒", 0x52: "☒", 0x53: "☒", 0x54: "☒", 0x97: "●", 0x98: "●", 0xA3: "☐",
    0xAE: "■",
}  # fmt: skip
_FONTS: Final = {"symbol": _SYMBOL, "wingdings": _WINGDINGS, "wingdings 2": _WINGDINGS_2}
_UNREAD: Final = {"wingdings 3", "webdings", "marlett", "zapfdingbats", "zapf dingbats", "monotype sorts"}
_PRIVATE: Final = range(0xF000, 0xF100)
"""The range where Word puts the codes of a symbol font (ECMA-376, part 1, 17.3.3.30)."""


def is_symbol_font(font: str) -> bool:
    """Tell whether a font shows signs of its own in place of characters."""
    return font.lower() in _FONTS or font.lower() in _UNREAD


def symbol(font: str, code: int) -> str:
    """Return the character that a font shows for a code; if that is unknown, the font and code in angle brackets.

    Examples
    --------
    >>> symbol("Wingdings", 0xF0A8), symbol("Symbol", 0xB3), symbol("Wingdings", 0xF021)
    ('☐', '≥', '⟨Wingdings F021⟩')
    """
    if code not in _PRIVATE and (not is_symbol_font(font) or chr(code).isspace()):
        return chr(code)
    table = _FONTS.get(font.lower(), {})
    if code > 0xFF and code not in _PRIVATE:  # no such font has it unless it is a byte of Windows-1252
        byte = chr(code).encode("cp1252", "ignore")
        return table.get(byte[0], chr(code)) if byte else chr(code)
    return table.get(code & 0xFF, f"⟨{font or 'font unknown'} {code:04X}⟩")
