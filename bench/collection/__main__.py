"""Ask questions about the documents themselves: ``python -m bench.collection WORK``; see ``RESULTS.md``.

``WORK`` keeps the stores. ``CARAG_SHARED_DATA`` names the folder with filings and circulars; the documents of a firm
are in ``documents.jsonl``, as Markdown with front matter.
"""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import sys
from collections import Counter, defaultdict
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from carag import Document, Engine, Session
from carag.generation import ToldCode
from carag.labelling.document import Act, ActKind
from carag.policy import infer

NOW = datetime(2026, 11, 29, tzinfo=UTC)
SESSIONS = {
    "edgar": Session(role="compliance", purpose="surveil"),
    "circulars": Session(role="compliance", purpose="surveil"),
    "generic": Session(role="compliance", purpose="review"),
}


def rows_of(name: str) -> list[dict[str, Any]]:
    """Read a file of JSON lines that is beside this one."""
    text = Path(__file__).with_name(name).read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def memo(id_: str, text: str) -> Document:
    """Read one document: its type is its kind, and what it replaces or amends is an act."""
    _, head, text = text.split("---\n", 2)
    said = dict(line.split(": ", 1) for line in head.splitlines())
    acts = [Act(kind, said[kind.value]) for kind in ActKind if kind.value in said]
    stated = {"title": said["title"], "kind": said["type"], "dated": said["date"]}
    return Document(
        id=id_,
        text=text,
        bits=(),
        metadata={**stated, "department": said.get("department", "")},
        names=(said["title"],),
        acts=acts,
        public_at=date.fromisoformat(said["date"]),
    )


def opened(profile: str, work: Path) -> Engine:
    """Open the store of a profile, and fill it if it is new."""
    home = work / profile
    is_new = not (home / "store").exists()
    engine = Engine.open(home / "store", profile=profile, embedder="wordllama", clock=lambda: NOW)
    if is_new and profile == "generic":
        engine.add([memo(one["id"], one["text"]) for one in rows_of("documents.jsonl")])
    elif is_new:
        shared, source = Path(os.environ["CARAG_SHARED_DATA"]), home / "in"
        source.mkdir(parents=True, exist_ok=True)
        for one in shared.glob("edgar/filings-*.gz" if profile == "edgar" else "rbi/circulars.jsonl.gz"):
            (source / one.stem).write_bytes(gzip.decompress(one.read_bytes()))
        engine.ingest(source)
    return engine


def admitted(store: Path, engine: Engine, session: Session, now: datetime = NOW) -> set[str]:
    """Return the documents of the store's rows that the session's masks admit."""
    decision = infer(session, engine.profile.table, now=now)
    query = (
        "SELECT DISTINCT accession_number, labels.word, valid_from, valid_to FROM labels JOIN chunks USING (key) "
        "JOIN filings USING (filing) WHERE known_to IS NULL"
    )
    with closing(sqlite3.connect(store / "corpus.db")) as sql:
        return {
            id_
            for id_, word, since, until in sql.execute(query)
            if since <= decision.as_of < until and any(mask.admits(word) for mask in decision.policy.masks)
        }


def is_right(asked: dict[str, Any], answer: Any, known: set[str]) -> bool:
    """Compare with what is expected, of the documents that the session may use."""
    expected, cited = asked["expected"], {one.document_id for one in answer.citations}
    ids = set(expected.get("ids", [])) & known
    match asked["wants"]:
        case "count":
            return (answer.why == "NONE_LISTED" and not ids) or answer.text.split(" ")[0] == str(len(ids))
        case "list" | "latest" | "oldest":
            return cited == ids
        case "replaced":
            named = expected.get("new", expected.get("old", []))
            return cited - set(expected.get("same_text", [])) == set(named) & known
        case "compare":
            return cited >= ids
    text = "".join("".join(answer.text.split("\n")).split())
    wanted = [expected.get("start", ""), expected.get("end", ""), *expected.get("holds", [])]
    return all("".join(one.lstrip("#").split()) in text.replace("#", "") for one in wanted)


def main(work: Path) -> None:
    """Ask every question, and print what was recognised and right."""
    rows = rows_of("questions.jsonl")
    told, found = {code.value for code in ToldCode}, defaultdict[str, Counter[str]](Counter)
    for profile, session in SESSIONS.items():
        with opened(profile, work) as engine:
            known = admitted(work / profile / "store", engine, session)
            for one in (row for row in rows if row["profile"] == profile):
                answer = engine.ask(one["question"], session)
                is_told = answer.why in told
                right = is_told and is_right(one, answer, known)
                found[one["wants"]].update(["asked", *["recognised"] * is_told, *["right"] * right])
                mark = "right" if right else "WRONG" if is_told else "-"
                print(f"{mark:6}{profile:10}{one['wants']:9}{answer.why:14}{one['question']}")
    for wants, counts in sorted(found.items()):
        print(f"| {wants} | {counts['asked']} | {counts['recognised']} | {counts['right']} |")
    print(sum(found.values(), Counter[str]()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
