"""Keep a store as fresh as a folder: find what is new, changed or gone since the last run, and run each night.

Content decides, never a date: a file that was changed on the day it was read, and had its time put back, is found by
its hash.
"""

from __future__ import annotations

from carag.engine.freshness.nightly import Nightly, night_trigger
from carag.engine.freshness.source import Source
from carag.engine.freshness.still import Still, read_still

__all__ = ["Nightly", "Source", "Still", "night_trigger", "read_still"]
