"""Hold the profile of a firm's own documents, as data."""
