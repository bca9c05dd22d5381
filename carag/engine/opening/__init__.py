"""Open what a store directory holds in one order, and close it in one order, however the program ends."""
