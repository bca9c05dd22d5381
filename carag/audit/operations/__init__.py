"""Erase, hold, expire, disclose and rotate keys: act, and record it."""
