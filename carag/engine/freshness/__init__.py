"""Keep a store as fresh as a folder, each night: content decides what is new, changed or gone, never a date."""

from __future__ import annotations

from carag.engine.freshness.nightly import Nightly, night_trigger
from carag.engine.freshness.source import Source
from carag.engine.freshness.still import Still, read_still

__all__ = ["Nightly", "Source", "Still", "night_trigger", "read_still"]
