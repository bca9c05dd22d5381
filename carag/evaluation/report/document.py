"""Write a page of headings, paragraphs, tables and pictures as GitHub Markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from carag.visible import visible, visible_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Block", "Contents", "Figure", "Heading", "Paragraph", "Table", "as_markdown"]


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; level 1 is the title, and level 2 is listed in the contents."""

    level: int
    text: str

    @property
    def anchor(self) -> str:
        """The target of a link to it, as GitHub forms it."""
        return re.sub(r"[^\w -]", "", self.text.lower()).replace(" ", "-")


@dataclass(frozen=True, slots=True)
class Contents:
    """Links to headings."""

    headings: Sequence[Heading]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Plain text."""

    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table of strings; every line has one cell per column."""

    columns: Sequence[str]
    lines: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture, in its own file that Markdown links to."""

    name: str
    svg: str
    caption: str

    @property
    def file(self) -> str:
        """Name of the file, without characters of model names that some file systems reject."""
        return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', self.name)}.svg"


Block = Heading | Contents | Paragraph | Table | Figure


def as_markdown(blocks: Iterable[Block]) -> str:
    """Write GitHub Markdown, with links to the pictures."""
    return visible("\n\n".join(_markdown(block) for block in blocks)) + "\n"


def _markdown(block: Block) -> str:
    match block:
        case Heading(level, text):
            return f"{'#' * level} {text}"
        case Contents(headings):
            return "\n".join(f"- [{one.text}](#{one.anchor})" for one in headings)
        case Paragraph(text):
            return text
        case Table(columns, lines):
            drawn = [columns, ["---"] * len(columns), *lines]
            rows = [
                "| " + " | ".join(visible_line(cell).replace("|", "\\|") for cell in line) + " |"
                for line in drawn
            ]
            rows[1] = "|" + "---|" * len(columns)
            return "\n".join(rows)
        case Figure(caption=caption):
            return f"![{caption}]({block.file})"
