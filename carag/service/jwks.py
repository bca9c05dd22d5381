"""Keep the public keys that an issuer publishes (JWKS, RFC 7517), and limit how often they are fetched."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from carag.engine.tokens import fits
from carag.errors import MALFORMED, InvalidArgument, Refused
from carag.http import NoAnswer, send, server_of
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes


_logger = logger(__name__)

FRESH_SECONDS: Final = 300.0
"""Age at which the keys are fetched again."""
STALE_SECONDS: Final = 3600.0
"""Age up to which the keys remain usable while the issuer cannot be reached."""
COOLDOWN_SECONDS: Final = 30.0
"""Shortest time between two fetches, successful or not."""
_TIMEOUT_SECONDS: Final = 3.0
_MAX_BYTES: Final = 256 << 10
_MAX_KEYS: Final = 16
"""Most keys in a set; issuers publish two or three."""

_KINDS: Final = {"RS256": "RSA", "PS256": "RSA", "ES256": "EC", "ES384": "EC", "EdDSA": "OKP"}
"""The ``kty`` of each algorithm's keys (RFC 7518 section 6.1, RFC 8037 section 2); none is symmetric."""

_Keys = dict[str, tuple[str, "PublicKeyTypes"]]


class JwksKeys:
    """One issuer's keys, by id. Thread-safe.

    - ``fetch``: returns the bytes of the key set, or raises; see :func:`fetched`.
    - ``algorithms``: algorithms that a key may be for.
    - ``clock``: monotonic seconds.
    """

    def __init__(
        self,
        fetch: Callable[[], bytes],
        algorithms: Sequence[str],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fetch, self._algorithms, self._clock = fetch, tuple(algorithms), clock
        self._lock = threading.Lock()
        self._keys: _Keys | None = None
        self._got = self._tried = float("-inf")
        self.fetches = 0
        """How often the issuer was asked."""

    def get(self, kid: str, /) -> tuple[str, PublicKeyTypes] | None:
        """Return a key and its algorithm; None if the issuer publishes none with that id."""
        # Read before the time is: if another thread replaces the keys meanwhile, the new ones are younger.
        keys, age = self._keys, self._clock() - self._got
        if keys is None or kid not in keys or age > FRESH_SECONDS:
            self._refresh()
            keys, age = self._keys, self._clock() - self._got
        if keys is None or age > STALE_SECONDS:
            raise Refused("TOKEN_KEYS_UNAVAILABLE", "the issuer's keys are not available at the moment")
        return keys.get(kid)

    def _refresh(self) -> None:
        with self._lock:
            now = self._clock()
            if now - self._tried < COOLDOWN_SECONDS:
                return
            self._tried = now
            self.fetches += 1
            try:
                keys = read_keys(self._fetch(), self._algorithms)
            except (OSError, NoAnswer, *MALFORMED) as error:
                # Logged without the message, which could quote the answer.
                said = {"event": "KEYS_UNAVAILABLE", "error": type(error).__name__}
                _logger.warning("the issuer's keys could not be fetched: %s", said["error"], extra=said)
                return
            self._keys, self._got = keys, now


def fetched(place: str) -> Callable[[], bytes]:
    """Return a function that fetches a key set from an address, or reads it from a file."""
    if "://" not in place:
        return lambda: _limited(Path(place).read_bytes())
    server, target = server_of(place)

    def get() -> bytes:
        wanted = {"Accept": "application/json"}
        reply = send("GET", server, target, wanted, seconds=_TIMEOUT_SECONDS, most=_MAX_BYTES)
        if reply.status != 200 or reply.body is None:
            raise NoAnswer(f"status {reply.status}")
        return reply.body

    return get


def read_keys(data: bytes, algorithms: Sequence[str]) -> _Keys:
    """Read a key set, leaving out keys that are not for verifying, fit no algorithm or contradict theirs.

    Raises InvalidArgument if it is not a key set, or none of its keys can be used.
    """
    import jwt

    said = json.loads(data)
    if not isinstance(said, dict) or not isinstance(said.get("keys"), list):
        raise InvalidArgument("the answer is not a JSON Web Key Set; check the address of the issuer's keys")
    if len(said["keys"]) > _MAX_KEYS:
        raise InvalidArgument(f"the key set has {len(said['keys'])} keys; want {_MAX_KEYS} at most")
    found: _Keys = {}
    twice: set[str] = set()
    for one in said["keys"]:
        kid = one.get("kid") if isinstance(one, dict) else None
        if not isinstance(kid, str):
            continue
        if kid in found:  # it is unknown which of two keys with one id is meant
            twice.add(kid)
        try:
            usable = _usable(jwt, one, algorithms)
        except (jwt.PyJWTError, *MALFORMED):
            continue
        if usable is not None:
            found[kid] = usable
    found = {kid: one for kid, one in found.items() if kid not in twice}
    if not found:
        raise InvalidArgument("the key set has no usable key; check the configured algorithms")
    return found


def _usable(jwt: Any, one: dict[str, Any], algorithms: Sequence[str]) -> tuple[str, PublicKeyTypes] | None:
    if one.get("use", "sig") != "sig" or "verify" not in one.get("key_ops", ["verify"]) or "d" in one:
        return None
    stated = [one["alg"]] if "alg" in one else list(algorithms)
    parsed = {
        name: jwt.PyJWK(one, algorithm=name).key
        for name in stated
        if name in algorithms and one.get("kty") == _KINDS[name]
    }
    fitting = [(name, key) for name, key in parsed.items() if fits(name, key)]
    # An RSA key without an algorithm could be for RS256 or PS256: with both configured, it is used for neither.
    return fitting[0] if len(fitting) == 1 else None


def _limited(data: bytes) -> bytes:
    if len(data) > _MAX_BYTES:
        raise InvalidArgument(f"the key set is longer than {_MAX_BYTES} bytes")
    return data
