"""Stand in front of a connection of SQLite, and of the statements that are run on it."""

from __future__ import annotations

import sqlite3


class Watched:
    """A connection whose statements are run by ``around``, which is given each with the call that runs it."""

    def __init__(self, connection, around):
        self._connection, self._around = connection, around

    def __getattr__(self, name):
        return getattr(self._connection, name)

    def execute(self, statement, *parameters):
        return self._around(statement, lambda: self._connection.execute(statement, *parameters))

    def executemany(self, statement, rows):
        return self._around(statement, lambda: self._connection.executemany(statement, rows))


def failing(connection, prefix, *, after=False):
    """Return a connection whose next statement with a prefix fails, before or after it took effect."""
    failed = []

    def around(statement, run):
        if failed or not statement.startswith(prefix):
            return run()
        failed.append(statement)
        if after:
            run()
        raise sqlite3.OperationalError("disk I/O error")

    return Watched(connection, around)
