"""Measure what an erasure costs, and what it leaves behind, here and elsewhere: ``python -m bench.erasing``."""
