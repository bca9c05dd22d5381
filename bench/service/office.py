"""Run ``carag serve`` as a process of its own, over a store of the corpus that ships and an issuer made for it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cryptography.hazmat.primitives.asymmetric import ec

from carag import Engine
from carag.service.settings import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


ROOT: Final = Path(__file__).parents[2]
ISSUER: Final = "https://login.example"
AUDIENCE: Final = "carag"
ANALYSTS: Final = "analysts"
OFFICERS: Final = "officers"
CELLS: Final = {ANALYSTS: ("buy_side", "invest"), OFFICERS: ("compliance", "surveil")}
QUESTIONS: Final = (
    "What royalty rate does Lumenfield pay the Cardew Institute on net sales of LMF-204?",
    "What did the company restate, and why?",
    "How much did directors buy of their own shares?",
    "What drove revenue?",
    "What is the weather on Mars?",
)
_ANSWER_SECONDS: Final = 30.0


class Served(NamedTuple):
    """A service that runs."""

    process: subprocess.Popen[str]
    port: int
    operations_port: int


class Office:
    """A store, grants, and an issuer with one key, all below one directory.

    Parameters
    ----------
    place : Path
        A directory that is empty or an office's already, or one with a store that is to be served.
    **settings : str or int
        Keys of the table ``[service]`` besides those that an office states itself.
    """

    def __init__(self, place: Path, **settings: str | int) -> None:
        import jwt

        self.place, self.home, self.told = place, place / "store", place / "told"
        self._key, self._jwt = ec.generate_private_key(ec.SECP256R1()), jwt
        public = jwt.algorithms.ECAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        key = {**public, "kid": "office", "alg": "ES256", "use": "sig"}
        (place / "jwks.json").write_text(json.dumps({"keys": [key]}))
        grants = (
            f'[[grant]]\ngroup = "{name}"\ncells = ["{"/".join(cell)}"]\n' for name, cell in CELLS.items()
        )
        (place / "grants.toml").write_text("schema = 1\n" + "".join(grants))
        self._stated: dict[str, Any] = {
            "issuer": ISSUER,
            "audience": AUDIENCE,
            "jwks": "jwks.json",
            "algorithms": ["ES256"],
            "grants": "grants.toml",
            "operations_port": 0,
            "rate": 10_000,
            "burst": 10_000,
            "concurrency_each": 16,
            **settings,
        }
        lines = (f"{name} = {json.dumps(value)}\n" for name, value in self._stated.items())
        (place / "office.toml").write_text("schema = 1\n\n[service]\n" + "".join(lines))
        if not self.home.exists():
            with Engine.open(self.home, embedder="wordllama") as engine:
                engine.ingest(ROOT / "data" / "corpus")

    def settings(self, **changes: str | int) -> ServiceSettings:
        """Return what the file of settings says, for a service in this process."""
        return ServiceSettings.model_validate({**self._stated, **changes}).at(self.place)

    def token(self, subject: str = "ana@bank.example", group: str = ANALYSTS, **changes: Any) -> str:
        """Sign a token for a day."""
        now = int(time.time())
        claims = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": subject,
            "iat": now - 10,
            "exp": now - 10 + 86_400,
            "groups": [group],
            **changes,
        }
        made: str = self._jwt.encode(claims, self._key, algorithm="ES256", headers={"kid": "office"})
        return made

    @contextlib.contextmanager
    def served(self, environment: Mapping[str, str] | None = None, *more: str) -> Iterator[Served]:
        """Start the service; what it tells goes to the file :attr:`told`. It is killed at the end if it still runs."""
        words = [
            "serve",
            "--store",
            str(self.home),
            "--config",
            str(self.place / "office.toml"),
            "--port",
            "0",
        ]
        with (
            self.told.open("ab") as told,
            subprocess.Popen(
                [sys.executable, "-m", "carag", *words, *more],
                cwd=self.place,
                env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200", **(environment or {})},
                stdout=subprocess.PIPE,
                stderr=told,
                text=True,
            ) as process,
        ):
            try:
                assert process.stdout is not None
                line = process.stdout.readline()
                ports = [int(port) for port in re.findall(r"port (\d+)", line)]
                if len(ports) != 2:
                    raise RuntimeError(f"the service did not start; see {self.told}")
                yield Served(process, *ports)
            finally:
                if process.poll() is None:
                    process.kill()


def asked(
    connection: http.client.HTTPConnection, token: str | None, method: str, path: str, body: Any = None
) -> tuple[int, bytes]:
    """Send one request and read all of its answer.

    Raises
    ------
    OSError, http.client.HTTPException
        If the connection ends before the answer does.
    """
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    if data is not None:
        headers["Content-Type"] = "application/json"
    connection.request(method, path, data, headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


def said(data: bytes) -> dict[str, Any]:
    """Return what an answer says; of a stream, what its last event says."""
    events = [one for one in data.split(b"\n\n") if b"data: " in one]  # padding is a comment behind the last
    found: dict[str, Any] = json.loads(events[-1].partition(b"data: ")[2] if events else data)
    return found


def connected(port: int) -> http.client.HTTPConnection:
    """Return a connection to a service of this machine, not yet open."""
    return http.client.HTTPConnection("127.0.0.1", port, timeout=_ANSWER_SECONDS)
