"""Read EDGAR filings: submissions, SGML headers, data sets and submissions JSON."""
