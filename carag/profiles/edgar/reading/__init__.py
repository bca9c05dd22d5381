"""Read EDGAR filings from files: full submissions, SGML headers, JSON Lines data sets, submissions JSON."""
