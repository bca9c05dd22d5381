"""scripts/verify.html: one file that contacts no host, judges only where it can, and shows texts as text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import unicodedata
from html.parser import HTMLParser

import pytest

from carag.audit.auditor import describe
from carag.visible import visible_json
from tests.audit.receipts import page as pages
from tests.audit.receipts.page import script

HTML = pages.PAGE.read_text("utf-8")


# -- what it is


class Tags(HTMLParser):
    """Every tag of the page, with its attributes."""

    def __init__(self):
        super().__init__()
        self.found = []
        self.feed(HTML)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def named(self, name):
        return [attributes for tag, attributes in self.found if tag == name]


def digest(text):
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_the_page_lets_nothing_in_or_out():
    """Its policy permits its one script and its one style, by hash, and no other source of anything."""
    [policy] = [it["content"] for it in Tags().named("meta") if "http-equiv" in it]
    [styled], [scripted] = (
        re.findall(f"<{tag}>(.*?)</{tag}>", HTML, re.DOTALL) for tag in ("style", "script")
    )
    assert policy == (
        f"default-src 'none'; script-src '{digest(scripted)}'; style-src '{digest(styled)}'; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    before = HTML[: HTML.index("Content-Security-Policy")]
    assert not re.search("<(script|style|link|img)", before)  # a policy governs what comes after it


def test_the_page_names_no_address():
    """Nothing to load, no way to ask, and no text becomes markup or code, even where a browser knows no policy."""
    tags = Tags()
    assert (tags.named("script"), tags.named("style")) == ([{}], [{}])
    assert not {"link", "img", "iframe", "object", "embed", "a", "base"} & {tag for tag, _ in tags.found}
    attributes = {name for _, found in tags.found for name in found}
    assert not {name for name in attributes if name.startswith("on")} | attributes & {
        "src",
        "href",
        "action",
        "style",
    }
    ways = (
        r"\w+://|\burl\(|@import|\bimport\b|\bfetch\b|XMLHttpRequest|WebSocket|EventSource|sendBeacon|Worker|WebTransport"
        r"|RTCPeer|\blocation\b|\bopen\(|innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|Function\("
        r"|localStorage|sessionStorage|indexedDB|cookie"
    )
    assert re.findall(ways, HTML) == []


def test_every_field_has_a_label_and_the_verdict_is_announced():
    """By hand, by keyboard or read aloud (WCAG 2.2, 1.3.1 and 4.1.3)."""
    tags = Tags()
    fields = {it["id"] for tag, it in tags.found if tag in {"input", "textarea"}}
    assert {it["for"] for it in tags.named("label")} == fields
    hints = {it["aria-describedby"] for tag, it in tags.found if tag in {"input", "textarea"}}
    assert hints <= {it.get("id") for it in tags.named("p")}
    assert [it for it in tags.named("div") if it.get("role") == "status"] == [
        {"id": "verdict", "role": "status"}
    ]
    assert [it["lang"] for it in tags.named("html")] == ["en"]


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return sum(weight * one for weight, one in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize(("scheme", "ground"), [(0, "#ffffff"), (1, "#1e1e1e")])
def test_each_colour_can_be_read(scheme, ground):
    """WCAG 2.2, 1.4.3: 4.5 for text and 3 for lines, on the grounds of browsers, the lighter of the dark ones."""
    named = re.findall(r"--(\w+): (#[0-9a-f]{6});", HTML)
    assert [name for name, _ in named] == ["good", "bad", "unsure", "line"] * 2
    for name, colour in named[4 * scheme : 4 * scheme + 4]:
        light, dark = sorted((luminance(colour), luminance(ground)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= (3 if name == "line" else 4.5), (name, colour)


def test_its_hash_is_published():
    """docs/reference/receipts.md names the SHA-256 of the page as it is."""
    published = re.findall(
        r"[0-9a-f]{64}", (pages.ROOT / "docs" / "reference" / "receipts.md").read_text("utf-8")
    )
    assert published == [hashlib.sha256(pages.PAGE.read_bytes()).hexdigest()]


def test_its_rules_are_those_of_the_script(page):
    """The same table, the same limits, the same kinds and rules by name."""
    assert page.call("TABLE") == script.TABLE
    assert page.call("KINDS") == list(script.KINDS)
    assert page.call("Object.keys(VALUES)") == list(script.VALUES)
    assert page.call("Object.keys(LAWS)") == list(script.LAWS)
    limits = [
        *(
            "FORMAT",
            "PROOF_HEADER",
            "MAX_BYTES",
            "MAX_RECORD_BYTES",
            "MAX_HASHES",
            "MAX_SIGNATURES",
            "MAX_NESTING",
        ),
        *("MAX_INTEGER", "MAX_MINUTE", "CONTROL_BITS", "VERSION_WORD"),
    ]
    assert page.call(f"[{', '.join(limits)}]") == [getattr(script, name) for name in limits]
    numbers = ["P", "L", "MAX_NUMBER", "D"]
    assert page.call(f"[{', '.join(f'String({name})' for name in numbers)}]") == [
        str(getattr(script, name) % script.P if name == "D" else getattr(script, name)) for name in numbers
    ]
    assert sorted(page.call("NEVER_OPENED")) == sorted(script.NEVER_OPENED)


# -- where it cannot judge


BROKEN_BROWSERS = {
    "that has no cryptography": "Object.defineProperty(globalThis, 'crypto', {value: {}, configurable: true})",
    "that knows no Ed25519": "crypto.subtle.importKey = async () => { throw new DOMException() }",
    "that finds every signature good": "crypto.subtle.verify = async () => true",
    "that finds none good": "crypto.subtle.verify = async () => false",
}


@pytest.mark.parametrize("broken", BROKEN_BROWSERS.values(), ids=BROKEN_BROWSERS)
def test_there_is_no_verdict_from_a_browser(issued, broken):
    """It says what is missing, and neither verified nor failed."""
    page = pages.Page()
    page.call(f"({broken}, true)")
    with page.node:
        code, said = page.says(*issued[:2])
        page.node.stdin.close()
    assert (code, said.split(":")[0]) == (70, "no verdict")


def test_what_nobody_foresaw_is_no_verdict(issued):
    """As the script does: 70, and this says nothing about the file."""
    page = pages.Page()
    page.call("(globalThis.checkState = () => null.x, true)")
    with page.node:
        code, said = page.says(*issued[:2])
        page.node.stdin.close()
    assert (code, said) == (70, "this program failed: TypeError; this says nothing about the file")


# -- what is shown


@pytest.mark.release
def test_hidden_characters_are_spelt_out(page):
    """In verdicts as the script does, in texts where carag.visible finds one; of all characters this Python knows."""
    known = [chr(n) for n in range(0x110000) if unicodedata.category(chr(n)) not in {"Cn", "Cs"}]
    for at in range(0, len(known), 20_000):
        text = "".join(known[at : at + 20_000])
        assert page.call(f"visible({json.dumps(text)})") == script.visible(text)
        shown = page.call(f"readable({json.dumps(text)})")
        hidden = {c for c in text if c not in '\n\t"\\' and visible_json(c) != f'"{c}"'}
        assert shown == "".join(c.encode("unicode_escape").decode() if c in hidden else c for c in text)


def test_texts_are_quoted_as_python_quotes_them(page):
    """So that both verifiers say the same words of what they cannot read."""
    for value in (
        "it's",
        'a "b"',
        'it\'s "b"',
        "\\",
        "\n\r\t\x00\x7f\xad\u202e\U000e0001\U0001f600\u00e9 \xa0",
        5,
        None,
    ):
        assert page.call(f"repr({json.dumps(value)})") == repr(value)
    assert page.call('repr([1, null, {"a": ["b"]}])') == repr([1, None, {"a": ["b"]}])


def test_all_that_a_receipt_shows_is_listed(page, issued):
    """Every opening and every passage, and after them the record and what a receipt does not show."""
    receipt = json.loads(issued[0])
    fields = json.loads(receipt["record"])
    listed = page.call(f"[...shownBy({receipt['record']}, {json.dumps(receipt)})]")
    texts = [one["value"] for one in receipt["openings"].values()] + [one["text"] for one in receipt["hits"]]
    assert [text for _, text in listed[:-2]] == texts
    assert json.loads(listed[-2][1]) == fields
    assert listed[-1][1] == describe.NOT_SHOWN  # the words of `carag verify`
    assert page.says(*issued[:2])[0] == 0
