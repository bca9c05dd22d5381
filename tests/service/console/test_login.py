"""A token is kept in a cookie of this browser alone, is verified anew by every page, and no other site can use it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

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


def test_a_good_token_becomes_a_cookie_that_only_this_host_gets_back(asked: Asked) -> None:
    """Never to a script, never in clear, never from another site, and no longer than the token lasts."""
    bearer = token(**OFFICER)
    found = asked("POST", "/console/login", data={"token": f" {bearer}\n"}, headers=SAME)
    assert (303, "/console/") == (found.status_code, found.headers["location"])
    value, *attributes = found.headers["set-cookie"].split("; ")
    assert f"__Host-carag={bearer}" == value
    assert {"Path=/", "HttpOnly", "Secure", "SameSite=Strict"} == set(attributes[:-1])
    assert 3590 <= int(attributes[-1].removeprefix("Max-Age=")) <= 3600
    assert "olga@bank.example" in Viewer(asked, bearer).get("").text


@pytest.mark.parametrize("page", PAGES)
def test_nobody_is_led_to_the_login_and_nothing_is_recorded_of_it(
    asked: Asked, engine: Engine, page: str
) -> None:
    """A visit is no attempt to get in; a token in the address or in a header of the interface is none here."""
    before = engine.log.size
    for query in ("", f"?token={token(**OFFICER)}"):
        found = asked("GET", f"/console/{page}{query}", bearer=token(**OFFICER))
        assert (303, "/console/login") == (found.status_code, found.headers["location"])
    assert before == engine.log.size


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        ({"exp": int(time.time()) - 3600}, "TOKEN_EXPIRED"),
        ({"aud": "other"}, "TOKEN_AUDIENCE"),
        ({"iss": "https://other.example"}, "TOKEN_ISSUER"),
        ({"groups": None}, "TOKEN_CLAIM_MISSING"),
    ],
)
def test_a_token_that_is_refused_is_on_record_and_its_cookie_goes(
    asked: Asked, engine: Engine, bad: dict[str, Any], code: str
) -> None:
    """At the login and on every page, also if it was good when it came."""
    found = asked("POST", "/console/login", data={"token": token(**bad)}, headers=SAME)
    assert 401 == found.status_code
    assert code in found.text
    assert "set-cookie" not in found.headers
    assert [code] == denials(engine)
    found = Viewer(asked, token(**bad)).get("policy")
    assert 401 == found.status_code
    assert "Max-Age=0" in found.headers["set-cookie"]
    assert 'name="token"' in found.text


def test_a_token_of_a_strange_key_or_of_no_form_is_refused(asked: Asked, engine: Engine) -> None:
    """As anywhere in the service, and the page repeats nothing of it."""
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


def test_a_token_that_no_cookie_holds_is_told_as_that(asked: Asked) -> None:
    """A browser would drop it without a word, and the login would seem to do nothing."""
    found = asked("POST", "/console/login", data={"token": token(more="x" * 4000, **OFFICER)}, headers=SAME)
    assert (413, True) == (found.status_code, "TOKEN_TOO_LONG" in found.text)
    assert "set-cookie" not in found.headers


def test_of_two_cookies_neither_counts(asked: Asked) -> None:
    """One of them must be somebody else's."""
    both = f"__Host-carag={token(**OFFICER)}; __Host-carag={token(**AUDITOR)}"
    assert 303 == asked("GET", "/console/health", headers={"Cookie": both}).status_code


def test_leaving_removes_the_cookie(officer: Viewer) -> None:
    """At this browser; the token itself ends when it expires."""
    found = officer.post("logout")
    assert (303, "/console/login") == (found.status_code, found.headers["location"])
    assert found.headers["set-cookie"].startswith("__Host-carag=; ")
    assert found.headers["set-cookie"].endswith("Max-Age=0")


@pytest.mark.parametrize("page", FORMS)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {**SAME, "Origin": "https://evil.example"},
        {**SAME, "Origin": "http://carag.test.evil.example"},
        {"Origin": "http://carag.test"},
    ],
    ids=str,
)
def test_a_form_of_another_site_does_nothing(
    asked: Asked, engine: Engine, page: str, headers: dict[str, str]
) -> None:
    """With the person's own cookie, were a browser to send it: 403, and nothing asked, opened or recorded."""
    before = engine.log.size
    cookie = Viewer(asked, **{**OFFICER, "groups": ["officers", "auditors"]}).cookie
    found = asked("POST", f"/console/{page}", data=FORMS[page], headers={**cookie, **headers})
    assert (403, True) == (found.status_code, "CROSS_SITE" in found.text)
    assert before == engine.log.size
    assert 403 == asked("POST", "/console/login", data={"token": token()}, headers=headers).status_code


def test_a_form_of_this_console_passes_with_the_origin_that_browsers_send(asked: Asked) -> None:
    """``null`` under ``Referrer-Policy: no-referrer``, or this host."""
    for origin in ("null", "http://carag.test"):
        found = asked("POST", "/console/login", data={"token": token()}, headers={**SAME, "Origin": origin})
        assert 303 == found.status_code


@pytest.mark.parametrize(
    "body",
    [
        b"question=a&question=b&left=public/public_qa",
        b"left=x",
        b"question=%ff&left=x",
        b"question=a&left=b&k=9",
        b"\xff",
    ],
)
def test_a_form_of_another_shape_is_refused(asked: Asked, engine: Engine, body: bytes) -> None:
    """A field twice, missing or unknown, and bytes that are no text."""
    before = engine.log.size
    headers = {**Viewer(asked, **OFFICER).cookie, **SAME, "Content-Type": "application/x-www-form-urlencoded"}
    found = asked("POST", "/console/ask", content=body, headers=headers)
    assert (422, True) == (found.status_code, "INVALID_REQUEST" in found.text)
    assert before == engine.log.size


def test_a_demo_lets_anybody_on_this_machine_choose_and_nobody_else(
    engine: Engine, home: Path, tmp_path: Path
) -> None:
    """Its people get tokens that last an hour; on another address, or behind a proxy, there is no demo."""
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


def test_a_service_without_a_demo_lets_nobody_choose(asked: Asked) -> None:
    """The word of a person is no token."""
    assert "Ana" not in read(asked("GET", "/console/login"))
    assert 401 == asked("POST", "/console/login", data={"person": "ana"}, headers=SAME).status_code


def test_the_interface_takes_no_cookie(asked: Asked, officer: Viewer) -> None:
    """So that no page of another site can ask it in somebody's name."""
    body = {"question": "Who?", "role": "public", "purpose": "public_qa"}
    found = asked("POST", "/v1/ask", json=body, headers={**officer.cookie, **SAME})
    assert (401, "TOKEN_MISSING") == (found.status_code, found.json()["code"])
