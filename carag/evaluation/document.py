"""A page made once and written twice: headings, paragraphs, tables and pictures, as Markdown and as HTML."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from carag.visible import visible, visible_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Block", "Contents", "Figure", "Heading", "Paragraph", "Table", "as_html", "as_markdown"]


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; level 1 is the title, those of level 2 can be linked to."""

    level: int
    text: str

    @property
    def anchor(self) -> str:
        """What a link names, as GitHub makes it.

        Examples
        --------
        >>> Heading(2, "Figures with local:a_b.Q4").anchor
        'figures-with-locala_bq4'
        """
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
    """A table of texts; every line has a cell for every column."""

    columns: Sequence[str]
    lines: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture, by the name of its file; HTML holds it inline."""

    name: str
    svg: str
    caption: str

    @property
    def file(self) -> str:
        """The file's name: what models are called has signs that not every file system takes.

        Examples
        --------
        >>> Figure("latency-local:a/b.Q4", "", "").file
        'latency-local-a-b.Q4.svg'
        """
        return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', self.name)}.svg"


Block = Heading | Contents | Paragraph | Table | Figure


def as_markdown(blocks: Iterable[Block]) -> str:
    r"""Write GitHub's Markdown; pictures are linked beside it.

    Examples
    --------
    >>> print(as_markdown([Table(["system", "CVR"], [["a|b", "0"]])]), end="")
    | system | CVR |
    |---|---|
    | a\|b | 0 |
    """
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


def as_html(blocks: Iterable[Block], *, title: str) -> str:
    """Write one page that needs no other file, no script and no network."""
    body = visible("\n".join(_html(block) for block in blocks))
    return f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{escape(visible_line(title))}</title>\n{_STYLE}</head>\n<body>\n{body}\n</body>\n</html>\n'  # noqa: E501


_STYLE = """<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; font-size: 13px; }
th, td { border: 1px solid #ccc; padding: 0.2rem 0.5rem; text-align: left; vertical-align: top; }
th { background: #f2f2f2; }
figure { margin: 1rem 0; }
figcaption { color: #555; }
svg { max-width: 100%; height: auto; }
</style>
"""


def _html(block: Block) -> str:
    match block:
        case Heading(2, text):
            return f'<h2 id="{escape(block.anchor)}">{escape(text)}</h2>'
        case Heading(level, text):
            return f"<h{level}>{escape(text)}</h{level}>"
        case Contents(headings):
            links = (f'<li><a href="#{escape(one.anchor)}">{escape(one.text)}</a></li>\n' for one in headings)
            return f"<ul>\n{''.join(links)}</ul>"
        case Paragraph(text):
            return f"<p>{escape(text)}</p>"
        case Table(columns, lines):
            head = "".join(f"<th>{escape(cell)}</th>" for cell in columns)
            rows = "\n".join(
                "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in lines
            )
            return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>"
        case Figure(_, svg, caption):
            return f"<figure>\n{svg}<figcaption>{escape(caption)}</figcaption>\n</figure>"
