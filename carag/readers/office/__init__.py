"""Read office files: packages of XML parts, of which each format has its own."""
