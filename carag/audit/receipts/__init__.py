"""Make, redact and verify receipts."""
