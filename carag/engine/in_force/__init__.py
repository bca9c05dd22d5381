"""Know what is in force in a store: the rules that decide about requests, and the gate, also while other processes change them."""
