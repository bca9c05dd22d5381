"""Keep vectors in PostgreSQL with pgvector, and the epochs of sharded collections."""
