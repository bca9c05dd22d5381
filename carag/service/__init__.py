"""Serve an engine over HTTP to people whom an issuer's tokens name, and ask such a service as if it were one."""
