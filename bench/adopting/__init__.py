"""How long it takes to adopt an index, by what holds it: ``python -m bench.adopting``."""
