"""Answer from metadata and structure which documents there are, and what replaced them, under a session's policy."""
