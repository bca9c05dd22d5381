"""Others agree with us: Go's sumdb packages, the standalone verifier and pymerkle, on a random log and its lies.

Go's ``note`` and ``tlog`` verify the Go checksum database; Debian packages them. Without them these tests are
skipped, and where ``CARAG_REQUIRE_GO`` is set, as in ``.ci/run``, that is a failure.
"""

from __future__ import annotations

import functools
import random
from collections import Counter
from types import SimpleNamespace

import pytest

from carag.audit import Checkpoint, ConsistencyProof, InclusionProof, Note, SigningKey
from carag.audit.auditor.reader import LogReader
from carag.audit.receipts.check_proof import check_checkpoint, check_consistency, check_inclusion
from carag.audit.receipts.verify import Verdict
from carag.audit.tlog import merkle
from carag.audit.tlog.log_verifier import LogVerifier
from carag.audit.tlog.note import NoteSignature
from tests.audit.go_judge import as_bytes, built
from tests.audit.receipts.page import script
from tests.audit.tlog.lies import lie, split, with_note
from tests.sizes import examples

RECORDS = min(1000, examples(1000))
EACH = min(170, examples(170))
CLASSES = 12


@pytest.fixture(scope="module")
def log(tmp_path_factory, build):
    """Grow a random log and keep every checkpoint, as its users would."""
    rng = random.Random(20261122)  # noqa: S311
    directory = tmp_path_factory.mktemp("random")
    with build.open_log(directory) as log:
        notes = {}
        for _ in range(RECORDS):
            event = rng.choice([build.access, build.access, build.refusal, build.ingest])()
            passages = build.passages(rng.randrange(1, 9)) if event.kind == "query" and event.index else ()
            secrets = {
                name: rng.randbytes(rng.randrange(40)).hex() for name in ("query", "answer", "subject")
            }
            wanted = {"query": ("query", "subject"), "ingest": ("subject",)}[event.kind]
            wanted = (*wanted, "answer") if passages else wanted
            receipt = log.append(event, secrets={n: secrets[n] for n in wanted}, passages=passages)
            notes[receipt.seq + 1] = InclusionProof.parse(receipt.proof).checkpoint
        key = SigningKey.parse((directory / "audit.key").read_text())
    with LogReader(directory, vkey=str(key.verifier)) as reader:
        yield SimpleNamespace(reader=reader, notes=notes, key=key, vkey=str(key.verifier))


def checkpoint(log, size):
    return {"kind": "checkpoint", "text": log.notes[size].to_text()}


def inclusion(log, seq, size):
    hashes = merkle.inclusion_proof(log.reader.node, seq, size)
    text = InclusionProof(seq, tuple(hashes), log.notes[size]).to_text()
    return {"kind": "inclusion", "record": log.reader.body(seq), "text": text}


def consistency(log, old, size):
    hashes = merkle.consistency_proof(log.reader.node, old, size)
    text = ConsistencyProof(old, tuple(hashes), log.notes[size]).to_text()
    return {"kind": "consistency", "old": log.notes[old].to_text(), "text": text}


@pytest.fixture(scope="module")
def honest(log):
    """Every checkpoint; every record under the newest; every older size under it; and as many pairs at random."""
    rng = random.Random(7)  # noqa: S311
    sizes = range(1, RECORDS + 1)
    pairs = [sorted((rng.choice(sizes), rng.choice(sizes))) for _ in sizes]
    return [
        *(checkpoint(log, size) for size in sizes),
        *(inclusion(log, seq, RECORDS) for seq in range(RECORDS)),
        *(inclusion(log, low - 1, high) for low, high in pairs),
        *(consistency(log, old, RECORDS) for old in sizes),
        *(consistency(log, low, high) for low, high in pairs),
    ]


# -- three verifiers, one question: does this hold?


@pytest.fixture(scope="session")
def go(tmp_path_factory):
    """Return a function that judges a batch with Go's own packages."""
    return built(tmp_path_factory.mktemp("go"))


def ours(questions, vkey):
    """Ask carag.audit.receipts.check_proof."""
    key = LogVerifier.parse(vkey)

    def one(q):
        try:
            text = as_bytes(q["text"]).decode()
        except UnicodeDecodeError:
            return False
        if q["kind"] == "checkpoint":
            found = check_checkpoint(text, key)
        elif q["kind"] == "inclusion":
            found = check_inclusion(q["record"], text, key)
        else:
            found = check_consistency(q["old"], text, key)
        return found.verdict is Verdict.VERIFIED

    return [one(q) for q in questions]


@pytest.fixture(scope="session")
def standalone():
    """Ask scripts/verify_receipt.py; signatures seen before are not computed again."""

    def one(q, keys):
        try:
            text = script.text_of(as_bytes(q["text"]), "the text")
            if q["kind"] == "checkpoint":
                script.open_checkpoint(text, keys)
            elif q["kind"] == "inclusion":
                script.check_inclusion(q["record"], text, keys)
            else:
                script.check_consistency(q["old"], text, keys)
        except (script.Failed, script.CannotTell):
            return False
        return True

    return lambda questions, vkey: [one(q, script.parse_vkeys(vkey)) for q in questions]


@pytest.fixture(scope="module")
def lies(log, honest):
    """Altered proofs, as many of each class."""
    return lie(log, honest, EACH)


def test_there_are_as_many_lies_of_each_of_twelve_classes(lies):
    """So that no class is missing where all are rejected; a release tries 2,040."""
    counts = Counter(name for name, _ in lies)
    assert (len(counts), set(counts.values())) == (CLASSES, {EACH})


@pytest.fixture(params=["go", "standalone", "ours"])
def verifier(request):
    """One verifier after the other."""
    return ours if request.param == "ours" else request.getfixturevalue(request.param)


def test_every_honest_proof_is_accepted(log, honest, verifier):
    """Every checkpoint, inclusion proof and consistency proof of the random log."""
    answers = verifier(honest, log.vkey)
    refused = [q for q, accepted in zip(honest, answers, strict=True) if not accepted]
    assert refused == []


def test_every_lie_is_rejected(log, lies, verifier):
    """No mutation, in any class."""
    answers = verifier([q for _, q in lies], log.vkey)
    assert [lie for lie, accepted in zip(lies, answers, strict=True) if accepted] == []


# -- more than one key


def signed_also(q, *lines):
    """Put lines under the checkpoint, one of them in front of the log's own."""
    return with_note(q, lambda note: Note(note.text, (*lines[:1], *note.signatures, *lines[1:])))


def line_by(key, q):
    return key.sign(Note.parse(split(q)[1]).text).signatures[0]


@pytest.fixture(scope="module")
def successor(log):
    """The log's next key: of the same name."""
    return SigningKey(log.key.name, b"n" * 32)


def test_lines_of_unknown_keys_are_ignored(log, honest, successor, verifier):
    """A witness's, the log's next key's, and a random one: none of them is judged."""
    rng = random.Random(17)  # noqa: S311
    witness = SigningKey("witness.example/w", b"w" * 32)
    questions = []
    for q in rng.sample(honest, 100):
        cosigned = NoteSignature("witness.example/v", rng.randbytes(4), rng.randbytes(8 + 64))
        questions.append(signed_also(q, line_by(witness, q), line_by(successor, q), cosigned))
    assert all(verifier(questions, log.vkey))
    assert not any(verifier(questions, str(SigningKey(log.key.name, b"o" * 32).verifier)))


def test_every_line_of_a_given_key_must_hold(log, honest, successor, verifier):
    """Of two keys either is enough, both may sign, and one false line condemns the note."""
    rng = random.Random(19)  # noqa: S311
    both = f"{successor.verifier}\n{log.vkey}"
    sample = [q for q in rng.sample(honest, 150) if q["kind"] != "consistency"]
    signed = [signed_also(q, line_by(successor, q)) for q in sample]
    renewed = [with_note(q, lambda note, q=q: Note(note.text, (line_by(successor, q),))) for q in sample]
    for questions in (sample, signed, renewed):
        assert all(verifier(questions, both))
    false = NoteSignature(successor.name, successor.verifier.key_id, rng.randbytes(64))
    condemned = [
        signed_also(q, *order) for q in sample for order in ([false], [line_by(successor, q), false])
    ]
    assert not any(verifier(condemned, both))
    assert verifier(condemned, log.vkey) == [True, False] * len(sample)


@pytest.mark.full
def test_no_lie_of_a_hundred_thousand_is_accepted(log, honest, verifier):
    """8,500 of each class."""
    questions = [q for _, q in lie(log, honest, 8500)]
    assert len(questions) == 102_000
    assert not any(verifier(questions, log.vkey))


def test_pymerkle_agrees_on_every_root_and_path(log):
    """Every root of every size, every path under the newest and one under each size."""
    from carag.audit.auditor.second_opinion import disagreements, node_tree

    assert disagreements(log.reader, range(RECORDS)) == []
    tree, rng = node_tree(log.reader), random.Random(3)  # noqa: S311
    for size_, note in log.notes.items():
        assert tree.get_root(size_) == Checkpoint.parse(note.text).root
        seq = rng.randrange(size_)
        ours_ = merkle.inclusion_proof(log.reader.node, seq, size_)
        assert tree.prove_inclusion(seq + 1, size_).path[1:] == ours_


@pytest.mark.full
def test_pymerkle_agrees_on_every_path_under_every_size(log):
    """All pairs of a record and a size."""
    from carag.audit.auditor.second_opinion import node_tree

    tree, node = node_tree(log.reader), functools.cache(log.reader.node)
    for size_ in range(1, RECORDS + 1):
        for seq in range(size_):
            assert tree.prove_inclusion(seq + 1, size_).path[1:] == merkle.inclusion_proof(node, seq, size_)
