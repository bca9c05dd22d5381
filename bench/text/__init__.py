"""Measure a search by words under policies: time, and what is read; beside engines that search by words."""
