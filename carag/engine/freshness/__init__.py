"""Keep a store as fresh as a folder, each night: content decides what is new, changed or gone, never a date."""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.lazy import lazily

if TYPE_CHECKING:
    from carag.engine.freshness.nightly import Nightly as Nightly
    from carag.engine.freshness.nightly import night_trigger as night_trigger
    from carag.engine.freshness.source import Source as Source
    from carag.engine.freshness.still import Still as Still
    from carag.engine.freshness.still import read_still as read_still
else:
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "nightly": "Nightly night_trigger",
            "source": "Source",
            "still": "Still read_still",
        },
    )
