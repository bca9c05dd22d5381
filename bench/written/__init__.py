"""Measure which sentences with figures a guard lets out: right ones, and ones with a single change."""
