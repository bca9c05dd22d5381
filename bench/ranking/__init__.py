"""Measure what the fused ranker costs beside similarity alone."""
