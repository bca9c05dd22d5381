"""Only the issuer's tokens open a session; each refusal has its status and is recorded without the token."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from carag import Engine
from carag.audit import Access, Denial, PolicyChange, SessionSource
from carag.audit.auditor.reader import LogReader
from carag.audit.records.record import Record
from carag.audit.tlog.encoding import b64url
from carag.errors import Refused
from carag.service.admission import Strangers
from carag.service.app import application
from carag.service.jwks import COOLDOWN_SECONDS
from carag.service.problems import Problem
from carag.service.release import Asker
from carag.service.service import Service
from tests.service.conftest import (
    AS_OFFICER,
    CHUNK,
    EC_KEY,
    OFFICER,
    QUESTION,
    RSA_KEY,
    Asked,
    claims,
    denials,
    events,
    httpx,
    jwk,
    jwt,
    refusals,
    settings,
    token,
)
from tests.sizes import examples

NOW, COUNT = int(time.time()), examples(1000)
OTHER = ec.generate_private_key(ec.SECP256R1())
PEM = RSA_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def by_hand(header: dict[str, Any], secret: bytes | None = None, **changes: Any) -> str:
    def part(value: Any) -> bytes:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        return base64.urlsafe_b64encode(data).rstrip(b"=")

    signed = part(header) + b"." + part(claims(**changes))
    signature = b"" if secret is None else hmac.new(secret, signed, hashlib.sha256).digest()
    return (signed + b"." + part(signature)).decode()


def with_header(**more: Any) -> str:
    return jwt.encode(claims(), EC_KEY, algorithm="ES256", headers={"kid": "e", **more})


ATTACKS = {
    "none": (by_hand({"alg": "none", "kid": "e"}), 401, "TOKEN_ALGORITHM"),
    "none without a key id": (by_hand({"alg": "none"}), 401, "TOKEN_ALGORITHM"),
    "a public key as a secret": (by_hand({"alg": "HS256", "kid": "r"}, PEM), 401, "TOKEN_ALGORITHM"),
    "a key under another algorithm": (token(RSA_KEY, "PS256", "r"), 401, "TOKEN_ALGORITHM"),
    "another key under a known id": (token(OTHER), 401, "TOKEN_SIGNATURE"),
    "an unpublished key id": (token(OTHER, "ES256", "x"), 401, "TOKEN_KEY_UNKNOWN"),
    "another audience": (token(aud="payroll"), 401, "TOKEN_AUDIENCE"),
    "this audience among others": (token(aud=["carag", "payroll"]), 401, "TOKEN_AUDIENCE"),
    "another issuer": (token(iss="https://evil.example"), 401, "TOKEN_ISSUER"),
    "the issuer with a slash": (token(iss="https://login.example/"), 401, "TOKEN_ISSUER"),
    "expired": (token(exp=NOW - 600), 401, "TOKEN_EXPIRED"),
    "not yet valid": (token(nbf=NOW + 3600), 401, "TOKEN_NOT_YET_VALID"),
    "no expiry": (token(exp=None), 401, "TOKEN_CLAIM_MISSING"),
    "no subject": (token(sub=None), 401, "TOKEN_CLAIM_MISSING"),
    "no groups": (token(groups=None), 401, "TOKEN_CLAIM_MISSING"),
    "groups that are a text": (token(groups="analysts"), 401, "TOKEN_CLAIM_INVALID"),
    "groups that grant nothing": (token(groups=["interns"]), 403, "TOKEN_CELL"),
    "a role of its own": (token(groups=["interns"], role="compliance", purpose="surveil"), 403, "TOKEN_CELL"),
    "a list that is misspelt": (token(carag={"restrictd": [1]}), 401, "TOKEN_CLAIM_INVALID"),
    "a key of its own": (with_header(jwk={"kty": "EC"}, kid="mine"), 401, "TOKEN_KEY_UNKNOWN"),
    "an address of keys": (with_header(jku="https://evil.example/k", kid="m"), 401, "TOKEN_KEY_UNKNOWN"),
    "an address of a certificate": (
        with_header(x5u="https://evil.example/c", kid="m"),
        401,
        "TOKEN_KEY_UNKNOWN",
    ),
    "a certificate of its own": (with_header(x5c=["MIIB"], kid="m"), 401, "TOKEN_KEY_UNKNOWN"),
    "a critical extension": (with_header(crit=["b64"], b64=True), 401, "TOKEN_MALFORMED"),
    "garbage": ("a.b.c", 401, "TOKEN_MALFORMED"),
    "no token": (None, 401, "TOKEN_MISSING"),
}


def test_what_is_taken_out_of_the_grants_is_gone_without_a_restart(
    service: Service, asked: Asked, engine: Engine
) -> None:
    """The change is recorded; a damaged file grants nothing, and a restored one counts again."""
    path = Path(service.settings.grants)
    whole = path.read_text()

    def status() -> tuple[int, str]:
        answer = asked("GET", "/v1/policy", bearer=token())
        return answer.status_code, answer.json().get("code", "")

    def changes() -> list[str]:
        return [event.why for event in events(engine) if isinstance(event, PolicyChange)]

    assert (200, "") == status()
    before = len(changes())
    path.write_text(whole.replace('group = "analysts"', 'group = "others"'))
    assert (403, "TOKEN_CELL") == status()
    assert before + 1 == len(changes())
    for damaged in (whole[: len(whole) // 2] + '"', "", "schema = 2"):
        path.write_text(damaged)
        assert (503, "GRANTS_UNREADABLE") == status()
        assert ["GRANTS_UNREADABLE"] == service.unready()
    path.unlink()
    assert (503, "GRANTS_UNREADABLE") == status()
    path.write_text(whole)
    assert (200, "") == status()
    assert [] == service.unready()


def test_every_attack_is_refused_and_recorded(asked: Asked, engine: Engine) -> None:
    """At each address that takes a token."""
    wanted: Counter[str] = Counter()
    for name, (bearer, status, code) in ATTACKS.items():
        before = denials(engine).count(code)
        answers = (
            asked.post("ask", {"question": QUESTION}, bearer=bearer),
            asked.post("ask/stream", {"question": QUESTION}, bearer=bearer),
            asked.post("retrieve", {"question": QUESTION}, bearer=bearer),
            asked.post("explain", {"chunk_id": CHUNK}, bearer=bearer),
            *(
                asked("GET", path, bearer=bearer)
                for path in ("/v1/receipts/1", "/v1/policy", "/log/checkpoint", "/log/tile/0/000.p/1")
            ),
        )
        for answer in answers:
            assert (status, code) == (answer.status_code, answer.json()["code"]), name
            assert answer.headers["content-type"] == "application/problem+json"
            assert ("www-authenticate" in answer.headers) == (status == 401)
        assert wanted[code] or before + 1 == denials(engine).count(
            code
        )  # the first at once, the rest as a count
        wanted[code] += len(answers)
    assert wanted == refusals(engine)
    assert not [event for event in events(engine) if isinstance(event, Access)]


def test_two_tokens_are_refused(asked: Asked, engine: Engine) -> None:
    """Which of them counts would be a guess, and a proxy in front may guess differently."""
    headers = [("Authorization", f"Bearer {token()}"), ("Authorization", f"Bearer {token(**OFFICER)}")]

    async def sent() -> Any:
        transport = httpx.ASGITransport(asked._app)
        async with httpx.AsyncClient(transport=transport, base_url="http://carag.test") as client:
            return await client.post("/v1/ask", json={"question": QUESTION}, headers=headers)

    assert 401 == asyncio.run(sent()).status_code
    assert ["TOKEN_MALFORMED"] == denials(engine)


def test_a_good_token_is_a_verified_session_of_its_groups_cell(asked: Asked, engine: Engine) -> None:
    """Role and purpose stated in the token itself do not count."""
    for key, algorithm, kid in ((EC_KEY, "ES256", "e"), (RSA_KEY, "RS256", "r")):
        bearer = token(key, algorithm, kid, role="compliance", purpose="surveil")
        answer = asked.post("ask", {"question": QUESTION}, bearer=bearer)
        assert (200, "answer") == (answer.status_code, answer.json()["outcome"])
        event = events(engine)[answer.json()["record"]]
        assert (event.role, event.purpose, event.source) == ("buy_side", "invest", SessionSource.VERIFIED)
        assert (event.issuer, event.audience) == ("https://login.example", "carag")


def test_a_request_chooses_among_the_cells_granted_and_no_other(asked: Asked, engine: Engine) -> None:
    """Nor for another person; if several are granted, it must choose."""
    officer, body = token(**OFFICER), {"question": QUESTION}
    chosen = asked.post("ask", {**body, **AS_OFFICER}, bearer=officer)
    assert ("compliance", "surveil") == (
        (event := events(engine)[chosen.json()["record"]]).role,
        event.purpose,
    )
    for more, bearer, code in (
        ({"role": "buy_side", "purpose": "invest"}, officer, "TOKEN_CELL"),
        (AS_OFFICER, token(), "TOKEN_CELL"),
        ({}, officer, "TOKEN_CELL_UNCLEAR"),
        ({"subject": "ana@bank.example", **AS_OFFICER}, officer, "TOKEN_SUBJECT"),
    ):
        answer = asked.post("ask", {**body, **more}, bearer=bearer)
        assert (403, code) == (answer.status_code, answer.json()["code"])
    assert ["TOKEN_CELL", "TOKEN_CELL_UNCLEAR", "TOKEN_SUBJECT"] == denials(engine)


def test_a_token_still_carries_what_only_a_token_may(asked: Asked, engine: Engine) -> None:
    """A date in the past, for a cell with that right; a request has no field for it."""
    bearer = token(**OFFICER, carag={"as_of": "2024-06-30"})
    answer = asked.post("retrieve", {"question": QUESTION, **AS_OFFICER, "k": 50}, bearer=bearer)
    assert answer.json()["passages"]
    assert all(one["filed"] <= "2024-06-30" for one in answer.json()["passages"])
    wide = {"question": QUESTION, **AS_OFFICER, "as_of": "2024-06-30"}
    assert 422 == asked.post("retrieve", wide, bearer=bearer).status_code


def test_a_request_narrows_and_never_widens(asked: Asked) -> None:
    """Whatever it lists, the result is a subset of the one without it."""
    bearer = token(carag={"restricted": [9990001]})

    def found(**narrow: Any) -> set[str]:
        body = {"question": QUESTION, "k": 400, "narrow": narrow}
        answer = asked.post("retrieve", body, bearer=bearer)
        assert 200 == answer.status_code, answer.text
        return {one["chunk_id"] for one in answer.json()["passages"]}

    whole = found()
    assert whole
    assert found(residency=["J_US"]) < whole
    for narrow in (
        {"allow_entities": [1]},
        {"cooling_minutes": 10**4},
        {"restricted": []},
        {"intents": ["LATEST"]},
    ):
        assert found(**narrow) <= whole
    assert set() == found(allow_entities=[1])
    for narrow in ({"deals": []}, {"as_of": "2020-01-01"}, {"residency": ["NO_SUCH"]}, {"restricted": None}):
        body = {"question": QUESTION, "narrow": narrow}
        answer = asked.post("retrieve", body, bearer=bearer)
        assert (422, "INVALID_REQUEST") == (answer.status_code, answer.json()["code"])


def test_the_grants_are_recorded_before_the_first_answer(service: Service, engine: Engine) -> None:
    """By the hash of their file; the policy table does not change."""
    changes = [event for event in events(engine) if isinstance(event, PolicyChange)]
    digest = hashlib.sha256(Path(service.settings.grants).read_bytes()).digest()
    assert f"SERVICE_GRANTS:{b64url(digest)}" == changes[-1].why
    assert changes[-1].table == changes[-1].before == changes[0].table


class Clock:
    """Seconds that pass on demand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def is_checked(strangers: Strangers, one: str) -> bool:
    try:
        strangers.check(one)
    except Problem as problem:
        return problem.code != "TOKEN_UNCHECKED"
    return True


@given(st.lists(st.tuples(st.sampled_from("gbn"), st.integers(0, 3)), max_size=200), st.integers(1, 30))
def test_refused_tokens_are_limited_and_good_ones_never(moves: list[tuple[str, int]], rate: int) -> None:
    """No more are checked and refused than the bucket allows; a known good one is always checked."""
    clock = Clock()
    strangers = Strangers(rate, clock=clock)
    strangers.accepted("good")
    refused = unchecked = 0
    for number, (kind, tenths) in enumerate(moves):
        clock.now += tenths / 10
        if kind == "g":
            assert is_checked(strangers, "good")
            strangers.accepted("good")
        elif is_checked(strangers, one := "bad" if kind == "b" else f"new {number}"):
            strangers.refused(one)
            refused += 1
        else:
            unchecked += 1
        assert refused <= rate * (1 + clock.now - 100) + 1e-6
    assert unchecked == strangers.take_unchecked()
    assert 0 == strangers.take_unchecked()


def test_one_repeated_bad_token_leaves_half_of_the_bucket_to_new_ones() -> None:
    """A client that repeats an expired token excludes no one else, and is checked again after a pause."""
    clock = Clock()
    strangers = Strangers(20, clock=clock)
    for _ in range(500):
        if is_checked(strangers, "expired"):
            strangers.refused("expired")
    assert is_checked(strangers, "somebody new")
    clock.now += 1
    assert is_checked(strangers, "expired")
    alone = Strangers(1, clock=clock)
    alone.refused("not yet valid")
    clock.now += 1
    assert is_checked(alone, "not yet valid")


def test_a_flood_costs_one_record_and_does_not_exclude_known_clients(
    engine: Engine, home: Path, files: Path
) -> None:
    """Beyond the limit tokens are only counted, and a good one is answered throughout."""
    service = Service(engine, home, settings(files, refused_rate=3))
    asked = Asked(application(service))
    body, good = {"question": QUESTION}, token()
    assert 200 == asked.post("ask", body, bearer=good).status_code
    statuses = [asked.post("ask", body, bearer=f"a.b.{number}").status_code for number in range(60)]
    assert {401, 429} == {*statuses}
    assert statuses.count(401) < 15
    assert 200 == asked.post("ask", body, bearer=good).status_code
    service.close()
    counted = {"TOKEN_MALFORMED": 0, "TOKEN_UNCHECKED": 0}
    engine.close()
    with Engine.open(home) as again:
        found = [event for event in events(again) if isinstance(event, Denial)]
    for event in found:
        counted[event.why] += event.count
    assert (statuses.count(401), statuses.count(429)) == tuple(counted.values())
    assert len(found) <= 4


def test_a_public_checkpoint_needs_no_token(engine: Engine, home: Path, files: Path) -> None:
    """Even during a flood."""
    service = Service(engine, home, settings(files, refused_rate=1, public_log=True))
    asked = Asked(application(service))
    for _ in range(5):
        asked.post("ask", {"question": QUESTION})
    assert 429 == asked.post("ask", {"question": QUESTION}).status_code
    assert 200 == asked("GET", "/log/checkpoint").status_code
    service.close()


class _Keys(BaseHTTPRequestHandler):
    """An issuer on a socket, which counts requests."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        body = json.dumps({"keys": [jwk(EC_KEY, "e", "ES256")]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def test_a_flood_of_made_up_key_ids_is_one_fetch_and_fully_recorded(home: Path, files: Path) -> None:
    """Many tokens with different ids, within the half minute in which the issuer is asked at most once."""
    header, rest = token(OTHER, "ES256", "KID").split(".", 1)
    stated = json.loads(base64.urlsafe_b64decode(header + "=="))
    _Keys.asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), _Keys) as issuer, Engine.open(home) as engine:
        threading.Thread(target=issuer.serve_forever).start()
        address = f"http://127.0.0.1:{issuer.server_port}/keys"
        service = Service(engine, home, settings(files, jwks=address))
        started = time.monotonic()
        for number in range(COUNT):
            part = b64url(json.dumps({**stated, "kid": f"made-up-{number}"}).encode())
            with pytest.raises(Refused) as refused:
                service.ask(Asker(f"{part}.{rest}"), b"{}")
            assert "TOKEN_KEY_UNKNOWN" == refused.value.code
        assert b'"record":' in service.ask(Asker(token()), json.dumps({"question": QUESTION}).encode())
        assert time.monotonic() - started < COOLDOWN_SECONDS
        service.close()
        issuer.shutdown()
    assert ["/keys"] == _Keys.asked
    with LogReader(home) as reader:
        found = [Record.parse(body).event for _, body in reader.bodies()]
    denied = [event for event in found if isinstance(event, Denial)]
    assert (COUNT, {"TOKEN_KEY_UNKNOWN"}) == (sum(one.count for one in denied), {one.why for one in denied})
