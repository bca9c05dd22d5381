"""Estimate means, intervals and percentiles from counts."""
