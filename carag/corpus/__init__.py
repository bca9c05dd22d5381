"""Read filings, label them and store them with their passages; every name is imported from its module."""
