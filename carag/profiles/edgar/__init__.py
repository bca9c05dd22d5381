"""Turn EDGAR filings into policy words: read filings, extract their facts, apply the labelling rules."""
