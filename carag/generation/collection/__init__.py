"""Answer questions about the documents themselves from their metadata and structure, without a model."""
