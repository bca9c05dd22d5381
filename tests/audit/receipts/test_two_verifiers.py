"""Two verifiers, one verdict: carag.audit and scripts/verify_receipt.py share no code and differ on nothing."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given

from carag.audit import (
    Disclosure,
    Erasure,
    HeadRows,
    Hold,
    Outcome,
    RecordKind,
    Recovery,
    SigningKey,
    Verdict,
    redact,
    text_hash,
    verify_receipt,
)
from carag.audit.records.commitment import Opening, commit
from carag.audit.tlog.encoding import unb64url
from tests.audit.receipts import mutants
from tests.audit.records import test_begin as begins
from tests.audit.records import test_events as events
from tests.audit.records import test_record as records
from tests.audit.tlog import test_keys as keys
from tests.loaded import loaded

HERE = Path(__file__).parents[1]
SCRIPT = HERE.parents[1] / "scripts" / "verify_receipt.py"
SEED = 20261123
CODES = {Verdict.VERIFIED: 0, Verdict.FAILED: 1, Verdict.UNDECIDED: 2}


script = loaded(SCRIPT, "scripts.verify_receipt")
script.ed25519_verify = functools.cache(script.ed25519_verify)


@pytest.fixture(scope="module")
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
        *(
            build.record(event=event, hits=(), commitments={})
            for event in (
                *keys.EVENTS.values(),
                Recovery("DRILL", (0, 3)),
                Hold(action="placed", matter="M-1", scope="records", first=2, last=9),
                Hold(action="released", matter="M-1", scope="all", placed=3),
                Erasure(basis="GDPR_17_1", count=2, fields=("query", "subject"), records=(1, 4)),
                Disclosure(record=1, fields=("query",), role="auditor", outcome=Outcome.ANSWER, why="DRILL"),
                Disclosure(record=1, fields=("query",), role=None, outcome=Outcome.REFUSE, why="DRILL"),
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
        (HERE / "golden" / "receipt-v1.json").read_bytes(),
        *[whole] * 12,  # most have hits, openings and proofs, where there is most to lie about
    ]
    return files


@pytest.fixture(scope="module")
def key(build):
    """The key that the forger signs with."""
    return SigningKey(build.ORIGIN, b"k" * 32)


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
    """Draw so many files that are none of the originals."""
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


def test_every_original_verifies(originals, key):
    """What is altered below is in order: of every kind of record, and with parts left out."""
    counts, differing, _ = compare(originals, str(key.verifier))
    assert (differing, set(counts)) == ([], {Verdict.VERIFIED})
    kinds = {json.loads(json.loads(data)["record"])["kind"] for data in originals}
    assert kinds == set(script.KINDS)


@pytest.mark.parametrize("count", [5_000, pytest.param(100_000, marks=pytest.mark.full)])
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


@pytest.mark.parametrize("count", [1_250, pytest.param(25_000, marks=pytest.mark.full)])
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


def in_policy(**changes):
    return lambda fields: fields["policy"].update(changes)


def in_backend(**changes):
    whole = records.BACKEND.to_json()
    return lambda fields: fields["index"].update(backend={**whole, **changes})


def without(name):
    return lambda fields: fields.pop(name)


def with_words(word):
    return lambda fields: [hit.__setitem__(1, word) for hit in fields["hits"]]


def both_of(*changes):
    return lambda fields: [change(fields) for change in changes]


BROKEN_RULES = {
    "a mask that demands quarantine": both_of(in_policy(masks=[[1 << 30, 0]]), with_words(1 << 30 | 1 << 27)),
    "a mask that demands a tombstone": both_of(
        in_policy(masks=[[1 << 31, 0]]), with_words(1 << 31 | 1 << 27)
    ),
    "a mask that forbids the version": in_policy(masks=[[0x20, 0x10000], [1, 1 << 27]]),
    "a negative mask": in_policy(masks=[[0x20, 0], [-1, 0]]),
    "a bit required and forbidden": in_policy(masks=[[0x20, 0], [1, 1]]),
    "nine masks": in_policy(masks=[[0x20, 0]] * 9),
    "a pair of three": in_policy(masks=[[0x20, 0], [1, 2, 4]]),
    "a list of reopened entities has no masks": in_policy(reopened_entities={"count": 1, "kind": "deny"}),
    "a word of 33 bits": with_words(1 << 32 | 1 << 27 | 0x21),
    "a cooling time of nothing that is written": in_policy(cooling=0),
    "no role": without("role"),
    "no purpose": without("purpose"),
    "no source": without("source"),
    "no models": without("models"),
    "no hits": without("hits"),
    "a member more": lambda fields: fields.update(colour="red"),
    "a kind that is none": lambda fields: fields.update(kind="anything"),
    "a minute that is none": lambda fields: fields.update(as_of=1_795_380_520_493_381),
    "a minute of 33 bits": lambda fields: fields.update(as_of=1 << 32),
    "an instant past 2**53": lambda fields: fields.update(t0=1 << 53),
    "a role in prose": lambda fields: fields.update(role="ana, who asked"),
    "an issuer of an asserted session": lambda fields: fields.update(issuer="https://login.example"),
    "an empty list that is not written": lambda fields: fields.update(intents=[]),
    "an empty list of fields that is not written": lambda fields: fields.update(where=[]),
    "an empty list of heads that is not written": lambda fields: fields.update(heads=[]),
    "heads of three numbers": lambda fields: fields.update(heads=[[1, 2, 0]]),
    "heads of five numbers": lambda fields: fields.update(heads=[[1, 2, 0, 9, 9]]),
    "heads of hit 0": lambda fields: fields.update(heads=[[0, 1, 0, 9]]),
    "heads from hit 0": lambda fields: fields.update(heads=[[1, 0, 0, 9]]),
    "heads from before the text": lambda fields: fields.update(heads=[[1, 2, -1, 9]]),
    "heads up to nothing": lambda fields: fields.update(heads=[[1, 2, 0, 0]]),
    "a backend without shards": in_backend(shards=[]),
    "a backend that is not written": lambda fields: fields["index"].update(backend=None),
    "a shard without its place": in_backend(shards=[["0"]]),
    "a shard with its rows": in_backend(shards=[["0", "here", 9]]),
    "a shard by number": in_backend(shards=[[0, "here"]]),
    "an epoch before the first": in_backend(epoch=-1),
    "a dictionary of 31 bytes": in_backend(dictionary="A" * 42),
    "a backend without a name": in_backend(name=""),
    "a backend with its rows": in_backend(rows=9),
    "heads in words": lambda fields: fields.update(heads=[["1", 2, 0, 9]]),
    "the default class of retention": lambda fields: fields.update(retain="fin7y"),
    "a similarity past a cosine": lambda fields: fields["hits"][0].__setitem__(2, 1_000_011),
    "cited twice": lambda fields: fields["hits"][0].__setitem__(3, 2),
    "arrays seventeen deep": lambda fields: fields.update(why=json.loads("[" * 17 + "]" * 17)),
    "arrays 700 deep": lambda fields: fields.update(why=json.loads("[" * 700 + "]" * 700)),
    "more bytes than a record has": lambda fields: fields.update(intents=[f"I{n:04}" for n in range(8000)]),
}


BROKEN_LAWS = {
    "a deny list with others denied beside it": (
        "query",
        in_policy(entities={"count": 2, "denied": 1, "kind": "deny"}),
    ),
    "denials that end before they began": ("denial", lambda it: it.update(t0=9, t1=1)),
    "one denial that lasted": ("denial", lambda it: it.update(count=1)),
    "no denial": ("denial", lambda it: it.update(count=0)),
    "an erasure that names one record twice": ("erasure", lambda it: it.update(records=[4, 4])),
    "an erasure out of order": ("erasure", lambda it: it.update(fields=["subject", "query"])),
    "an erasure that names fewer than it counts": ("erasure", lambda it: it.update(records=[4])),
    "an erasure of no records": ("erasure", lambda it: it.update(count=0, records=[])),
    "an erasure of nothing": ("erasure", lambda it: it.update(fields=[])),
    "a hold on records that end first": ("hold", lambda it: it.update(first=9, last=2, scope="records")),
    "a hold on records without the last": ("hold", lambda it: it.update(first=9, last=None, scope="records")),
    "a hold on a subject that names records": (
        "hold",
        lambda it: it.update(first=2, last=9, scope="subject"),
    ),
    "a hold placed by another": ("hold", lambda it: it.update(action="placed", placed=3)),
    "a hold released from nothing": ("hold", lambda it: it.update(action="released", placed=None)),
    "values opened to nobody": ("disclosure", lambda it: it.update(outcome="answer", role=None)),
    "values refused to an auditor": ("disclosure", lambda it: it.update(outcome="refuse", role="auditor")),
    "values declined": ("disclosure", lambda it: it.update(outcome="decline", role=None)),
    "a key of another length": ("key", lambda it: it.update(public="AAAA")),
    "a key of an unknown algorithm": ("key", lambda it: it.update(algorithm=2)),
    "a rotation without its end": ("key", lambda it: it.update(action="rotate", until=None, good=None)),
    "an added key with an end": ("key", lambda it: it.update(action="add", until=9, good=None)),
    "a revocation that believes nothing": (
        "key",
        lambda it: it.update(action="revoke", until=None, good=None),
    ),
    "a move from the index to itself": ("move", lambda it: it.update(before=None, after=None)),
    "a move to a place without an epoch": ("move", lambda it: it["after"].pop("epoch")),
    "a gate beyond a cosine": ("model", lambda it: it.update(gate=1_000_001)),
    "a threshold under a bad name": ("evaluation", lambda it: it.update(thresholds={"recall_": "1"})),
    "a test passed twice": ("evaluation", lambda it: it.update(passed=2)),
    "an empty list of begins that is written": ("recovery", lambda it: it.update(begins=[])),
    "a commitment that no such record has": ("anchor", lambda it: it["commitments"].update(query="A" * 43)),
    "a label that nobody can read": ("ingest", lambda it: it.update(embed="a\u202eb")),
    "a digest of 31 bytes": ("index", lambda it: it.update(before="A" * 42)),
    "a digest in another spelling": ("policy", lambda it: it.update(table=it["table"][:-1] + "R")),
}


@pytest.mark.parametrize(("kind", "change"), BROKEN_LAWS.values(), ids=BROKEN_LAWS)
def test_what_members_owe_each_other_holds_for_both(originals, key, kind, change):
    """The same for every other kind: signed by the right key, and read by nobody."""
    found = (json.loads(data) for data in originals)
    fields = next(one for one in found if json.loads(one["record"])["kind"] == kind)
    assert judged_alike(fields, change, key) == {Verdict.UNDECIDED: 1}


@pytest.mark.parametrize("change", BROKEN_RULES.values(), ids=BROKEN_RULES)
def test_a_record_that_breaks_a_rule_is_verified_by_neither(build, key, change):
    """docs/reference/receipts.md, rule by rule: signed by the right key, and read by nobody."""
    fields = json.loads(build.forge(build.record())[0].to_bytes())
    assert judged_alike(fields, change, key) == {Verdict.UNDECIDED: 1}


FALSE_HEADS = {
    "past the end of the lender's text": [[1, 2, 0, 99]],
    "of what is no hit": [[3, 1, 0, 9]],
    "from something that is not a hit": [[1, 3, 0, 9]],
    "of their own hit": [[1, 1, 0, 9]],
    "twice": [[1, 2, 0, 9], [1, 2, 0, 9]],
    "out of order": [[2, 1, 0, 9], [1, 2, 0, 9]],
    "that end before they begin": [[1, 2, 9, 9]],
}


@pytest.mark.parametrize("heads", FALSE_HEADS.values(), ids=FALSE_HEADS)
def test_false_heads_fail_for_both(build, key, heads):
    """Signed by the right key, and against what the record itself says or the receipt shows."""
    fields = json.loads(build.forge(build.record())[0].to_bytes())
    assert judged_alike(fields, lambda it: it.update(heads=heads), key) == {Verdict.FAILED: 1}


@pytest.mark.parametrize("left_out", [1, 2])
def test_heads_verify_whichever_of_the_two_passages_is_left_out(build, left_out):
    """What is not shown cannot be compared, and is said to be withheld."""
    receipt, vkey = build.forge(build.record(event=build.access(heads=(HeadRows(1, 2, 0, 9),))))
    less = redact(receipt.to_bytes(), passages={left_out})
    assert compare([receipt.to_bytes(), less], vkey)[:2] == ({Verdict.VERIFIED: 2}, [])


@pytest.mark.parametrize("digest", ["A" * 26, "A" * 28, "A" * 26 + "B", "", 5, None])
def test_a_passage_left_out_is_bound_all_the_same(build, key, digest):
    """What names a passage that is not shown is a digest of 20 bytes, in its one spelling."""
    fields = json.loads(redact(build.forge(build.record())[0].to_bytes(), passages={1, 2}))
    verdicts = judged_alike(fields, lambda it: it["hits"][0].__setitem__(0, digest), key)
    assert verdicts == {Verdict.UNDECIDED: 1}


def judged_alike(fields, change, key):
    """Change a receipt's record, sign it again, and return the verdict of both."""
    counts, differing, _ = compare([signed_again(fields, change, key)], str(key.verifier))
    assert differing == []
    return counts


def signed_again(fields, change, key):
    """Change a receipt's record and sign it as a log that lies would."""
    record = json.loads(fields["record"])
    change(record)
    for hit in filter(None, fields["hits"]):
        hit["proof"] = None
    fields["record"] = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    fields["proof"] = mutants.sign(fields["record"].encode(), key)
    return (json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n").encode()


def test_the_page_has_the_table_and_every_kind():
    """The rules are written down once: the script's table is the page's, and knows the kinds of the package."""
    page = (HERE.parents[1] / "docs" / "reference" / "receipts.md").read_text("utf-8")
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


@pytest.mark.parametrize("depth", [17, 300, 450, 700, 900, 2000, 100_000])
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
    """A misspelt command is 64; a terminal that has no such character, or has gone, is no failed check."""
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
