"""Measure what storing and opening cost beside embedder and index: ``python -m bench.documents``."""
