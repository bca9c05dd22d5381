"""Read a backend's address, keep its secret out of messages, and repeat calls that fail temporarily.

``SCHEME://[USER[:SECRET]@]HOST:PORT[,HOST:PORT…][/COLLECTION]``
"""

from __future__ import annotations

import os
import random
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import unquote, urlsplit

from carag.errors import BackendUnavailable, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


DEFAULT_COLLECTION: Final = "carag"
_COLLECTION: Final = re.compile(r"(?=.{1,63}$)[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*", re.ASCII)
"""What every engine accepts in a name and gives no meaning of its own: no brace, slash, dot or space. Two underscores
are reserved: they separate a collection's name from the names of its tables.
"""
_NAME: Final = "at most 63 letters and digits, the first a letter, with single underscores between"
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_TRIES: Final = 4
"""Most attempts of a call that may be repeated."""
_PAUSE: Final = 0.1
"""Longest pause before the second try, in seconds; doubled before each further try."""

_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class BackendAddress:
    """The address of a backend."""

    hosts: tuple[tuple[str, int], ...]
    collection: str
    is_encrypted: bool
    user: str = field(default="", repr=False)
    secret: str = field(default="", repr=False)

    @classmethod
    def parse(cls, text: object, schemes: Mapping[str, bool], port: int, variable: str) -> BackendAddress:
        """Read an address.

        - ``schemes``: the accepted schemes, and whether each is encrypted.
        - ``port``: the default.
        - ``variable``: the environment variable with the secret, if the address has none.

        Raises InvalidArgument if it is not a valid address, or a secret would be sent unencrypted to another machine.
        The message does not quote it.

        Examples
        --------
        >>> BackendAddress.parse("redis://node-1,node-2:7001/filings", {"redis": False}, 6379, "NO_SUCH_VARIABLE")
        BackendAddress(hosts=(('node-1', 6379), ('node-2', 7001)), collection='filings', is_encrypted=False)
        """
        known = ", ".join(schemes)
        wanted = f"want {next(iter(schemes))}://HOST:PORT/COLLECTION, a name of {_NAME}; schemes are {known}"
        try:
            scheme, _, rest = str(text).partition("://")
            is_encrypted = schemes[scheme]
            places, _, collection = rest.partition("/")
            account, _, listed = places.rpartition("@")
            user, _, secret = account.partition(":")
            parts = [urlsplit(f"//{one}") for one in listed.split(",")]
            hosts = tuple((one.hostname or "", one.port or port) for one in parts)
            is_whole = all(one.hostname and not (one.path or one.query or one.fragment) for one in parts)
        except (KeyError, ValueError):
            raise InvalidArgument(f"this is not the address of a backend; {wanted}") from None
        collection = collection or DEFAULT_COLLECTION
        if not is_whole or not _COLLECTION.fullmatch(collection):
            raise InvalidArgument(f"this is not the address of a backend; {wanted}")
        secret = unquote(secret) or os.environ.get(variable, "")
        if secret and not is_encrypted and any(host not in _LOOPBACK for host, _ in hosts):
            raise InvalidArgument(
                f"a secret would be sent unencrypted; use a scheme with TLS, one of {known}"
            )
        return cls(hosts, collection, is_encrypted, unquote(user), secret)

    def only_host(self, engine: str, part: str) -> tuple[str, int]:
        """Return host and port for an engine with one address; raise InvalidArgument if there are several."""
        host, *others = self.hosts
        if others:
            raise InvalidArgument(
                f"{engine} has one address; want HOST:PORT of one {part}, or of a load balancer"
            )
        return host


def check_collection(name: object) -> None:
    """Check the name of a collection that was given without an address."""
    if not (isinstance(name, str) and _COLLECTION.fullmatch(name)):
        raise InvalidArgument(f"this is not the name of a collection; want {_NAME}")


def patiently(
    what: str,
    call: Callable[[], _Made],
    *,
    failures: tuple[type[BaseException], ...],
    again: Callable[[BaseException], bool],
) -> _Made:
    """Make a call that may be repeated; try again, after a random pause, if the failure may pass.

    - ``what``: the engine, without an address.
    - ``failures``: what the engine's client raises.
    - ``again``: whether a failure may pass.

    Raises BackendUnavailable if every try failed; the message has only the failure's type, because its text may contain
    an address.
    """
    for attempt in range(_TRIES):
        try:
            return call()
        except failures as error:
            if attempt + 1 == _TRIES or not again(error):
                tries = f"{attempt + 1} tries" if attempt else "one try"
                raise BackendUnavailable(
                    f"{what} failed after {tries}: {type(error).__name__}; nothing was returned. Check that all of its "
                    "machines are up, then try again; repeating a change with the same batch name is safe"
                ) from None
            # Not cryptographic: it keeps writers that failed together from coming back together.
            time.sleep(random.uniform(0, _PAUSE * 2**attempt))  # noqa: S311
    raise AssertionError
