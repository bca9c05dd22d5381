"""Time explanations of hidden and of absent passages: ``python -m bench.explain``."""
