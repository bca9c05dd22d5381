"""Are the labels right? Judged against the filings themselves, not against the rules that made them."""
