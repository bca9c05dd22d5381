"""Erase, hold, expire and disclose private values and rotate keys; each operation is recorded in the log."""
