"""Two listeners on real sockets: started by the command, drained by a signal, closed in order."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from carag import Client, Engine, Session
from carag.audit import Access
from carag.audit.auditor.reader import LogReader
from carag.audit.records.record import Record
from carag.errors import InvalidArgument, ServiceUnavailable
from carag.service.logs import KEYS
from carag.service.service import Service
from carag.service.serving import _listening, serve
from tests.service import conftest
from tests.service.conftest import AUDIENCE, ISSUER, QUESTION, httpx, token

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
ANALYST = Session(role="buy_side", purpose="invest")
CONFIG = f"""\
schema = 1

[service]
issuer = "{ISSUER}"
audience = "{AUDIENCE}"
jwks = "jwks.json"
algorithms = ["ES256", "RS256"]
grants = "grants.toml"
operations_port = 0
rate = 10000
burst = 10000
"""


class Command:
    """``carag serve`` as a process."""

    def __init__(self, home: Path, files: Path, *more: str, config: str = CONFIG) -> None:
        (files / "office.toml").write_text(config)
        words = ["serve", "--store", str(home), "--config", str(files / "office.toml"), "--port", "0", *more]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "carag", "--verbose", *words],
            cwd=files,
            env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ports(self) -> tuple[int, int]:
        line = self.process.stdout.readline()  # type: ignore[union-attr]
        first, second = re.findall(r"port (\d+)", line) or (0, 0)
        return int(first), int(second)

    def ended(self, by: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
        self.process.send_signal(by)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err


@pytest.fixture
def command(home: Path, files: Path) -> Iterator[Command]:
    running = Command(home, files)
    yield running
    if running.process.poll() is None:
        running.process.kill()
    running.process.communicate()


def accesses(home: Path) -> list[int]:
    with LogReader(home) as reader:
        return [seq for seq, body in reader.bodies() if isinstance(Record.parse(body).event, Access)]


@pytest.mark.release
@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_under_load_loses_no_answer_and_no_record(
    command: Command, home: Path, by: signal.Signals
) -> None:
    """Every answer that arrived is recorded; what was refused or cut off is reported as such."""
    first, second = command.ports()
    assert "ok\n" == httpx.get(f"http://127.0.0.1:{second}/readyz").text
    answered: list[int] = []
    others: list[Exception] = []
    stopped = threading.Event()

    def load() -> None:
        with Client(f"http://127.0.0.1:{first}", token=token()) as client:
            while not stopped.is_set():
                try:
                    answered.append(client.retrieve(QUESTION, ANALYST).receipt.seq)
                except ServiceUnavailable as error:
                    others.append(error)
                    if stopped.wait(0.05):
                        return

    threads = [threading.Thread(target=load) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(2)
    code, _, said = command.ended(by)
    stopped.set()
    for thread in threads:
        thread.join()
    assert (0, "") == (code, "".join(line for line in said.splitlines() if "Traceback" in line))
    assert len(answered) > 3
    assert {*answered} <= {*accesses(home)}
    with Engine.open(home) as engine:  # closed in order: nothing remains to be settled
        assert engine.log.verify().size > max(answered)
    told = [json.loads(line) for line in said.splitlines()]
    assert {"OPENED", "SERVING", "RECORD", "REQUEST", "CLOSED"} <= {line["event"] for line in told}
    assert set().union(*told) <= KEYS.keys()
    assert "lumenfield" not in said.lower()
    assert "ana@bank.example" not in said


@pytest.mark.release
def test_the_command_refuses_what_it_cannot_serve(home: Path, files: Path) -> None:
    """A missing table, unknown cells in grants, or an open address are bad input, before anything listens."""
    for config, told in (
        ("schema = 1\n", "no table [service]"),
        (CONFIG + 'listen = "0.0.0.0"\n', "behind_proxy"),
        (CONFIG.replace("ES256", "HS256"), "HS256"),
        (CONFIG.replace("grants.toml", "nowhere.toml"), "nowhere.toml"),
    ):
        command = Command(home, files, config=config)
        out, said = command.process.communicate(timeout=30)
        assert (65, "") == (command.process.returncode, out), said
        assert told in " ".join(said.split())
    (files / "grants.toml").write_text('schema = 1\n[[grant]]\ngroup = "g"\ncells = ["no_role/ever"]\n')
    command = Command(home, files)
    _, said = command.process.communicate(timeout=30)
    assert 65 == command.process.returncode
    assert "line 4" in said.replace("\n", " ") or "line 4" in said
    assert "no_role/ever" in said


@pytest.mark.release
@pytest.mark.parametrize(
    ("said", "is_told"), [('slots = "off"\n', True), ("[service.slots]\nask = 60\n", False)]
)
def test_slots_that_are_off_are_reported(home: Path, files: Path, said: str, is_told: bool) -> None:
    """At every start."""
    command = Command(home, files, config=CONFIG + said)
    assert 0 != command.ports()[0]
    code, _, told = command.ended()
    assert (0, is_told) == (code, "slots are off" in told)


def test_a_setting_of_earlier_versions_says_what_to_do_instead(files: Path) -> None:
    """A service is one process, so a number of workers is refused, not ignored."""
    with pytest.raises(ValueError, match="remove it, and to serve more requests let several services share"):
        conftest.settings(files, workers=2)


def test_an_address_in_use_is_bad_input(engine: Engine, home: Path, files: Path) -> None:
    """The engine remains usable."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        service = Service(engine, home, conftest.settings(files, port=taken.getsockname()[1]))
        with pytest.raises(InvalidArgument, match="cannot listen"):
            serve(service)
    assert engine.ask(QUESTION, ANALYST).text


def test_the_end_of_an_answer_does_not_wait_for_an_acknowledgement() -> None:
    """Accepted sockets send at once, although asyncio does not see that they are TCP; else it takes 40 ms more."""
    with _listening("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.release
def test_a_second_service_for_a_store_is_refused(engine: Engine, home: Path, files: Path) -> None:
    """The store has one writer, and every answer is a write."""
    command = Command(home, files)
    _, said = command.process.communicate(timeout=30)
    assert 65 == command.process.returncode
    assert "Traceback" not in said


def test_a_real_server_adds_nothing(engine: Engine, home: Path, files: Path) -> None:
    """To streams, problems and limits."""
    from tests.service.test_client import Served

    served = Served(engine, home, files)
    try:
        headers = {"Authorization": f"Bearer {token()}"}
        body: dict[str, Any] = {"question": QUESTION}
        with httpx.stream("POST", f"{served.url}/v1/ask/stream", json=body, headers=headers) as answer:
            data = b"".join(answer.iter_raw())
        assert data.startswith(b"event: record\n")
        assert "server" not in answer.headers
        large = httpx.post(
            f"{served.url}/v1/ask",
            content=b" " * (1 << 20),
            headers={**headers, "Content-Type": "application/json"},
        )
        assert (413, "BODY_TOO_LARGE") == (large.status_code, large.json()["code"])
        assert json.loads(httpx.get(f"{served.url}/openapi.json").content)["info"]["title"] == "CARAG"
        assert "carag_records" in httpx.get(f"http://127.0.0.1:{served.ports[1]}/metrics").text
    finally:
        served.stop()
