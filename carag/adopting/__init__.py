"""Adopt an index that is there already: its vectors and texts as they are, labelled by the rules of a profile.

``sources`` reads a table, collection or file, and writes nothing to it; ``mapping`` says which of its fields are what;
``spool`` keeps its rows until each document is whole; ``run`` brings them into a store.
"""

from __future__ import annotations

from carag.adopting.mapping import Mapping
from carag.adopting.run import AdoptReport, adopt, tried
from carag.adopting.sources import Row, Source, source_of
from carag.adopting.spool import spooled

__all__ = ["AdoptReport", "Mapping", "Row", "Source", "adopt", "source_of", "spooled", "tried"]
