"""scripts/verify_receipt.py: one file, Python alone, and it says what our own verifier says."""

from __future__ import annotations

import ast
import dataclasses
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from carag.audit import (
    Checkpoint,
    RecordKind,
    Recovery,
    SigningKey,
    disclose,
    erase,
    place_hold,
    release_hold,
)
from carag.audit.auditor.export import export_log, write_proof
from carag.audit.auditor.reader import LogReader
from carag.audit.operations.rotation import rotate
from carag.audit.tlog.keys import MlDsaKey
from tests.audit.receipts.alterations import altered
from tests.audit.receipts.page import SCRIPT, script
from tests.audit.records import test_begin as begins
from tests.audit.records import test_events as events
from tests.audit.tlog import test_keys as key_tables

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


# -- keys of a log whose key was changed


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
        log.append(next(events.under_glass(build)).event, secrets={"reason": "drill"})
        log.append(events.erased(), secrets={"targets": "[]"})
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
