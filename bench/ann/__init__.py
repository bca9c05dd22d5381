"""The index measured: conformance against an oracle, recall against hnswlib."""
