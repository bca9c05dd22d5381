"""Viewers of the console's pages, with the cookie and headers of a browser."""

from __future__ import annotations

import html
from typing import Any

import pytest

from tests.service.conftest import Asked, token

SAME = {"Sec-Fetch-Site": "same-origin"}
ANALYST = {"groups": ["analysts"], "sub": "ana@bank.example"}
OFFICER = {"groups": ["officers"], "sub": "olga@bank.example"}
AUDITOR = {"groups": ["auditors"], "sub": "eve@audit.example"}
PAGES = ("", "ask", "records", "records/0", "receipts", "chunk", "policy", "health", "benchmarks")


class Viewer:
    """Read pages as the person of one token."""

    def __init__(self, asked: Asked, bearer: str | None = None, **claims: Any) -> None:
        self._asked = asked
        self.cookie = {"Cookie": f"__Host-carag={bearer or token(**claims)}"}

    def get(self, page: str, **more: Any) -> Any:
        return self._asked("GET", f"/console/{page}", headers={**self.cookie}, **more)

    def post(self, page: str, **said: str) -> Any:
        return self._asked("POST", f"/console/{page}", data=said, headers={**self.cookie, **SAME})

    def ask(self, question: str, left: str, right: str = "") -> Any:
        return self.post("ask", question=question, left=left, right=right)


def read(response: Any) -> str:
    """Return the text of a page as a browser parses it."""
    return html.unescape(response.text)


@pytest.fixture
def officer(asked: Asked) -> Viewer:
    return Viewer(asked, **OFFICER)


@pytest.fixture
def analyst(asked: Asked) -> Viewer:
    return Viewer(asked, **ANALYST)


@pytest.fixture
def auditor(asked: Asked) -> Viewer:
    return Viewer(asked, **AUDITOR)
