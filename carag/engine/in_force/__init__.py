"""Know what is in force in a store: the rules of requests, and the gate, which other processes may change."""
