"""Ask questions of the past again after later filings came in: ``python -m bench.replay``."""
