"""A store, a made-up issuer, and a service for both, asked without a socket."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("fastapi")
httpx = pytest.importorskip("httpx")
jwt = pytest.importorskip("jwt")

from cryptography.hazmat.primitives.asymmetric import ec, rsa  # noqa: E402 - after what may be missing

from carag import Engine  # noqa: E402
from carag.audit import Denial  # noqa: E402
from carag.service.app import application, operations  # noqa: E402
from carag.service.service import Service  # noqa: E402
from carag.service.settings import ServiceSettings  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

ISSUER, AUDIENCE = "https://login.example", "carag"
EC_KEY = ec.generate_private_key(ec.SECP256R1())
RSA_KEY = rsa.generate_private_key(65537, 2048)
QUESTION = "What royalty rate does Lumenfield pay the Cardew Institute on net sales of LMF-204?"
CHUNK = "9990000000-23-000077:00001"
GRANTS = """\
schema = 1

[[grant]]
group = "analysts"
cells = ["buy_side/invest"]

[[grant]]
group = "officers"
cells = ["compliance/surveil", "public/public_qa"]

[[grant]]
group = "auditors"
duties = ["audit"]
"""


def jwk(key: Any, kid: str, algorithm: str) -> dict[str, Any]:
    """Return the public key as an issuer publishes it."""
    kind = jwt.algorithms.get_default_algorithms()[algorithm]
    return {**kind.to_jwk(key.public_key(), as_dict=True), "kid": kid, "alg": algorithm, "use": "sig"}


def claims(**changes: Any) -> dict[str, Any]:
    now = int(time.time())
    whole = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "ana@bank.example",
        "iat": now - 10,
        "exp": now + 3600,
        "groups": ["analysts"],
        **changes,
    }
    return {name: value for name, value in whole.items() if value is not None}


def token(key: Any = EC_KEY, algorithm: str = "ES256", kid: str = "e", /, **changes: Any) -> str:
    return jwt.encode(claims(**changes), key, algorithm=algorithm, headers={"kid": kid})


OFFICER = {"groups": ["officers"], "sub": "olga@bank.example"}
AS_OFFICER = {"role": "compliance", "purpose": "surveil"}


class Asked:
    """Sends requests to an application in this process."""

    def __init__(self, app: Any) -> None:
        self._app = app

    def __call__(self, method: str, path: str, *, bearer: str | None = None, **more: Any) -> Any:
        async def sent() -> Any:
            transport = httpx.ASGITransport(self._app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://carag.test") as client:
                headers = {} if bearer is None else {"Authorization": f"Bearer {bearer}"}
                return await client.request(
                    method, path, headers={**headers, **more.pop("headers", {})}, **more
                )

        return asyncio.run(sent())

    def post(self, operation: str, body: Any, *, bearer: str | None = None, **more: Any) -> Any:
        return self("POST", f"/v1/{operation}", json=body, bearer=bearer, **more)


@pytest.fixture
def home(ingested: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(ingested, tmp_path / "store"))


@pytest.fixture
def engine(home: Path) -> Iterator[Engine]:
    with Engine.open(home) as opened:
        yield opened


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Write grants and a key set; return their directory."""
    (tmp_path / "grants.toml").write_text(GRANTS)
    keys = [jwk(EC_KEY, "e", "ES256"), jwk(RSA_KEY, "r", "RS256")]
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": keys}))
    return tmp_path


def settings(files: Path, **changes: Any) -> ServiceSettings:
    said = {
        "issuer": ISSUER,
        "audience": AUDIENCE,
        "jwks": "jwks.json",
        "algorithms": ["ES256", "RS256"],
        "grants": "grants.toml",
        "rate": 10_000,
        "burst": 10_000,
        "refused_rate": 10_000,
        "max_k": 400,
        "port": 0,
        "operations_port": 0,
        "slots": "off",  # tests/service/test_slots.py has them on
        **changes,
    }
    return ServiceSettings.model_validate(said).at(files)


@pytest.fixture
def service(engine: Engine, home: Path, files: Path) -> Iterator[Service]:
    made = Service(engine, home, settings(files))
    yield made
    made.close()


@pytest.fixture
def asked(service: Service) -> Asked:
    return Asked(application(service))


@pytest.fixture
def watched(service: Service) -> Asked:
    return Asked(operations(service))


def events(engine: Engine) -> list[Any]:
    """Return all recorded events."""
    return [engine.log.record(seq).event for seq in range(engine.log.size)]


def denials(engine: Engine) -> list[str]:
    """Return the codes of the recorded refusals of tokens."""
    return [event.why for event in events(engine) if isinstance(event, Denial)]


def refusals(engine: Engine) -> Counter[str]:
    """Return how many tokens were refused, by code, also those that are not recorded yet."""
    engine._denials.flush()
    found: Counter[str] = Counter()
    for event in events(engine):
        if isinstance(event, Denial):
            found[event.why] += event.count
    return found
