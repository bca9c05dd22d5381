"""Send JSON to a model server over HTTP, with bounds on time, tries and size. No secret is kept."""

from __future__ import annotations

import ipaddress
import json
import os
import re
import time
from dataclasses import dataclass
from random import SystemRandom
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from carag.errors import InvalidArgument, ModelUnavailable
from carag.http import NoAnswer, Reply, Server, retry_after, send
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping


MAX_REPLY_BYTES: Final = 1 << 26
"""The largest body of an answer: 64 vectors of 16,384 numbers take a third of it."""
_FIRST_WAIT: Final = 0.5
"""Seconds. The wait before the n-th retry is drawn from 0 to this times 2**n ("full jitter":
https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/)."""
_MAX_WAIT: Final = 30.0
"""The longest wait before a retry in seconds, even if the server asks for a longer one."""
_MAX_TRIES: Final = 10
_RETRIED: Final = frozenset({429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed."""
_REMEDIES: Final = {
    400: "it does not accept this request; check the model, its arguments, and whether the text fits its context",
    401: "check the secret in the environment variable named by key_env",
    403: "check the permissions of the secret in the environment variable named by key_env",
    404: "check the model and the url, which ends in /v1 for most servers",
    413: "the request is too long; send less text at once",
    422: "it does not accept this request; check the model and its arguments",
    429: "retries failed as well; slow down, or raise the quota",
}
_PORTS: Final = {"http": 80, "https": 443}
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}", re.ASCII)
_SECRET: Final = re.compile(r"[!-~]{1,4096}", re.ASCII)
"""Visible ASCII, which a header can hold."""


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why one try failed, without anything from request, answer or secret."""

    why: str
    is_final: bool = False
    wait: float = 0.0
    """Seconds that the server asks to wait."""


class ModelServer:
    """An HTTP server that takes and gives JSON; InvalidArgument for unusable arguments.

    - ``url``: the start of its addresses, such as ``http://127.0.0.1:8080/v1``.
    - ``key_env``: the environment variable with the secret, which is sent as a bearer token (RFC 6750), read at every
      call and never kept.
    - ``timeout``: seconds for a call with all retries and waits; only resolving the host's name may take longer.
    - ``retries``: further tries after a status of 429, 500, 502, 503 or 504, or a failed connection; 0 to 9.
    - ``insecure_http``: whether ``http://`` may lead to another machine, where text and secret can be read on the way.
    """

    def __init__(
        self,
        url: str,
        *,
        key_env: str | None = None,
        timeout: float = 60.0,
        retries: int = 3,
        insecure_http: bool = False,
    ) -> None:
        scheme, host, port, self._path = _parts(url)
        self._server = Server(scheme, host, port or _PORTS[scheme])
        shown = f"[{host}]" if ":" in host else host
        self.origin = f"{scheme}://{shown}" + (f":{port}" if port else "")
        if scheme == "http" and not insecure_http and not _is_loopback(host):
            raise InvalidArgument(
                f"{self.origin} is another machine, and http:// is not encrypted; use https://, or allow it with "
                "insecure_http=True"
            )
        if key_env is not None and not (isinstance(key_env, str) and _NAME.fullmatch(key_env)):
            # It may be the secret itself, so it is not quoted.
            raise InvalidArgument(
                "key_env is not the name of an environment variable; give the name, not the value"
            )
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= 3600:
            raise InvalidArgument(f"timeout is {quoted(timeout)}; want seconds, more than 0 and at most 3600")
        check_count("retries", retries, 0, _MAX_TRIES - 1)
        self._key_env, self._timeout, self._tries = key_env, float(timeout), retries + 1

    def __repr__(self) -> str:
        return f"ModelServer({self.origin + self._path!r}, key_env={self._key_env!r})"

    @property
    def url(self) -> str:
        """The address in the form used for fingerprints."""
        return self.origin + self._path

    def post(self, path: str, body: Mapping[str, Any], *, accept: str = "application/json") -> bytes:
        """Send a POST to a path below the url, and return the body of the answer, whose content type is ``accept``."""
        data = json.dumps(body, ensure_ascii=True, allow_nan=False).encode()
        deadline = time.monotonic() + self._timeout
        failure = _Failure("no try")
        for tried in range(1, self._tries + 1):
            came = self._try(self._path + path, data, accept, deadline)
            if isinstance(came, bytes):
                return came
            failure = came
            wait = max(failure.wait, SystemRandom().uniform(0, min(_MAX_WAIT, _FIRST_WAIT * 2**tried)))
            if failure.is_final or tried == self._tries or time.monotonic() + wait >= deadline:
                break
            time.sleep(wait)
        raise ModelUnavailable(f"the model server {self.url}{path}: {failure.why} (tries: {tried})")

    def _try(self, path: str, data: bytes, accept: str, deadline: float) -> bytes | _Failure:
        """Try once. It raises nothing, because a traceback's frames would hold the secret and the text."""
        headers = {"Content-Type": "application/json", "Accept": accept}
        if self._key_env is not None:
            secret = os.environ.get(self._key_env, "").strip()
            if not _SECRET.fullmatch(secret):
                state = "holds characters that no header can" if secret else "is not set"
                return _Failure(f"the environment variable {self._key_env} {state}; set it", is_final=True)
            headers["Authorization"] = f"Bearer {secret}"
        late = _Failure(f"no complete answer within {self._timeout:g} s", is_final=True)
        left = deadline - time.monotonic()
        if left <= 0:
            return late
        try:
            reply = send(
                "POST",
                self._server,
                path,
                headers,
                data,
                seconds=left,
                most=MAX_REPLY_BYTES,
                wants=lambda status, kind: status == 200 and kind == accept,
            )
        except NoAnswer as error:
            # The socket's own time-out may end the wait before that of the call is over.
            return late if time.monotonic() >= deadline else _Failure(str(error), error.is_final)
        if reply.status != 200:
            return _refused(reply)
        if reply.body is None:
            return _Failure(
                f"it answers with {quoted(reply.kind)}, not {accept}; check the url", is_final=True
            )
        return reply.body


def check_count(name: str, value: object, low: int = 1, high: int = 1 << 20) -> None:
    """Raise InvalidArgument unless a value is an integer in a range."""
    if type(value) is not int or not low <= value <= high:
        raise InvalidArgument(f"{name} is {quoted(value)}; want an integer, {low} to {high}")


def _parts(url: object) -> tuple[str, str, int | None, str]:
    """Return scheme, host, port and path of a url; no message quotes one that may hold a secret."""
    wanted = "want http:// or https://, a host and a path, such as https://models.example/v1"
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        port = parts.port
        host = (
            (parts.hostname or "").encode("idna" if ":" not in (parts.hostname or "") else "ascii").decode()
        )
    except ValueError as error:
        raise InvalidArgument(f"the url is not an address; {wanted}") from error
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise InvalidArgument(
            f"the url has a user, a query or a fragment, which may be secret; {wanted}, and key_env for the secret"
        )
    if parts.scheme not in ("http", "https") or not host or port == 0 or not _is_plain(str(url)):
        raise InvalidArgument(f"the url is {quoted(url)}; {wanted}")
    return parts.scheme, host.lower(), None if port == _PORTS[parts.scheme] else port, parts.path.rstrip("/")


def _is_plain(url: str) -> bool:
    return url.isprintable() and " " not in url and urlsplit(url).path.isascii()


def _is_loopback(host: str) -> bool:
    """Tell whether a host is this machine: a loopback address, or the name that RFC 6761 reserves for it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _refused(reply: Reply) -> _Failure:
    status = reply.status
    if 300 <= status < 400:
        remedy = "redirects are not followed; give the address that it redirects to, if you trust it"
    else:
        remedy = _REMEDIES.get(status, "see the server's log")
    wait = retry_after(reply.headers.get("retry-after", ""), time.time())
    return _Failure(f"status {status}; {remedy}", status not in _RETRIED, min(wait, _MAX_WAIT))
