"""Targets for ``carag attack``: each module's ``target`` makes one, with the system's own documented filter."""
