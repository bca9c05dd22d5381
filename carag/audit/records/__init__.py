"""Define the records of the log: one class per kind of event, and the canonical bytes of a record."""
