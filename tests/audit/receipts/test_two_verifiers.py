"""Two verifiers, one verdict: carag.audit and scripts/verify_receipt.py share no code and differ on nothing."""

from __future__ import annotations

import functools
import itertools
import json
import os
import random
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given

from carag.audit import (
    Check,
    HeadRows,
    RecordKind,
    SigningKey,
    Verdict,
    redact,
    text_hash,
    verify_receipt,
)
from carag.audit.records.commitment import commit
from carag.audit.tlog.encoding import unb64url
from tests.audit.receipts import mutants
from tests.audit.receipts.page import CODES, ROOT, SCRIPT, script
from tests.audit.records import test_record as records
from tests.sizes import examples

SEED = 20261123


def theirs(data, vkeys):
    """Ask the script: its verdict, and what it says it left out."""
    try:
        said = script.check_receipt(data, vkeys)
    except script.Failed:
        return Verdict.FAILED, ()
    except script.CannotTell:
        return Verdict.UNDECIDED, ()
    (line,) = [line for line in said.split("\n") if line.startswith("withheld")] or [": "]
    return Verdict.VERIFIED, tuple(filter(None, line.split(": ")[1].split(", ")))


def shown(fields):
    """List what a receipt shows, by where it stands."""
    for name, opening in fields["openings"].items():
        yield ("opening", name), opening["value"]
    for place, hit in enumerate(fields["hits"]):
        if hit is not None:
            yield ("chunk", place), hit["chunk"]
            yield ("text", place), hit["text"]
            proof = hit.get("proof")
            if proof is not None:
                yield ("from", place), proof["from"]
                if not isinstance(proof["until"], str):
                    yield ("until", place), proof["until"]["value"]


def drawn(make, originals, count):
    """Draw files that differ from every original."""
    rng, known = random.Random(SEED), set(originals)  # noqa: S311
    return itertools.islice((data for data in iter(lambda: make(rng), None) if data not in known), count)


def compare(files, vkey):
    """Judge files by both; return the counts of verdicts, the files they differ on, and those both verify."""
    counts, differing, verified = Counter(), [], []
    vkeys = script.parse_vkeys(vkey)
    for data in files:
        ours = verify_receipt(data, vkey)
        verdict, withheld = theirs(data, vkeys)
        counts[ours.verdict] += 1
        if (verdict, withheld) != (ours.verdict, ours.withheld):
            differing.append((ours.verdict, ours.reason, verdict, data))
        elif verdict is Verdict.VERIFIED:
            verified.append((data, ours))
    return counts, differing, verified


@pytest.mark.parametrize("count", [examples(5_000), pytest.param(100_000, marks=pytest.mark.full)])
def test_without_the_key_no_altered_value_verifies(originals, key, count):
    """Of structural mutants of honest receipts both verify the same, and those only show less than was signed."""
    known = {}
    for data in originals:
        known.setdefault(json.loads(data)["record"], {}).update(shown(json.loads(data)))
    files = drawn(functools.partial(mutants.altered_file, originals), originals, count)
    counts, differing, verified = compare(files, str(key.verifier))
    assert differing == []
    for data, _ in verified:
        fields = json.loads(data)
        assert dict(shown(fields)).items() <= known[fields["record"]].items()
    assert counts.total() == count
    assert min(counts[verdict] for verdict in Verdict) > count // 50


@pytest.mark.parametrize("count", [examples(1_250), pytest.param(25_000, marks=pytest.mark.full)])
def test_with_the_key_no_lie_divides_them(originals, key, count):
    """Of receipts that a lying log made and signed both verify the same, and those show what their records bind."""
    files = drawn(functools.partial(mutants.signed_lie, originals, key), originals, count)
    counts, differing, verified = compare(files, str(key.verifier))
    assert differing == []
    for data, found in verified:
        assert all(hit.word >> 27 == 1 for hit in found.record.hits)
        assert bound(json.loads(data), found.record)
    assert counts.total() == count
    assert min(counts[verdict] for verdict in Verdict) > count // 50


def bound(fields, record):
    """Say whether everything a receipt shows is what its record commits to."""
    openings = all(
        commit(name, one["value"], unb64url(one["salt"], 32)) == record.commitments[name]
        for name, one in fields["openings"].items()
    )
    return openings and all(
        shown is None or hit.is_of(shown["chunk"], text_hash(shown["text"]))
        for shown, hit in zip(fields["hits"], record.hits, strict=True)
    )


# -- the rules by name: what a lying log signs


@pytest.mark.parametrize("left_out", [1, 2])
def test_heads_verify_whichever_of_the_two_passages_is_left_out(build, left_out):
    """What is not shown cannot be compared, and is said to be withheld."""
    receipt, vkey = build.forge(build.record(event=build.access(heads=(HeadRows(1, 2, 0, 9),))))
    less = redact(receipt.to_bytes(), passages={left_out})
    assert compare([receipt.to_bytes(), less], vkey)[:2] == ({Verdict.VERIFIED: 2}, [])


@pytest.mark.parametrize(
    ("lender", "more", "verdict"), [(2, 0, "VERIFIED"), (2, 1, "FAILED"), (3, 0, "FAILED")]
)
def test_heads_end_with_the_text_of_a_passage_that_there_is(build, lender, more, verdict):
    """And not after it; a passage that does not exist holds nothing."""
    end = len(build.passages()[1].text) + more if lender == 2 else 1
    receipt, vkey = build.forge(build.record(event=build.access(heads=(HeadRows(1, lender, 0, end),))))
    assert compare([receipt.to_bytes()], vkey)[:2] == ({Verdict[verdict]: 1}, [])
    assert (verify_receipt(receipt.to_bytes(), vkey).stopped_at is Check.PASSAGES) == (verdict == "FAILED")


def test_the_page_has_the_table_and_every_kind():
    """The rules are written down once: the script's table is the page's, and knows the kinds of the package."""
    page = (ROOT / "docs" / "reference" / "receipts.md").read_text("utf-8")
    assert script.TABLE in page
    assert set(script.KINDS) == {kind.value for kind in RecordKind}
    assert all(f"`{rule}`" in page for rule in script.VALUES)


@given(records.RECORDS)
def test_every_record_that_can_be_written_can_be_read_by_the_script(record):
    """The rules shut out nothing that a log of ours writes: any event, of any kind."""
    assert script.read_record(record.to_bytes())["kind"] == record.kind.value


# -- exit codes: 1 only after a failed check


def command(path, vkey, **changes):
    words = [sys.executable, "-I", SCRIPT, path, "--key", vkey]
    return subprocess.run(words, capture_output=True, env={**os.environ, **changes}, check=False)


def test_the_command_says_what_the_functions_say(originals, key, tmp_path):
    """A sample of mutants, each judged by a process of its own."""
    files = [*drawn(functools.partial(mutants.altered_file, originals), originals, 40)]
    for data in files[::4]:
        (tmp_path / "r.json").write_bytes(data)
        done = command(tmp_path / "r.json", str(key.verifier))
        assert (done.returncode, done.stderr) == (CODES[verify_receipt(data, str(key.verifier)).verdict], b"")


@pytest.mark.parametrize(
    "depth",
    [17, 700, 100_000, *(pytest.param(one, marks=pytest.mark.release) for one in (300, 450, 900, 2000))],
)
def test_no_depth_of_nesting_looks_like_tampering(key, tmp_path, depth):
    """Wherever the brackets stand, both cannot tell: neither crashes, and neither speaks of a failed check."""
    nest = "[" * depth + "]" * depth
    for text in (
        nest,
        f'{{"format":{nest}}}',
        f'{{"format":"carag-receipt/v1","hits":{nest},"openings":{{}},"proof":"","record":""}}',
    ):
        (tmp_path / "r.json").write_text(text + "\n")
        assert verify_receipt(text.encode() + b"\n", str(key.verifier)).verdict is Verdict.UNDECIDED
        assert command(tmp_path / "r.json", str(key.verifier)).returncode == 2


def test_no_size_of_number_looks_like_tampering(originals, key, tmp_path):
    """Numbers of many digits are refused before they are computed with."""
    for digits in (17, 5000, 1_000_000):
        data = originals[0].replace(b'"from":29000000', b'"from":' + b"9" * digits)
        (tmp_path / "r.json").write_bytes(data)
        assert verify_receipt(data, str(key.verifier)).verdict is Verdict.UNDECIDED
        assert command(tmp_path / "r.json", str(key.verifier)).returncode == 2


@pytest.mark.parametrize("error", [RecursionError, MemoryError, ZeroDivisionError, KeyError, ValueError])
def test_what_nobody_foresaw_ends_in_70(monkeypatch, capsys, error):
    """Whatever is raised, the exit code is not Python's 1, which says that a check failed."""

    def fail(*_):
        raise error

    monkeypatch.setattr(script, "judge", fail)
    vkey = str(SigningKey("log.example", b"k" * 32).verifier)
    assert script.main(["r.json", "--key", vkey]) == 70
    assert "this says nothing about the file" in capsys.readouterr().out


def test_usage_and_terminals_end_as_documented(originals, key, tmp_path):
    """A misspelt command is 64; a terminal that has no such character, or has gone, is not a failed check."""
    (tmp_path / "r.json").write_bytes(originals[0].replace("\u2014".encode(), "\u2014\u2014".encode()))
    assert subprocess.run([sys.executable, SCRIPT], capture_output=True, check=False).returncode == 64
    done = subprocess.run(
        [sys.executable, SCRIPT, tmp_path / "r.json", "--key", str(key.verifier)],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        check=False,
    )
    assert (done.returncode, done.stderr) == (2, b"")
    closed = subprocess.run(
        ["bash", "-c", f"{sys.executable} {SCRIPT} {tmp_path}/r.json --key '{key.verifier}' >/dev/full"],
        capture_output=True,
        check=False,
    )
    assert closed.returncode not in {0, 1}
