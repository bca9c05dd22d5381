"""Turn EDGAR filings into policy words: read them, state their facts, apply the rules."""
