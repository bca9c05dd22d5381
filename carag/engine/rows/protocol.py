"""Define what a collection asks of the place where its rows are."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from carag.store.values import EVER

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from carag.backends import AnyIndex
    from carag.store.values import Labels


class Change(NamedTuple):
    """Labels to open and to close in one turn."""

    opened: NDArray[np.int64]
    words: NDArray[np.uint32]
    """Words of the opened labels."""
    closed: NDArray[np.int64]


class KeptRows(Protocol):
    """Rows keyed by the store's labels, of one instant of the store."""

    @property
    def index(self) -> AnyIndex:
        """What is searched."""
        ...

    @property
    def known_at(self) -> int:
        """The instant of its labels, in microseconds since 1970; -1 before the first."""
        ...

    @property
    def added(self) -> int:
        """Rows added since it was opened."""
        ...

    def prepare(self, progress: Callable[[str, int, int, str], None], known: int = EVER) -> Change:
        """Add the labels that came since, closed, and return what :meth:`switch` needs for a search to find them."""
        ...

    def switch(self, change: Change, known: int) -> None:
        """Open and close rows in one turn, as known at an instant."""
        ...

    def settle(self) -> None:
        """Tidy up and save a large change, after a switch; nothing waits for it."""
        ...

    def is_copy_of(self, labels: Labels) -> bool:
        """Tell whether it holds exactly these labels, all open ones."""
        ...

    def check_sound(self) -> None:
        """Raise an error if it must not be searched."""
        ...

    def close(self) -> None:
        """Save what is not saved, and release it."""
        ...
