"""Decide whether evidence is good enough to call a generator, by a threshold with a stated error."""
