"""Measure what the table reader and its formulas find, and what they get wrong."""
