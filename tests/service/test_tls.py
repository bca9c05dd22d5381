"""The service terminates TLS with the configured certificate, which is checked before anything listens."""

from __future__ import annotations

import select
import socket
import ssl
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import NameOID

from carag.errors import InvalidArgument
from carag.service import door
from carag.service.service import Service
from carag.service.serving import serve
from tests.service import conftest
from tests.service.conftest import EC_KEY, QUESTION, httpx, token
from tests.service.test_client import Served

if TYPE_CHECKING:
    from pathlib import Path

    from carag import Engine


def certificate(path: Path) -> Path:
    """Write a certificate for this machine, with its key."""
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
def test_the_service_terminates_tls(engine: Engine, home: Path, files: Path) -> None:
    """With the configured certificate, and without unencrypted traffic on that port."""
    trusted = certificate(files / "tls.pem")
    served = Served(engine, home, files, certificate="tls.pem")
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


def test_a_handshake_counts_and_has_as_long_as_a_head(
    engine: Engine, home: Path, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A silent connection has one of the peer's places, and loses it."""
    monkeypatch.setattr(door, "HEAD_SECONDS", 1.0)
    certificate(files / "tls.pem")
    served = Served(engine, home, files, certificate="tls.pem", connections_each=2)
    try:
        with ExitStack() as stack:
            silent, also, third = (
                stack.enter_context(socket.create_connection(("127.0.0.1", served.ports[0]), 20))
                for _ in range(3)
            )
            assert b"" == third.recv(1)  # refused at once without an answer, which would not be TLS
            assert ([], [], []) == select.select([silent, also], [], [], 0)
            assert b"" == silent.recv(1) == also.recv(1)
    finally:
        served.stop()


def test_a_certificate_that_cannot_be_used_is_bad_input(engine: Engine, home: Path, files: Path) -> None:
    """Before anything listens."""
    (files / "tls.pem").write_text("-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n")
    for name in ("tls.pem", "nowhere.pem"):
        service = Service(engine, home, conftest.settings(files, certificate=name))
        with pytest.raises(InvalidArgument, match="certificate"):
            serve(service)
