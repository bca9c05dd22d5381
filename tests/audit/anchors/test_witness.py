"""Witness and client over the loopback interface: two histories are never both cosigned."""

from __future__ import annotations

import dataclasses
import shutil
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carag.audit.anchors.evidence import Evidence
from carag.audit.anchors.trust_policy import TrustPolicy
from carag.audit.anchors.witness import WitnessAnchor
from carag.audit.tlog.checkpoint import Checkpoint
from carag.audit.tlog.keys import SigningKey, WitnessKey, WitnessSigningKey
from carag.audit.tlog.merkle import EMPTY_ROOT, Frontier, consistency_proof, leaf_hash
from carag.audit.tlog.note import Note
from carag.audit.tlog.proof import ConsistencyProof
from carag.errors import AnchorUnavailable, CorruptFile
from tests.audit.anchors.witness import Witness
from tests.sizes import examples

ORIGIN = "audit.example/test"
KEY = SigningKey(ORIGIN, b"k" * 32)


class Tree:
    """A tree in memory that can be forked."""

    def __init__(self, leaves=0, salt=b""):
        self.frontier, self.nodes = Frontier(), {}
        self.roots = [EMPTY_ROOT]
        for n in range(leaves):
            self.append(b"%d" % n + salt)

    def append(self, entry):
        for level, n, value in self.frontier.append(leaf_hash(entry)):
            self.nodes[level, n] = value
        self.roots.append(self.frontier.root())

    def request(self, old, size=None, key=KEY):
        size = self.frontier.size if size is None else size
        hashes = consistency_proof(lambda *at: self.nodes[at], old, size) if old else []
        note = key.sign(Checkpoint(key.name, size, self.roots[size]).to_text())
        return ConsistencyProof(old, tuple(hashes), note).to_text().encode()


# -- the witness played here


def watching(*keys, clock=lambda: 77):
    return Witness("witness.example/w1", [str(key.verifier) for key in (KEY, *keys)], clock)


@pytest.fixture
def witness():
    return watching()


def test_it_cosigns_what_continues(witness):
    """From nothing to 3, to 3 again, to 10: each cosignature verifies and bears the witness's time."""
    tree, key = Tree(10), WitnessKey.parse(witness.vkey)
    for old, size in ((0, 3), (3, 3), (3, 10)):
        answer = witness.add_checkpoint(tree.request(old, size))
        assert answer.status == 200
        text = Checkpoint(ORIGIN, size, tree.roots[size]).to_text()
        assert key.signed_at(Note.parse(f"{text}\n{answer.text}")) == 77


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 12), st.integers(0, 12)), max_size=12))
@settings(max_examples=examples(60), deadline=None)
def test_law_what_was_cosigned_is_one_history(requests):
    """Whatever is asked in whatever order, from two forks: all that was cosigned is a chain of prefixes."""
    one, other = Tree(12), Tree(12)
    other.roots, other.nodes, other.frontier = [EMPTY_ROOT], {}, Frontier()
    for n in range(12):
        other.append(b"%d" % n if n < 4 else b"fork %d" % n)
    cosigned, witness = [], watching()
    for fork, old, size in requests:
        if old > size:
            continue
        tree = other if fork else one
        if witness.add_checkpoint(tree.request(old, size)).status == 200:
            cosigned.append((size, tree.roots[size]))
    assert sorted(cosigned) == cosigned
    assert any(all(tree.roots[size] == root for size, root in cosigned) for tree in (one, other))


def refusals():
    tree, forked = Tree(10), Tree(10, salt=b"x")
    good = tree.request(5, 10)
    stranger = SigningKey(ORIGIN, b"s" * 32)
    renamed = SigningKey("audit.example/other", b"k" * 32)
    cut = good.split(b"\n", 2)
    return {
        "an old size that is not the last": (tree.request(3, 10), 409),
        "a smaller tree": (tree.request(0, 4), 409),
        "another root at the same size": (forked.request(5, 5), 409),
        "a fork": (forked.request(5, 10), 422),
        "a hash removed": (cut[0] + b"\n" + cut[2], 422),
        "a hash added": (cut[0] + b"\n" + cut[1] + b"\n" + cut[1] + b"\n" + cut[2], 422),
        "a stranger's signature": (tree.request(5, 10, stranger), 403),
        "another log": (tree.request(5, 10, renamed), 404),
        "old larger than the checkpoint": (b"old 11" + good[5:], 400),
        "no signature": (good.rsplit(b"\xe2", 1)[0], 400),
        "a leading zero": (b"old 05" + good[5:], 400),
        "CRLF": (good.replace(b"\n", b"\r\n"), 400),
        "not UTF-8": (b"\xff" + good, 400),
        "nothing": (b"", 400),
        "altered text": (good.replace(b"\n10\n", b"\n11\n"), 403),
    }


@pytest.mark.parametrize("name", refusals())
def test_it_refuses_with_the_specified_status_and_stays_where_it_was(witness, name):
    """404, 403, 400, 409 with the size, 422; and then the right request still succeeds."""
    request, status = refusals()[name]
    tree = Tree(10)
    assert witness.add_checkpoint(tree.request(0, 5)).status == 200
    answer = witness.add_checkpoint(request)
    assert answer.status == status
    if status == 409:
        assert (answer.text, answer.content_type) == ("5\n", "text/x.tlog.size")
    assert witness.add_checkpoint(tree.request(5, 10)).status == 200


def test_hashes_with_old_zero_are_refused(witness):
    """There is nothing to prove about the empty tree."""
    request = Tree(10).request(5, 10).replace(b"old 5", b"old 0")
    assert witness.add_checkpoint(request).status == 422


def test_of_two_forks_at_once_one_is_cosigned(witness):
    """Comparing and replacing is one step, however many ask."""
    trees = [Tree(8, salt=b"%d" % n) for n in range(8)]
    statuses, start = [], threading.Barrier(8)

    def ask(tree):
        start.wait()
        statuses.append(witness.add_checkpoint(tree.request(0, 8)).status)

    threads = [threading.Thread(target=ask, args=(tree,)) for tree in trees]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200] + [409] * 7


def test_a_rotated_key_is_accepted():
    """A log's new key is one more vkey; either signature will do, as long as those of known keys hold."""
    fresh = SigningKey(ORIGIN, b"f" * 32)
    witness = watching(fresh)
    assert witness.add_checkpoint(Tree(3).request(0, key=fresh)).status == 200
    assert witness.add_checkpoint(Tree(4).request(3)).status == 200
    both = ConsistencyProof.parse(Tree(5).request(4).decode())
    broken = fresh.sign("another text\n").signatures
    note = both.checkpoint.signed_also(broken)
    request = dataclasses.replace(both, checkpoint=note).to_text().encode()
    assert witness.add_checkpoint(request).status == 403


# -- the client


def policy_of(*witnesses, quorum="any"):
    lines = [f"witness w{n} {w.vkey} {w.url}" for n, w in enumerate(witnesses)]
    names = " ".join(f"w{n}" for n in range(len(witnesses)))
    return TrustPolicy.parse("\n".join([*lines, f"group all-of-them {quorum} {names}", "quorum all-of-them"]))


@pytest.fixture
def log(build, outside, tmp_path):
    with build.open_log(tmp_path / "log") as log:
        yield outside.grow(log, 5)


@pytest.fixture
def serving(outside, log):
    with outside.witnessing("witness.example/w0", log.vkey) as one:
        yield one


def test_a_quorum_cosigns_a_growing_log(log, serving, outside):
    """Two of three suffice, one being down; the evidence verifies offline and survives its file form."""
    down = SimpleNamespace(
        url="http://127.0.0.1:9", vkey=str(WitnessSigningKey("d.example", b"d" * 32).verifier)
    )
    with outside.witnessing("witness.example/w1", log.vkey) as second:
        anchor = WitnessAnchor(policy_of(serving, second, down, quorum="2"))
        for count in (1, 7, 0):
            outside.grow(log, count)
            submission = outside.submission(log)
            evidence = Evidence.parse(anchor.submit(submission).to_bytes())
            assert evidence.seen == outside.NOW * 1_000_000
            assert anchor.confirm(evidence, submission.keys).size == log.size
    fresh = WitnessAnchor(policy_of(serving, quorum="1"))  # knows no size: the witness's 409 tells it
    assert fresh.submit(outside.submission(outside.grow(log, 3))).tree.size == log.size


def test_too_few_are_no_quorum(log, serving, outside):
    """One of two is not two; the error names who failed and why."""
    down = SimpleNamespace(
        url="http://127.0.0.1:9", vkey=str(WitnessSigningKey("d.example", b"d" * 32).verifier)
    )
    anchor = WitnessAnchor(policy_of(serving, down, quorum="all"))
    with pytest.raises(AnchorUnavailable, match=r"w1: .*cannot be reached"):
        anchor.submit(outside.submission(log))


def test_evidence_without_its_quorum_is_refused(log, serving, outside):
    """Cosignatures removed or the time altered: the evidence proves nothing any more."""
    anchor = WitnessAnchor(policy_of(serving))
    submission = outside.submission(log)
    evidence = anchor.submit(submission)
    alone = Note(evidence.checkpoint.text, evidence.checkpoint.signatures[:1])
    foreign = SigningKey(log.origin, b"o" * 32).sign(evidence.checkpoint.text)
    for wrong in (
        dataclasses.replace(evidence, checkpoint=alone),
        dataclasses.replace(evidence, seen=evidence.seen + 1_000_000),
        dataclasses.replace(evidence, checkpoint=foreign.signed_also(evidence.checkpoint.signatures[1:])),
    ):
        with pytest.raises(CorruptFile):
            anchor.confirm(wrong, submission.keys)


def test_a_rolled_back_log_is_told(log, serving, outside, build, tmp_path):
    """The witness knows more records than the restored log has."""
    anchor = WitnessAnchor(policy_of(serving))
    shutil.copytree(tmp_path / "log", tmp_path / "copy")
    anchor.submit(outside.submission(outside.grow(log, 4)))
    with build.open_log(tmp_path / "copy") as restored:
        with pytest.raises(AnchorUnavailable, match="rolled back"):
            WitnessAnchor(policy_of(serving)).submit(outside.submission(restored))
        outside.grow(restored, 4)
        with pytest.raises(AnchorUnavailable, match="forked"):
            WitnessAnchor(policy_of(serving)).submit(outside.submission(restored))
        outside.grow(restored, 4)
        with pytest.raises(AnchorUnavailable, match="forked"):
            WitnessAnchor(policy_of(serving)).submit(outside.submission(restored))


def answers_of(log, outside):
    """What a broken or hostile witness may send: (status, content type, body)."""
    note = Note.parse(log.checkpoint())
    key = WitnessSigningKey("w.example/1", b"w" * 32)
    fresh, size = f"{key.cosign(note, outside.NOW).to_line()}\n", "text/x.tlog.size"
    old, future = (f"{key.cosign(note, outside.NOW + d).to_line()}\n" for d in (-301, 301))
    stranger = WitnessSigningKey("w.example/1", b"s" * 32).cosign(note, outside.NOW).to_line()
    other = key.cosign(Note(note.text.replace("\n5\n", "\n4\n"), ()), outside.NOW).to_line()
    return {
        "a replayed cosignature": (200, "text/plain", old, "old cosignature was repeated"),
        "one from the future": (200, "text/plain", future, "clocks"),
        "one by a stranger": (200, "text/plain", f"{stranger}\n", "without a valid"),
        "one of another checkpoint": (200, "text/plain", f"{other}\n", "without a valid"),
        "one twice": (200, "text/plain", fresh + fresh, "no signature lines"),
        "one without its newline": (200, "text/plain", fresh[:-1], "no signature lines"),
        "nothing": (200, "text/plain", "", "no signature lines"),
        "a page": (200, "text/html", "<html>\n", "no signature lines"),
        "a size that changes nothing": (409, size, "0\n", "another root"),
        "a larger size": (409, size, "6\n", "rolled back"),
        "a size with a sign": (409, size, "+3\n", "HTTP status 409"),
        "a size of another type": (409, "text/plain", "3\n", "HTTP status 409"),
        "a huge size": (409, size, "9" * 25, "HTTP status 409"),
        "422": (422, "text/plain", "no", "forked"),
        "403": (403, "text/plain", "no", "give its operator the vkey"),
        "404": (404, "text/plain", "no", "does not know"),
        "500": (500, "text/plain", "no", "HTTP status 500"),
        "too much": (200, "text/plain", "x" * (1 << 20) + "xx", "more than"),
    }


NAMES = ["a replayed cosignature", "one from the future", "one by a stranger", "one of another checkpoint"]
NAMES += ["one twice", "one without its newline", "nothing", "a page", "a size that changes nothing"]
NAMES += ["a larger size", "a size with a sign", "a size of another type", "a huge size"]
NAMES += ["422", "403", "404", "500", "too much"]


def saying(*script):
    """Serve a script of answers; the last repeats."""
    left = list(script)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            status, kind, text, *headers = left.pop(0) if len(left) > 1 else left[0]
            data = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            for name, value in headers:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    return ThreadingHTTPServer(("127.0.0.1", 0), Handler)


@pytest.mark.parametrize("name", NAMES)
def test_a_bad_answer_is_no_confirmation(log, outside, name):
    """Each is named for what it may be; none counts, none stops the log."""
    cases = answers_of(log, outside)
    assert list(cases) == NAMES
    status, kind, text, reason = cases[name]
    vkey = str(WitnessSigningKey("w.example/1", b"w" * 32).verifier)
    with outside.running(saying((status, kind, text))) as url:
        anchor = WitnessAnchor(policy_of(SimpleNamespace(url=url, vkey=vkey)))
        with pytest.raises(AnchorUnavailable, match=reason):
            anchor.submit(outside.submission(log))


@pytest.mark.parametrize("status", [302, 307])
def test_a_redirect_is_not_followed(log, serving, outside, status):
    """Not even to a witness that would cosign."""
    there = ("Location", f"{serving.url}/add-checkpoint")
    with outside.running(saying((status, "text/plain", "", there))) as url:
        anchor = WitnessAnchor(policy_of(SimpleNamespace(url=url, vkey=serving.vkey)))
        with pytest.raises(AnchorUnavailable, match=f"HTTP status {status}"):
            anchor.submit(outside.submission(log))


def test_sizes_that_keep_changing_end(log, outside):
    """A witness that names another size every time is given up."""
    size = "text/x.tlog.size"
    vkey = str(WitnessSigningKey("w.example/1", b"w" * 32).verifier)
    with outside.running(saying((409, size, "1\n"), (409, size, "2\n"), (409, size, "3\n"))) as url:
        anchor = WitnessAnchor(policy_of(SimpleNamespace(url=url, vkey=vkey)))
        with pytest.raises(AnchorUnavailable, match="3 times"):
            anchor.submit(outside.submission(log))
