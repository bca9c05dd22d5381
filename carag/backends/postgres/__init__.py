"""Keep vectors in PostgreSQL with pgvector."""
