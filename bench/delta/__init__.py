"""Measure what one edited clause costs in a store of many passages: ``python -m bench.delta``."""
