"""Read and label the documents of one domain each: one folder per domain, with its readers, facts and rules."""
