"""Measure CARAG with seeded programs whose results are committed; imports carag, never imported by it."""
