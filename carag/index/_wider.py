"""Check a request for hidden rows, and allocate the memory in which the core reports them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from carag.errors import InvalidArgument
from carag.index._arguments import predicate, rows_wanted, searched
from carag.index._buffers import room
from carag.index._core import ffi, lib
from carag.index.results import Beside, search_room
from carag.policy.mask import ANY_AUDIENCE, Mask, Policy

if TYPE_CHECKING:
    from collections.abc import Sized

    from carag.index._arguments import CompiledPolicy
    from carag.policy.decision import Search

_ANYTHING: Final = Policy(Mask(), audiences=ANY_AUDIENCE)
_LAST_MINUTE: Final = lib.CARAG_NEVER_PUBLIC - 1


class WiderRoom:
    """Memory for the rows that a second policy admits, found in the same call; keep a reference during the call."""

    __slots__ = ("_found", "_refused", "_test", "_words", "struct")

    def __init__(self, queries: int, k: int, test: CompiledPolicy) -> None:
        self._test, self._found = test, search_room(queries, k)
        self._words = np.empty((queries, k), np.uint32)
        self._refused = np.empty((queries, k), np.uint8)
        arrays = self._found.report, room(self._words), room(self._refused)
        self.struct = ffi.new("carag_wider *", (test.predicate, k, *arrays))

    def result(self, kernel: str) -> Beside:
        return Beside(self._found.result(kernel), self._words, self._refused)


def wider_room(also_hidden: int, hidden_among: Search | None, index: Sized, queries: int) -> WiderRoom | None:
    """Return the memory that a search needs for hidden rows, or None if it looks for none."""
    k = rows_wanted("also_hidden", also_hidden, index, low=0)
    if k == 0 and hidden_among is not None:
        raise InvalidArgument(
            "hidden_among says where to look for hidden rows, but also_hidden, their number, is 0; give both or "
            "neither"
        )
    if k == 0:
        return None
    if hidden_among is None:
        return WiderRoom(queries, k, predicate(_ANYTHING, _LAST_MINUTE, None))
    return WiderRoom(queries, k, searched("hidden_among", hidden_among))
