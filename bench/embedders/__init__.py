"""Measure the offline embedders on real questions, to choose the default: ``python -m bench.embedders``."""
