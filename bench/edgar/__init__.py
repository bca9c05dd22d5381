"""Runs of the SEC EDGAR benchmark, and what is tuned on its development questions."""
