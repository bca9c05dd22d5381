"""Run the SEC EDGAR benchmark, or one over a store of your own, and report what leaks and what is answered."""
