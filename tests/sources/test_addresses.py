"""An address has one form, a scope has an edge, a file has a safe name, and no name server leads within."""

from __future__ import annotations

import ipaddress
import re
import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.http import NoAnswer
from carag.limits import check_id
from carag.sources.address import Address, Scope, file_name
from carag.sources.http import Sender, _is_public

if TYPE_CHECKING:
    from pathlib import Path

SIGNS = st.text("ab/.%2eFfü?&=:\\ #-", max_size=30)


@given(SIGNS)
def test_the_form_of_an_address_is_its_own_form(path: str) -> None:
    """Read again it is the same, it holds what a request may hold, and no segment leads up."""
    one = Address.of("http://example.org/" + path)
    assert Address.of(str(one)) == one
    assert re.fullmatch(r"[!-~]+", one.target)
    assert not {".", ".."} & {*one.path.split("/")}


@given(SIGNS, st.sampled_from([".html", ".pdf", ".txt"]))
def test_the_name_of_a_file_is_one_that_every_system_takes(path: str, ending: str) -> None:
    """In its folder, not hidden, not reserved, without a capital, and short enough to be a document's id."""
    name = file_name(Address.of("http://example.org/" + path), ending)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*-[0-9a-f]{20}" + re.escape(ending), name)
    check_id("id", name)


@given(SIGNS, SIGNS)
def test_two_addresses_have_two_files(one: str, other: str) -> None:
    """And one has one."""
    first, second = Address.of("http://h/" + one), Address.of("http://h/" + other)
    assert (first == second) == (file_name(first, ".txt") == file_name(second, ".txt"))


@given(SIGNS)
def test_what_is_covered_lies_below_the_prefix_however_a_server_reads_it(path: str) -> None:
    one = Address.of("http://h/ab/" + path)
    if Scope.of(Address.of("http://h/ab/")).covers(one):
        read = one.path
        for escape, sign in (("%2F", "/"), ("%5C", "/"), ("%2E", ".")):
            read = read.replace(escape, sign)
        depth = 0
        for segment in read.split("/")[2:]:
            depth += -1 if segment == ".." else segment not in ("", ".")
            assert depth >= 0


@pytest.mark.parametrize(
    ("start", "link", "leads"),
    [
        ("https://h/a/", "http://h/a/b", "https://h/a/b"),
        ("https://h:8443/a/", "http://h/a/b", None),
        ("http://h/a/", "https://h/a/b", "https://h/a/b"),
        ("http://h:8080/a/", "https://h/a/b", None),
        ("http://h/a/", "http://h:80/a/b", "http://h/a/b"),
        ("http://h/a/", "http://H/a/b", "http://h/a/b"),
        ("http://h/a/", "http://h.example/a/b", None),
        ("http://h/a/", "http://h/a", None),
        ("http://h/a/index.html", "http://h/a/b", "http://h/a/b"),
    ],
)
def test_a_link_leads_within_or_nowhere(start: str, link: str, leads: str | None) -> None:
    to = Scope.of(Address.of(start)).of_link(Address.of(link))
    assert leads == (to and str(to))


def test_https_is_never_left_for_http() -> None:
    """A redirect says where the server wants a client to be, so it is not mended as a link is."""
    scope = Scope.of(Address.of("https://h/a/"))
    assert not scope.covers(Address.of("http://h/a/b"))


@pytest.mark.parametrize("prefixes", [("c",), ("",), ("/other/",), ("/c/", "http://h/c/")])
def test_a_prefix_is_a_path_and_the_start_lies_below_one(prefixes: tuple[str, ...]) -> None:
    with pytest.raises(InvalidArgument):
        Scope.of(Address.of("http://h/c/"), prefixes)


@pytest.mark.parametrize(
    ("place", "is_public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1::1", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),  # noqa: S104 - what must not be asked
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::1", False),
        ("::", False),
        ("fe80::1%eth0", False),
        ("fd00::1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:93.184.216.34", True),
        ("64:ff9b::7f00:1", False),
        ("64:ff9b::5db8:d822", True),
        ("2002:7f00:1::", False),
        ("2001:0:7f00:1::", False),
    ],
)
def test_only_addresses_of_the_public_internet_are_asked(place: str, is_public: bool) -> None:
    assert _is_public(place) is is_public


@pytest.mark.parametrize("places", [["127.0.0.1"], ["93.184.216.34", "10.0.0.1"], ["::1"]])
def test_a_name_that_leads_within_is_not_asked(monkeypatch: pytest.MonkeyPatch, places: list[str]) -> None:
    """Not even as the start: the owner of the name chose the address."""

    def found(host: str, port: int, **_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (place, port)) for place in places]

    def connected(*_: Any) -> None:
        raise AssertionError("it was connected to")

    monkeypatch.setattr(socket, "getaddrinfo", found)
    monkeypatch.setattr(socket, "create_connection", connected)
    start = Address.of("http://example.org/")
    with pytest.raises(NoAnswer, match="not a public address") as told:
        Sender({}, private=[start]).get(start, {}, kinds=None, most=10)
    assert told.value.is_final


def test_a_private_start_opens_no_other_port() -> None:
    sender = Sender({}, private=[Address.of("http://127.0.0.1:1/")])
    for url in ("http://127.0.0.1:2/", "http://localhost:1/", "http://127.0.0.2:1/"):
        with pytest.raises(NoAnswer, match="not a public address"):
            sender.get(Address.of(url), {}, kinds=None, most=10)


def test_a_server_that_never_ends_is_left() -> None:
    """Though each byte comes in time."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def drip() -> None:
            caller, _ = server.accept()
            with caller:
                caller.sendall(b"HTTP/1.1 200 OK\r\n")
                pause = threading.Event()
                try:
                    while not pause.wait(0.02):
                        caller.sendall(b"X-A: b\r\n"[:1])
                except OSError:
                    return

        thread = threading.Thread(target=drip)
        thread.start()
        start = Address.of(f"http://127.0.0.1:{port}/")
        with pytest.raises(NoAnswer, match=r"no complete answer within 0\.3 s"):
            Sender({}, private=[start], seconds=0.3).get(start, {}, kinds=None, most=1000)
        thread.join()


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    (tmp_path / "both.pem").write_bytes(made.public_bytes(pem) + secret)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "both.pem")
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            caller, _ = server.accept()
            with caller:
                try:
                    context.wrap_socket(caller, server_side=True).close()
                except OSError:
                    return

        thread = threading.Thread(target=answer)
        thread.start()
        start = Address.of(f"https://127.0.0.1:{server.getsockname()[1]}/")
        with pytest.raises(NoAnswer, match="certificate is not valid"):
            Sender({}, private=[start]).get(start, {}, kinds=None, most=1000)
        thread.join()
