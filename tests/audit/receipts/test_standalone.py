"""scripts/verify_receipt.py: one file, Python alone, and it says what our own verifier says."""

from __future__ import annotations

import ast
import dataclasses
import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.audit import (
    Checkpoint,
    InclusionProof,
    Outcome,
    RecordKind,
    Recovery,
    SigningKey,
    Verdict,
    disclose,
    erase,
    place_hold,
    release_hold,
    verify_receipt,
)
from carag.audit.auditor.export import export_log, write_proof
from carag.audit.auditor.reader import LogReader
from carag.audit.operations.rotation import rotate
from carag.audit.tlog.keys import MlDsaKey
from tests.audit.receipts.alterations import FAILED, STATE_LIES, UNREADABLE, altered
from tests.audit.records import test_begin as begins
from tests.audit.records import test_contradictions as contradictions
from tests.audit.records import test_events as events
from tests.audit.tlog import test_keys as key_tables
from tests.loaded import loaded

SCRIPT = Path(__file__).parents[3] / "scripts" / "verify_receipt.py"
CODES = {Verdict.VERIFIED: 0, Verdict.FAILED: 1, Verdict.UNDECIDED: 2}


script = loaded(SCRIPT, "scripts.verify_receipt")
HERE = Path(__file__).parents[1]
GOLDEN = HERE / "golden"
VKEY = (GOLDEN / "vkey").read_text().strip()


@pytest.fixture(scope="module")
def issued(tmp_path_factory, build):
    """Issue a receipt and keep its log."""
    directory = tmp_path_factory.mktemp("log")
    with build.open_log(directory) as log:
        receipts = [build.ask(log) for _ in range(6)]
        old = log.checkpoint()
        build.grow(log, 5)
        return receipts[-1].to_bytes(), log.vkey, directory, old


@pytest.fixture
def judge(tmp_path, capsys):
    """Run the command on some bytes; return its exit code and what it said."""

    def run(data, vkey, *more):
        path = tmp_path / "given"
        path.write_bytes(data)
        code = script.main([str(path), "--key", vkey, *more])
        return code, capsys.readouterr().out

    return run


# -- what it is


def test_it_needs_nothing_but_python_3_9():
    """It parses as 3.9 does, and imports the standard library only."""
    tree = ast.parse(SCRIPT.read_text("utf-8"), feature_version=(3, 9))
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported <= sys.stdlib_module_names
    # Evaluated at run time, `X | None` would need 3.10; in annotations it is text.
    assert "annotations" in {a.name for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]


def test_it_runs_alone(issued, tmp_path):
    """Isolated from every installed package, in an empty directory."""
    data, vkey, *_ = issued
    shutil.copy(SCRIPT, tmp_path)
    (tmp_path / "r.json").write_bytes(data)
    command = [sys.executable, "-I", "-S", "-W", "error", "verify_receipt.py", "r.json", "--key", vkey]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("verified: record 5 of ")
    command[-1] = str(SigningKey("other.example", b"o" * 32).verifier)
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode == 2


# -- receipts: altered as for our own verifier


MUTATIONS = {
    **{name: lambda data, change=change: altered(data, change) for name, (change, _) in FAILED.items()},
    **UNREADABLE,
}


@pytest.mark.parametrize("change", MUTATIONS.values(), ids=MUTATIONS)
def test_the_standalone_verifier_agrees(issued, judge, change):
    """The exit code is that of our own verdict, for every named mutation of a receipt."""
    data, vkey, *_ = issued
    verdict = verify_receipt(change(data), vkey).verdict
    code, said = judge(change(data), vkey)
    assert (code, verdict is Verdict.VERIFIED) == (CODES[verdict], False), said


def test_no_flipped_bit_verifies_here_either(issued, judge):
    """One bit of every byte, at an eighth of the places."""
    data, vkey, *_ = issued
    rng = random.Random(5)  # noqa: S311
    for position in rng.sample(range(len(data)), len(data) // 8):
        flipped = bytearray(data)
        flipped[position] ^= 1 << rng.randrange(8)
        code, said = judge(bytes(flipped), vkey)
        assert code in {1, 2}, (position, said)


def test_a_signed_lie_is_found(build, judge):
    """Passages outside the masks, a refusal with passages, another place: signed, and wrong."""
    record = build.record()
    receipt, vkey = build.forge(record)
    assert judge(receipt.to_bytes(), vkey)[0] == 0
    for word in (build.WORD | 1 << 31, 0, build.WORD | 0x10000):
        hits = (dataclasses.replace(record.hits[0], word=word), record.hits[1])
        code, said = judge(build.forge(dataclasses.replace(record, hits=hits))[0].to_bytes(), vkey)
        assert (code, "no recorded mask" in said) == (1, True)
    refused = dataclasses.replace(record, event=build.access(outcome=Outcome.REFUSE))
    assert judge(build.forge(refused)[0].to_bytes(), vkey)[0] == 1
    assert judge(build.forge(dataclasses.replace(record, seq=0))[0].to_bytes(), vkey)[0] == 1
    other, key = build.forge(record, origin="audit.example/other")
    assert judge(other.to_bytes(), key)[0] == 1


@pytest.mark.parametrize(
    "mutation", contradictions.CONTRADICTIONS.values(), ids=contradictions.CONTRADICTIONS
)
def test_each_contradiction_is_found_here_too(build, mutation):
    """Every law of a record that our own verifier knows, and none that breaks a record in order."""
    record = build.record()
    script.check_record(script.read_record(record.to_bytes()))
    refused = build.record(event=build.refusal(), hits=(), **contradictions.without(record, "answer"))
    script.check_record(script.read_record(refused.to_bytes()))
    with pytest.raises(script.Failed):
        script.check_record(script.read_record(build.record(**mutation(build, record)).to_bytes()))


@given(st.binary(max_size=300))
def test_garbage_is_no_receipt(data):
    """Whatever it is given, it ends in words."""
    keys = script.parse_vkeys(str(SigningKey("a", b"k" * 32).verifier))
    with pytest.raises((script.CannotTell, script.Failed)):
        script.check_receipt(data, keys)


# -- the index state


@pytest.mark.parametrize("lie", STATE_LIES.values(), ids=STATE_LIES)
def test_a_state_that_says_otherwise_fails(build, judge, lie):
    """Another word, not yet, no longer: the root is the record's, and what leads to it is another label."""
    first, *rest = build.passages(5)
    honest, vkey = build.forge_over([build.label(passage) for passage in (first, *rest)])
    code, said = judge(honest.to_bytes(), vkey)
    assert (code, "passages stood in its index state" in said) == (0, True)
    labels = [build.label(first, **lie), *(build.label(passage) for passage in rest)]
    receipt, vkey = build.forge_over(labels)
    code, said = judge(receipt.to_bytes(), vkey)
    assert (code, "the proof of passage 1" in said) == (1, True)


def test_a_passage_that_shows_less_ends_no_check(issued, build, judge):
    """The first is withheld, or has no proof; the second is another, and the verdict names it."""
    other = altered(
        issued[0], lambda f: (f["hits"].__setitem__(0, None), f["hits"][1].update(text="Another."))
    )
    code, said = judge(other, issued[1])
    assert (code, "passage 2 is not the one of" in said) == (1, True)
    first, second, *rest = build.passages(5)
    labels = [build.label(first), build.label(second, word=0x0800_0001), *(build.label(one) for one in rest)]
    receipt, vkey = build.forge_over(labels)
    bare = altered(receipt.to_bytes(), lambda f: f["hits"][0].update(proof=None))
    for data in (receipt.to_bytes(), bare):
        code, said = judge(data, vkey)
        assert (code, "the proof of passage 2 does not lead" in said) == (1, True)


def test_a_sealed_end_is_taken(build, judge):
    """From when a word holds is checked without until when."""
    for since, wanted in ((29_000_000, 0), (29_395_925, 0), (29_395_926, 1)):
        labels = [build.label(passage, since=since) for passage in build.passages(5)]
        receipt, vkey = build.forge_over(labels)
        sealed = dataclasses.replace(receipt, proofs=tuple(proof.sealed() for proof in receipt.proofs))
        assert judge(sealed.to_bytes(), vkey)[0] == wanted


def test_passages_without_a_proof_are_named(issued, build, judge):
    """Verified, and it says of which passages the state is not proved; a proof that leads nowhere fails."""
    first, second = (passage.chunk for passage in build.passages())
    code, said = judge(altered(issued[0], lambda f: f["hits"][1].update(proof=None)), issued[1])
    assert (code, said.count(first), said.count(second)) == (0, 0, 1)
    bare = altered(issued[0], lambda f: [hit.update(proof=None) for hit in f["hits"]])
    code, said = judge(bare, issued[1])
    assert (code, "stood in its index state" in said) == (0, False)
    assert f"without a proof that they stood in the index state: {first}, {second}" in said
    unsearched, vkey = build.forge(build.record(event=build.access(kind="explain", index=None)))
    assert judge(unsearched.to_bytes(), vkey)[0] == 1


def test_the_kept_receipt_verifies(judge):
    """In a flipped one nothing does, and a passage without the member for its proof is altered."""
    data = (GOLDEN / "receipt-v1.json").read_bytes()
    code, said = judge(data, VKEY)
    assert (code, "without a proof" in said) == (0, False)
    for position in range(0, len(data), 40):
        flipped = bytearray(data)
        flipped[position] ^= 1 << position % 7
        assert judge(bytes(flipped), VKEY)[0] in {1, 2}, position
    bare = altered(data, lambda f: f["hits"][0].pop("proof"))
    assert judge(bare, VKEY)[0] == 1


@pytest.mark.parametrize("body", [b"{}", b'{"v":2}', b'{"a": 1}', b'{"hits":[1],"v":1}'])
def test_a_record_of_a_form_unknown_here_cannot_be_told(build, judge, body):
    """Signed, and no record of a version known here: neither verified nor altered."""
    placed = body.replace(b"{", b'{"log":"audit.example/test","seq":1,', 1) if b"hits" in body else body
    receipt, vkey = build.forge(body=placed, openings={}, shown=[])
    assert judge(receipt.to_bytes(), vkey)[0] == 2


# -- keys of a log whose key was changed


def test_any_key_of_the_log_will_do_and_none_may_be_false(issued, build, judge, tmp_path):
    """One vkey a line; lines of unknown keys are ignored, a false one of a given key condemns."""
    data, vkey, *_ = issued
    other = SigningKey(build.ORIGIN, b"n" * 32)
    both = f"{other.verifier}\n\n{vkey}\n"
    (tmp_path / "vkeys").write_text(both)
    assert judge(data, both)[0] == judge(data, str(tmp_path / "vkeys"))[0] == 0
    text = InclusionProof.parse(json.loads(data)["proof"]).checkpoint.text
    line = other.sign(text).signatures[0].to_line()
    signed, false = (
        altered(data, lambda f, more=more: f.update(proof=f"{f['proof']}{more}\n"))
        for more in (line, f"{line[:-8]}AAAAAAA=")
    )
    assert [judge(signed, keys)[0] for keys in (vkey, str(other.verifier), both)] == [0, 0, 0]
    assert [judge(false, keys)[0] for keys in (vkey, str(other.verifier), both)] == [0, 1, 1]
    twice = altered(data, lambda f: f.update(proof=f"{f['proof']}{line}\n{line}\n"))
    assert judge(twice, vkey)[0] == 2
    for keys in (f"{vkey}\n{vkey}", f"{vkey}\n{SigningKey('other.example', b'o' * 32).verifier}", "\n"):
        assert judge(data, keys)[0] == 2


def test_mldsa_keys_are_left_out(issued, build, judge):
    """Python cannot check them; beside an Ed25519 key they stand in the file, and alone they prove nothing."""
    data, vkey, *_ = issued
    quantum = MlDsaKey(build.ORIGIN, b"q" * 1312)
    signed = SigningKey(build.ORIGIN, b"s" * 32).sign("x\n").signatures[0]
    line = dataclasses.replace(signed, key_id=quantum.key_id, signature=bytes(8 + 2420)).to_line()
    more = altered(data, lambda f: f.update(proof=f"{f['proof']}{line}\n"))
    assert judge(more, f"{vkey}\n{quantum}")[0] == 0
    assert judge(more, str(quantum))[0] == 2
    assert judge(more, f"{vkey}\n{quantum}"[:-8] + "AAAAAAA=")[0] == 2


@pytest.mark.parametrize("vkey", ["", "log.example", "a+00000000+AAAA", "a+b+c+d"])
def test_a_malformed_key_cannot_tell(issued, judge, vkey):
    """And says that a vkey is wanted."""
    assert judge(issued[0], vkey)[0] == 2


def test_keys_too_long_for_the_name_of_a_file_are_keys():
    """So are several of them on lines of their own."""
    vkeys = f"{SigningKey('log.example', b'k' * 32).verifier}\n{MlDsaKey('log.example', b'q' * 1312)}"
    assert (script.parse_vkeys(vkeys), "") == script.find_keys(vkeys, Path())


# -- the command


def test_every_remark_has_a_line_of_its_own(issued, judge):
    """First what is verified, then of what the state was proved, then what is missing."""
    data = altered(issued[0], lambda f: (f["hits"][1].update(proof=None), f["openings"].pop("answer")))
    code, said = judge(data, issued[1])
    first = [line.split(":")[0] for line in said.splitlines()]
    assert (code, first) == (
        0,
        [
            "verified",
            "passages stood in its index state with these texts and words",
            "without a proof that they stood in the index state",
            "withheld from this receipt",
        ],
    )


# -- proofs, directories and checkpoints


@pytest.fixture
def reader(issued):
    """Open the log of the receipt."""
    with LogReader(issued[2], vkey=issued[1]) as reader:
        yield reader


def test_a_proof_directory_is_checked(reader, issued, tmp_path, capsys):
    """Record, proof and key as `prove` writes them; one altered byte fails."""
    write_proof(reader, 3, tmp_path / "p")
    assert sorted(path.name for path in (tmp_path / "p").iterdir()) == [
        "proof.tlog-proof",
        "record.json",
        "vkey",
    ]
    assert script.main([str(tmp_path / "p")]) == 0
    assert "its maker chose it" in capsys.readouterr().out
    assert script.main([str(tmp_path / "p"), "--key", issued[1]]) == 0
    body = (tmp_path / "p" / "record.json").read_bytes()
    (tmp_path / "p" / "record.json").write_bytes(body.replace(b"buy_side", b"sell_side"))
    assert script.main([str(tmp_path / "p"), "--key", issued[1]]) == 1
    (tmp_path / "p" / "record.json").unlink()
    assert script.main([str(tmp_path / "p"), "--key", issued[1]]) == 2


def test_an_export_is_checked(reader, issued, tmp_path):
    """All records at once; an edit, a missing line and another order fail."""
    export_log(reader, tmp_path / "e")
    command = [str(tmp_path / "e"), "--key", issued[1]]
    assert script.main(command) == 0
    records = tmp_path / "e" / "records.jsonl"
    lines = records.read_bytes().splitlines(keepends=True)
    for wrong in (lines[:-1], lines[1:], [lines[1], lines[0], *lines[2:]], [*lines, lines[-1]]):
        records.write_bytes(b"".join(wrong))
        assert script.main(command) == 1
    edited = json.loads(lines[4])
    edited["role"] = "sell_side"
    text = json.dumps(edited, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    records.write_bytes(b"".join([*lines[:4], text.encode() + b"\n", *lines[5:]]))
    assert script.main(command) == 1


@pytest.fixture
def every_kind(tmp_path, build):
    """Grow a log with a record of every kind, over a change of its key."""
    with build.open_log(tmp_path / "all") as log:
        for record in events.one_of_each(build):
            secrets = {name: build.SECRETS[name] for name in record.commitments}
            if "query" in record.event.COMMITS:
                secrets["query"] = build.SECRETS["query"]
            log.append(record.event, secrets=secrets, passages=build.passages() if record.hits else ())
        begun = begins.start(log, build).seq
        log.append(build.access(begun=begun), secrets=build.SECRETS, passages=build.passages())
        log.append(key_tables.EVENTS["anchored"])
        placed = place_hold(log, "MATTER-1", actor="ana").seq
        release_hold(log, placed, actor="ana", approver="bo")
        disclose(log, begun, role="auditor", actor="ana", why="DRILL")
        erase(log, actor="ana", approver="bo", basis="GDPR_17_1_D", records=[begun])
        rotate(log, overlap=0)
        log.append(Recovery("DRILL"))
        kinds = {log.record(seq).kind for seq in range(log.size)}
    assert kinds == set(RecordKind) - {RecordKind.RETRIEVE, RecordKind.EXPLAIN}
    with LogReader(tmp_path / "all") as reader:
        yield reader


def test_records_of_every_kind_are_proved_and_exported(every_kind, tmp_path, capsys):
    """As `prove` and `export` write them, with the keys of a log whose key was changed."""
    size = every_kind.size
    export_log(every_kind, tmp_path / "e")
    assert len((tmp_path / "e" / "vkey").read_text().split()) == 2
    assert script.main([str(tmp_path / "e")]) == 0
    assert f"{size} records" in capsys.readouterr().out
    for seq in range(size):
        write_proof(every_kind, seq, tmp_path / str(seq))
        assert script.main([str(tmp_path / str(seq))]) == 0
        assert f"verified: record {seq} of" in capsys.readouterr().out


@pytest.mark.parametrize("change", ["id", "tc"])
def test_an_export_that_the_log_should_not_have_signed_fails(tmp_path, build, change):
    """A record entered twice, and one from before the one in front of it, under a good signature."""
    key, place = SigningKey(build.ORIGIN, b"k" * 32), tmp_path / "e"
    place.mkdir()
    bodies = [build.record(seq=seq, id=bytes([seq]) * 16).to_bytes() for seq in range(3)]
    for last, code in (
        (bodies[2], 0),
        (build.record(seq=2, **{"id": {"id": bytes(16)}, "tc": {"committed": 5}}[change]).to_bytes(), 1),
    ):
        records = [*bodies[:2], last]
        root = script.tree_root([script.leaf_hash(body) for body in records])
        (place / "records.jsonl").write_bytes(b"".join(body + b"\n" for body in records))
        (place / "checkpoint").write_text(key.sign(Checkpoint(key.name, 3, root).to_text()).to_text())
        assert script.main([str(place), "--key", str(key.verifier)]) == code


def test_checkpoints_and_consistency_proofs_are_checked(reader, issued, tmp_path, judge):
    """A kept checkpoint, a proof from it to now, and the same proof against another."""
    _, vkey, _, old = issued
    proof = reader.consistency(6)
    (tmp_path / "old").write_text(old)
    (tmp_path / "new").write_text(reader.checkpoint.to_text())
    assert judge(old.encode(), vkey) == (0, "verified: audit.example/test signed a checkpoint of 6 records\n")
    assert judge(proof.encode(), vkey, "--old", str(tmp_path / "old"))[0] == 0
    assert judge(proof.encode(), vkey, "--old", str(tmp_path / "new"))[0] == 1
    assert judge(proof.encode(), vkey, "--old", str(tmp_path / "none"))[0] == 2
    assert judge(old.replace("\n6\n", "\n7\n").encode(), vkey)[0] == 1
    key = SigningKey("audit.example/one", b"k" * 32)
    other = key.sign(f"audit.example/two\n0\n{'A' * 43}=\n").to_text()
    code, said = judge(other.encode(), str(key.verifier))
    assert (code, "signed a checkpoint of audit.example/two" in said) == (1, True)
