"""One command serves the small corpus to made-up people, on this machine only, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.service.conftest import QUESTION, httpx

ROOT = Path(__file__).parents[3]


@pytest.mark.release
def test_the_demo_lets_a_visitor_ask(tmp_path: Path) -> None:
    """Choose a person, ask in two sessions, end it with Ctrl+C: the store is gone."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, str(ROOT / "scripts" / "console.py"), "--port", "0", "--no-browser"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        said = next(line for line in process.stdout if "/console/" in line)
        address = re.findall(r"http://127\.0\.0\.1:\d+", said)[0]
        own = {"Sec-Fetch-Site": "same-origin"}
        with httpx.Client(base_url=address, headers=own) as browser:
            assert "Olga" in browser.get("/console/login").text
            answer = browser.post("/console/login", data={"person": "olga"})
            cookie = {"Cookie": answer.headers["set-cookie"].partition(";")[0]}
            form = {"question": QUESTION, "left": "compliance/surveil", "right": "public/public_qa"}
            page = browser.post("/console/ask", data=form, headers=cookie, timeout=30).text
            assert "5.25" in page
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        assert (0, "") == (process.returncode, errors)
    assert [] == list(tmp_path.glob("carag-console-*"))
