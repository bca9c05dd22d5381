"""Test that nothing hidden gets out: planted attacks, stores rebuilt without it, and random policies."""
