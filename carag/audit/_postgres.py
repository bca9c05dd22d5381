"""Reach the PostgreSQL server of a log: its address, and where that is noted; how a connection is made, and fails."""

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
    "REMEMBERED",
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

DEFAULT_SCHEMA: Final = "carag_audit"
"""The schema of a log's evidence, unless the URL names another."""
_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}", re.ASCII)
_CONNECTION: Final = {
    "connect_timeout": 10,  # seconds
    # TCP keepalive, by which a silent network is an error within a minute; libpq, "Parameter Key Words".
    "keepalives_idle": 30,  # seconds
    "keepalives_interval": 10,  # seconds
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,  # milliseconds
}
_KEEPALIVE: Final = {"idle": 30, "interval": 10, "count": 3}  # seconds, seconds, tries
"""The same on the server, which drops a writer whose machine is gone, and its lock, within a minute."""
_LOCAL: Final = {"", "localhost", "127.0.0.1", "::1"}
SETTINGS: Final = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}
"""What a server must have so that what it acknowledged survives a power cut."""
REMEMBERED: Final = "evidence.url"
"""Name of the file in a log's directory that holds the URL of the server with its evidence."""
SHARED_AT: Final = "shared.url"
"""The same of the server that has the log itself, which other processes write, too."""
MOVED_TO: Final = "moved.url"
"""The same of the server where a log goes on that was in this directory, and must not go on here."""


class Place(NamedTuple):
    """A database and a schema in it, as one URL: ``postgresql://ROLE@HOST/DATABASE?schema=NAME``.

    Examples
    --------
    >>> Place.parse("postgresql://carag_app@db.example/audit")
    Place(url='postgresql://carag_app@db.example/audit', schema='carag_audit', role='carag_app')
    """

    url: str
    """For libpq, which does not know of the schema."""
    schema: str
    role: str

    @classmethod
    def parse(cls, text: str, *, what: str = "evidence", schema: str = DEFAULT_SCHEMA) -> Place:
        """Read a URL.

        Parameters
        ----------
        text : str
        what : str
            How messages call it.
        schema : str
            Of a URL that names none.

        Raises
        ------
        InvalidArgument
            If it is none of PostgreSQL, names no role, or holds a password, which belongs in ``~/.pgpass``.
        MissingExtra
            If psycopg is not installed.
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
                f"{what} is no URL of PostgreSQL without a password; want "
                f"postgresql://ROLE@HOST/DATABASE?schema=NAME, the schema only if it is not {default}, and the "
                "password in ~/.pgpass"
            )
        for name in (schema, fields["user"]):
            check_name(str(name))
        return cls(url, schema, str(fields["user"]))

    def __str__(self) -> str:
        if self.schema == DEFAULT_SCHEMA:
            return self.url
        return f"{self.url}{'&' if urlsplit(self.url).query else '?'}schema={self.schema}"


def connected(url: str, *, autocommit: bool = True) -> Any:
    """Connect to a server as whoever the URL names, an administrator, too; by default all statements stand alone.

    To another machine, and where only a service file names the host, the connection is encrypted and the server's
    certificate verified, unless ``sslmode`` says otherwise, in the URL or the environment.
    """
    return psycopg_driver().connect(url, autocommit=autocommit, **_CONNECTION, **security_of(url))


def security_of(url: str) -> dict[str, str]:
    """Return what a connection asks for beyond its URL, so that no text goes over a network in clear."""
    fields = psycopg_driver().conninfo.conninfo_to_dict(url)
    address = fields.get("hostaddr") or os.environ.get("PGHOSTADDR")
    hosts = str(address or fields.get("host") or os.environ.get("PGHOST", "")).split(",")
    has_service = "service" in fields or "PGSERVICE" in os.environ  # whose file may name any host
    is_local = not has_service and all(host in _LOCAL or host.startswith(("/", "@")) for host in hosts)
    if is_local or "sslmode" in fields or "PGSSLMODE" in os.environ:
        return {}
    return {"sslmode": "verify-full"}


def keep_alive(db: Any) -> None:
    """Have the server notice within a minute that this machine is gone, and wait for its disk."""
    db.execute("SET synchronous_commit TO on")
    for name, value in _KEEPALIVE.items():
        db.execute(f"SET tcp_keepalives_{name} TO {value}")


def check_durable(db: Any, where: str) -> None:
    """Refuse a server that does not sync to disk."""
    for name, wanted in SETTINGS.items():
        (found,) = db.execute(f"SHOW {name}").fetchone()
        if found != wanted:
            raise AuditUnavailable(
                f"{where} has {name} = {found}, so a power cut takes acknowledged records; want {name} = {wanted}"
            )


def remember(directory: Path, place: Place, name: str = REMEMBERED) -> None:
    """Note where a log has its evidence, so that it is never opened without."""
    write_atomically(directory / name, f"{place}\n".encode())


def remembered(directory: Path, name: str = REMEMBERED) -> Place | None:
    """Return where a log has its evidence; None if it has it in files alone. Or, by name of the file, the log itself.

    Raises
    ------
    CorruptFile
        If the note is malformed.
    """
    note = directory / name
    if not note.exists():
        return None
    try:
        (line,) = note.read_text("utf-8").splitlines()
        return Place.parse(line)
    except (ValueError, InvalidArgument) as error:
        raise CorruptFile(
            f"{note} does not name a server; write it again: carag "
            f"{'audit postgres' if name == REMEMBERED else 'share'} --store {directory}"
        ) from error


def psycopg_driver() -> Any:
    """Import psycopg; MissingExtra if it is not installed."""
    try:
        import psycopg
    except ImportError as error:
        raise MissingExtra("evidence in PostgreSQL needs: pip install carag-engine[postgres]") from error
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
            f"{name!r} is no schema or role; want lower case letters, digits and underscores"
        )
