"""Measure what follow-ups are read as, against what their author meant."""
