"""Serve an engine over HTTP to people with an issuer's tokens, and ask such a service as if it were an engine."""
