"""Small timings with pytest-benchmark: run them with ``pytest bench/micro --benchmark-only``."""
