"""A token is kept in a cookie of this browser only, every page verifies it, and no other site can use it."""

from __future__ import annotations

import time
from itertools import product
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from carag.service.app import application
from carag.service.console.demo import PEOPLE, Demo
from carag.service.service import Service
from tests.service.conftest import Asked, denials, token
from tests.service.console.conftest import AUDITOR, OFFICER, PAGES, SAME, Viewer, read

if TYPE_CHECKING:
    from pathlib import Path

    from carag import Engine

FORMS = {
    "ask": {"question": "Who?", "left": "public/public_qa"},
    "records/0/open": {"field": "subject", "purpose": "X-1"},
    "chunk": {"chunk_id": "x"},
    "policy": {"proposed": "x"},
    "logout": {},
}


def test_a_good_token_becomes_a_cookie_for_this_host_only(asked: Asked) -> None:
    """Hidden from scripts, never sent unencrypted or for another site, and valid no longer than the token."""
    bearer = token(**OFFICER)
    found = asked("POST", "/console/login", data={"token": f" {bearer}\n"}, headers=SAME)
    assert (303, "/console/") == (found.status_code, found.headers["location"])
    value, *attributes = found.headers["set-cookie"].split("; ")
    assert f"__Host-carag={bearer}" == value
    assert {"Path=/", "HttpOnly", "Secure", "SameSite=Strict"} == set(attributes[:-1])
    assert 3590 <= int(attributes[-1].removeprefix("Max-Age=")) <= 3600
    assert "olga@bank.example" in Viewer(asked, bearer).get("").text


def test_a_visitor_without_a_cookie_is_redirected_to_the_login_unrecorded(
    asked: Asked, engine: Engine
) -> None:
    """A token in the address or in a header of the interface does not count here."""
    before = engine.log.size
    for page in PAGES:
        for query in ("", f"?token={token(**OFFICER)}"):
            found = asked("GET", f"/console/{page}{query}", bearer=token(**OFFICER))
            assert (303, "/console/login") == (found.status_code, found.headers["location"])
    assert before == engine.log.size


def test_a_refused_token_is_recorded_and_its_cookie_removed(asked: Asked, engine: Engine) -> None:
    """At the login and on every page, even if it was good when it was stored."""
    for bad, code in (
        ({"exp": int(time.time()) - 3600}, "TOKEN_EXPIRED"),
        ({"aud": "other"}, "TOKEN_AUDIENCE"),
        ({"iss": "https://other.example"}, "TOKEN_ISSUER"),
        ({"groups": None}, "TOKEN_CLAIM_MISSING"),
    ):
        found = asked("POST", "/console/login", data={"token": token(**bad)}, headers=SAME)
        assert 401 == found.status_code
        assert code in found.text
        assert "set-cookie" not in found.headers
        assert code == denials(engine)[-1]
        found = Viewer(asked, token(**bad)).get("policy")
        assert 401 == found.status_code
        assert "Max-Age=0" in found.headers["set-cookie"]
        assert 'name="token"' in found.text


def test_a_malformed_or_foreign_token_is_refused(asked: Asked, engine: Engine) -> None:
    """As elsewhere in the service; the page does not repeat it."""
    for bearer, code in (
        (token(ec.generate_private_key(ec.SECP256R1())), "TOKEN_SIGNATURE"),
        ("rubbish<script>", "TOKEN_MALFORMED"),
        ("", "TOKEN_MISSING"),
    ):
        found = asked("POST", "/console/login", data={"token": bearer}, headers=SAME)
        assert 401 == found.status_code
        assert code in found.text
        assert "rubbish" not in found.text
        assert code in denials(engine)


def test_a_token_that_is_too_long_for_a_cookie_is_reported(asked: Asked) -> None:
    """A browser would drop it silently."""
    found = asked("POST", "/console/login", data={"token": token(more="x" * 4000, **OFFICER)}, headers=SAME)
    assert (413, True) == (found.status_code, "TOKEN_TOO_LONG" in found.text)
    assert "set-cookie" not in found.headers


def test_of_two_cookies_neither_counts(asked: Asked) -> None:
    """One of them must be another person's."""
    both = f"__Host-carag={token(**OFFICER)}; __Host-carag={token(**AUDITOR)}"
    assert 303 == asked("GET", "/console/health", headers={"Cookie": both}).status_code


def test_logging_out_removes_the_cookie(officer: Viewer) -> None:
    """From this browser; the token itself remains valid until it expires."""
    found = officer.post("logout")
    assert (303, "/console/login") == (found.status_code, found.headers["location"])
    assert found.headers["set-cookie"].startswith("__Host-carag=; ")
    assert found.headers["set-cookie"].endswith("Max-Age=0")


OTHER_SITES: list[dict[str, str]] = [
    {},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "none"},
    {**SAME, "Origin": "https://evil.example"},
    {**SAME, "Origin": "http://carag.test.evil.example"},
    {"Origin": "http://carag.test"},
]


def test_a_form_of_another_site_does_nothing(asked: Asked, engine: Engine) -> None:
    """Even if a browser sent the person's cookie: 403, and nothing is asked, opened or recorded."""
    before = engine.log.size
    cookie = Viewer(asked, **{**OFFICER, "groups": ["officers", "auditors"]}).cookie
    for page, headers in product(FORMS, OTHER_SITES):
        found = asked("POST", f"/console/{page}", data=FORMS[page], headers={**cookie, **headers})
        assert (403, True) == (found.status_code, "CROSS_SITE" in found.text), (page, headers)
    for headers in OTHER_SITES:
        assert 403 == asked("POST", "/console/login", data={"token": token()}, headers=headers).status_code
    assert before == engine.log.size


def test_a_form_of_this_console_passes_with_the_origin_sent_by_browsers(asked: Asked) -> None:
    """``null`` with ``Referrer-Policy: no-referrer``, or this host."""
    for origin in ("null", "http://carag.test"):
        found = asked("POST", "/console/login", data={"token": token()}, headers={**SAME, "Origin": origin})
        assert 303 == found.status_code


def test_a_form_of_another_shape_is_refused(asked: Asked, engine: Engine) -> None:
    """With a repeated, missing or unknown field, or bytes that are not text."""
    before = engine.log.size
    headers = {**Viewer(asked, **OFFICER).cookie, **SAME, "Content-Type": "application/x-www-form-urlencoded"}
    for body in (
        b"question=a&question=b&left=public/public_qa",
        b"left=x",
        b"question=%ff&left=x",
        b"question=a&left=b&k=9",
        b"\xff",
    ):
        found = asked("POST", "/console/ask", content=body, headers=headers)
        assert (422, True) == (found.status_code, "INVALID_REQUEST" in found.text), body
    assert before == engine.log.size


def test_a_demo_lets_people_on_this_machine_choose_who_to_be(
    engine: Engine, home: Path, tmp_path: Path
) -> None:
    """With tokens that last an hour; on another address, or behind a proxy, a demo is refused."""
    demo = Demo()
    said = demo.settings(tmp_path)
    service = Service(engine, home, said, keys=demo)
    asked = Asked(application(service))
    for word, person in PEOPLE.items():
        assert person.name in asked("GET", "/console/login").text
        found = asked("POST", "/console/login", data={"person": word}, headers=SAME)
        bearer = found.headers["set-cookie"].partition("=")[2].partition(";")[0]
        assert person.subject in Viewer(asked, bearer).get("").text
    assert 401 == asked("POST", "/console/login", data={"person": "root"}, headers=SAME).status_code
    service.close()
    for changes in ({"listen": "0.0.0.0"}, {"behind_proxy": True}, {"issuer": "https://login.example"}):  # noqa: S104
        service.settings = said.model_copy(update=changes)
        with pytest.raises(ValueError, match=r"use the settings that it makes: 127\.0\.0\.1"):
            application(service)


def test_without_a_demo_there_is_no_choice(asked: Asked) -> None:
    """The name of a person is not a token."""
    assert "Ana" not in read(asked("GET", "/console/login"))
    assert 401 == asked("POST", "/console/login", data={"person": "ana"}, headers=SAME).status_code


def test_the_interface_takes_no_cookie(asked: Asked, officer: Viewer) -> None:
    """So that no page of another site can use it in a person's name."""
    body = {"question": "Who?", "role": "public", "purpose": "public_qa"}
    found = asked("POST", "/v1/ask", json=body, headers={**officer.cookie, **SAME})
    assert (401, "TOKEN_MISSING") == (found.status_code, found.json()["code"])
