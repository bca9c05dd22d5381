"""Labels measured against the filings themselves."""
