"""Measure what a question costs, beside what is used instead of an engine."""
