"""Derive policy bits from the facts of a filing and of its passages."""
