"""Test that nothing hidden gets out: planted attacks, stores rebuilt without what is hidden, and random policies."""
