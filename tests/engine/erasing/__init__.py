"""Documents are erased for good."""
