"""``carag audit postgres`` and ``copy``: evidence on a server, and out of it into a file for auditors."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path  # Typer reads the annotations
from typing import Annotated

import typer

from carag.errors import InvalidArgument
from carag.terminal import say

__all__ = ["copy", "postgres"]

Store = Annotated[Path, typer.Option("--store", metavar="DIR", help="The store: text, index and audit log.")]


def postgres(
    store: Store,
    url: Annotated[
        str, typer.Option(metavar="URL", help="postgresql://ROLE@HOST/DATABASE; the password in ~/.pgpass.")
    ],
    schema: Annotated[str, typer.Option(metavar="S", help="One for each log.")] = "carag_audit",
    admin: Annotated[
        str | None, typer.Option(metavar="URL", help="Make role and tables first, as this administrator.")
    ] = None,
) -> int:
    """Keep the evidence of a new log in PostgreSQL; keys and private values stay in the store.

    [dim]carag audit postgres --store s --url postgresql://carag_app@db/audit --admin postgresql://dba@db/audit[/dim]
    """
    from carag.audit.postgres_setup import remember, role_of, set_up

    role = role_of(url)
    if admin is not None:
        set_up(admin, role=role, schema=schema)
    remember(store, url, schema=schema)
    say(f"the log in {store} has its evidence in schema {schema}, as role {role}")
    return 0


def copy(
    store: Store,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where to put audit.db and vkey.")],
) -> int:
    """Copy the evidence from PostgreSQL into a directory that every check of carag audit reads.

    [dim]carag audit copy --store s --out for-the-auditor[/dim]
    """
    from carag.audit.postgres import PostgresReader
    from carag.audit.postgres_setup import copy_to, remembered

    if (where := remembered(store)) is None:
        raise InvalidArgument(f"the log in {store} has its evidence in audit.db: copy that file")
    out.mkdir(parents=True, exist_ok=True)
    with closing(PostgresReader(where[0], schema=where[1])) as evidence:
        size = copy_to(evidence, out / "audit.db")
    (out / "vkey").write_bytes((store / "vkey").read_bytes())
    say(f"{size} records in {out}; check them with: carag audit verify --store {out}")
    return 0
