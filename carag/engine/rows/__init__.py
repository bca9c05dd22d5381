"""Keep the rows that are searched, which are copies of a store's open labels, in an index file or in a backend."""
