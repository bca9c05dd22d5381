"""Read the first passages beside the question, and decline what they are unlikely to answer."""
