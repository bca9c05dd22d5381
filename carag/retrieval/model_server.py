"""Send JSON to a model server over HTTP: bounded in time, tries and size; no redirect, no proxy, no secret kept.

It uses :mod:`http.client` alone, which follows no redirect and reads no proxy from the environment, so text goes to
the server that was named and to no other. Nothing is logged, and no error quotes a request or an answer.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import re
import socket
import ssl
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import SystemRandom
from threading import Timer
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from carag.errors import MALFORMED, InvalidArgument, ModelUnavailable
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ModelServer", "check_count"]

MAX_REPLY_BYTES: Final = 1 << 26
"""Greatest size of an answer's body: 64 vectors of 16,384 numbers take a third of it."""
_CONNECT_SECONDS: Final = 5.0
"""Longest wait for one connection, so that a lost packet leaves time for another try."""
_FIRST_WAIT: Final = 0.5
"""Seconds; the bound of the wait before the n-th retry is this times 2**n. The wait is drawn from 0 to that bound
("full jitter": https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/)."""
_MAX_WAIT: Final = 30.0
"""Longest wait before a retry, in seconds, also where the server asks for a longer one."""
_MAX_TRIES: Final = 10
_RETRIED: Final = frozenset({429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed."""
_REMEDIES: Final = {
    400: "it does not accept this request; check the model, its arguments, and whether the text fits its context",
    401: "check the secret in the environment variable that key_env names",
    403: "check what the secret in the environment variable that key_env names may use",
    404: "check the url, which ends in /v1 for most servers, and the model",
    413: "the text is too long for it; send less at once",
    422: "it does not accept this request; check the model and its arguments",
    429: "retried to no avail; slow down, or raise the quota",
}
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}", re.ASCII)
_SECRET: Final = re.compile(r"[!-~]{1,4096}", re.ASCII)
"""Visible ASCII: what a header can hold."""


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why one try failed; it holds nothing of request, answer or secret."""

    why: str
    is_final: bool = False
    wait: float = 0.0
    """Seconds that the server asked to wait."""


class ModelServer:
    """An HTTP server that takes and gives JSON.

    Parameters
    ----------
    url : str
        What its paths begin with, such as ``http://127.0.0.1:8080/v1``. There is no default: no text goes where nobody
        sent it.
    key_env : str, optional
        The name of the environment variable that holds the secret, sent as a bearer token (RFC 6750). It is read at
        every call and never kept.
    timeout : float
        Seconds for one call in all, with its retries and the waits between; the look-up of the host's name may take
        longer.
    retries : int
        Further tries after 429, 500, 502, 503, 504 and connections that fail, 0 to 9.
    insecure_http : bool
        Whether ``http://`` may lead to another machine, where text and secret can be read on the way.

    Raises
    ------
    InvalidArgument
        If an argument cannot be used.

    Examples
    --------
    >>> ModelServer("http://example.com/v1")
    Traceback (most recent call last):
    carag.errors.InvalidArgument: http://example.com is another machine, and http:// hides nothing on the way; ...
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
        self._scheme, self._host, self._port, self._path = _parts(url)
        shown = f"[{self._host}]" if ":" in self._host else self._host
        self.origin = f"{self._scheme}://{shown}" + (f":{self._port}" if self._port else "")
        if self._scheme == "http" and not insecure_http and not _is_loopback(self._host):
            raise InvalidArgument(
                f"{self.origin} is another machine, and http:// hides nothing on the way; want https://, or "
                "insecure_http=True"
            )
        if key_env is not None and not (isinstance(key_env, str) and _NAME.fullmatch(key_env)):
            # What came may be the secret itself, so it is not quoted.
            raise InvalidArgument(
                "key_env is no name of an environment variable; want its name, not its value"
            )
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= 3600:
            raise InvalidArgument(f"timeout is {quoted(timeout)}; want seconds, more than 0 and at most 3600")
        check_count("retries", retries, 0, _MAX_TRIES - 1)
        self._key_env, self._timeout, self._tries = key_env, float(timeout), retries + 1

    def __repr__(self) -> str:
        return f"ModelServer({self.origin + self._path!r}, key_env={self._key_env!r})"

    @property
    def url(self) -> str:
        """The address, in the one form that fingerprints are made of."""
        return self.origin + self._path

    def post(self, path: str, body: Mapping[str, Any], *, accept: str = "application/json") -> bytes:
        """Send a POST, and return the whole body of the answer.

        Parameters
        ----------
        path : str
            Below the server's url, such as ``/embeddings``.
        body : mapping
        accept : str
            The content type that the answer must have.

        Raises
        ------
        ModelUnavailable
            If no whole answer with status 200 came in time.
        """
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
        raise ModelUnavailable(f"the model server {self.url}{path}: {failure.why} ({tried} tried)")

    def _try(self, path: str, data: bytes, accept: str, deadline: float) -> bytes | _Failure:
        """Try once. It raises nothing: the frames of an error would hold the secret and the text."""
        headers = {"Content-Type": "application/json", "Accept": accept, "Connection": "close"}
        if self._key_env is not None:
            secret = os.environ.get(self._key_env, "").strip()
            if not _SECRET.fullmatch(secret):
                state = "holds what no header can" if secret else "is not set"
                return _Failure(f"the environment variable {self._key_env} {state}", is_final=True)
            headers["Authorization"] = f"Bearer {secret}"
        left = deadline - time.monotonic()
        late = _Failure(f"no whole answer within {self._timeout:g} s", is_final=True)
        if left <= 0:
            return late
        connection = self._connection(min(left, _CONNECT_SECONDS))
        hung_up = False
        # Kept here, for http.client forgets it once the headers of a last answer have come, and reads on.
        sock: socket.socket | None = None

        def hang_up() -> None:
            nonlocal hung_up
            hung_up = True
            if sock is not None:
                _shut(sock)

        # A time-out of the socket counts from the last byte, and a server that sends one now and then never meets it;
        # this one ends the connection.
        timer = Timer(left, hang_up)
        timer.daemon = True
        timer.start()
        try:
            connection.connect()
            sock = connection.sock
            sock.settimeout(left)
            if hung_up:
                return late
            connection.request("POST", path, data, headers)
            came = _received(connection.getresponse(), accept)
        except ssl.SSLCertVerificationError as error:
            return _Failure(f"its certificate is not valid: {error.verify_message}", is_final=True)
        except (OSError, http.client.HTTPException, ValueError) as error:
            came = _Failure(f"the connection failed ({type(error).__name__})")
        finally:
            timer.cancel()
            connection.close()
        # The socket's own time-out may be noticed before the timer's thread has run.
        return late if hung_up or time.monotonic() >= deadline else came

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        if self._scheme == "https":
            return http.client.HTTPSConnection(
                self._host, self._port, timeout=timeout, context=ssl.create_default_context()
            )
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout)


def check_count(name: str, value: object, low: int = 1, high: int = 1 << 20) -> None:
    """Raise InvalidArgument unless a value is an integer in a range."""
    if type(value) is not int or not low <= value <= high:
        raise InvalidArgument(f"{name} is {quoted(value)}; want an integer, {low} to {high}")


def _parts(url: object) -> tuple[str, str, int | None, str]:
    """Return scheme, host, port and path of an address; no message quotes one that may hold a secret."""
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
            f"the url holds a user, a query or a fragment, which may be secret; {wanted}, and key_env for the secret"
        )
    if parts.scheme not in ("http", "https") or not host or port == 0 or not _is_plain(str(url)):
        raise InvalidArgument(f"the url is {quoted(url)}; {wanted}")
    default = {"http": 80, "https": 443}[parts.scheme]
    return parts.scheme, host.lower(), None if port == default else port, parts.path.rstrip("/")


def _is_plain(url: str) -> bool:
    return url.isprintable() and " " not in url and urlsplit(url).path.isascii()


def _is_loopback(host: str) -> bool:
    """Say whether a host is this machine: a loopback address, or the name that RFC 6761 keeps for it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _received(answer: http.client.HTTPResponse, accept: str) -> bytes | _Failure:
    if answer.status != 200:
        return _refused(answer)
    kind = answer.headers.get_content_type()
    if kind != accept:
        return _Failure(f"it answers with {quoted(kind)}, not {accept}; check the url", is_final=True)
    return _body(answer)


def _refused(answer: http.client.HTTPResponse) -> _Failure:
    status = answer.status
    if 300 <= status < 400:
        remedy = (
            "it redirects, and no redirect is followed; give the address that it leads to, if you trust it"
        )
    else:
        remedy = _REMEDIES.get(status, "see the server's log")
    wait = _retry_after(answer.headers.get("Retry-After", ""))
    return _Failure(f"status {status}; {remedy}", status not in _RETRIED, min(wait, _MAX_WAIT))


def _retry_after(stated: str) -> float:
    """Read the header in both of its forms, seconds or a date (RFC 9110, 10.2.3); 0 if it is neither."""
    if re.fullmatch("[0-9]{1,9}", stated, re.ASCII):
        return float(stated)
    try:
        return max(0.0, (parsedate_to_datetime(stated) - datetime.now(UTC)).total_seconds())
    except MALFORMED:
        return 0.0


def _body(answer: http.client.HTTPResponse) -> bytes | _Failure:
    data = bytearray()
    while chunk := answer.read1(1 << 16):
        data += chunk
        if len(data) > MAX_REPLY_BYTES:
            return _Failure(f"it answers with more than {MAX_REPLY_BYTES} bytes", is_final=True)
    if answer.length:  # bytes that the header promised and that did not come
        return _Failure("the connection ended within its answer")
    return bytes(data)


def _shut(sock: socket.socket) -> None:
    """End a connection while another thread reads from it, below TLS if there is any."""
    try:
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
    except OSError:
        return  # it has ended
