"""Attack an audit log in fifteen ways: ``python -m bench.attacks``."""
