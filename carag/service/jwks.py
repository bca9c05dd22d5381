"""Keep the public keys that an issuer publishes (JWKS, RFC 7517), fetched seldom whatever tokens say.

The address is that of the configuration; ``jku``, ``x5u`` and ``jwk`` of a token are never read. A key is kept only
under an algorithm of the configuration that fits it and that it does not contradict, so none is used for another.
A token with an unknown key id leads to a fetch, but to one in :data:`COOLDOWN_SECONDS` at most: floods of made-up ids
had services ask their issuer once a request (jpadilla/pyjwt#914).
"""

from __future__ import annotations

import http.client
import json
import threading
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from carag.engine.tokens import fits
from carag.errors import MALFORMED, InvalidArgument, Refused
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes

__all__ = ["COOLDOWN_SECONDS", "FRESH_SECONDS", "STALE_SECONDS", "JwksKeys", "fetched", "read_keys"]

_logger = logger(__name__)

FRESH_SECONDS: Final = 300.0
"""Age from which the keys are fetched again."""
STALE_SECONDS: Final = 3600.0
"""Age up to which the keys still count while the issuer cannot be reached."""
COOLDOWN_SECONDS: Final = 30.0
"""Least time between two fetches, whether they succeeded or not."""
_TIMEOUT_SECONDS: Final = 3.0
_MAX_BYTES: Final = 256 << 10
_MAX_KEYS: Final = 16
"""Greatest number of keys; an issuer has two or three."""

_KINDS: Final = {"RS256": "RSA", "PS256": "RSA", "ES256": "EC", "ES384": "EC", "EdDSA": "OKP"}
"""The ``kty`` of each algorithm's keys (RFC 7518 section 6.1, RFC 8037 section 2); a symmetric one is of none."""

_Keys = dict[str, tuple[str, "PublicKeyTypes"]]


class JwksKeys:
    """The keys of one issuer by their ids. Safe to share between threads.

    Parameters
    ----------
    fetch : callable
        Returns the bytes of the key set, or raises; see :func:`fetched`.
    algorithms : sequence of str
        Which a key may be for.
    clock : callable
        Seconds that never run backwards.
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
        """Return a key and its algorithm; None if the issuer publishes none of that id.

        Raises
        ------
        Refused
            ``TOKEN_KEYS_UNAVAILABLE`` if there are no keys that are young enough.
        """
        # Read before the time: what another thread puts in its place meanwhile is younger.
        keys, age = self._keys, self._clock() - self._got
        if keys is None or kid not in keys or age > FRESH_SECONDS:
            self._refresh()
            keys, age = self._keys, self._clock() - self._got
        if keys is None or age > STALE_SECONDS:
            raise Refused("TOKEN_KEYS_UNAVAILABLE", "the issuer's keys cannot be had at the moment")
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
            except (OSError, http.client.HTTPException, *MALFORMED) as error:
                # The message could quote what was answered.
                said = {"event": "KEYS_UNAVAILABLE", "error": type(error).__name__}
                _logger.warning("the issuer's keys could not be fetched: %s", said["error"], extra=said)
                return
            self._keys, self._got = keys, now


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: keys come from the address that was configured, or not at all."""

    def redirect_request(self, *_: object) -> None:
        return None


def fetched(place: str) -> Callable[[], bytes]:
    """Return what fetches a key set from an address, or reads it from a file."""
    if "://" not in place:
        return lambda: _limited(Path(place).read_bytes())
    opener = urllib.request.build_opener(_Stay, urllib.request.ProxyHandler({}))

    def get() -> bytes:
        request = urllib.request.Request(place, headers={"Accept": "application/json"})  # noqa: S310 - as configured
        with opener.open(request, timeout=_TIMEOUT_SECONDS) as answer:
            return _limited(answer.read(_MAX_BYTES + 1))

    return get


def read_keys(data: bytes, algorithms: Sequence[str]) -> _Keys:
    """Read a key set; keys that are not for verifying, fit no algorithm or contradict it, are left out.

    Raises
    ------
    InvalidArgument
        If it is no key set, or none of its keys can be used.
    """
    import jwt

    said = json.loads(data)
    if not isinstance(said, dict) or not isinstance(said.get("keys"), list):
        raise InvalidArgument("the answer is no key set")
    if len(said["keys"]) > _MAX_KEYS:
        raise InvalidArgument(f"the key set has {len(said['keys'])} keys; want {_MAX_KEYS} at most")
    found: _Keys = {}
    twice: set[str] = set()
    for one in said["keys"]:
        kid = one.get("kid") if isinstance(one, dict) else None
        if not isinstance(kid, str):
            continue
        if kid in found:  # of two keys under one id none can be told to be meant
            twice.add(kid)
        try:
            usable = _usable(jwt, one, algorithms)
        except (jwt.PyJWTError, *MALFORMED):
            continue
        if usable is not None:
            found[kid] = usable
    found = {kid: one for kid, one in found.items() if kid not in twice}
    if not found:
        raise InvalidArgument("the key set has no key that can be used")
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
    # An RSA key that does not say its algorithm could be for RS256 or PS256: with both configured, it is for neither.
    return fitting[0] if len(fitting) == 1 else None


def _limited(data: bytes) -> bytes:
    if len(data) > _MAX_BYTES:
        raise InvalidArgument(f"the key set is longer than {_MAX_BYTES} bytes")
    return data
