"""Read and label the documents of particular domains: one folder per domain, with its readers, facts and rules."""
