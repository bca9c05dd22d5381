"""Measure rows and write the report: measures by stratum, goals, and the page."""
