"""Three verifiers, one verdict: the page agrees with the script on words, and with carag on verdicts.

What is altered is a receipt as a log issued it, or one that a lying log signed; each case stands here once, for all
three. ``agreed`` asks them and returns the exit code.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carag.audit import (
    Check,
    IndexState,
    Opening,
    Outcome,
    RecordKind,
    verify_receipt,
)
from tests.audit.receipts import alterations, mutants
from tests.audit.receipts import test_two_verifiers as two
from tests.audit.receipts.alterations import altered, signed_again
from tests.audit.receipts.page import GOLDEN, VKEY, script
from tests.audit.records import test_contradictions as contradictions
from tests.audit.records import test_events as events
from tests.sizes import SIZE, examples

NAMED = {
    **{
        name: (lambda data, change=change: altered(data, change), check)
        for name, (change, check) in alterations.FAILED.items()
    },
    **{name: (change, None) for name, change in alterations.UNREADABLE.items()},
}


# -- receipts altered without the key


def test_every_kind_of_record_verifies(agreed, originals, key):
    """Whole, with parts left out, and of every kind."""
    assert {agreed(data, str(key.verifier)) for data in originals} == {0}
    kinds = {json.loads(json.loads(data)["record"])["kind"] for data in originals}
    assert kinds == set(script.KINDS)


@pytest.mark.parametrize(("change", "check"), NAMED.values(), ids=NAMED)
def test_each_named_alteration_is_noticed(agreed, issued, change, check):
    """A readable receipt fails at the check named, and those before it pass; an unreadable one is undecided."""
    data, vkey, *_ = issued
    assert agreed(change(data), vkey) == (1 if check else 2)
    found = verify_receipt(change(data), vkey)
    assert found.stopped_at is (check or Check.FORMAT)
    assert (*found.passed, found.stopped_at) == tuple(Check)[: len(found.passed) + 1]


def test_no_flipped_bit_verifies_on_the_page(agreed):
    """One bit of every fortieth byte of the kept receipt; of every eightieth by default."""
    data = (GOLDEN / "receipt-v1.json").read_bytes()
    assert agreed(data, VKEY) == 0
    for position in range(0, len(data), 80 if SIZE == "quick" else 40):
        flipped = bytearray(data)
        flipped[position] ^= 1 << position % 7
        assert agreed(bytes(flipped), VKEY) in {1, 2}, position


@settings(max_examples=examples(100))
@given(st.binary(max_size=300))
def test_garbage_is_undecided(agreed, data):
    """Bytes that are not a receipt are not called tampered with."""
    assert agreed(b"{" + data, VKEY) == 2


@pytest.mark.parametrize("name", ["constructor", "__proto__", "to_string"])
def test_an_opening_of_nothing_is_false_whatever_its_name(agreed, issued, name):
    """Also where the language has such a member on every object."""
    opened = altered(issued[0], lambda it: it["openings"].update({name: it["openings"]["query"]}))
    assert agreed(opened, issued[1]) == 1


# -- what a lying log signs


def of_kind(originals, kind):
    found = (json.loads(data) for data in originals)
    return next(one for one in found if json.loads(one["record"])["kind"] == kind)


RULES = {
    **{name: ("query", change, 2) for name, change in alterations.BROKEN_RULES.items()},
    **{name: (kind, change, 2) for name, (kind, change) in alterations.BROKEN_LAWS.items()},
    **{
        f"heads {name}": ("query", lambda it, heads=heads: it.update(heads=heads), 1)
        for name, heads in alterations.FALSE_HEADS.items()
    },
    "a member that objects of scripts are born with": ("query", lambda it: it.update(constructor=1), 2),
    "a member that is a prototype": ("query", lambda it: it.update(__proto__={}), 2),
    "a commitment that is a prototype": ("query", lambda it: it["commitments"].update(__proto__="A" * 43), 2),
}


@pytest.mark.parametrize(("kind", "change", "code"), RULES.values(), ids=RULES)
def test_each_rule_of_a_record_is_known(agreed, originals, key, kind, change, code):
    """docs/reference/receipts.md, rule by rule: signed by the right key, and broken."""
    assert agreed(signed_again(of_kind(originals, kind), change, key), str(key.verifier)) == code


def with_hit(build, **changes):
    record = build.record()
    return dataclasses.replace(record, hits=(dataclasses.replace(record.hits[0], **changes), record.hits[1]))


WORDS = (0x21, 1 << 27, 1 << 27 | 0x10021, 3 << 27 | 0x21, 1 << 31 | 1 << 27 | 0x21)
OTHER = "audit.example/other"
SIGNED = {
    **{f"a word {word:#x} outside the masks": (lambda b, w=word: b.forge(with_hit(b, word=w)), Check.CONSISTENCY)
       for word in WORDS},
    "a refusal with passages": (
        lambda b: b.forge(b.record(event=b.access(outcome=Outcome.REFUSE))),
        Check.CONSISTENCY,
    ),
    "a checkpoint of another log": (lambda b: b.forge(b.record(), origin=OTHER), Check.ORIGIN),
    "a record of another log": (lambda b: b.forge(b.record(log=OTHER)), Check.POSITION),
    "a record of another place": (lambda b: b.forge(b.record(seq=0)), Check.POSITION),
    "another state than the proofs'": (
        lambda b: b.forge(b.record(event=b.access(index=IndexState(b"S" * 32, 417, "exact")))),
        Check.STATE,
    ),
    "proofs for a record without a state": (
        lambda b: b.forge(b.record(event=b.access(kind=RecordKind.EXPLAIN, index=None))),
        Check.STATE,
    ),
    "another text in the state": (
        lambda b: b.forge_over([b.label(dataclasses.replace(p, text=f"{p.text}!")) for p in b.passages(5)]),
        Check.STATE,
    ),
    **{
        f"a state with {name}": (
            lambda b, lie=lie: b.forge_over([b.label(p, **(lie if p.cited else {})) for p in b.passages(5)]),
            Check.STATE,
        )
        for name, lie in alterations.STATE_LIES.items()
    },
}  # fmt: skip


@pytest.mark.parametrize(("lie", "check"), SIGNED.values(), ids=SIGNED)
def test_each_signed_lie_fails(agreed, build, lie, check):
    """A record outside its own masks, of another place or log, or of another state convicts the log that signed it."""
    receipt, vkey = lie(build)
    assert agreed(receipt.to_bytes(), vkey) == 1
    assert verify_receipt(receipt.to_bytes(), vkey).stopped_at is check


@pytest.mark.parametrize(
    "body",
    [b"{}", b'{"v":2}', b'{"a": 1}', b'{"hits":[1],"log":"audit.example/test","seq":1,"v":1}', "é".encode()],
)
def test_a_signed_record_of_an_unknown_form_is_undecided(agreed, build, body):
    """What the log signed and this reader does not know is not called tampered with."""
    receipt, vkey = build.forge(body=body, openings={}, shown=[])
    assert agreed(receipt.to_bytes(), vkey) == 2
    assert verify_receipt(receipt.to_bytes(), vkey).stopped_at is Check.RECORD


@pytest.mark.parametrize("digest", ["A" * 26, "A" * 28, "A" * 26 + "B", "", 5, None])
def test_a_passage_left_out_is_bound_all_the_same(agreed, originals, key, digest):
    """A passage that is not shown is still named by a digest of 20 bytes in canonical base64url."""
    fields = of_kind(originals, "query")
    fields["hits"] = [None] * len(fields["hits"])
    data = signed_again(fields, lambda it: it["hits"][0].__setitem__(0, digest), key)
    assert agreed(data, str(key.verifier)) == 2


@pytest.mark.parametrize("since", [29_000_000, 29_395_925, 29_395_926])
def test_the_start_of_a_word_is_checked_though_its_end_is_sealed(agreed, build, since):
    """Who asked about the past is not told until when; from when is checked all the same."""
    receipt, vkey = build.forge_over([build.label(passage, since=since) for passage in build.passages(5)])
    sealed = dataclasses.replace(receipt, proofs=tuple(proof.sealed() for proof in receipt.proofs))
    assert b"30000000" not in sealed.to_bytes()
    assert agreed(sealed.to_bytes(), vkey) == (since > 29_395_925)


def test_a_passage_that_shows_less_ends_no_check(agreed, issued, build, script_says):
    """The first is withheld, or has no proof; the second is another, and the verdict names it."""
    other = altered(
        issued[0], lambda f: (f["hits"].__setitem__(0, None), f["hits"][1].update(text="Another."))
    )
    assert agreed(other, issued[1]) == 1
    assert "passage 2 is not the one of" in script_says(other, issued[1])[1]
    first, second, *rest = build.passages(5)
    labels = [build.label(first), build.label(second, word=0x0800_0001), *(build.label(one) for one in rest)]
    receipt, vkey = build.forge_over(labels)
    bare = altered(receipt.to_bytes(), lambda f: f["hits"][0].update(proof=None))
    for data in (receipt.to_bytes(), bare):
        assert agreed(data, vkey) == 1
        assert "the proof of passage 2 does not lead" in script_says(data, vkey)[1]


def test_passages_without_a_proof_are_named(agreed, issued, build, script_says):
    """A receipt that the log made again has no proofs: it verifies, but the state is not among what was checked."""
    chunks = tuple(passage.chunk for passage in build.passages())
    for which, unproved in ((slice(1, 2), chunks[1:]), (slice(0, 2), chunks)):
        bare = altered(issued[0], lambda f, which=which: [hit.update(proof=None) for hit in f["hits"][which]])
        assert agreed(bare, issued[1]) == 0
        found, said = verify_receipt(bare, issued[1]), script_says(bare, issued[1])[1]
        assert (found.unproved, found.passed) == (
            unproved,
            tuple(one for one in Check if one is not Check.STATE),
        )
        assert f"without a proof that they stood in the index state: {', '.join(unproved)}" in said
        assert ("passages stood in its index state" in said) == (unproved != chunks)


@pytest.mark.parametrize(
    "mutation", contradictions.CONTRADICTIONS.values(), ids=contradictions.CONTRADICTIONS
)
def test_each_contradiction_is_found(agreed, page, build, mutation):
    """Signed, with every passage and every value left out, and against itself."""
    record = build.record(**mutation(build, build.record()))
    receipt, vkey = build.forge(record, openings={}, shown=[])
    data = altered(receipt.to_bytes(), lambda it: it.update(hits=[None] * len(record.hits)))
    assert agreed(data, vkey) == 1
    wrong = "contradicts itself|which no recorded mask admits|does not hold the heads"
    assert re.search(wrong, page.says(data, vkey)[1])


@pytest.mark.parametrize("count", [examples(500), pytest.param(10_000, marks=pytest.mark.full)])
def test_no_mutant_divides_the_three(agreed, originals, key, count):
    """Four fifths altered without the log's key, one fifth signed by a log that lies."""
    altered_ones = two.drawn(functools.partial(mutants.altered_file, originals), originals, count * 4 // 5)
    lies = two.drawn(functools.partial(mutants.signed_lie, originals, key), originals, count // 5)
    counts = Counter(agreed(data, str(key.verifier)) for data in itertools.chain(altered_ones, lies))
    assert counts.total() == count
    assert min(counts[code] for code in (0, 1, 2)) > count // 50


@pytest.mark.parametrize("count", [examples(500), pytest.param(10_000, marks=pytest.mark.full)])
def test_no_mutant_of_an_erasure_of_documents_divides_the_three(agreed, build, key, count):
    """Half altered without the log's key, half signed by a log that lies; people shown, and left out."""
    shown = {name: Opening(b"s" * 32, name) for name in ("actor", "approver")}
    said = {**{name: one.commitment(name) for name, one in shown.items()}, "targets": b"t" * 32}
    files = [
        build.forge(build.record(event=event, hits=(), commitments=said), openings=opened, shown=[])[0]
        for event in (events.erased(), events.erased(ids=(b"I" * 32,), kept=(), beyond=()))
        for opened in (shown, {})
    ]
    originals = [one.to_bytes() for one in files]
    altered_ones = two.drawn(functools.partial(mutants.altered_file, originals), originals, count // 2)
    lies = two.drawn(functools.partial(mutants.signed_lie, originals, key), originals, count // 2)
    counts = Counter(agreed(data, str(key.verifier)) for data in itertools.chain(altered_ones, lies))
    assert counts.total() == count
    assert min(counts[code] for code in (0, 1, 2)) > count // 100
