"""A statement shows that the record of an erasure is about one document: to the package and to the script alike."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.audit import ErasureStatement, Recovery, Verdict, redact, verify_erasure
from carag.audit.records.custody import salted_id
from carag.errors import CorruptFile
from tests.audit.receipts import mutants
from tests.audit.receipts.alterations import altered
from tests.audit.receipts.page import script
from tests.audit.records import test_events as events
from tests.sizes import examples

DOCUMENTS = {"memo/7": b"7" * 16, "Läufe & Stände.md": b"8" * 16, "e\u0301": bytes(16)}
SALTS = st.binary(min_size=16, max_size=16)
IDS = st.text(min_size=1, max_size=30).filter(str.isprintable)


def sign(build, documents):
    """Sign the receipt of an erasure of some documents."""
    ids = tuple(salted_id(id_, salt) for id_, salt in documents.items())
    receipt, vkey = build.forge(build.record(event=events.erased(ids=ids), hits=(), commitments={}), shown=[])
    return receipt.to_bytes(), vkey


@pytest.fixture(scope="module")
def erasure(build):
    """The receipt of an erasure of three documents, and the key."""
    return sign(build, DOCUMENTS)


def judged(receipt, statement, vkey):
    """Ask package and script; return the verdict on which they agree."""
    ours = verify_erasure(receipt, statement, vkey)
    try:
        said = script.check_erased(receipt, statement, script.parse_vkeys(vkey))
    except script.Failed as failed:
        theirs, said = Verdict.FAILED, str(failed)
    except script.CannotTell as doubt:
        theirs, said = Verdict.UNDECIDED, str(doubt)
    else:
        theirs = Verdict.VERIFIED
    assert (ours.verdict, ours.erases is not None) == (theirs, theirs is Verdict.VERIFIED), (
        ours,
        said,
        statement,
    )
    return ours.verdict


# -- laws


@given(st.dictionaries(IDS, SALTS, min_size=1, max_size=4), IDS, SALTS)
def test_a_statement_holds_for_the_documents_of_the_record_and_for_no_other(build, documents, id_, salt):
    """Whatever ids and salts are: the oracle is the set of pairs."""
    receipt, vkey = sign(build, documents)
    pairs = {*documents.items()}
    tried = {
        *pairs,
        (id_, salt),
        *((id_, one) for one in documents.values()),
        *((one, salt) for one in documents),
    }
    for pair in tried:
        verdict = judged(receipt, ErasureStatement(1, *pair).to_bytes(), vkey)
        assert verdict is (Verdict.VERIFIED if pair in pairs else Verdict.FAILED)


@given(st.integers(0, 2**53 - 1), IDS, SALTS)
def test_a_statement_comes_back_from_its_bytes(record, id_, salt):
    one = ErasureStatement(record, id_, salt)
    assert ErasureStatement.parse(one.to_bytes()) == one


@pytest.mark.parametrize("count", [examples(2_000), pytest.param(10_000, marks=pytest.mark.full)])
def test_no_mutant_of_a_statement_divides_the_two(erasure, count):
    """And none verifies but one that says the same."""
    receipt, vkey = erasure
    rng, verdicts = random.Random(20261129), []  # noqa: S311
    whole = [ErasureStatement(1, *pair).to_json() for pair in DOCUMENTS.items()]
    while len(verdicts) < count:
        tree = json.loads(json.dumps(rng.choice(whole)))
        for _ in range(rng.choice([1, 1, 2])):
            mutants.mutate(tree, whole, rng)
        style = rng.choice(["canonical"] * 12 + ["spaced", "escaped", "unsorted"])
        data = mutants.encode(mutants.write(tree, style)) + rng.choice([b"\n"] * 9 + [b"", b"\n\n"])
        verdicts.append(judged(receipt, data, vkey))
        if verdicts[-1] is Verdict.VERIFIED:
            assert json.loads(data) in whole
    assert min(verdicts.count(one) for one in Verdict) > count // 50


# -- traps

SAID = ErasureStatement(1, "memo/7", b"7" * 16)


def test_a_redacted_receipt_is_as_good(erasure):
    """What is left out is not the hashes of the documents."""
    assert judged(redact(erasure[0]), SAID.to_bytes(), erasure[1]) is Verdict.VERIFIED


WRONG = {
    "another id": (SAID._replace(id="memo/8").to_bytes(), Verdict.FAILED),
    "an id in other code points": (
        ErasureStatement(1, "\u00e9", bytes(16)).to_bytes(),
        Verdict.FAILED,
    ),
    "another salt": (SAID._replace(salt=b"8" * 16).to_bytes(), Verdict.FAILED),
    # SHA-256 takes salt and id as one text: only the fixed length of the salt keeps them apart
    "a salt that took the first letter of the id": (
        SAID.to_bytes()
        .replace(b'"memo/7"', b'"emo/7"')
        .replace(b'"Nzc3Nzc3Nzc3Nzc3Nzc3Nw"', b'"Nzc3Nzc3Nzc3Nzc3Nzc3N20"'),
        Verdict.UNDECIDED,
    ),
    "another record": (SAID._replace(record=2).to_bytes(), Verdict.UNDECIDED),
    "another format": (SAID.to_bytes().replace(b"erased/v1", b"erased/v2"), Verdict.UNDECIDED),
    "a member more": (SAID.to_bytes().replace(b'{"format"', b'{"also":1,"format"'), Verdict.UNDECIDED),
    "a member less": (SAID.to_bytes().replace(b'"id":"memo/7",', b""), Verdict.UNDECIDED),
    "an id that is hidden": (SAID.to_bytes().replace(b"memo/7", "memo/\u202e7".encode()), Verdict.UNDECIDED),
    "a salt in hexadecimal": (
        SAID.to_bytes().replace(b"Nzc3Nzc3Nzc3Nzc3Nzc3Nw", b"37" * 16),
        Verdict.UNDECIDED,
    ),
    "a space at its end": (SAID.to_bytes()[:-1] + b" ", Verdict.UNDECIDED),
    "no newline": (SAID.to_bytes()[:-1], Verdict.UNDECIDED),
    "a list": (b"[]\n", Verdict.UNDECIDED),
    "nothing": (b"", Verdict.UNDECIDED),
}


@pytest.mark.parametrize(("data", "verdict"), WRONG.values(), ids=WRONG)
def test_each_false_statement_is_noticed(erasure, data, verdict):
    assert judged(erasure[0], data, erasure[1]) is verdict
    if verdict is Verdict.UNDECIDED and data != WRONG["another record"][0]:
        with pytest.raises(CorruptFile):
            ErasureStatement.parse(data)


def test_a_record_that_erases_nothing_fails(build):
    """Of another kind, under a good signature."""
    receipt, vkey = build.forge(build.record(event=Recovery("DRILL"), hits=(), commitments={}), shown=[])
    assert judged(receipt.to_bytes(), SAID.to_bytes(), vkey) is Verdict.FAILED


def test_an_altered_receipt_is_never_vouched_for(erasure):
    """However true the statement is."""
    receipt, vkey = erasure
    assert judged(receipt.replace(b"GDPR_17_1", b"GDPR_5_1_E"), SAID.to_bytes(), vkey) is Verdict.FAILED
    opened = altered(receipt, lambda it: it["openings"].update(actor={"salt": "A" * 43, "value": "eve"}))
    assert judged(opened, SAID.to_bytes(), vkey) is Verdict.FAILED
    assert judged(receipt[:-1], SAID.to_bytes(), vkey) is Verdict.UNDECIDED


# -- the command


def test_the_command_checks_both_files(erasure, judge, tmp_path):
    """And says which document it was, last."""
    (tmp_path / "said").write_bytes(SAID.to_bytes())
    erased = ("--erased", str(tmp_path / "said"))
    code, said = judge(*erasure, *erased)
    assert (code, said.splitlines()[-1]) == (0, "it erases document memo/7")
    (tmp_path / "said").write_bytes(SAID._replace(id="memo/8").to_bytes())
    assert judge(*erasure, *erased) == (1, "FAILED: record 1 does not erase document memo/8\n")
    assert judge(*erasure, "--erased", str(tmp_path / "none"))[0] == 2
    with pytest.raises(SystemExit, match="64"):
        judge(*erasure, *erased, "--old", "kept")
