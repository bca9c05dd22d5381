"""Whether a function of a text takes time in proportion to the text."""

from __future__ import annotations

import time
import timeit
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def assert_linear(function: Callable[[str], object], text_of: Callable[[int], str], size: int) -> None:
    """Fail where a text of eight times the size takes more than four times as long as it should.

    ``timeit`` switches the garbage collector off: one full collection beside the objects of a long
    test run takes longer than the function.
    """

    def seconds(size: int) -> float:
        text = text_of(size)
        return min(timeit.repeat(lambda: function(text), timer=time.process_time, number=1, repeat=3))

    assert seconds(8 * size) < 8 * 4 * seconds(size) + size / 20_000
