"""Replace a generated section of a Markdown file, between its two marks."""

from __future__ import annotations

import re

from carag.errors import InvalidArgument

__all__ = ["replaced"]


def replaced(text: str, begin: str, end: str, section: str) -> str:
    r"""Put a section between its marks.

    Raises
    ------
    InvalidArgument
        If the marks are not both there, once, in order.

    Examples
    --------
    >>> replaced("before\n<a>old</a>\nafter", "<a>", "</a>", "new")
    'before\n<a>\n\nnew\n\n</a>\nafter'
    """
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if len(pattern.findall(text)) != 1 or text.count(begin) != 1 or text.count(end) != 1:
        raise InvalidArgument(
            f"the text has no single section from {begin!r} to {end!r}; put the two lines in"
        )
    return pattern.sub(lambda _: f"{begin}\n\n{section}\n\n{end}", text)
