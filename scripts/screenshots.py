"""Photograph the console for the documentation: ``python scripts/screenshots.py``, in Chromium, over the small corpus.

Needs the extra ``console-test`` and a Chromium: ``CHROMIUM`` names it, ``/usr/bin/chromium`` by default.
"""

from __future__ import annotations

import os
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from carag import Engine
from carag.service.console.demo import Demo
from carag.service.service import Service
from carag.service.serving import serve

if TYPE_CHECKING:
    from collections.abc import Iterator


ROOT: Final = Path(__file__).parents[1]
CHROMIUM: Final = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
QUESTION: Final = "What royalty rate does Lumenfield pay the Cardew Institute on net sales of LMF-204?"
CHUNK: Final = "9990000102-24-000005:00000"
"""A passage whose labels changed when later filings came in."""
_ARGUMENTS: Final = (
    "--no-sandbox",  # in a container there is no other user to be
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_SIZE: Final[Any] = {"width": 1200, "height": 800}


@contextmanager
def served(directory: Path) -> Iterator[str]:
    """Serve the small corpus to the people of a demo, and yield the address of the console."""
    home = directory / "store"
    with Engine.open(home, embedder="wordllama") as engine:
        engine.ingest(ROOT / "data" / "corpus")
        demo = Demo()
        service = Service(engine, home, demo.settings(directory), keys=demo)
        ports: list[int] = []
        listening = threading.Event()

        def started(first: int, _: int) -> None:
            ports.append(first)
            listening.set()

        thread = threading.Thread(target=serve, args=(service,), kwargs={"started": started})
        thread.start()
        try:
            if not listening.wait(30):
                raise TimeoutError("the service did not start within 30 seconds")
            yield f"http://127.0.0.1:{ports[0]}/console"
        finally:
            service.stop()
            thread.join()


@contextmanager
def browsing(scheme: str = "light", **settings: Any) -> Iterator[Any]:
    """Yield a context of a browser that prefers light or dark."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(_ARGUMENTS))
        try:
            yield browser.new_context(color_scheme=scheme, viewport=_SIZE, **settings)  # type: ignore[arg-type, unused-ignore]
        finally:
            browser.close()


def log_in(page: Any, address: str, person: str) -> None:
    """Choose one of the people of the demo."""
    page.goto(f"{address}/login")
    page.click(f"button[value={person}]")
    page.wait_for_url(f"{address}/")


def main() -> None:
    """Take the pictures."""
    out = ROOT / "docs" / "images"
    out.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as made, served(Path(made)) as address:
        with browsing() as context:
            page = context.new_page()
            log_in(page, address, "olga")
            _ask(page, address, "compliance/surveil", "public/public_qa")
            page.screenshot(path=out / "console-ask.png")
            log_in(page, address, "eve")
            page.goto(f"{address}/records?kind=query")
            page.click("tbody a")
            page.screenshot(path=out / "console-record.png", full_page=False)
            page.goto(f"{address}/chunk")
            page.fill("#chunk_id", CHUNK)
            page.click("main button[type=submit]")
            page.locator("#labels").scroll_into_view_if_needed()
            page.evaluate("document.querySelector('#result').scrollIntoView()")
            page.screenshot(path=out / "console-passage.png")
        with browsing("dark") as context:
            page = context.new_page()
            log_in(page, address, "eve")
            for name in ("policy", "records"):
                page.goto(f"{address}/{name}")
                page.screenshot(path=out / f"console-{name}.png")


def _ask(page: Any, address: str, left: str, right: str) -> None:
    page.goto(f"{address}/ask")
    page.fill("#question", QUESTION)
    page.select_option("#left", left)
    page.select_option("#right", right)
    page.click("main button[type=submit]")
    page.wait_for_selector(".panes")


if __name__ == "__main__":
    main()
