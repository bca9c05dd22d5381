"""Measure the service: what a request costs beyond the engine's own call, what it holds on to, and what it loses."""
