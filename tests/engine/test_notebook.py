"""What a notebook shows of a result is small, escaped and without script, whatever documents and questions say."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

from carag import Document, Engine, Session
from carag.audit.receipts import card as cards
from carag.audit.receipts.card import card
from carag.retrieval import ConfidenceGate
from tests.engine.documents import Clock, Counting

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\" style='x' {{ 7*7 }} {% raw %} \u202eevil & &lt;b&gt;"
ELEMENTS = {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td"}


class Read(HTMLParser):
    """Collects elements, attributes and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.given: set[tuple[str, str | None]] = set()
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.given |= {*attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_hostile_text_stays_text_in_every_result(tmp_path: Path) -> None:
    text = f"Branches report {HOSTILE} by the fifth."
    with Engine.open(
        tmp_path / "store", profile="generic", embedder=Counting(), clock=Clock(), gate=ConfidenceGate(-1)
    ) as engine:
        engine.add([Document(id="d <b>1</b>", text=text, bits=(), metadata={"title": HOSTILE})])
        session = Session(role="compliance", purpose="review")
        found = engine.retrieve(f"Who reports {HOSTILE}?", session)
        shown = [
            found,
            found.receipt,
            engine.ask("When do branches report?", session),
            engine.explain(found.passages[0].chunk_id, session),
            engine.documents(session),
            engine.passages("d <b>1</b>", session),
        ]
    for one in shown:
        html = one._repr_html_()
        assert html is not None
        read = Read(html)
        assert read.names <= ELEMENTS
        assert read.given <= {("style", "white-space: pre-wrap"), ("style", "text-align: left")}
        assert "\u202e" not in html
        assert "49" not in read.text
        assert len(html) < 20_000
    assert "alert(1)" in Read(found._repr_html_() or "").text


def test_a_card_says_how_much_it_leaves_out() -> None:
    html = card("Retrieval", {"record": 1}, text="x" * 10_000, columns=("a",), rows=[[n] for n in range(30)])
    assert html is not None
    assert "20 more" in html
    assert len(re.findall("<tr>", html)) == 11
    assert len(html) < 5000


def test_without_jinja_a_notebook_shows_the_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "find_spec", lambda name: None)
    assert card("Receipt", {}) is None
