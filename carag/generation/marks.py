r"""Write and read citation marks, ``[1]`` and ``[2, 3]``, and tell them from brackets in a document's own text.

A mark in an answer says which passage supports it, so only generators may write one. If a passage itself contains that
form, the form is quoted as ``\[2]``, which is not a mark: the author of one document cannot claim another's support.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


_MARK: Final = re.compile(r"(?<!\\)\[(?=[^][]*\d)[\d\s,;&–—-]+\]")
"""Only numbers between brackets, however separated: a reader takes ``[1; 3]`` and ``[1-3]`` for marks too."""
_LEADING: Final = re.compile(rf"(?:\s*{_MARK.pattern})+[.;,]?")
_NUMBER: Final = re.compile(r"\d+")
_MAX_DIGITS: Final = 9
"""Digits read from a cited number; a longer one is out of range anyway."""


def cited_positions(text: str) -> tuple[int, ...]:
    r"""Read the ``[n]`` and ``[n, m]`` of a text as positions from 0, each once, in order of appearance.

    Examples
    --------
    >>> cited_positions(r"Sales rose [2]. Costs fell [1, 2]. See note \[7].")
    (1, 0)
    """
    numbers = (number for mark in _MARK.findall(text) for number in _NUMBER.findall(mark))
    return tuple(dict.fromkeys(int(number[:_MAX_DIGITS]) - 1 for number in numbers))


def marks_in(text: str) -> list[str]:
    """Return the marks of a text as written, in order."""
    return _MARK.findall(text)


def leading_marks(text: str) -> int:
    """Return the length of the marks with which a text begins, and of the full stop behind them."""
    match = _LEADING.match(text)
    return match.end() if match else 0


def without_marks(text: str) -> str:
    """Return a text without its marks, in which what :func:`escaped` escaped is as the passage has it."""
    return _MARK.sub("", text).replace("\\[", "[")


def escaped(text: str) -> str:
    """Return a passage's text with everything that looks like a citation mark escaped."""
    return _MARK.sub(r"\\\g<0>", text)


def renumbered(text: str, numbers: Mapping[int, int]) -> str:
    """Return a text in which each number of a citation mark is replaced by another.

    Examples
    --------
    >>> renumbered("Sales rose [1]. Costs fell [1, 2].", {1: 3, 2: 4})
    'Sales rose [3]. Costs fell [3, 4].'
    """
    return _MARK.sub(lambda mark: _NUMBER.sub(lambda one: str(numbers[int(one[0])]), mark[0]), text)
