"""Others agree with us: Go's sumdb packages, the standalone verifier and pymerkle, on a random log and on 2,000 lies.

Go's ``note`` and ``tlog`` verify the Go checksum database; Debian packages them. Without them these tests are
skipped, and where ``CARAG_REQUIRE_GO`` is set, as in ``.ci/run``, that is a failure.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import random
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from carag.audit import Checkpoint, ConsistencyProof, InclusionProof, Note, SigningKey
from carag.audit.auditor.reader import LogReader
from carag.audit.receipts.check_proof import check_checkpoint, check_consistency, check_inclusion
from carag.audit.receipts.verify import Verdict
from carag.audit.tlog import merkle
from carag.audit.tlog.encoding import b64
from carag.audit.tlog.log_verifier import LogVerifier
from carag.audit.tlog.note import NoteSignature
from tests.loaded import loaded

HERE = Path(__file__).parents[1]
GO_PATH = Path("/usr/share/gocode")
RECORDS = 1000
EACH = 170
CLASSES = 12
ORDER = 2**252 + 27742317777372353535851937790883648493  # of Ed25519's base point


@pytest.fixture(scope="module")
def log(tmp_path_factory, build):
    """Grow a random log of 1,000 records and keep every checkpoint, as its users would."""
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


def as_bytes(text):
    return text if isinstance(text, bytes) else text.encode()


@pytest.fixture(scope="session")
def go(tmp_path_factory):
    """Build the verifier on Go's own packages; return a function that judges a batch."""
    missing = None
    if shutil.which("go") is None:
        missing = "no `go`; apt-get install golang-go golang-golang-x-mod-dev"
    elif not (GO_PATH / "src/golang.org/x/mod/sumdb/tlog").is_dir():
        missing = "no sumdb packages; apt-get install golang-golang-x-mod-dev"
    if missing:
        if os.environ.get("CARAG_REQUIRE_GO"):
            pytest.fail(missing)
        pytest.skip(missing)
    place = tmp_path_factory.mktemp("go")
    environment = {
        **os.environ,
        "GO111MODULE": "off",
        "GOPATH": str(GO_PATH),
        "GOCACHE": str(place / "cache"),
    }
    command = ["go", "build", "-o", str(place / "judge"), "."]
    subprocess.run(command, cwd=HERE / "go", env=environment, check=True)

    def judge(questions, vkey):
        lines = [
            json.dumps(
                {
                    "kind": q["kind"],
                    "vkey": vkey,
                    **{
                        name: base64.b64encode(as_bytes(q[name])).decode()
                        for name in ("record", "old", "text")
                        if name in q
                    },
                }
            )
            for q in questions
        ]
        done = subprocess.run(
            [place / "judge"], input="\n".join(lines), capture_output=True, text=True, check=True
        )
        answers = done.stdout.splitlines()
        assert len(answers) == len(questions)
        return [answer == "ok" for answer in answers]

    return judge


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
    path = HERE.parents[1] / "scripts" / "verify_receipt.py"
    script = loaded(path, "scripts.verify_receipt")
    script.ed25519_verify = functools.cache(script.ed25519_verify)

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


# -- mutations: each returns a changed copy, or None where it does not apply


def flipped(data, rng):
    changed = bytearray(data)
    changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def split(q):
    """Take a text apart: what stands before the checkpoint, and the checkpoint."""
    if q["kind"] == "checkpoint":
        return "", q["text"]
    head, _, note = q["text"].partition("\n\n")
    return head + "\n\n", note


def with_note(q, change):
    head, text = split(q)
    return {**q, "text": head + change(Note.parse(text)).to_text()}


def with_path(q, change):
    """Change the list of hashes."""
    if q["kind"] == "checkpoint":
        return None
    lines = q["text"].split("\n\n")[0].split("\n")
    start = 2 if q["kind"] == "inclusion" else 1
    path = change([base64.b64decode(line) for line in lines[start:]])
    if path is None:
        return None
    head = "\n".join([*lines[:start], *map(b64, path)])
    return {**q, "text": f"{head}\n\n{split(q)[1]}"}


def record_byte(q, rng, log):
    return {**q, "record": flipped(q["record"], rng)} if q["kind"] == "inclusion" else None


def index(q, rng, log):
    near = lambda n: rng.choice([n - 1, n + 1, n ^ 1, rng.randrange(2000), 2**63 - 1, 2**63, -n])  # noqa: E731
    return {
        **q,
        "text": re.sub(r"(index|old) (\d+)", lambda m: f"{m[1]} {near(int(m[2]))}", q["text"], count=1),
    }


def size(q, rng, log):
    """Put another checkpoint of the log, honestly signed, under the proof; or write another size."""
    if q["kind"] != "checkpoint" and rng.random() < 0.6:
        return {**q, "text": split(q)[0] + log.notes[rng.randrange(1, RECORDS + 1)].to_text()}
    number = rng.choice([0, 1, 10**18, 2**63 - 1, 2**63, rng.randrange(RECORDS)])
    return with_note(q, lambda note: Note(re.sub(r"\n\d+\n", f"\n{number}\n", note.text), note.signatures))


def path_removed(q, rng, log):
    def change(path):
        return path and (path.pop(rng.randrange(len(path))), path)[1]

    return with_path(q, lambda path: change(path) if path else None)


def path_added(q, rng, log):
    def change(path):
        path.insert(rng.randrange(len(path) + 1), rng.choice([*path, rng.randbytes(32)]))
        return path

    return with_path(q, change)


def path_swapped(q, rng, log):
    def change(path):
        if len(path) < 2:
            return None
        a, b = rng.sample(range(len(path)), 2)
        path[a], path[b] = path[b], path[a]
        return path

    return with_path(q, change)


def path_altered(q, rng, log):
    def change(path):
        if not path:
            return None
        place = rng.randrange(len(path))
        path[place] = rng.choice(
            [flipped(path[place], rng), path[place][:-1], path[place] + b"\0", bytes(32)]
        )
        return path

    return with_path(q, change)


def checkpoint_text(q, rng, log):
    def change(note):
        origin, number, root, _ = note.text.split("\n")
        text = rng.choice(
            [
                f"{origin}\n{number}\n{b64(flipped(base64.b64decode(root), rng))}\n",
                f"{origin}\n{number}\n{root}\nextension {rng.random()}\n",
                f"{origin}\n{root}\n{number}\n",
                f"{origin}\n{number}\n",
                f"{origin}\n\n{number}\n{root}\n",
            ]
        )
        return Note(text, note.signatures)

    return with_note(q, change)


def signature(q, rng, log):
    def change(note):
        (one,) = note.signatures
        s = int.from_bytes(one.signature[32:], "little")
        data = rng.choice(
            [
                flipped(one.signature, rng),
                one.signature[: rng.randrange(1, 64)],
                one.signature + rng.randbytes(1),
                one.signature[:32]
                + (s + ORDER).to_bytes(32, "little"),  # the same signature, were it not for S < L
                rng.choice(list(log.notes.values())).signatures[0].signature,
                bytes(64),
            ]
        )
        return Note(note.text, (NoteSignature(one.name, one.key_id, data),))

    return with_note(q, change)


def origin(q, rng, log):
    """Sign, with the right key, the same tree under the name of another log; or only write another name."""
    other = f"audit.example/{rng.randrange(10**9)}"

    def change(note):
        if rng.random() < 0.5:
            return log.key.sign(note.text.replace(log.key.name, other, 1))
        text = rng.choice([note.text, note.text.replace(log.key.name, other, 1)])
        (one,) = note.signatures
        name = rng.choice([one.name, other]) if text != note.text else other
        return Note(text, (NoteSignature(name, one.key_id, one.signature),))

    return with_note(q, change)


def key_id(q, rng, log):
    """Alter the id, or let another key of the same name sign, under its own id, or under ours, or there once more."""

    def change(note):
        (one,) = note.signatures
        other = SigningKey(one.name, rng.randbytes(32)).sign(note.text).signatures[0]
        false = NoteSignature(one.name, one.key_id, other.signature)
        return Note(
            note.text,
            rng.choice(
                [
                    (NoteSignature(one.name, flipped(one.key_id, rng), one.signature),),
                    (other,),
                    (false,),
                    (one, false),
                    (other, one, false),
                    (false, one),
                    (one, one),
                ]
            ),
        )

    return with_note(q, change)


def stray_bits(text, rng):
    """Set a bit that base64 of 32 or 68 bytes does not use: the same bytes in another spelling."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    ends = [match.start() for match in re.finditer(r"[A-Za-z0-9+/]=\n", text)]
    at = rng.choice(ends)
    return text[:at] + alphabet[alphabet.index(text[at]) ^ 1] + text[at + 1 :]


ENCODINGS = [
    lambda t, rng: t.replace("\n", "\r\n"),
    lambda t, rng: "\ufeff" + t,
    lambda t, rng: t + rng.choice([" ", "\n", "\0", "x"]),
    lambda t, rng: t[:-1],
    lambda t, rng: re.sub(r"(?m)^(\d+)$", rng.choice([r"0\1", r"+\1", r"\1 ", r" \1"]), t, count=1),
    lambda t, rng: re.sub(
        r"(index|old) ", rng.choice([r"\1  ", r"\1 0", r"\1 +", r"\1\t", r" \1 "]), t, count=1
    ),
    lambda t, rng: re.sub(r"=\n", "\n", t, count=1),
    lambda t, rng: re.sub(r"([+/])", lambda m: {"+": "-", "/": "_"}[m[1]], t[::-1], count=1)[::-1],
    lambda t, rng: t.replace("\u2014", rng.choice(["-", "\u2013", "\u2014\u2014"])),
    lambda t, rng: t.encode().replace(b"\xe2\x80\x94", rng.choice([b"\x97", b"\xe2\x80"])),
    stray_bits,
    lambda t, rng: t.replace("\n\n", "\n\n\n", 1),
    lambda t, rng: t.replace("\n", "\n\n", 1),
]


def encoding(q, rng, log):
    return {**q, "text": rng.choice(ENCODINGS)(q["text"], rng)}


MUTATIONS = [
    record_byte,
    index,
    size,
    path_removed,
    path_added,
    path_swapped,
    path_altered,
    checkpoint_text,
    signature,
    origin,
    key_id,
    encoding,
]


def lie(log, honest, each):
    """Draw altered proofs from the honest ones, as many of each class."""
    rng, made = random.Random(13), []  # noqa: S311
    for mutation in MUTATIONS:
        count = 0
        while count < each:
            q = rng.choice(honest)
            changed = mutation(q, rng, log)
            if changed is not None and changed != q:
                made.append((mutation.__name__, changed))
                count += 1
    return made


@pytest.fixture(scope="module")
def lies(log, honest):
    """2,040 altered proofs: 170 of each class."""
    return lie(log, honest, EACH)


def test_there_are_two_thousand_lies_of_twelve_classes(lies):
    """At least 50 of each class."""
    counts = Counter(name for name, _ in lies)
    assert (len(counts), counts.total()) == (CLASSES, CLASSES * EACH)
    assert min(counts.values()) >= 50
    assert counts.total() >= 2000


@pytest.fixture(params=["go", "standalone", "ours"])
def verifier(request):
    """One verifier after the other."""
    return ours if request.param == "ours" else request.getfixturevalue(request.param)


def test_every_honest_proof_is_accepted(log, honest, verifier):
    """Every checkpoint, inclusion proof and consistency proof of a random log of 1,000 records."""
    answers = verifier(honest, log.vkey)
    refused = [q for q, accepted in zip(honest, answers, strict=True) if not accepted]
    assert refused == []


def test_every_lie_is_rejected(log, lies, verifier):
    """None of 2,040 mutations, in any class."""
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
    """A witness's, the log's next key's, and what nobody could have signed: none of them is judged."""
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
    """Every root from 1 to 1,000 records, every path under the newest and one under each size."""
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
    """All 500,500 pairs."""
    from carag.audit.auditor.second_opinion import node_tree

    tree, node = node_tree(log.reader), functools.cache(log.reader.node)
    for size_ in range(1, RECORDS + 1):
        for seq in range(size_):
            assert tree.prove_inclusion(seq + 1, size_).path[1:] == merkle.inclusion_proof(node, seq, size_)
