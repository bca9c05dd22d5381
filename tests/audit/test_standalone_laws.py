"""What scripts/verify_receipt.py holds to at its edges: who may be proved, when, and how long anything may be."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from carag.audit import EntityRule, IndexState, PolicyApplied, StateView
from tests.loaded import loaded

SCRIPT = Path(__file__).parents[2] / "scripts" / "verify_receipt.py"
script = loaded(SCRIPT, "scripts.verify_receipt")
HERE = Path(__file__).parent
tables, begins = (loaded(HERE / f"test_{name}.py", f"laws_of_test_{name}") for name in ("verify", "begin"))


@pytest.fixture
def judge(tmp_path, capsys):
    """Run the command on some bytes; return its exit code and what it said."""

    def run(data, vkey):
        path = tmp_path / "given"
        path.write_bytes(data)
        code = script.main([str(path), "--key", vkey])
        return code, capsys.readouterr().out

    return run


@pytest.fixture
def signed(build):
    """Sign a receipt in order."""
    receipt, vkey = build.forge(build.record())
    return receipt.to_bytes(), vkey


# -- records


def test_a_begin_is_judged_like_the_question_it_begins(build):
    """It commits to the question, and to lists if it has some."""
    asked = build.record().commitments
    begun = build.record(
        event=begins.begin(), hits=(), commitments={n: asked[n] for n in ("query", "subject")}
    )
    script.check_record(script.read_record(begun.to_bytes()))
    silent = dataclasses.replace(begun, commitments={"subject": asked["subject"]})
    with pytest.raises(script.Failed, match="commits to no question"):
        script.check_record(script.read_record(silent.to_bytes()))


def test_what_is_reopened_admits_under_a_list_of_its_own(build):
    """A passage that no other pair admits; and the record commits to that list."""
    rule = EntityRule("deny", 2)
    policy = PolicyApplied(b"T" * 32, ((0x40, 0),), reopened=((0x21, 0),), reopened_entities=rule)
    event, asked = build.access(policy=policy), build.record().commitments
    listed = build.record(event=event, commitments={**asked, "entities": b"c" * 32})
    script.check_record(script.read_record(listed.to_bytes()))
    with pytest.raises(script.Failed, match="commits to lists it has not"):
        script.check_record(script.read_record(build.record(event=event).to_bytes()))


def test_an_explanation_is_of_passages_that_no_search_found(build):
    """Its index may have no admissible row."""
    asked, index = build.record().commitments, IndexState(build.state().root, 0, "exact")
    explained = build.record(
        event=build.access(kind="explain", index=index),
        commitments={name: asked[name] for name in ("query", "subject")},
    )
    uncited = dataclasses.replace(
        explained, hits=tuple(dataclasses.replace(hit, cited=False) for hit in explained.hits)
    )
    script.check_record(script.read_record(uncited.to_bytes()))


def test_a_record_in_another_s_place_is_told_by_both(build, judge):
    """Where it stands, and where it says it does."""
    receipt, vkey = build.forge(build.record(seq=0))
    code, said = judge(receipt.to_bytes(), vkey)
    assert (1, f"FAILED: entry 1 of {build.ORIGIN} says it is entry 0 of {build.ORIGIN}\n") == (code, said)


# -- the index state


def test_a_passage_is_proved_by_a_name_of_any_script(build, judge):
    """What is hashed is its text as UTF-8, and no spelling of it in ASCII."""
    passage = dataclasses.replace(build.passages()[0], chunk="Überblick:00000")
    label = build.label(passage)
    view = StateView.of({build.place_of(label): label.leaf(b"K" * 32)})
    event = build.access(index=IndexState(view.root, 1, "exact"))
    receipt, vkey = build.forge(
        build.record(event=event, hits=(passage.hit,)), shown=[(passage.chunk, passage.text)]
    )
    proved = dataclasses.replace(receipt, proofs=(build.prove(label, view),))
    code, said = judge(proved.to_bytes(), vkey)
    assert (code, "stood in its index state" in said) == (0, True)


@pytest.mark.parametrize("as_of", [0xFFFFFFFF, 0xFFFFFFFE])
def test_a_sealed_end_may_be_the_end_of_time(build, judge, as_of):
    """Whoever asks about the last minute there is learns that the word held."""
    labels = [build.label(passage) for passage in build.passages(5)]
    receipt, vkey = tables.forged_over(build, labels, as_of=as_of)
    sealed = dataclasses.replace(receipt, proofs=tuple(proof.sealed() for proof in receipt.proofs))
    assert judge(sealed.to_bytes(), vkey)[0] == 0


# -- lengths and forms


def test_a_receipt_is_read_to_its_limit_and_ends_in_a_newline(signed, judge, monkeypatch):
    """A byte more, or another last one, and nothing can be told."""
    data, vkey = signed
    monkeypatch.setattr(script, "MAX_BYTES", len(data))
    assert [0, 2] == [judge(one, vkey)[0] for one in (data, data[:-1] + b" ")]
    keys = script.parse_vkeys(vkey)
    monkeypatch.setattr(script, "MAX_BYTES", len(data) - 1)
    with pytest.raises(script.CannotTell, match="at most"):
        script.check_receipt(data, keys)


@pytest.mark.parametrize("form", ["carag-receipt/v9", "", None, 2])
def test_a_receipt_is_of_a_format_that_is_known(signed, judge, form):
    """In order otherwise, and signed."""
    data, vkey = signed
    code, said = judge(tables.altered(data, lambda fields: fields.update(format=form)), vkey)
    assert (2, True) == (code, "not a receipt of format" in said)


def test_a_record_is_read_to_its_limit(build, monkeypatch):
    """Which is below what an entry of a log's bundle may have."""
    body = build.record().to_bytes()
    monkeypatch.setattr(script, "MAX_RECORD_BYTES", len(body))
    assert json.loads(body) == script.read_record(body)
    monkeypatch.setattr(script, "MAX_RECORD_BYTES", len(body) - 1)
    with pytest.raises(script.CannotTell):
        script.read_record(body)


def test_a_proof_has_a_word_a_number_hashes_and_a_note():
    """No other word, no proof without a note, and no more hashes than the largest tree has levels."""
    line = "A" * 43 + "="
    longest = "\n".join(["index 7", *[line] * 63])
    assert (7, [bytes(32)] * 63, "note") == script.parse_proof(f"{longest}\n\nnote", "index")
    for proof in (f"{longest}\n{line}\n\nnote", "other 0\n\nnote", "index 0", "index\n\nnote", ""):
        with pytest.raises(script.CannotTell):
            script.parse_proof(proof, "index")


def test_what_cannot_be_seen_is_spelt_out():
    """And nothing else is."""
    assert "a\u00e9 \\u202e\\x1b[1m\\n" == script.visible("a\u00e9 \u202e\x1b[1m\n")
