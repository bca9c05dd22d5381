"""Judge the labels against the filings themselves, not against the rules that made them."""
