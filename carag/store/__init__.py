"""Store documents, passages, their labels on two time axes, and vectors, in SQLite or PostgreSQL."""
