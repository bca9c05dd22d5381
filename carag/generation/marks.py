r"""Write and read citation marks, ``[1]`` and ``[2, 3]``, and tell them from brackets that a document wrote.

A mark in an answer says which passage supports it, so only generators may write one. What a passage itself writes in
that form is quoted as ``\[2]``, which is not a mark: the author of one document cannot claim the support of another.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["cited_positions", "escaped"]

_MARK: Final = re.compile(r"(?<!\\)\[(?=[^][]*\d)[\d\s,;&–—-]+\]")
"""Numbers alone between brackets, however they are separated: a reader takes ``[1; 3]`` and ``[1-3]`` for marks too."""
_NUMBER: Final = re.compile(r"\d+")
_MAX_DIGITS: Final = 9
"""Digits read of a cited number; a longer one is out of range either way."""


def cited_positions(text: str) -> tuple[int, ...]:
    r"""Read the ``[n]`` and ``[n, m]`` of a text as positions from 0, each once, as they appear.

    Examples
    --------
    >>> cited_positions(r"Sales rose [2]. Costs fell [1, 2]. See note \[7].")
    (1, 0)
    """
    numbers = (number for mark in _MARK.findall(text) for number in _NUMBER.findall(mark))
    return tuple(dict.fromkeys(int(number[:_MAX_DIGITS]) - 1 for number in numbers))


def escaped(text: str) -> str:
    r"""Return a passage's text with what reads like a citation mark escaped.

    Examples
    --------
    >>> print(escaped("The canteen opens at three [2]."))
    The canteen opens at three \[2].
    """
    return _MARK.sub(r"\\\g<0>", text)
