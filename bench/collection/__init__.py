"""Ask questions about the documents themselves, and compare the answers with the stores' rows under the mask."""
