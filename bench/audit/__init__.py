"""Measure the audit log on disks that are slow, fail, or lose power."""
