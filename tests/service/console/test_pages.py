"""What all pages have in common: headers, escapes, pictures that match their tables, and counters."""

from __future__ import annotations

import hashlib
import json
import re
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bench import pictures
from carag import Document, Engine
from carag.audit import AuditLog, Outcome, Recovery
from carag.audit.auditor.find import find
from carag.audit.auditor.reader import LogReader
from carag.service.app import application
from carag.service.console.tree import path_of
from carag.service.console.view import STATIC, history_drawing, path_drawing
from carag.service.service import Service
from tests.service.conftest import CHUNK, QUESTION, Asked, settings, token
from tests.service.console.conftest import AUDITOR, OFFICER, PAGES, Viewer, read

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
CONSOLE = ROOT / "carag" / "service" / "console"
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
HTMX_SHA256 = "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130"
"""Of htmx.org 4.0.1 as npm has it: dist/htmx.min.js."""


def test_every_answer_has_the_strict_headers(auditor: Viewer) -> None:
    """Also errors; a browser keeps only files whose address contains their hash."""
    wanted = {
        "content-security-policy": CSP,
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
    }
    for page in (*PAGES, "login", "nothing", "records/x", "static/console.css", "static/nothing"):
        found = auditor.get(page)
        assert wanted.items() <= dict(found.headers).items(), page
        kept = "static" in page and found.status_code == 200
        assert ("max-age=31536000, immutable" if kept else "no-store") == found.headers["cache-control"]


def test_the_verifying_page_is_the_one_of_the_repository(asked: Asked) -> None:
    """Byte for byte, without a login, and with a policy of its own except for frames."""
    found = asked("GET", "/console/verify")
    assert (ROOT / "scripts" / "verify.html").read_bytes() == found.content
    assert "frame-ancestors 'none'" == found.headers["content-security-policy"]
    assert "text/html; charset=utf-8" == found.headers["content-type"]


def test_templates_mark_nothing_as_safe_and_contain_no_script_or_style() -> None:
    """Everything on a page is escaped; scripts and styles are files of this host."""
    texts = {path.name: path.read_text("utf-8") for path in (CONSOLE / "templates").iterdir()}
    assert len(texts) >= 12
    for name, text in texts.items():
        assert not re.search(
            r"\|\s*safe|autoescape|Markup|<style|\sstyle=|\son\w+=|javascript:|https?://", text
        ), name
        assert all("src=" in one for one in re.findall(r"<script[^>]*>", text)), name
        assert "hx-on" not in text
        assert "hx-vals" not in text


def test_the_only_third_party_script_is_the_reviewed_one() -> None:
    """Pinned by its hash here and in the page, and shipped with its licence; all scripts together are small."""
    import base64

    data = STATIC["htmx.min.js"][0]
    assert HTMX_SHA256 == hashlib.sha256(data).hexdigest()
    integrity = base64.b64encode(hashlib.sha384(data).digest()).decode()
    for page in ("ask", "record"):
        assert f'integrity="sha384-{integrity}"' in (CONSOLE / "templates" / f"{page}.html").read_text()
    assert "Zero-Clause BSD" in (CONSOLE / "static" / "htmx.LICENSE.txt").read_text("utf-8")
    scripts = [path for path in (CONSOLE / "static").iterdir() if path.suffix == ".js"]
    assert {"docs.js", "htmx.min.js"} == {path.name for path in scripts}
    assert sum(path.stat().st_size for path in scripts) <= 60_000
    assert {path.name for path in (CONSOLE / "static").iterdir()} == set(STATIC)


def test_a_page_is_counted(auditor: Viewer, service: Service) -> None:
    """By operation, status and code, without content."""
    auditor.get("records?code=ANSWERED")
    auditor.get("records/77777")
    text = service.metrics.text()
    assert 'carag_requests_total{operation="console_records",status="200"} 1' in text
    assert 'carag_requests_total{operation="console_record",status="404"} 1' in text
    assert 'carag_problems_total{code="NOT_FOUND"} 1' in text


@pytest.fixture
def hostile(tmp_path: Path, files: Path) -> Iterator[Asked]:
    """A store whose documents attack the page."""
    home = tmp_path / "hostile"
    with Engine.open(home, profile="generic", embedder="wordllama") as engine:
        text = 'The canteen opens at noon. <script>alert(1)</script> \u202egnp\u200b <img src=x onerror="a()"> \x9b31m'
        engine.add(
            [Document(id="memo/<b>7", text=text, bits=["INTERNAL"], metadata={"title": "<i>\u202eMemo</i>"})]
        )
        (files / "grants.toml").write_text(
            "schema = 1\n"
            '[[grant]]\ngroup = "officers"\ncells = ["employee/work"]\n'
            '[[grant]]\ngroup = "auditors"\nduties = ["audit"]\n'
        )
        service = Service(engine, home, settings(files))
        yield Asked(application(service))
        service.close()


def test_the_text_of_documents_and_persons_is_text(hostile: Asked) -> None:
    """No element, attribute or hidden character in passages, titles, ids, names or questions reaches a page."""
    enemy = {"groups": ["officers", "auditors"], "sub": "<script>eve</script>"}
    viewer = Viewer(hostile, **enemy)
    pages = [
        viewer.ask("When does the <script>canteen\u202e open</script>?", "employee/work"),
        viewer.post("chunk", chunk_id="memo/<b>7:00000"),
        viewer.post("chunk", chunk_id="<script>\u202e", cell="employee/work"),
        *(viewer.get(page) for page in (*PAGES, "records?code=%3Cscript%3E%E2%80%AE")),
        viewer.post("records/3/open", field="query", purpose="X-1"),
    ]
    assert "opens at noon" in read(pages[0])
    assert "<script>alert(1)</script>" in read(pages[0])
    for found in pages:
        assert found.status_code in (200, 422)
        assert not re.search("[\u202e\u200b\x9b]", read(found))
        assert {'integrity="sha384'} >= {
            one[-17:] for one in re.findall(r"<script[^>]{0,60}sha384", found.text)
        }
        assert not re.search(r"<script(?! src=\"/console/static/)|<img|<i>|<b>|onerror=\"", found.text), (
            found.text[-600:]
        )


def test_records_are_listed_by_filters(officer: Viewer, auditor: Viewer, engine: Engine) -> None:
    """As the log itself finds them, newest first."""
    officer.ask(QUESTION, "compliance/surveil", "public/public_qa")
    officer.post("chunk", chunk_id=CHUNK, cell="public/public_qa")
    officer.ask("Who paints the moon?", "public/public_qa")
    for query, wanted in (
        ("", {}),
        ("role=public", {"role": "public"}),
        ("kind=explain", {"kind": "explain"}),
        ("outcome=decline", {"outcome": "decline"}),
        ("code=ANSWERED&role=compliance", {"why": "ANSWERED", "role": "compliance"}),
        ("outcome=nonsense", {"outcome": "nonsense"}),
    ):
        with LogReader(engine._collection.store.path.parent, vkey=engine.vkey) as reader:
            expected = [seq for seq, _ in find(reader, wanted=wanted)]
        found = re.findall(r'<a href="/console/records/(\d+)">', auditor.get(f"records?{query}").text)
        assert expected == [int(one) for one in found], query
    assert [] == re.findall(
        r'<a href="/console/records/(\d+)">', auditor.get("records?until=2020-01-01").text
    )
    assert 422 == auditor.get("records?nonsense=1").status_code
    assert {*Outcome} <= set(re.findall(r"<option>(\w+)</option>", auditor.get("records").text))


def test_a_long_list_continues_on_the_next_page(
    auditor: Viewer, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With each record once, whether a page ends by its length or by the limit of records read."""
    for _ in range(9):
        engine.log.append(Recovery("DRILL"))
    for name in ("_LISTED", "_LOOKED_AT"):
        with monkeypatch.context() as patched:
            patched.setattr(f"carag.service.console.desk.{name}", 4)
            seen, before = [], ""
            for _ in range(20):
                text = auditor.get(f"records?{before}").text
                seen += [int(one) for one in re.findall(r'<a href="/console/records/(\d+)">', text)]
                if not (older := re.search(r'name="before" value="(\d+)"', text)):
                    break
                before = f"before={older[1]}"
            assert [*range(engine.log.size - 1, -1, -1)] == seen, name


def test_the_drawn_path_leads_to_the_root_of_every_tree(tmp_path: Path) -> None:
    """For each record of each size up to 20; the drawing has the proof's siblings, each on its side."""
    with AuditLog.open(tmp_path) as log:
        for size in range(1, 21):
            log.append(Recovery("DRILL"))
            with LogReader(tmp_path, vkey=log.vkey) as reader:
                for seq in range(size):
                    path = path_of(reader.body(seq), reader.prove(seq))
                    ends = [path["leaf"], *(step["parent"] for step in path["steps"])]
                    assert path["root"] == ends[-1]
                    assert (size, seq) == (path["size"], path["index"])
                    drawn = path_drawing(path)
                    assert ends[:-1] == [row["hash"] for row in drawn["rows"]]
                    assert ["left" if row["x"] < 320 else "right" for row in drawn["rows"]] == [
                        step["side"] for step in path["steps"]
                    ]
                    assert all(low["y"] > high["y"] for low, high in pairwise(drawn["rows"]))


def test_a_history_is_drawn_without_overlap_or_gap(engine: Engine) -> None:
    """For every passage of the store no two labels overlap, and all are within the picture."""
    store, changed = engine._collection.store, 0
    for chunk_id in dict.fromkeys(row[0] for row in store.labels.snapshot()):
        labels = [
            {**one._asdict(), "valid_to": None if one.valid_to == 2**32 - 1 else one.valid_to}
            for one in store.labels.history(chunk_id)
        ]
        drawn = history_drawing(labels)
        changed += len(labels) > 1
        for one in drawn["rectangles"]:
            assert min(one["width"], one["height"]) > 0
            assert one["x"] >= drawn["left"]
            assert one["y"] + one["height"] <= drawn["bottom"]
        for one, two in combinations(drawn["rectangles"], 2):
            beside = one["x"] + one["width"] <= two["x"] or two["x"] + two["width"] <= one["x"]
            above = one["y"] + one["height"] <= two["y"] or two["y"] + two["height"] <= one["y"]
            assert beside or above, chunk_id
    assert changed >= 10


def test_the_passage_page_says_both_times_field_rule_and_regulation(auditor: Viewer) -> None:
    """In the table as in the picture."""
    text = read(auditor.post("chunk", chunk_id="9990000102-24-000005:00000"))
    for said in (
        "2024-08-16 21:01",
        "SUPERSEDED",
        "9990000102-24-000021",
        "BUSINESS ADDRESS STATE",
        "SOX 302, 404; PCAOB AS 3101",
    ):
        assert said in text
    assert text.count('class="letter"') == 3


def test_the_matrix_says_of_each_bit_and_mask_what_the_table_does(analyst: Viewer, engine: Engine) -> None:
    """For everyone who is logged in, by letter and in words."""
    text = analyst.get("policy").text
    rows = re.findall(r'<th scope="row" title="[^"]*">(\w+)</th>(.*?)</tr>', text, flags=re.DOTALL)
    table = engine.profile.table
    masks = [mask for cell in table.cells for mask in cell.compiled]
    assert [bit.name for bit in table.vocabulary.flags] == [name for name, _ in rows]
    for bit, (_, cells) in zip(table.vocabulary.flags, rows, strict=True):
        said = re.findall(r'<span class="sr">(\w+)</span>', cells)
        assert said == [
            "required" if mask.required & bit else "forbidden" if mask.forbidden & bit else "free"
            for mask in masks
        ]


def test_health_shows_the_state(auditor: Viewer, engine: Engine) -> None:
    """Of log head, anchors, damage and quarantine."""
    text = read(auditor.get("health"))
    counts = engine.contents.counts()
    for said in (
        engine.vkey,
        "no anchor",
        "no scrub has found damage",
        f"{counts.chunks}",
        *counts.quarantined,
    ):
        assert said in text
    engine.log._scrubber.damage = "record 3 was altered"
    assert "record 3 was altered" in read(auditor.get("health"))


def test_the_pictures_of_benchmarks_show_the_committed_rows(analyst: Viewer) -> None:
    """``python -m bench.pictures`` writes them, and the page draws them next to a table."""
    assert pictures.written() == pictures.PATH.read_text("utf-8")
    drawn = json.loads(pictures.PATH.read_text("utf-8"))
    text = read(analyst.get("benchmarks"))
    for picture in drawn:
        assert picture["title"] in text
        assert picture["command"] in text
        assert all(0 <= row["value"] <= picture["most"] and row["shown"] in text for row in picture["rows"])


def test_pictures_of_a_page_without_its_table_are_refused() -> None:
    """So that a change of the page cannot leave old figures."""
    with pytest.raises(ValueError, match="has no table"):
        pictures.pictures("nothing", {})
    page = pictures._PAGE.read_text("utf-8").replace("| vanilla | 74.9 %", "| vanilla | many")
    with pytest.raises(ValueError, match="does not match"):
        pictures.pictures(page, {})


def test_a_draining_service_says_so(auditor: Viewer, service: Service) -> None:
    """On a page of its own, with the code and the time to come back."""
    service.stop()
    found: Any = auditor.get("policy")
    assert (503, "5", True) == (found.status_code, found.headers["retry-after"], "DRAINING" in found.text)


def test_the_home_says_what_the_token_grants(officer: Viewer, auditor: Viewer) -> None:
    """Cells with their rights, and duties."""
    assert "as of, known at" in officer.get("").text
    assert "duties: audit" in auditor.get("").text
    assert "None: this token can read, but not ask" in auditor.get("").text
    assert token(**OFFICER) != token(**AUDITOR)
