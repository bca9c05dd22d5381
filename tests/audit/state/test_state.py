"""The index state: one root for one set of labels, however it came about, and proofs that nothing else passes."""

from __future__ import annotations

import dataclasses
import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carag.audit import Label, Opening, StateProof, StateTree, StateView, place
from carag.audit.state.proof import state_entry
from carag.audit.tlog.encoding import b64url
from carag.audit.tlog.merkle import EMPTY_ROOT, leaf_hash, node_hash
from carag.errors import CaragError, CorruptFile
from carag.limits import MAX_MINUTE

KEY = b"K" * 32
MINUTES = st.integers(0, MAX_MINUTE)
LABELS = st.lists(
    st.builds(
        Label,
        st.text("abc012:#-", min_size=1, max_size=12),
        st.binary(min_size=32, max_size=32),
        *[MINUTES] * 3,
    ),
    min_size=1,
    max_size=24,
    unique_by=lambda label: (label.chunk, label.since),
)


def leaves(labels, key=KEY):
    return {place(key, label.chunk, label.since): label.leaf(key) for label in labels}


def prove(view, label, key=KEY):
    [path] = view.paths([place(key, label.chunk, label.since)])
    assert path.leaf == label.leaf(key)
    return StateProof(label.since, label.seal(key), path.siblings, path.sides)


def root_of(leaf_by_place, depth=0):
    """State the root once more, word for word as the module's text does."""
    if not leaf_by_place:
        return EMPTY_ROOT
    if len(leaf_by_place) == 1:
        return next(iter(leaf_by_place.values()))
    halves = [
        {where: leaf for where, leaf in leaf_by_place.items() if where >> (255 - depth) & 1 == bit}
        for bit in (0, 1)
    ]
    if not all(halves):
        return root_of(halves[0] or halves[1], depth + 1)
    return node_hash(root_of(halves[0], depth + 1), root_of(halves[1], depth + 1))


@given(LABELS)
def test_the_root_is_the_documented_one(labels):
    """The tree with its buckets and splits has the root that eight lines of recursion have."""
    assert StateView.of(leaves(labels)).root == root_of(leaves(labels))
    assert StateView.of({}).root == EMPTY_ROOT


@given(st.lists(st.integers(0, 63), min_size=1, unique=True), st.integers(0, 250))
def test_places_that_share_many_bits_have_their_root(low, shift):
    """Also where labels differ in a late bit only, which hashes of real names never do."""
    crowded = {n << shift: leaf_hash(bytes([n])) for n in low}
    assert StateView.of(crowded).root == root_of(crowded)
    for leaf, siblings, sides in StateView.of(crowded).paths(list(crowded)):
        for sibling, side in zip(siblings, sides, strict=True):
            leaf = node_hash(sibling, leaf) if side == "L" else node_hash(leaf, sibling)
        assert leaf == root_of(crowded)


@given(LABELS, st.randoms(use_true_random=False), st.data())
def test_however_it_came_about_it_is_one_state(labels, random, data):
    """Another order, labels that came and went again, and changes taken back: the same root."""
    root = StateView.of(leaves(labels)).root
    random.shuffle(labels)
    cut = data.draw(st.integers(0, len(labels)))
    gone = [dataclasses.replace(label, chunk=f"{label.chunk}!") for label in labels[:3]]
    view = StateView.of(leaves(gone)).with_changes(leaves(labels[:cut])).with_changes(leaves(labels[cut:]))
    assert view.with_changes(dict.fromkeys(leaves(gone))).root == root
    other = [dataclasses.replace(label, word=label.word ^ 1) for label in labels]
    assert view.with_changes(leaves(other)).root != root
    back = view.with_changes(leaves(other)).with_changes(leaves(labels))
    assert back.with_changes(dict.fromkeys(leaves(gone))).root == root


@given(LABELS, st.data())
def test_a_proof_proves_its_own_label_and_no_other(labels, data):
    """With the root alone: this chunk, text, word and window, and none that differs in any of them."""
    view = StateView.of(leaves(labels))
    label = data.draw(st.sampled_from(labels))
    proof = prove(view, label)
    assert proof.root(label.chunk, label.text_hash, label.word) == view.root
    assert proof.sealed().root(label.chunk, label.text_hash, label.word) == view.root
    text = bytes([label.text_hash[0] ^ 1]) + label.text_hash[1:]
    later = Opening(proof.until.salt, str(label.until ^ 1))
    other = data.draw(st.sampled_from(labels))
    lies = [
        proof.root(label.chunk, label.text_hash, label.word ^ 1 << 30),
        proof.root(label.chunk, text, label.word),
        proof.root(f"{label.chunk}0", label.text_hash, label.word),
        dataclasses.replace(proof, since=label.since ^ 1).root(label.chunk, label.text_hash, label.word),
        dataclasses.replace(proof, until=later).root(label.chunk, label.text_hash, label.word),
        dataclasses.replace(proof, path=(*proof.path, bytes(32)), sides=f"{proof.sides}L").root(
            label.chunk, label.text_hash, label.word
        ),
    ]
    if other != label:
        lies.append(prove(view, other).root(label.chunk, label.text_hash, label.word))
        sides = proof.sides.translate({ord("L"): "R", ord("R"): "L"})
        lies.append(dataclasses.replace(proof, sides=sides).root(label.chunk, label.text_hash, label.word))
        short = dataclasses.replace(proof, path=proof.path[1:], sides=proof.sides[1:])
        lies.append(short.root(label.chunk, label.text_hash, label.word))
    assert view.root not in lies


@given(LABELS)
def test_any_change_moves_the_root(labels):
    """A word, a minute, a text, a label more or less, another key: each is another state."""
    first, rest = labels[0], labels[1:]
    others = [
        [dataclasses.replace(first, word=first.word ^ 1 << 30), *rest],
        [dataclasses.replace(first, until=first.until ^ 1), *rest],
        [
            dataclasses.replace(first, text_hash=bytes(32) if first.text_hash != bytes(32) else b"x" * 32),
            *rest,
        ],
        [dataclasses.replace(first, chunk="zz"), *rest],
        [dataclasses.replace(first, chunk="zz"), *labels],
        rest,
    ]
    root = StateView.of(leaves(labels)).root
    assert root not in [StateView.of(leaves(other)).root for other in others]
    assert root != StateView.of(leaves(labels, b"k" * 32)).root


@given(LABELS)
def test_a_sealed_proof_tells_no_end_and_a_neighbour_nothing(labels):
    """Sealed, the end of the window is nowhere; and its hash does not confirm a right guess of a neighbour."""
    view = StateView.of(leaves(labels))
    label = labels[0]
    sealed = prove(view, label).sealed()
    assert sealed.to_json()["until"] == b64url(label.seal(KEY).commitment("until"))
    assert sealed.sealed() == sealed
    guesses = set()
    for one in labels[1:]:
        for salt in (bytes(32), label.seal(KEY).salt):
            seal = Opening(salt, str(one.until)).commitment("until")
            guesses.add(leaf_hash(state_entry(one.chunk, one.text_hash, one.word, one.since, seal)))
    assert not guesses & set(prove(view, label).path)


@pytest.mark.parametrize(
    ("minute", "opened", "sealed"), [(9, False, False), (10, True, True), (19, True, True), (20, False, True)]
)
def test_a_proof_is_of_a_time(minute, opened, sealed):
    """From its first minute on, and until its last where that is told."""
    label = Label("c", bytes(32), 1, 10, 20)
    proof = prove(StateView.of(leaves([label])), label)
    assert (proof.holds_at(minute), proof.sealed().holds_at(minute)) == (opened, sealed)


PROOF = prove(
    StateView.of(leaves([Label("a", bytes(32), 1), Label("b", bytes(32), 1)])), Label("a", bytes(32), 1)
)
NOT_PROOFS = {
    "a key more": {"more": 1},
    "a minute that is a text": {"from": "0"},
    "a minute too late": {"from": MAX_MINUTE + 1},
    "a minute before time": {"from": -1},
    "another side": {"sides": "M"},
    "a side too many": {"sides": f"{PROOF.sides}L"},
    "half a hash": {"path": PROOF.to_json()["path"][:20]},
    "a hash in other letters": {"path": "!" * 43},
    "an end in words": {"until": {"salt": PROOF.to_json()["until"]["salt"], "value": "never"}},
    "an end with a zero before": {"until": {"salt": PROOF.to_json()["until"]["salt"], "value": "01"}},
    "an end in other digits": {"until": {"salt": PROOF.to_json()["until"]["salt"], "value": "٣"}},
    "an end too late": {"until": {"salt": PROOF.to_json()["until"]["salt"], "value": "4294967296"}},
    "an end of many digits": {"until": {"salt": PROOF.to_json()["until"]["salt"], "value": "9" * 5000}},
    "an end without salt": {"until": {"value": "1"}},
    "a short salt": {"until": {"salt": "QUJD", "value": "1"}},
    "a short seal": {"until": "QUJD"},
    "no end": {"until": None},
}


@pytest.mark.parametrize("change", NOT_PROOFS.values(), ids=NOT_PROOFS)
def test_what_is_no_proof_is_refused(change):
    """A proof is read strictly, and comes back from what it writes."""
    fields = PROOF.to_json()
    assert StateProof.from_json(fields) == PROOF
    assert StateProof.from_json(PROOF.sealed().to_json()) == PROOF.sealed()
    with pytest.raises(CorruptFile):
        StateProof.from_json({**fields, **change})


# -- the file


@pytest.mark.parametrize("examples", [40, pytest.param(400, marks=pytest.mark.full)])
def test_the_file_keeps_the_state(tmp_path_factory, examples):
    """Batch by batch and opened again in between: the root of the whole, and the notes of the last.

    A tenth of the full count: each example waits for the disk.
    """

    @settings(max_examples=examples)
    @given(LABELS, st.data())
    def law(labels, data):
        path = tmp_path_factory.mktemp("state") / "index.state"
        cut = data.draw(st.integers(0, len(labels)))
        for n, part in enumerate([labels[:cut], labels[cut:]]):
            tree = StateTree(path)
            tree.apply(leaves(part), {"known": str(n)})
            tree.close()
        tree = StateTree(path)
        whole = StateView.of(leaves(labels)).root
        assert (tree.view().root, tree.note("known")) == (whole, "1")
        last = labels[-1]
        assert prove(tree.view(), last).root(last.chunk, last.text_hash, last.word) == whole
        tree.apply(dict.fromkeys(leaves(labels)), {})
        assert tree.view().root == EMPTY_ROOT
        tree.clear()
        assert tree.note("known") is None
        tree.close()

    law()


def test_a_label_that_is_not_there_has_no_proof(tmp_path):
    """The search and the state disagree: nothing is proved."""
    with pytest.raises(CorruptFile, match="lacks a label"):
        StateView.of(leaves([Label("a", bytes(32), 1)])).paths([place(KEY, "b", 0)])


TAMPERED = {
    "a bucket's root": "UPDATE root SET hash = zeroblob(32)",
    "a bucket gone": "DELETE FROM root WHERE prefix = (SELECT min(prefix) FROM root)",
    "the root": "UPDATE note SET value = 'aa' WHERE name = 'root'",
}


@pytest.mark.parametrize("statement", TAMPERED.values(), ids=TAMPERED)
def test_a_file_altered_outside_is_refused(tmp_path, statement):
    """What does not lead to its own root is not opened; the message says what to do."""
    tree = StateTree(tmp_path / "index.state")
    tree.apply(leaves([Label(str(n), bytes(32), n) for n in range(20)]), {})
    tree.close()
    with sqlite3.connect(tmp_path / "index.state") as connection:
        connection.execute(statement)
    connection.close()
    with pytest.raises(CorruptFile, match="delete it"):
        StateTree(tmp_path / "index.state")


def test_a_bucket_altered_outside_is_refused_when_it_is_read(tmp_path):
    """Opening reads roots alone; a proof from an altered bucket is not made."""
    label = Label("a", bytes(32), 1)
    tree = StateTree(tmp_path / "index.state")
    tree.apply(leaves([label]), {})
    tree.close()
    with sqlite3.connect(tmp_path / "index.state") as connection:
        connection.execute("UPDATE bucket SET labels = CAST(substr(labels, 1, 32) || zeroblob(32) AS BLOB)")
    connection.close()
    tree = StateTree(tmp_path / "index.state")
    with pytest.raises(CorruptFile, match="altered"):
        tree.view().paths([place(KEY, "a", 0)])
    tree.close()


def test_a_file_that_cannot_be_written_leaves_the_state(tmp_path):
    """A full disk is an error, root and notes are what they were, and the next try catches up."""
    labels = [Label(str(n), bytes(32), n) for n in range(3000)]
    tree = StateTree(tmp_path / "index.state")
    tree.apply(leaves(labels[:5]), {"known": "1"})
    root = tree.view().root
    pages = tree._db.execute("PRAGMA page_count").fetchone()[0]
    tree._db.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(CaragError, match="cannot be written"):
        tree.apply(leaves(labels), {"known": "2"})
    assert (tree.view().root, tree.note("known")) == (root, "1")
    tree._db.execute("PRAGMA max_page_count = 1000000")
    tree.apply(leaves(labels), {"known": "2"})
    assert tree.view().root == StateView.of(leaves(labels)).root
    tree.close()


def test_the_file_is_its_owner_s_alone(tmp_path):
    """Places and hashes are not secret keys, but only the owner may read them."""
    StateTree(tmp_path / "index.state").close()
    assert (tmp_path / "index.state").stat().st_mode & 0o777 == 0o600
    with pytest.raises(CaragError, match="permissions"):
        StateTree(tmp_path / "missing" / "index.state")


def test_a_file_of_another_kind_is_refused(tmp_path):
    """No database, no state."""
    (tmp_path / "index.state").write_bytes(b"something else entirely" * 100)
    with pytest.raises(CorruptFile, match="damaged"):
        StateTree(tmp_path / "index.state")
