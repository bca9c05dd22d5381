"""Define the tables of groups: which there are, who was a member when, as known when, and each import."""

from __future__ import annotations

from typing import Final

GROUP_TABLES: Final = (
    # One row per import that changed something.
    """
    CREATE TABLE group_changes (
        known_at INTEGER PRIMARY KEY,       -- microseconds since 1970, strictly rising
        sha256 BLOB NOT NULL,               -- of what the import stated, in canonical form
        opened INTEGER NOT NULL,
        closed INTEGER NOT NULL,
        added INTEGER NOT NULL              -- groups stated for the first time
    ) STRICT""",
    """
    CREATE TABLE groups (
        number INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        spelling TEXT NOT NULL UNIQUE,      -- the form in which two spellings of one name are equal
        since INTEGER REFERENCES group_changes  -- NULL while it is only named as a member
    ) STRICT""",
    # No row is ever deleted, and only known_to is ever changed.
    """
    CREATE TABLE memberships (
        member TEXT NOT NULL,
        group_number INTEGER NOT NULL REFERENCES groups,
        valid_from INTEGER NOT NULL CHECK (valid_from BETWEEN 0 AND 0xFFFFFFFF),
        valid_to INTEGER NOT NULL CHECK (valid_to BETWEEN valid_from + 1 AND 0xFFFFFFFF),
        known_from INTEGER NOT NULL REFERENCES group_changes,
        known_to INTEGER REFERENCES group_changes CHECK (known_to > known_from),
        PRIMARY KEY (member, group_number, known_from)
    ) STRICT, WITHOUT ROWID""",
    """
    CREATE INDEX members_of_group ON memberships (group_number) WHERE known_to IS NULL""",
)
"""After those of documents, which they do not refer to."""
