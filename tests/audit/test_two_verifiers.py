"""Two verifiers, one verdict: carag.audit and scripts/verify_receipt.py share no code and differ on nothing."""

from __future__ import annotations

import functools
import importlib.util
import json
import random
import sys
from collections import Counter
from pathlib import Path

import pytest

from carag.audit import (
    Disclosure,
    Erasure,
    Hold,
    Outcome,
    Recovery,
    SigningKey,
    Verdict,
    redact,
    text_hash,
    verify_receipt,
)
from carag.audit.canonical import unb64url
from carag.audit.commitment import commit

HERE = Path(__file__).parent
SCRIPT = HERE.parents[1] / "scripts" / "verify_receipt.py"
SEED = 20261123
CODES = {Verdict.VERIFIED: 0, Verdict.FAILED: 1, Verdict.UNDECIDED: 2}


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


mutants = load(HERE / "mutants.py", "mutants_of_receipts")
script = load(SCRIPT, "verify_receipt_beside_ours")
script.ed25519_verify = functools.cache(script.ed25519_verify)
events, begins, keys = (
    load(HERE / f"test_{name}.py", f"{name}_of_receipts") for name in ("events", "begin", "keys")
)


@pytest.fixture(scope="module")
def originals(build):
    """Sign a receipt of every kind and version of record, whole and with something left out."""
    asked = build.record().commitments
    bodies = [
        *(one for one in events.one_of_each(build) if one.kind != "query" or one.hits),
        build.record(event=build.refusal(), hits=(), commitments={n: asked[n] for n in ("query", "subject")}),
        build.record(event=begins.begin(), hits=(), commitments={n: asked[n] for n in ("query", "subject")}),
        build.record(
            event=build.access(kind="retrieve"), commitments={n: asked[n] for n in ("query", "subject")}
        ),
        build.record(event=build.access(kind="explain", intents=("PERSONS",), begun=0)),
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


def compare(files, vkey):
    """Judge files by both; return the counts of verdicts and the files they differ on."""
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
    """What is altered below is in order: of every kind of record, both versions, and with parts left out."""
    counts, differing, _ = compare(originals, str(key.verifier))
    assert (differing, set(counts)) == ([], {Verdict.VERIFIED})
    kinds = {json.loads(json.loads(data)["record"])["kind"] for data in originals}
    assert kinds == set(script.KINDS)


@pytest.mark.parametrize("count", [4_000, pytest.param(20_000, marks=pytest.mark.full)])
def test_without_the_key_no_altered_value_verifies(originals, key, count):
    """Of structural mutants of honest receipts both verify the same, and those only show less than was signed."""
    rng = random.Random(SEED)  # noqa: S311
    known = {}
    for data in originals:
        known.setdefault(json.loads(data)["record"], {}).update(shown(json.loads(data)))
    counts, differing, verified = compare(
        (mutants.altered_file(originals, rng) for _ in range(count)), str(key.verifier)
    )
    assert differing == []
    for data, _ in verified:
        fields = json.loads(data)
        assert dict(shown(fields)).items() <= known[fields["record"]].items()
    assert counts.total() == count
    assert min(counts[verdict] for verdict in Verdict) > count // 50


@pytest.mark.parametrize("count", [1_000, pytest.param(5_000, marks=pytest.mark.full)])
def test_with_the_key_no_lie_divides_them(originals, key, count):
    """Of receipts that a lying log made and signed both verify the same, and those show what their records bind."""
    rng = random.Random(SEED)  # noqa: S311
    counts, differing, verified = compare(
        (mutants.signed_lie(originals, key, rng) for _ in range(count)), str(key.verifier)
    )
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
