"""How a reader refuses a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from carag.readers.outcome import problem_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.readers.outcome import Content, Problem


def refused(read: Callable[[bytes], Content], content: bytes) -> Problem:
    with pytest.raises(Exception) as raised:  # noqa: PT011 - problem_of tells which are foreseen
        read(content)
    return problem_of("here", raised.value)
