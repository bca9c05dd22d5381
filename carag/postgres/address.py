"""Read the address of a PostgreSQL database: what libpq gets, and parameters that it does not know, such as a schema.

No error contains the address, which may hold a password.
"""

from __future__ import annotations

import os
import re
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from carag.errors import InvalidArgument, MissingExtra

SCHEMA: Final = "carag"
"""The schema of a store's documents, unless its address names another; the names of the schemas for its log and its
values begin with this name.
"""
_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}", re.ASCII)
_LOCAL: Final = {"", "localhost", "127.0.0.1", "::1"}


class Address(NamedTuple):
    """A database and a schema in it, as one URL: ``postgresql://ROLE@HOST/DATABASE?schema=NAME``."""

    url: str
    """For libpq, without the schema."""
    schema: str
    role: str

    @classmethod
    def parse(cls, text: str, *, schema: str = SCHEMA) -> Address:
        """Read a URL; ``schema`` is used if it names no schema.

        Raises InvalidArgument if it is not a PostgreSQL URL, names no role, or holds a password, which belongs in
        ``~/.pgpass``; MissingExtra if psycopg is not installed.
        """
        url, named = taken_out(text, "schema")
        try:
            (schema,) = named or [schema]
            fields = fields_of(url)
        except ValueError:
            fields = {}
        if any("password" in name for name in fields) or "user" not in fields:
            raise InvalidArgument(
                "the store's address must be a PostgreSQL URL without a password: "
                f"postgresql://ROLE@HOST/DATABASE?schema=NAME, the schema only if it is not {SCHEMA}; put the "
                "password into ~/.pgpass"
            )
        for name in (schema, fields["user"]):
            check_name(name)
        return cls(url, schema, str(fields["user"]))

    def __str__(self) -> str:
        return with_parameter(self.url, "schema", self.schema)


def fields_of(url: str) -> dict[str, Any]:
    """Return the fields of a URL, and how a connection to it is secured.

    To another machine, and where only a service file names the host, the connection is encrypted and the server's
    certificate verified, unless ``sslmode`` says otherwise, in the URL or the environment.

    Raises InvalidArgument if it is not a PostgreSQL URL; MissingExtra if psycopg is not installed.
    """
    is_url = isinstance(url, str) and url.startswith(("postgresql://", "postgres://"))
    try:
        stated: dict[str, Any] = driver().conninfo.conninfo_to_dict(url if is_url else "")
    except driver().Error:
        stated = {}
    if not stated:
        raise InvalidArgument(
            "this is not the address of a PostgreSQL database; want postgresql://ACCOUNT@HOST/DATABASE, with the "
            "password in ~/.pgpass or PGPASSWORD"
        )
    address = stated.get("hostaddr") or os.environ.get("PGHOSTADDR")
    hosts = str(address or stated.get("host") or os.environ.get("PGHOST", "")).split(",")
    has_service = "service" in stated or "PGSERVICE" in os.environ  # whose file may name any host
    is_local = not has_service and all(host in _LOCAL or host.startswith(("/", "@")) for host in hosts)
    verified = {} if is_local or "PGSSLMODE" in os.environ else {"sslmode": "verify-full"}
    return {**verified, **stated}


def taken_out(url: str, name: str) -> tuple[str, list[str]]:
    """Take a parameter that libpq does not know out of a URL; return the URL without it, and its values.

    Examples
    --------
    >>> taken_out("postgresql://carag_app@db.example/vectors?collection=filings&sslmode=require", "collection")
    ('postgresql://carag_app@db.example/vectors?sslmode=require', ['filings'])
    """
    try:
        parts = urlsplit(url)
        asked = parse_qsl(parts.query, keep_blank_values=True)
    except (AttributeError, TypeError, ValueError):
        return url, []  # not an address; this is reported where it is used
    values = [value for key, value in asked if key == name]
    rest = urlencode([one for one in asked if one[0] != name])
    return (parts._replace(query=rest).geturl() if values else url), values


def with_parameter(url: str, name: str, value: str) -> str:
    """Add a parameter that libpq does not know to a URL.

    Examples
    --------
    >>> with_parameter("postgresql://carag_app@db.example/vectors?sslmode=require", "schema", "carag")
    'postgresql://carag_app@db.example/vectors?sslmode=require&schema=carag'
    """
    return f"{url}{'&' if urlsplit(url).query else '?'}{urlencode({name: value})}"


def check_name(name: object) -> None:
    """Check that a schema's or a role's name is safe, because it becomes part of statements."""
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise InvalidArgument(
            f"{name!r} is not a valid schema or role; want lower-case letters, digits and underscores"
        )


def driver() -> Any:
    """Import psycopg; MissingExtra if it is not installed."""
    try:
        import psycopg
    except ImportError as error:
        raise MissingExtra("PostgreSQL needs: pip install 'carag-engine[postgres]'") from error
    return psycopg
