"""Prove which passages an index contained, and under which labels, with a keyed hash tree over them."""
