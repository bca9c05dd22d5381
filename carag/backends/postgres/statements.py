"""The SQL statements, each once, with bound parameters only, for one collection and one epoch.

An exact search scores and counts all admissible rows before it sorts, which no index of pgvector can serve, whatever
the planner knows; a search of the graph sorts by what its index serves, with other sorting switched off. Versions that
ended after the epoch are in ``past``; the last epoch has none, and finding that out takes one look into an index.

Rows are looked up key by key, whatever the planner knows: it knows nothing about rows that were just added, and would
read all of them to find a few thousand (``OFFSET 0`` keeps it from merging the lookup into a join).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from carag.backends.postgres.schema import FOREVER
from carag.backends.postgres.wire import COLUMNS

if TYPE_CHECKING:
    from carag.backends.protocol import Admitted


_READ: Final = ", ".join(COLUMNS)
_THEN: Final = "collection = %(c)s AND e0 <= %(at)s::bigint"
_PAST: Final = f"{_THEN} AND e1 > %(at)s::bigint"
_SCORE: Final = "-(v <#> %(q)s) AS score"
_WANTED: Final = "unnest(%(keys)s::bigint[]) AS a (wanted)"

STATE: Final = """
SELECT k.epoch, k.at, k.rows, ARRAY(
    SELECT word FROM word w WHERE w.collection = %(c)s AND w.e0 <= k.epoch AND w.e1 > k.epoch ORDER BY word
) FROM change k WHERE k.collection = %(c)s
AND k.epoch = COALESCE(%(at)s::bigint, (SELECT epoch FROM collection WHERE id = %(c)s))
"""
"""An epoch, by default the last, and what is known at it; no row if there is no such epoch."""
AT_MOST: Final = """
SELECT COALESCE(sum(rows), 0) FROM word WHERE collection = %(c)s AND word = ANY(%(words)s::bigint[])
"""
"""How many live rows have the words of a search: at least as many as it admits at the last epoch."""
IS_DONE: Final = """
SELECT EXISTS (SELECT FROM change WHERE collection = %(c)s AND batch = %(batch)s),
    EXISTS (SELECT FROM loading WHERE collection = %(c)s)
"""
"""Whether a batch made an epoch, and whether a load is open."""
LOADING: Final = """
SELECT c.epoch + 1, EXISTS (SELECT FROM change k WHERE k.collection = c.id AND k.batch = %(batch)s),
    l.batch, l.position, l.words, l.counts
FROM collection c LEFT JOIN loading l ON l.collection = c.id WHERE c.id = %(c)s
"""
"""The epoch that a load makes, whether the load of this name is published, and the load that is open."""
LOADED: Final = """
INSERT INTO loading VALUES (%(c)s, %(batch)s, %(position)s, %(words)s, %(counts)s)
ON CONFLICT (collection) DO UPDATE
SET position = EXCLUDED.position, words = EXCLUDED.words, counts = EXCLUDED.counts
"""
LOADED_WORDS: Final = f"""
INSERT INTO word SELECT collection, a.word, %(epoch)s::bigint, {FOREVER}, a.rows
FROM loading, unnest(words, counts) AS a (word, rows) WHERE collection = %(c)s
ON CONFLICT (collection, e1, word) DO UPDATE SET rows = word.rows + EXCLUDED.rows
"""  # noqa: S608 - a number of ours
"""Count the words of a published load."""
LOADED_CHANGE: Final = """
INSERT INTO change (collection, epoch, batch, rows)
SELECT k.collection, %(epoch)s, l.batch, k.rows + COALESCE((SELECT sum(n) FROM unnest(l.counts) AS a (n)), 0)
FROM change k JOIN loading l USING (collection) WHERE k.collection = %(c)s AND k.epoch = %(epoch)s - 1
"""
TAKEN: Final = f"""
SELECT min(key) FROM {_WANTED},
LATERAL (SELECT key FROM live WHERE collection = %(c)s AND key = wanted OFFSET 0) AS found
"""  # noqa: S608 - ours
"""The smallest of the keys that a live row has, or NULL."""
UNKNOWN: Final = """
SELECT min(key) FROM unnest(%(keys)s::bigint[]) AS a (key)
WHERE NOT EXISTS (SELECT FROM live WHERE live.collection = %(c)s AND live.key = a.key)
"""
"""The smallest of the keys that no live row has, or NULL."""
END: Final = """
INSERT INTO past SELECT collection, key, e0, word, public_at, expires_at, entity, audience, v, %(epoch)s::bigint
FROM live
WHERE collection = %(c)s AND key = ANY(%(keys)s::bigint[])
"""
"""End the versions of live rows at an epoch."""
RELABEL: Final = """
UPDATE live SET word = a.word, e0 = %(epoch)s::bigint
FROM unnest(%(keys)s::bigint[], %(words)s::bigint[]) AS a (key, word)
WHERE live.collection = %(c)s AND live.key = a.key
"""
WORDS: Final = f"""
WITH moved AS (
    SELECT word, -1 AS by FROM past WHERE collection = %(c)s AND e1 = %(epoch)s::bigint
    UNION ALL SELECT word, 1 FROM live
    WHERE collection = %(c)s AND key = ANY(%(keys)s::bigint[]) AND e0 = %(epoch)s::bigint
), counted AS (
    INSERT INTO word SELECT %(c)s, word, %(epoch)s::bigint, {FOREVER}, sum(by) FROM moved GROUP BY word
    HAVING sum(by) <> 0
    ON CONFLICT (collection, e1, word) DO UPDATE SET rows = word.rows + EXCLUDED.rows RETURNING word.word
) SELECT COALESCE(sum(by), 0)::bigint FROM moved WHERE (SELECT count(*) FROM counted) >= 0
"""  # noqa: S608 - a number of ours
"""Count the words of rows that an epoch ended or brought; return how many more live rows there are."""


def parameters(collection: int, epoch: int, admitted: Admitted) -> dict[str, Any]:
    """Return the parameters of a search's statements."""
    return {
        "c": collection,
        "at": epoch,
        "words": list(admitted.words),
        "as_of": admitted.as_of,
        "alive_at": admitted.alive_at,
        "allowed": list(admitted.allow_entities or ()),
        "denied": list(admitted.deny_entities),
        "audiences": list(admitted.audiences or ()),
    }


def _test(admitted: Admitted) -> str:
    test = "word = ANY(%(words)s::bigint[]) AND public_at <= %(as_of)s::bigint AND expires_at > %(alive_at)s::bigint"
    if admitted.allow_entities is not None:
        test += " AND entity = ANY(%(allowed)s::bigint[])"
    if admitted.deny_entities:
        test += " AND entity <> ALL(%(denied)s::bigint[])"
    if admitted.audiences is not None:
        test += " AND audience = ANY(%(audiences)s::bigint[])"
    return test


def _versions(test: str) -> str:
    return (
        f"(SELECT {_READ} FROM live WHERE {_THEN} AND {test} "  # noqa: S608 - ours, as all below
        f"UNION ALL SELECT {_READ} FROM past WHERE {_PAST} AND {test}) AS version"
    )


def count(admitted: Admitted) -> str:
    """Count what is admissible."""
    return f"SELECT count(*) FROM {_versions(_test(admitted))}"  # noqa: S608


def exact(admitted: Admitted) -> str:
    """Score and count all admissible rows in one pass; return the nearest ``k``, each with the count.

    Only keys and scores are kept until then: a vector is a hundred times as long.
    """
    versions = _versions(_test(admitted))
    return (
        f"WITH scored AS MATERIALIZED (SELECT key, v <#> %(q)s AS far FROM {versions}), "  # noqa: S608
        "nearest AS (SELECT key AS wanted, far FROM scored ORDER BY far, key LIMIT %(k)s) "
        f"SELECT {_READ}, -far AS score, (SELECT count(*) FROM scored) FROM nearest, "
        f"LATERAL (SELECT {_READ} FROM {_versions('key = wanted')} OFFSET 0) AS found ORDER BY far, key"
    )


def graph(admitted: Admitted, dim: int) -> str:
    """Walk the graph of live rows, testing each, until ``k`` are found; score rows that have ended since."""
    test = _test(admitted)
    return (
        f"(SELECT {_READ}, {_SCORE} FROM live WHERE {_THEN} AND {test} "  # noqa: S608
        f"ORDER BY v::public.vector({dim:d}) <#> %(q)s LIMIT %(k)s) "
        f"UNION ALL (SELECT {_READ}, {_SCORE} FROM past WHERE {_PAST} AND {test} "
        "ORDER BY (v <#> %(q)s) + 0, key LIMIT %(k)s)"
    )


def graph_settings(width: int) -> tuple[str, dict[str, str]]:
    """Return the statement that makes the planner use the graph, and the graph continue until enough rows pass."""
    settings = {
        "hnsw.ef_search": str(width),
        "hnsw.iterative_scan": "strict_order",
        "hnsw.max_scan_tuples": str(2**31 - 1),
        "hnsw.scan_mem_multiplier": "8",
        "enable_sort": "off",
        "enable_seqscan": "off",
    }
    calls = ", ".join(f"set_config('{name}', %({name})s, true)" for name in settings)
    return f"SELECT {calls}", settings


def rows_of_keys() -> str:
    """Read rows by key."""
    return f"SELECT {_READ} FROM {_WANTED}, LATERAL (SELECT * FROM {_versions('key = wanted')} OFFSET 0) AS found"  # noqa: S608


def loaded_rows() -> str:
    """Read rows of a load by key."""
    of_load = "collection = %(c)s AND key = wanted AND e0 = %(epoch)s::bigint"
    return (
        f"SELECT {_READ} FROM {_WANTED}, LATERAL (SELECT {_READ} FROM live WHERE {of_load} OFFSET 0) AS found"  # noqa: S608
    )
