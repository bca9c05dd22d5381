"""Measure whether a model states what it remembers, although the documents that say it are hidden."""
