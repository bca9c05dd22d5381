"""Read where a backend is, keep its secret out of sight, and be patient with it.

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

__all__ = ["DEFAULT_COLLECTION", "Address", "check_collection", "patiently"]

DEFAULT_COLLECTION: Final = "carag"
_COLLECTION: Final = re.compile(r"(?=.{1,63}$)[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*", re.ASCII)
"""What every engine takes as part of a name, and none as more than that: no brace, slash, dot or space. Two underscores
are ours: they part a collection from what is beside it."""
_NAME: Final = "at most 63 letters and digits, the first a letter, with single underscores between"
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_TRIES: Final = 4
"""How often what may be repeated is tried."""
_PAUSE: Final = 0.1
"""Seconds, at most, before the second try; doubled for each that follows."""

_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a backend is."""

    hosts: tuple[tuple[str, int], ...]
    collection: str
    is_encrypted: bool
    user: str = field(default="", repr=False)
    secret: str = field(default="", repr=False)

    @classmethod
    def parse(cls, text: object, schemes: Mapping[str, bool], port: int, variable: str) -> Address:
        """Read an address.

        Parameters
        ----------
        text : str
        schemes : mapping of str to bool
            The schemes that are taken, and whether each is encrypted.
        port : int
            Where none is named.
        variable : str
            The environment variable that holds the secret where the address does not.

        Raises
        ------
        InvalidArgument
            If it is no such address, or a secret would be sent in the clear to another machine. The message does not
            quote it.

        Examples
        --------
        >>> Address.parse("redis://node-1,node-2:7001/filings", {"redis": False}, 6379, "NO_SUCH_VARIABLE")
        Address(hosts=(('node-1', 6379), ('node-2', 7001)), collection='filings', is_encrypted=False)
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
            raise InvalidArgument(f"this is no address of a backend; {wanted}") from None
        collection = collection or DEFAULT_COLLECTION
        if not is_whole or not _COLLECTION.fullmatch(collection):
            raise InvalidArgument(f"this is no address of a backend; {wanted}")
        secret = unquote(secret) or os.environ.get(variable, "")
        if secret and not is_encrypted and any(host not in _LOOPBACK for host, _ in hosts):
            raise InvalidArgument(f"a secret would be sent in the clear; take a scheme with TLS, of {known}")
        return cls(hosts, collection, is_encrypted, unquote(user), secret)

    def only_host(self, engine: str, part: str) -> tuple[str, int]:
        """Return host and port of an engine whose machines are not named one by one.

        Raises
        ------
        InvalidArgument
            If there are several; the message says of which part of the engine one is wanted.
        """
        host, *others = self.hosts
        if others:
            raise InvalidArgument(
                f"{engine} is asked at one address; want HOST:PORT of one {part}, or of what is before them"
            )
        return host


def check_collection(name: object) -> None:
    """Check the name of a collection, for whoever gives one without an address."""
    if not (isinstance(name, str) and _COLLECTION.fullmatch(name)):
        raise InvalidArgument(f"this is no name of a collection; want {_NAME}")


def patiently(
    what: str,
    call: Callable[[], _Made],
    *,
    failures: tuple[type[BaseException], ...],
    again: Callable[[BaseException], bool],
) -> _Made:
    """Call what may be repeated, and try again, a random pause later, where the failure may pass.

    Parameters
    ----------
    what : str
        The engine, without an address.
    call : callable
    failures : tuple of type
        What the engine's client raises.
    again : callable
        Whether a failure may pass.

    Raises
    ------
    BackendUnavailable
        If it failed for good; the message names the type of the failure alone, for its text may hold an address.
    """
    for attempt in range(_TRIES):
        try:
            return call()
        except failures as error:
            if attempt + 1 == _TRIES or not again(error):
                tries = f"{attempt + 1} tries" if attempt else "one try"
                raise BackendUnavailable(
                    f"{what} failed after {tries}: {type(error).__name__}; nothing was returned. See that all of its "
                    "machines are up, then ask again; a change under the same batch name is made once"
                ) from None
            # Not for secrecy: writers that failed together should not come back together.
            time.sleep(random.uniform(0, _PAUSE * 2**attempt))  # noqa: S311
    raise AssertionError
