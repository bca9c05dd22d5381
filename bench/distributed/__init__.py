"""Measure backends side by side with the native index, and simulate 10^7 to 10^9 rows from what was measured."""
