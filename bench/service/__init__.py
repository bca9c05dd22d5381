"""Measure the service: what it holds on to, and what it loses."""
