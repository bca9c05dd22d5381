"""Receipts of every kind, and the three verifiers that judge them."""

from __future__ import annotations

import contextlib
import dataclasses
import io

import pytest

from carag.audit import (
    Disclosure,
    Erasure,
    HeadRows,
    Hold,
    Outcome,
    Recovery,
    SigningKey,
    redact,
    verify_receipt,
)
from carag.audit.receipts.check_proof import check_checkpoint, check_consistency
from carag.audit.records.commitment import Opening
from carag.audit.tlog.log_verifier import LogVerifier
from tests.audit.receipts.page import CODES, GOLDEN, PARSERS_WORDS, Page, script
from tests.audit.records import test_begin as begins
from tests.audit.records import test_events as events
from tests.audit.records import test_record as records
from tests.audit.tlog import test_keys as keys


@pytest.fixture(scope="session")
def issued(tmp_path_factory, build):
    """Issue a receipt and keep its log."""
    directory = tmp_path_factory.mktemp("log")
    with build.open_log(directory) as log:
        receipts = [build.ask(log) for _ in range(6)]
        old = log.checkpoint()
        build.grow(log, 5)
        return receipts[-1].to_bytes(), log.vkey, directory, old


@pytest.fixture(scope="session")
def originals(build):
    """Sign a receipt of every kind of record, whole and with something left out."""
    asked = build.record().commitments
    bodies = [
        *(one for one in events.one_of_each(build) if one.kind != "query" or one.hits),
        build.record(event=build.refusal(), hits=(), commitments={n: asked[n] for n in ("query", "subject")}),
        build.record(event=begins.begin(), hits=(), commitments={n: asked[n] for n in ("query", "subject")}),
        build.record(
            event=build.access(kind="retrieve"), commitments={n: asked[n] for n in ("query", "subject")}
        ),
        build.record(event=build.access(kind="explain", intents=("PERSONS",), begun=0)),
        build.record(
            event=build.access(where=("team", "year")),
            commitments={
                **asked,
                "where": Opening(b"s" * 32, build.NARROWED["where"]).commitment("where"),
            },
        ),
        build.record(event=build.access(heads=(HeadRows(1, 2, 0, 9), HeadRows(2, 1, 3, 4)))),
        build.record(
            event=build.access(index=dataclasses.replace(build.record().event.index, backend=records.BACKEND))
        ),
        build.record(retain="ai6m"),
        build.record(event=build.access(glass=0)),
        *(
            build.record(event=event, hits=(), commitments={})
            for event in (
                *keys.EVENTS.values(),
                Recovery("DRILL", (0, 3)),
                next(events.under_glass(build)).event,
                *(one.event for one in events.of_documents(build)),
                Hold(action="placed", matter="M-1", scope="records", first=2, last=9),
                Hold(action="released", matter="M-1", scope="all", placed=3),
                Hold(action="placed", matter="M-1", scope="documents"),
                Erasure(basis="GDPR_17_1", count=2, fields=("query", "subject"), records=(1, 4)),
                Disclosure(record=1, fields=("query",), role="auditor", outcome=Outcome.ANSWER, why="DRILL"),
                Disclosure(record=1, fields=("query",), role=None, outcome=Outcome.REFUSE, why="DRILL"),
                Disclosure(record=None, fields=(), role="auditor", outcome=Outcome.ANSWER, why="DRILL"),
            )
        ),
    ]
    files = []
    for record in bodies:
        receipt, _ = build.forge(record, **({} if record.hits else {"shown": []}))
        files.append(receipt.to_bytes())
    whole = files[0]
    files += [
        redact(whole, passages={1}),
        redact(whole, proofs={2}, until=True),
        redact(whole, drop={"subject"}, until=True),
        (GOLDEN / "receipt-v1.json").read_bytes(),
        *[whole] * 12,  # most have hits, openings and proofs, where there is most to lie about
    ]
    return files


@pytest.fixture(scope="session")
def key(build):
    """The key that the forger signs with."""
    return SigningKey(build.ORIGIN, b"k" * 32)


@pytest.fixture
def judge(tmp_path, capsys):
    """Run the command on some bytes; return its exit code and what it said."""

    def run(data, vkey, *more):
        path = tmp_path / "given"
        path.write_bytes(data)
        code = script.main([str(path), "--key", vkey, *more])
        return code, capsys.readouterr().out

    return run


@pytest.fixture(scope="session")
def page():
    """Start the page's script, once for all tests."""
    page = Page()
    yield page
    with page.node:
        page.node.stdin.close()


@pytest.fixture(scope="session")
def script_says(tmp_path_factory):
    """Run the script's command on some bytes: exit code and words."""
    directory = tmp_path_factory.mktemp("given")

    def says(data, vkeys, old=""):
        (directory / "file").write_bytes(data)
        (directory / "old").write_text(old)
        words = [str(directory / "file"), "--key", vkeys, *(["--old", str(directory / "old")] if old else [])]
        with contextlib.redirect_stdout(io.StringIO()) as out:
            code = script.main(words)
        return code, out.getvalue().removesuffix("\n")

    return says


def package_says(data, vkeys, old):
    """Ask carag for its verdict."""
    if old:
        return check_consistency(old, data.decode(), LogVerifier.parse(vkeys)).verdict
    if not data.startswith(b"{"):  # as script and page tell them apart
        return check_checkpoint(data.decode("utf-8", "replace"), LogVerifier.parse(vkeys)).verdict
    return verify_receipt(data, vkeys).verdict


@pytest.fixture(scope="session")
def agreed(page, script_says):
    """Ask all three about a file, and return the exit code they agree on."""

    def code_of(data, vkeys, old=""):
        wanted, said = script_says(data, vkeys, old)
        code, words = page.says(data, vkeys, old)
        assert code == wanted, (said, words, data)
        assert PARSERS_WORDS.sub(" is unreadable", words) == PARSERS_WORDS.sub(" is unreadable", said), data
        assert CODES[package_says(data, vkeys, old)] == code, (said, data)
        return code

    return code_of
