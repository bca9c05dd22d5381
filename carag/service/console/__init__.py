"""Show the service in a browser: pages over the same tokens, limits and records as its interface."""
