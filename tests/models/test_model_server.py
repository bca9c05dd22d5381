"""Whatever a model server does, a call ends in time, goes to that server alone, and leaves no secret behind."""

from __future__ import annotations

import json
import logging
import pickle
import socket
import time
import traceback
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument, ModelUnavailable
from carag.http import retry_after
from carag.retrieval import model_server
from carag.retrieval.model_server import ModelServer
from tests.models.conftest import KEY_ENV, SECRET, Server

if TYPE_CHECKING:
    import threading

BODY = {"model": "m", "input": ["a question"], "encoding_format": "float"}


def reached(server: Server, **changes: Any) -> ModelServer:
    return ModelServer(server.url, **{"key_env": KEY_ENV, "timeout": 5, **changes})


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again(server: Server, waits: list[float], status: int) -> None:
    server.fails(status)
    server.fails(status)
    assert "data" in json.loads(reached(server).post("/embeddings", BODY))
    assert (3, 2) == (len(server.requests), len(waits))


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 418, 422, 501])
def test_what_will_not_pass_is_not_tried_again(server: Server, waits: list[float], status: int) -> None:
    server.fails(status)
    with pytest.raises(ModelUnavailable, match=f"status {status};") as raised:
        reached(server).post("/embeddings", BODY)
    assert (1, []) == (len(server.requests), waits)
    assert "said the double" not in str(raised.value)


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_tries_are_bounded(server: Server, waits: list[float], retries: int) -> None:
    for _ in range(12):
        server.fails(503)
    with pytest.raises(ModelUnavailable, match=rf"503; .*\(tries: {retries + 1}\)"):
        reached(server, retries=retries).post("/embeddings", BODY)
    assert retries + 1 == len(server.requests)
    assert all(0 <= wait <= 0.5 * 2**tried for tried, wait in enumerate(waits, 1))


def test_a_connection_that_is_refused_is_tried_again(waits: list[float]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but not listening
        port = taken.getsockname()[1]
        with pytest.raises(ModelUnavailable, match=r"ConnectionRefusedError\) \(tries: 3\)"):
            ModelServer(f"http://127.0.0.1:{port}", retries=2).post("/embeddings", BODY)
    assert 2 == len(waits)


def test_the_server_says_how_long_to_wait(server: Server, waits: list[float]) -> None:
    server.fails(429, Retry_After="3")
    reached(server).post("/embeddings", BODY)
    assert [3.0] == waits
    server.fails(503, Retry_After=format_datetime(datetime.now(UTC) + timedelta(seconds=4), usegmt=True))
    reached(server).post("/embeddings", BODY)
    assert 2 <= waits[1] <= 4


def test_a_wait_beyond_the_time_of_the_call_ends_it_at_once(server: Server, waits: list[float]) -> None:
    server.fails(429, Retry_After="86400")
    with pytest.raises(ModelUnavailable, match="429"):
        reached(server, timeout=20).post("/embeddings", BODY)
    assert [] == waits


@given(st.text(max_size=40))
def test_a_retry_after_that_means_nothing_is_no_wait_and_no_error(stated: str) -> None:
    assert retry_after(stated, time.time()) >= 0


def test_a_slow_server_is_left_in_time(server: Server) -> None:
    server.does(lambda _, released: released.wait(20))
    started = time.monotonic()
    with pytest.raises(ModelUnavailable, match=r"no complete answer within 0\.3 s"):
        reached(server, timeout=0.3).post("/embeddings", BODY)
    assert time.monotonic() - started < 3
    assert 1 == len(server.requests)


@pytest.mark.parametrize("part", ["headers", "body"])
def test_a_server_that_drips_is_left_in_time(server: Server, part: str) -> None:
    """Each byte comes before the socket's own time-out, and they never end."""

    def drips(handler: Any, released: threading.Event) -> None:
        if part == "headers":
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
        else:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        while not released.wait(0.02):
            handler.wfile.write(b" ")

    server.does(drips)
    started = time.monotonic()
    with pytest.raises(ModelUnavailable, match="no complete answer within"):
        reached(server, timeout=0.5).post("/embeddings", BODY)
    assert time.monotonic() - started < 3


def test_an_endless_answer_is_cut(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(handler: Any, released: threading.Event) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        while not released.is_set():
            handler.wfile.write(b" " * 65536)

    monkeypatch.setattr(model_server, "MAX_REPLY_BYTES", 1 << 20)
    server.does(endless)
    with pytest.raises(ModelUnavailable, match=r"more than 1048576 bytes \(tries: 1\)"):
        reached(server).post("/embeddings", BODY)


def test_an_answer_that_ends_early_is_no_answer(server: Server, waits: list[float]) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"
    server.does(lambda handler, _: handler.wfile.write(head + b"{}"))
    with pytest.raises(ModelUnavailable, match="ended in the middle of its answer"):
        reached(server, retries=0).post("/embeddings", BODY)


def test_no_redirect_is_followed(server: Server, other: Server) -> None:
    for status in (301, 302, 303, 307, 308):
        server.fails(status, Location=other.url + "/embeddings")
        with pytest.raises(ModelUnavailable, match=f"status {status}; redirects are not followed"):
            reached(server).post("/embeddings", BODY)
    assert ([], 5) == (other.requests, len(server.requests))


def test_no_proxy_is_taken_from_the_environment(
    server: Server, other: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, other.url)
    reached(server).post("/embeddings", BODY)
    assert ([], 1) == (other.requests, len(server.requests))


def test_another_content_type_is_no_answer(server: Server) -> None:
    server.gives(b"<html>", headers={"Content-Type": "text/html"})
    with pytest.raises(ModelUnavailable, match="'text/html', not application/json"):
        reached(server).post("/embeddings", BODY)


def test_a_server_without_a_valid_certificate_is_not_spoken_to(server: Server, waits: list[float]) -> None:
    """One that does not speak TLS at all, here; ``tests/sources`` has one that nobody vouches for."""
    with pytest.raises(ModelUnavailable, match="SSLError"):
        ModelServer(server.url.replace("http:", "https:"), retries=0).post("/embeddings", BODY)
    assert [] == server.requests


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://models.example/v1", "another machine"),
        ("http://10.0.0.7:8080/v1", "another machine"),
        ("http://127.0.0.1.example/v1", "another machine"),
        ("http://[2001:db8::1]/v1", "another machine"),
        ("ftp://127.0.0.1/v1", "want http"),
        ("127.0.0.1:8080/v1", "want http"),
        ("http://", "want http"),
        ("http://127.0.0.1:0/", "want http"),
        ("http://127.0.0.1:99999/", "want http"),
        ("http://127.0.0.1/v 1", "want http"),
        (f"https://user:{SECRET}@models.example/v1", "may be secret"),
        (f"https://models.example/v1?key={SECRET}", "may be secret"),
        (f"https://models.example/v1#{SECRET}", "may be secret"),
        ("http://[::1", "want http"),
        (7, "want http"),
        (None, "want http"),
    ],
)
def test_an_address_that_will_not_do_is_refused_and_no_secret_in_it_is_quoted(url: Any, why: str) -> None:
    with pytest.raises(InvalidArgument, match=why) as raised:
        ModelServer(url)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    "url", ["http://localhost:1/v1", "http://[::1]:8080/v1/", "http://127.9.9.9", "https://models.example/v1"]
)
def test_this_machine_and_tls_will_do(url: str) -> None:
    assert url.rstrip("/") == ModelServer(url).url


def test_plain_http_elsewhere_is_asked_for_by_name() -> None:
    assert "http://models.example/v1" == ModelServer("http://models.example/v1", insecure_http=True).url


@pytest.mark.parametrize(
    "changes",
    [
        {"timeout": 0},
        {"timeout": -1},
        {"timeout": float("nan")},
        {"timeout": "60"},
        {"timeout": True},
        {"retries": -1},
        {"retries": 10},
        {"retries": 1.0},
        {"key_env": SECRET},
        {"key_env": ""},
        {"key_env": 7},
    ],
    ids=repr,
)
def test_an_argument_that_will_not_do_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument) as raised:
        ModelServer("https://models.example", **changes)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    ("value", "why"), [(None, "is not set"), ("  ", "is not set"), ("two\nlines", "holds"), ("ключ", "holds")]
)
def test_without_its_secret_nothing_is_sent(
    server: Server, monkeypatch: pytest.MonkeyPatch, value: str | None, why: str
) -> None:
    monkeypatch.delenv(KEY_ENV) if value is None else monkeypatch.setenv(KEY_ENV, value)
    with pytest.raises(ModelUnavailable, match=f"{KEY_ENV} {why}") as raised:
        reached(server).post("/embeddings", BODY)
    assert [] == server.requests
    assert "lines" not in str(raised.value)


def failures() -> list[Any]:
    def hangs_up(handler: Any, _: object) -> None:
        handler.connection.close()

    def garbage(handler: Any, _: object) -> None:
        handler.wfile.write(b"\x00\xff garbage\r\n\r\n")

    return [lambda one: one.fails(401), lambda one: one.does(hangs_up), lambda one: one.does(garbage)]


@pytest.mark.parametrize("fail", failures(), ids=["401", "hangs up", "garbage"])
def test_the_secret_is_in_no_log_no_repr_and_no_traceback(
    server: Server, caplog: pytest.LogCaptureFixture, fail: Any
) -> None:
    """Also where a debugger or an error reporter prints the variables of every frame."""
    caplog.set_level(logging.DEBUG)
    fail(server)
    one = reached(server, retries=0)
    with pytest.raises(ModelUnavailable) as raised:
        one.post("/embeddings", BODY)
    told = traceback.TracebackException.from_exception(raised.value, capture_locals=True)
    shown = "".join(told.format()) + caplog.text + repr(one) + repr(vars(one)) + str(pickle.dumps(one))
    assert SECRET not in shown
    assert raised.value.__context__ is None
    assert KEY_ENV in repr(one)


def test_the_secret_is_read_at_every_call(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    one = reached(server)
    monkeypatch.setenv(KEY_ENV, "an-older-one")
    one.post("/embeddings", BODY)
    assert ["Authorization"] == server.faults
    server.faults.clear()
    monkeypatch.setenv(KEY_ENV, SECRET)
    one.post("/embeddings", BODY)
