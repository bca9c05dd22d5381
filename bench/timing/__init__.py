"""Attack the service by its time, with slots and without: ``python -m bench.timing``."""
