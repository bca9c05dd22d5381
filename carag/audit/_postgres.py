"""Connect to the PostgreSQL server of a log, and note its address in the log's directory."""

from __future__ import annotations

import contextlib
import os
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from carag.audit._files import write_atomically
from carag.errors import AuditUnavailable, CorruptFile, InvalidArgument, MissingExtra

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = [
    "MOVED_TO",
    "SHARED_AT",
    "Place",
    "check_durable",
    "connected",
    "keep_alive",
    "psycopg_driver",
    "remember",
    "remembered",
    "security_of",
    "talking",
]

_SCHEMA: Final = "carag"
"""The schema of the documents, unless the URL names another; the names of the log's and its values' begin with it."""
_UNNAMED: Final = "carag_audit"
"""The schema that versions up to 0.3 left out of the notes that they wrote."""
_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}", re.ASCII)
_CONNECTION: Final = {
    "connect_timeout": 10,  # seconds
    # TCP keepalive makes a silent network an error within a minute; libpq, "Parameter Key Words".
    "keepalives_idle": 30,  # seconds
    "keepalives_interval": 10,  # seconds
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,  # milliseconds
}
_KEEPALIVE: Final = {"idle": 30, "interval": 10, "count": 3}  # seconds, seconds, tries
"""The same on the server, so that it drops a lost writer, and its lock, within a minute."""
_LOCAL: Final = {"", "localhost", "127.0.0.1", "::1"}
SETTINGS: Final = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}
"""Settings a server needs so that what it acknowledges survives a power cut."""
SHARED_AT: Final = "shared.url"
"""File with the URL of the server that holds the log itself, for several processes."""
MOVED_TO: Final = "moved.url"
"""File with the URL of the server that a log was moved to: it must not continue in this directory."""


class Place(NamedTuple):
    """A database and a schema in it, as one URL: ``postgresql://ROLE@HOST/DATABASE?schema=NAME``."""

    url: str
    """For libpq, without the schema."""
    schema: str
    role: str

    @classmethod
    def parse(cls, text: str, *, schema: str = _SCHEMA) -> Place:
        """Read a URL; ``schema`` is the schema of one that names none.

        Raises InvalidArgument if it is not a PostgreSQL URL, names no role, or holds a password, which belongs in
        ``~/.pgpass``; MissingExtra if psycopg is not installed.
        """
        driver = psycopg_driver()
        default, url = schema, text
        try:
            parts = urlsplit(text)
            asked = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
            named = [value for name, value in asked if name == "schema"]
            if named:
                url = parts._replace(query=urlencode([one for one in asked if one[0] != "schema"])).geturl()
                (schema,) = named
            fields = driver.conninfo.conninfo_to_dict(url)
        except (AttributeError, TypeError, ValueError, driver.Error):
            fields = {}
        is_url = isinstance(text, str) and text.startswith(("postgresql://", "postgres://"))
        has_secret = any("password" in name for name in fields)
        if not is_url or has_secret or "user" not in fields:  # without the text: it may hold a password
            raise InvalidArgument(
                f"the store's address must be a PostgreSQL URL without a password: "
                f"postgresql://ROLE@HOST/DATABASE?schema=NAME, the schema only if it is not {default}; put the "
                "password into ~/.pgpass"
            )
        for name in (schema, fields["user"]):
            check_name(str(name))
        return cls(url, schema, str(fields["user"]))

    def __str__(self) -> str:
        return f"{self.url}{'&' if urlsplit(self.url).query else '?'}schema={self.schema}"


def connected(url: str, *, autocommit: bool = True) -> Any:
    """Connect to a server; by default every statement is a transaction of its own.

    To another machine, and where only a service file names the host, the connection is encrypted and the server's
    certificate verified, unless ``sslmode`` says otherwise, in the URL or the environment.
    """
    return psycopg_driver().connect(url, autocommit=autocommit, **_CONNECTION, **security_of(url))


def security_of(url: str) -> dict[str, str]:
    """Return what a connection asks for beyond its URL, so that no text crosses a network in clear."""
    fields = psycopg_driver().conninfo.conninfo_to_dict(url)
    address = fields.get("hostaddr") or os.environ.get("PGHOSTADDR")
    hosts = str(address or fields.get("host") or os.environ.get("PGHOST", "")).split(",")
    has_service = "service" in fields or "PGSERVICE" in os.environ  # whose file may name any host
    is_local = not has_service and all(host in _LOCAL or host.startswith(("/", "@")) for host in hosts)
    if is_local or "sslmode" in fields or "PGSSLMODE" in os.environ:
        return {}
    return {"sslmode": "verify-full"}


def keep_alive(db: Any) -> None:
    """Make the server wait for its disk, and notice within a minute that this machine is gone."""
    db.execute("SET synchronous_commit TO on")
    for name, value in _KEEPALIVE.items():
        db.execute(f"SET tcp_keepalives_{name} TO {value}")


def check_durable(db: Any, where: str) -> None:
    """Refuse a server that does not sync to disk."""
    for name, wanted in SETTINGS.items():
        (found,) = db.execute(f"SHOW {name}").fetchone()
        if found != wanted:
            raise AuditUnavailable(
                f"{where} has {name} = {found}, so a power cut can lose acknowledged records; want {name} = {wanted}"
            )


def remember(directory: Path, place: Place, name: str) -> None:
    """Note a server in a file of a log's directory."""
    write_atomically(directory / name, f"{place}\n".encode())


def remembered(directory: Path, name: str) -> Place | None:
    """Return the server noted in a file of a log's directory, or None.

    Raises CorruptFile if the note is malformed.
    """
    note = directory / name
    if not note.exists():
        return None
    try:
        (line,) = note.read_text("utf-8").splitlines()
        return Place.parse(line, schema=_UNNAMED)
    except (ValueError, InvalidArgument) as error:
        raise CorruptFile(
            f"{note} does not name a server; write it again: carag share URL --store {directory}"
        ) from error


def psycopg_driver() -> Any:
    """Import psycopg; MissingExtra if it is not installed."""
    try:
        import psycopg
    except ImportError as error:
        raise MissingExtra("PostgreSQL needs: pip install 'carag-engine[postgres]'") from error
    return psycopg


@contextlib.contextmanager
def talking(url: str, where: str = "PostgreSQL") -> Iterator[None]:
    """Translate the driver's errors into AuditUnavailable, without the URL, which may hold a password."""
    try:
        yield
    except psycopg_driver().Error as error:
        said = (str(error).strip().partition("\n")[0] or type(error).__name__).replace(url, "the server")
        raise AuditUnavailable(f"{where} cannot be used for the audit log: {said}") from None


def check_name(name: str) -> None:
    """Check that a name is safe, because it becomes part of statements."""
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise InvalidArgument(
            f"{name!r} is not a valid schema or role; want lower-case letters, digits and underscores"
        )
