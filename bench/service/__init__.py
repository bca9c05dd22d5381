"""Measure what a request over HTTP costs beyond the engine's own call."""
