"""Reach PostgreSQL: addresses, connections, a pool, locks and a dialect, for the store, the log and the backend."""
