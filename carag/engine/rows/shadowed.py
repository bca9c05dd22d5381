"""Let a second backend follow a store by its own notes, until the store moves there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.backends import Shadowed
from carag.errors import CaragError
from carag.store.values import EVER

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.engine.rows.backend import KeptBackend
    from carag.engine.rows.file import KeptFile
    from carag.engine.rows.kept import Change, KeptRows
    from carag.store.values import Labels

__all__ = ["KeptShadowed", "follow"]


def follow(rows: KeptRows, known: int, progress: Callable[[str, int, int, str], None]) -> None:
    """Bring rows up to an instant of their store, which is its last."""
    if rows.known_at != known:
        rows.switch(rows.prepare(progress, known), known)
    rows.settle()


class KeptShadowed:
    """Rows in one place, and a copy in a backend; each method acts on the first, unless it says otherwise."""

    def __init__(self, rows: KeptFile | KeptBackend, shadow: KeptBackend) -> None:
        self._rows, self._shadow = rows, shadow
        self.index = Shadowed(
            rows.index, shadow.index, is_level=lambda: 0 <= rows.known_at == shadow.known_at
        )

    @property
    def known_at(self) -> int:
        """The instant of the first place."""
        return self._rows.known_at

    @property
    def added(self) -> int:
        """Rows added to the first place."""
        return self._rows.added

    def prepare(self, progress: Callable[[str, int, int, str], None], known: int = EVER) -> Change:
        """Add the new labels to the first place."""
        return self._rows.prepare(progress, known)

    def switch(self, change: Change, known: int) -> None:
        """Open and close rows in the first place."""
        self._rows.switch(change, known)

    def settle(self) -> None:
        """Settle both; a failure of the shadow to follow is counted."""
        self._rows.settle()
        try:
            follow(self._shadow, self._rows.known_at, lambda *_: None)
        except CaragError as error:
            self.index.fell_behind(error)

    def is_copy_of(self, labels: Labels) -> bool:
        """Compare labels with the first place."""
        return self._rows.is_copy_of(labels)

    def check_sound(self) -> None:
        """Check the first place."""
        self._rows.check_sound()

    def close(self) -> None:
        """Close both."""
        self._rows.close()
        self._shadow.close()
