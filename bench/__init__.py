"""Measurements: seeded, repeatable, committed with their results. Imports carag; never imported by it."""
