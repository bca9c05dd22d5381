"""Store documents, passages, labels with two time axes, and vectors in SQLite."""
