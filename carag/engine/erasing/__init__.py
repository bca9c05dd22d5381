"""Erase documents for good, with a receipt: from tables, files and backends, and from the answers that cite them."""
