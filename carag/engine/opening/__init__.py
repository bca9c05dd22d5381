"""Open a store in one order, know what is in force in it, and close it in one order, however the program ends."""
