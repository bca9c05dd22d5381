"""Hold what only one domain knows: a folder a domain, each with its readers, facts and rules."""
