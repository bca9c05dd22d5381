"""Decide whether evidence is good enough for a generator to be called, by a threshold with a stated error."""
