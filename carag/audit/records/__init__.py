"""Define what a record holds: one class an event, and its canonical bytes."""
