"""Prove which passages an index held, and under which labels."""
