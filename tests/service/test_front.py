"""Front workers change nothing of what is answered, and whichever process ends, no answer is without its record."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import ssl
import struct
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import NameOID

from carag import Client, Engine, Session
from carag.errors import CaragError, InvalidArgument, ServiceUnavailable
from carag.service.frames import (
    HEADER,
    OPERATIONS,
    REPLIES,
    Bounds,
    Frame,
    FrameReader,
    problem_in,
)
from carag.service.front import COUNTS, READY
from carag.service.service import Service
from carag.service.serving import serve
from carag.service.workers import ENVIRONMENT, Workers
from tests.service import conftest
from tests.service.conftest import EC_KEY, QUESTION, denials, httpx, token
from tests.service.test_client import Served, same
from tests.service.test_serving import CONFIG, Command, accesses

if TYPE_CHECKING:
    from collections.abc import Iterator

ANALYST = Session(role="buy_side", purpose="invest")
BOUNDS = Bounds(len(OPERATIONS), 100, 1000)


@pytest.fixture
def fronted(engine: Engine, home: Path, files: Path) -> Iterator[Served]:
    running = Served(engine, home, files, workers=1)
    yield running
    running.stop()


def pids_of(parent: int) -> list[int]:
    """The front workers of a process."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (path / "stat").read_text().rpartition(")")[2].split()
            if (
                int(fields[1]) == parent
                and fields[0] != "Z"
                and b"carag.service.front" in (path / "cmdline").read_bytes()
            ):
                found.append(int(path.name))
    return found


def until(holds: Any, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.release
def test_a_worker_answers_as_the_engine_does(engine: Engine, fronted: Served) -> None:
    """Answers, streams, problems, proofs, refusals on record, and counts of all on the second listener."""
    with Client(fronted.url, token=token()) as client:
        same(client.ask(QUESTION, ANALYST), engine.ask(QUESTION, ANALYST))
        same(client.retrieve(QUESTION, ANALYST, 30), engine.retrieve(QUESTION, ANALYST, 30))
        same(client.explain(conftest.CHUNK, ANALYST), engine.explain(conftest.CHUNK, ANALYST))
        seq = client.ask(QUESTION, ANALYST).receipt.seq
    headers = {"Authorization": f"Bearer {token()}"}
    with httpx.Client(base_url=fronted.url, headers=headers) as http:
        assert http.get(f"/v1/receipts/{seq}").json()["record"]
        assert 404 == http.get("/v1/receipts/0").status_code
        assert "buy_side" in http.get("/v1/policy").text
        assert http.get("/log/checkpoint").text.startswith(engine.log.checkpoint().partition("\n")[0])
        assert 32 == len(http.get("/log/tile/0/000.p/1").content)
        streamed = http.post("/v1/ask/stream", json={"question": QUESTION}).text
        assert streamed.startswith("event: record\n")
        assert "event: done\n" in streamed
        assert (
            413
            == http.post(
                "/v1/ask", content=b" " * 70_000, headers={"Content-Type": "application/json"}
            ).status_code
        )
        assert 404 == http.get("/elsewhere").status_code
        wide = http.post("/v1/ask", json={"question": QUESTION, "as_of": "2020-01-01"})
        assert (422, "INVALID_REQUEST") == (wide.status_code, wide.json()["code"])
        bad = http.post("/v1/ask", json={"question": QUESTION}, headers={"Authorization": "Bearer a.b.c"})
        assert (401, "TOKEN_MALFORMED") == (bad.status_code, bad.json()["code"])
    assert ["TOKEN_MALFORMED"] == denials(engine)

    def counted() -> bool:
        text = httpx.get(f"http://127.0.0.1:{fronted.ports[1]}/metrics").text
        return (
            'carag_requests_total{operation="ask",status="200"} 2\n' in text
            and 'carag_requests_total{operation="ask",status="413"} 1\n' in text
            and 'carag_problems_total{code="TOKEN_MALFORMED"} 1\n' in text
        )

    until(counted)


@pytest.mark.release
def test_a_worker_s_environment_and_arguments_hold_no_secret(
    engine: Engine, home: Path, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing but where programs are and the locale; and no file of the store is open in it."""
    monkeypatch.setenv("CARAG_EVIDENCE", "postgresql://u:s3cretcanary@host/db")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cretcanary")
    served = Served(engine, home, files, workers=1)
    try:
        (pid,) = pids_of(os.getpid())
        process = Path("/proc") / str(pid)
        names = {
            one.partition(b"=")[0].decode() for one in (process / "environ").read_bytes().split(b"\0") if one
        }
        assert names <= {*ENVIRONMENT}
        said = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        assert b"s3cretcanary" not in said
        assert token().encode() not in said
        held = {str(one.readlink()) for one in (process / "fd").iterdir() if one.is_symlink()}
        assert not [one for one in held if one.startswith(str(home))]
    finally:
        served.stop()


@pytest.mark.release
def test_a_killed_worker_is_replaced_and_loses_no_record(engine: Engine, fronted: Served) -> None:
    """Meanwhile connections wait on the shared socket; all that was answered is on record."""
    answered, stopped = [], threading.Event()

    def load() -> None:
        while not stopped.is_set():
            with (
                contextlib.suppress(ServiceUnavailable),
                Client(fronted.url, token=token(), seconds=20) as client,
            ):
                answered.append(client.retrieve(QUESTION, ANALYST).receipt.seq)

    threads = [threading.Thread(target=load) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            (pid,) = pids_of(os.getpid())
            before = len(answered)
            os.kill(pid, signal.SIGKILL)
            until(lambda before=before: len(answered) > before + 3)
            assert pids_of(os.getpid()) != [pid]
    finally:
        stopped.set()
        for thread in threads:
            thread.join()
    assert len({*answered}) == len(answered)
    assert max(answered) < engine.log.size
    assert 0 == fronted.service.admission.working


@pytest.mark.release
def test_a_killed_engine_ends_its_workers_and_gives_no_half_answer(home: Path, files: Path) -> None:
    """Whatever arrives after that is a problem or a closed connection; the store opens as after any crash."""
    command = Command(home, files, "--workers", "2", config=CONFIG)
    first, _ = command.ports()
    workers = pids_of(command.process.pid)
    assert 2 == len(workers)
    answered: list[int] = []
    others: list[Exception] = []

    def load() -> None:
        with Client(f"http://127.0.0.1:{first}", token=token(), seconds=10) as client:
            while not others:
                try:
                    answered.append(client.retrieve(QUESTION, ANALYST).receipt.seq)
                except CaragError as error:
                    others.append(error)

    threads = [threading.Thread(target=load) for _ in range(3)]
    for thread in threads:
        thread.start()
    until(lambda: len(answered) > 5)
    command.process.kill()
    command.process.communicate()
    for thread in threads:
        thread.join()
    assert {ServiceUnavailable} == {type(one) for one in others}
    until(lambda: not [pid for pid in workers if Path(f"/proc/{pid}").exists()])
    with Engine.open(home) as engine:
        assert engine.log.verify().size > max(answered)
    assert {*answered} <= {*accesses(home)}


@pytest.mark.release
@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_the_workers_first(home: Path, files: Path, by: signal.Signals) -> None:
    """Every answer that arrived is on record, and no process is left."""
    command = Command(home, files, "--workers", "2", config=CONFIG)
    first, second = command.ports()
    workers = pids_of(command.process.pid)
    assert "ok\n" == httpx.get(f"http://127.0.0.1:{second}/readyz").text
    answered: list[int] = []
    stopped = threading.Event()

    def load() -> None:
        with Client(f"http://127.0.0.1:{first}", token=token()) as client:
            while not stopped.is_set():
                try:
                    answered.append(client.retrieve(QUESTION, ANALYST).receipt.seq)
                except ServiceUnavailable:
                    return

    threads = [threading.Thread(target=load) for _ in range(3)]
    for thread in threads:
        thread.start()
    until(lambda: len(answered) > 5)
    code, _, said = command.ended(by)
    stopped.set()
    for thread in threads:
        thread.join()
    assert (0, False) == (code, "Traceback" in said), said
    assert {*answered} <= {*accesses(home)}
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
    assert "lumenfield" not in said.lower()
    assert '"operation":"retrieve","status":200' in said  # the workers' own lines


# --- TLS ---


def certificate(path: Path) -> Path:
    """A certificate of the tests' own for this machine, and its key, in one file."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "carag.test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(EC_KEY.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(EC_KEY, hashes.SHA256())
    )
    key = EC_KEY.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM) + key)
    return path


@pytest.mark.release
@pytest.mark.parametrize("workers", [0, 1])
def test_tls_ends_where_http_does(engine: Engine, home: Path, files: Path, workers: int) -> None:
    """With the certificate given, and nothing in clear on that port."""
    trusted = certificate(files / "tls.pem")
    served = Served(engine, home, files, workers=workers, certificate="tls.pem")
    try:
        address = f"https://localhost:{served.ports[0]}"
        with httpx.Client(verify=ssl.create_default_context(cafile=trusted)) as http:
            body, headers = {"question": QUESTION}, {"Authorization": f"Bearer {token()}"}
            answer = http.post(f"{address}/v1/ask", json=body, headers=headers)
            assert (200, "answer") == (answer.status_code, answer.json()["outcome"])
        with pytest.raises(httpx.ConnectError), httpx.Client() as strict:
            strict.get(f"{address}/v1/policy")
        with pytest.raises(httpx.HTTPError), httpx.Client() as plain:
            plain.get(f"http://localhost:{served.ports[0]}/v1/policy")
    finally:
        served.stop()


@pytest.mark.parametrize("workers", [0, 1])
def test_a_certificate_that_cannot_be_used_is_bad_input(
    engine: Engine, home: Path, files: Path, workers: int
) -> None:
    """Before anything listens."""
    (files / "tls.pem").write_text("-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n")
    for name in ("tls.pem", "nowhere.pem"):
        service = Service(engine, home, conftest.settings(files, workers=workers, certificate=name))
        with pytest.raises(InvalidArgument, match="certificate"):
            serve(service)


# --- a worker that is none ---


class Place:
    """The engine's side of a worker, without the worker."""

    def __init__(self, service: Service) -> None:
        with socket.socket() as nothing:
            self.workers = Workers(service, nothing)
        ours, self.theirs = socket.socketpair()
        self.theirs.settimeout(10)
        self.thread = threading.Thread(target=self._serve, args=(ours,), daemon=True)
        self.thread.start()

    def _serve(self, ours: socket.socket) -> None:
        with ours:
            self.workers._serve(ours)

    def ended(self) -> bool:
        with self.theirs:
            try:
                found = self.theirs.recv(1)
            except ConnectionResetError:  # closed over bytes that nobody read
                found = b""
        self.thread.join(10)
        return not found and not self.thread.is_alive()


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        HEADER.pack(b"CRG\x02", 0, 0, 0),
        HEADER.pack(b"CRG\x01", len(OPERATIONS), 0, 0),
        HEADER.pack(b"CRG\x01", 0, 0, 1 << 30),
        struct.pack(">4sBII", b"CRG\x01", 0, 1 << 30, 0),
    ],
)
def test_a_foreign_frame_closes_its_place(service: Service, engine: Engine, data: bytes) -> None:
    """Without an answer, and with nothing asked of the engine."""
    place, size = Place(service), engine.log.size
    place.theirs.sendall(data)
    assert place.ended()
    assert size == engine.log.size


def test_a_worker_gets_no_more_than_its_request(service: Service, engine: Engine) -> None:
    """Every token is verified by the engine's process, whatever a worker sends; and the next request goes on."""
    place = Place(service)
    body = json.dumps({"question": QUESTION}).encode()
    for head, kind, code in (
        (b"", 0, "TOKEN_MISSING"),
        (b"\xff", 0, "TOKEN_MALFORMED"),
        (b"a.b.c", 0, "TOKEN_MALFORMED"),
        (token().encode(), 4, "NOT_FOUND"),
        (token().encode(), 6, "NOT_FOUND"),
    ):
        place.theirs.sendall(Frame(kind, head, b"\xff" if kind else body).to_bytes())
        reply = FrameReader(place.theirs, REPLIES).receive()
        assert reply is not None
        assert code == problem_in(reply).code
    place.theirs.sendall(Frame(0, token().encode(), body).to_bytes())
    reply = FrameReader(place.theirs, REPLIES).receive()
    assert reply is not None
    assert (0, True) == (reply.kind, b'"outcome":"answer"' in reply.body)
    place.theirs.shutdown(socket.SHUT_WR)
    assert place.ended()


def counts(**said: Any) -> bytes:
    """What a worker tells of what it counted."""
    return json.dumps({"requests": [], "problems": [], "overruns": [], "too_short": [], **said}).encode()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        counts(requests=[["ask", 99, 0.1]]),
        counts(requests=[["ask", 200, -1]]),
        counts(text="x"),
        counts(overruns=["zwyq"]),
    ],
)
def test_counts_that_are_none_end_the_worker_s_connection(service: Service, body: bytes) -> None:
    """And those that name what is in no list are counted as other, so that no worker writes a label."""
    one, other = socket.socketpair()
    other.settimeout(5)
    with one, other:
        workers = Workers(service, one)
        one.sendall(Frame(READY).to_bytes())
        one.sendall(Frame(COUNTS, body=counts(requests=[["zwyq", 200, 0.1]], problems=["zwyq"])).to_bytes())
        one.sendall(Frame(COUNTS, body=body).to_bytes())
        workers._listen(other)  # returns though the connection is open
    text = service.metrics.text()
    assert "zwyq" not in text
    assert 'carag_requests_total{operation="other",status="200"} 1\n' in text


def test_more_places_than_descriptors_are_refused(files: Path) -> None:
    """With the product and the limit."""
    with pytest.raises(ValueError, match="workers x concurrency is 1024"):
        conftest.settings(files, workers=64, concurrency=16)


@pytest.mark.release
def test_slots_are_kept_by_workers_too(engine: Engine, home: Path, files: Path) -> None:
    """What may not know is padded, found or not; who may know is answered as soon as there is an answer."""
    running = Served(engine, home, files, workers=1, slots={"receipts": 40})
    try:
        with httpx.Client(base_url=running.url) as http:

            def sized(path: str, bearer: str, **body: Any) -> tuple[int, int]:
                headers = {"Authorization": f"Bearer {bearer}"}
                answer = (
                    http.post(path, json=body, headers=headers) if body else http.get(path, headers=headers)
                )
                return answer.status_code, int(answer.headers["content-length"])

            assert (404, 1024) == sized("/v1/receipts/0", token())
            assert (401, 1024) == sized("/v1/receipts/0", "a.b.c")
            status, size = sized("/v1/ask", token(), question=QUESTION)
            assert (200, 0) == (status, size % 1024)
            officer = token(**conftest.OFFICER)
            status, size = sized("/v1/ask", officer, question=QUESTION, **conftest.AS_OFFICER)
            assert (200, True) == (status, size % 1024 != 0)
    finally:
        running.stop()
