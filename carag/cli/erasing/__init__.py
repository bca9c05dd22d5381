"""Erase documents that are due, and answer a person's request: ``carag erase-due`` and ``carag subject``."""
