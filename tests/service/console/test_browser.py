"""The console in a real browser: accessible in light and dark, usable by keyboard, and without requests to other hosts.

Runs where the extra ``console-test`` and a Chromium are; it is skipped by name elsewhere.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from carag.audit import verify_receipt
from scripts.screenshots import CHROMIUM, CHUNK, QUESTION, browsing, log_in, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("playwright", reason="the extra console-test is not installed")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")
pytestmark = [
    pytest.mark.release,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="no Chromium here; CHROMIUM names one"),
    pytest.mark.filterwarnings("ignore"),  # of playwright's own
]
WCAG = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (e) => window.violations.push(e.violatedDirective));
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(tmp_path_factory.mktemp("served")) as found:
        yield found


def wait_until(page: Any, expression: str) -> None:
    """Poll from outside: in the page it would evaluate a string, which its policy forbids."""
    for _ in range(200):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    pytest.fail(f"not within ten seconds: {expression}")


class Watched:
    """A page, with every message and request that it should not have made."""

    def __init__(self, context: Any, address: str) -> None:
        self.address, self.host = address, urlsplit(address).netloc
        self.page = context.new_page()
        self.wrong: list[str] = []
        self.asked = 0
        self.page.add_init_script(VIOLATIONS)
        self.page.on("console", lambda one: self.wrong.append(f"console: {one.text}"))
        self.page.on("pageerror", lambda one: self.wrong.append(f"error: {one}"))
        self.page.on("request", self._request)

    def _request(self, request: Any) -> None:
        self.asked += 1
        parts = urlsplit(request.url)
        if parts.scheme != "data" and parts.netloc != self.host:
            self.wrong.append(f"request: {request.url}")

    def at(self, path: str) -> Any:
        self.page.goto(f"{self.address}/{path}")
        return self.page

    def check(self) -> None:
        assert [] == self.page.evaluate("window.violations")
        assert [] == self.wrong
        assert self.asked > 0


@contextmanager
def watched(address: str, scheme: str = "light", **settings: Any) -> Iterator[Watched]:
    with browsing(scheme, **settings) as context:
        yield Watched(context, address)


def every_page(one: Watched) -> Iterator[tuple[str, Any]]:
    """Every page in every state, for those who may see it."""
    yield "login", one.at("login")
    yield "problem", one.at("nothing")
    log_in(one.page, one.address, "olga")
    yield "home", one.page
    yield "ask", one.at("ask")
    one.page.fill("#question", QUESTION)
    one.page.select_option("#left", "compliance/surveil")
    one.page.select_option("#right", "public/public_qa")
    one.page.click("main button[type=submit]")
    one.page.wait_for_selector(".panes")
    for closed in one.page.query_selector_all("details:not([open]) summary"):
        closed.click()
    yield "answered", one.page
    yield "explain", one.at("chunk")
    one.page.fill("#chunk_id", "9990000000-23-000077:00001")
    one.page.select_option("#cell", "public/public_qa")
    one.page.click("main button[type=submit]")
    yield "explained", one.page
    log_in(one.page, one.address, "eve")
    yield "records", one.at("records?kind=query")
    one.page.click("tbody a")
    yield "record", one.page
    one.page.fill("#purpose", "COMPLAINT-3")
    one.page.click("text=Open it, on record")
    one.page.wait_for_selector(".opened")
    yield "opened", one.page
    one.at("chunk")
    one.page.fill("#chunk_id", CHUNK)
    one.page.click("main button[type=submit]")
    yield "history", one.page
    yield "policy", one.at("policy")
    text = one.page.input_value("#proposed")
    one.page.fill("#proposed", text.replace("may_know_existence = false", "may_know_existence = true", 1))
    one.page.click("text=Compare")
    yield "compared", one.page
    for page in ("receipts", "health", "benchmarks", "verify", "../docs"):
        yield page, one.at(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_meets_wcag_2_2_aa(address: str, scheme: str) -> None:
    """By axe-core, narrow and wide; the policy is lifted only so that axe can run."""
    seen = 0
    with watched(address, scheme, bypass_csp=True) as one:
        for name, page in every_page(one):
            for width in (1200, 360):
                page.set_viewport_size({"width": width, "height": 800})
                found = axe.Axe().run(page, options=WCAG).response["violations"]
                told = [(it["id"], [node["html"][:120] for node in it["nodes"]]) for it in found]
                assert [] == told, f"{name}, {scheme}, {width}"
                overflow = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
                assert overflow <= 0, f"{name} is wider than a window of {width}"
                seen += 1
            page.set_viewport_size({"width": 1200, "height": 800})
    assert seen >= 30


def test_axe_sees_what_it_is_asked_to_see(address: str) -> None:
    """A picture without a text and grey on grey are noticed."""
    with watched(address, bypass_csp=True) as one:
        page = one.at("login")
        page.evaluate(
            "document.querySelector('main').innerHTML += '<img src=\"x\"><p style=\"color:#ccc\">grey</p>'"
        )
        found = {it["id"] for it in axe.Axe().run(page, options=WCAG).response["violations"]}
    assert {"image-alt", "color-contrast"} <= found


def test_no_page_asks_another_host_or_breaks_its_policy(address: str) -> None:
    """With the policy in force there is no message, violation or request to another host."""
    seen = 0
    with watched(address) as one:
        for name, page in every_page(one):
            page.wait_for_load_state("networkidle")
            # A problem is 404, which the browser itself writes into its console.
            one.wrong = [it for it in one.wrong if not (name == "problem" and "404" in it)]
            one.check()
            seen += 1
    assert seen >= 16


def test_a_violation_would_be_seen(address: str) -> None:
    """A script from another host and an inline style are refused by the policy, and noticed here."""
    with watched(address) as one:
        one.at("login")
        one.page.evaluate(
            "document.body.appendChild(Object.assign(document.createElement('script'), {src: 'https://evil.example/'}))"
        )
        wait_until(one.page, "window.violations.length > 0")
        with pytest.raises(AssertionError):
            one.check()


def focused(page: Any) -> str:
    return str(page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()"))


def tab_to(page: Any, wanted: str, *, most: int = 60) -> None:
    """Press the tabulator until something is focused, which must be visible."""
    for _ in range(most):
        page.keyboard.press("Tab")
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", focused(page)
        if focused(page).startswith(wanted):
            return
    pytest.fail(f"{wanted!r} cannot be reached by the tabulator")


def test_three_pages_are_walked_by_keyboard_alone(address: str) -> None:
    """Log in, skip to the content, ask in two sessions, read a record and its path, open a value, see the matrix."""
    with watched(address) as one:
        page = one.at("login")
        tab_to(page, "Olga")
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile("/console/$"))
        page.keyboard.press("Tab")
        assert "Skip to content" == focused(page)
        page.keyboard.press("Enter")
        assert "main" == focused(page)

        one.at("ask")
        tab_to(page, "question")
        page.keyboard.type(QUESTION)
        tab_to(page, "left")
        page.keyboard.type("comp")
        tab_to(page, "right")
        page.keyboard.type("pub")
        tab_to(page, "Ask")
        page.keyboard.press("Enter")
        page.wait_for_selector(".panes")
        assert 2 == page.locator(".said").count()
        assert page.url.endswith("/ask")
        record = page.locator(".record a").first.inner_text()
        tab_to(page, record)
        page.keyboard.press("Enter")
        page.wait_for_selector("#path")
        tab_to(page, "Log out")
        page.keyboard.press("Enter")
        page.wait_for_selector("#token")

        tab_to(page, "Eve")
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile("/console/$"))
        tab_to(page, "Records")
        page.keyboard.press("Enter")
        page.wait_for_selector("#kind")
        tab_to(page, record)
        page.keyboard.press("Enter")
        page.wait_for_selector("#path")
        tab_to(page, "field")
        page.keyboard.type("query")
        tab_to(page, "purpose")
        page.keyboard.type("COMPLAINT-3")
        page.keyboard.press("Enter")
        page.wait_for_selector(".opened")
        assert QUESTION in page.inner_text(".opened")

        one.at("policy")
        tab_to(page, "Bits by role")  # the region of the matrix scrolls by the arrows
        before = page.evaluate("document.activeElement.scrollLeft")
        page.set_viewport_size({"width": 600, "height": 800})
        page.keyboard.press("ArrowRight")
        wait_until(page, f"document.activeElement.scrollLeft > {before}")
        one.check()


def test_asking_leaves_the_page_where_it_is(address: str) -> None:
    """So reloading it repeats no request; without scripts the same form asks as well."""
    for scripted in (True, False):
        with watched(address, java_script_enabled=scripted) as one:
            log_in(one.page, address, "olga")
            page = one.at("ask")
            page.fill("#question", QUESTION)
            page.click("main button[type=submit]")
            page.wait_for_selector(".said")
            if scripted:
                record = int(page.locator(".record a").first.inner_text())
                page.reload()
                assert 0 == page.locator(".said").count()
                page.fill("#question", QUESTION)
                page.click("main button[type=submit]")
                page.wait_for_selector(".said")
                seen = sorted(int(it) for it in page.locator(".record a[href*=records]").all_inner_texts())
                assert seen[0] <= record + 2 < record + 4


def test_a_receipt_is_downloaded_to_the_byte_and_verifies(address: str, tmp_path: Path) -> None:
    """From the answer, with what it opens; then by the page that needs no service, with the file."""
    with watched(address, accept_downloads=True) as one:
        log_in(one.page, address, "olga")
        page = one.at("ask")
        page.fill("#question", QUESTION)
        page.click("main button[type=submit]")
        page.wait_for_selector(".said")
        with page.expect_download() as download:
            page.locator("a[download]").first.click()
        download.value.save_as(tmp_path / "receipt.json")
        log_in(page, address, "eve")
        one.at("health")
        vkey = page.locator(".facts code").nth(1).inner_text()
        data = (tmp_path / "receipt.json").read_bytes()
        assert "verified" == verify_receipt(data, vkey).verdict.value
        one.at("verify")
        page.set_input_files("#file", tmp_path / "receipt.json")
        page.fill("#keys", vkey)
        page.click("button[type=submit]")
        page.wait_for_selector("#verdict[data-code='0']")
        one.check()


def test_the_cookie_is_kept_on_loopback_and_no_script_reads_it(address: str) -> None:
    """Chromium takes a ``Secure`` cookie of the prefix ``__Host-`` from 127.0.0.1 without TLS."""
    with browsing() as context:
        page = context.new_page()
        log_in(page, address, "olga")
        (cookie,) = context.cookies()
        assert "__Host-carag" == cookie["name"]
        assert cookie["httpOnly"]
        assert cookie["secure"]
        assert "Strict" == cookie["sameSite"]
        assert "" == page.evaluate("document.cookie")
