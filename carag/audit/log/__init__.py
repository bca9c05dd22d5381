"""Append records durably to a signed log, and open it again."""
