"""Which embedder is the default, measured on real questions: ``python -m bench.embedders``."""
