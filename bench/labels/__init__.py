"""Measure whether labels are right, against the filings themselves and not against the rules that made them."""
