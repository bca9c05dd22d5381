"""What a search by words may depend on: the conditions under which an answer is certified, and what is refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument, UnlabelledWarning
from carag.index import TextIndex
from carag.index.tokens import tokenize
from carag.policy import NEVER, Mask, Policy, Search, policy_word
from tests.index.plain_text import (
    AS_OF,
    Label,
    World,
    add,
    draw_chunks,
    draw_label,
    draw_policy,
    draw_terms,
    hits,
    label,
    overlap,
)
from tests.sizes import examples

# Labels without a schema version are among those drawn.
pytestmark = pytest.mark.filterwarnings("ignore::carag.errors.UnlabelledWarning")

OPEN, CLOSED = Mask(required=1), policy_word(2)
seeds = st.integers(0, 2**32 - 1)


def draw_world(rng, chunks=25):
    world = World()
    world.chunks = draw_chunks(rng, chunks, 0)
    for key in rng.permutation(3 * chunks).tolist():
        one = draw_label(rng, int(rng.choice(list(world.chunks))))
        if not any(old.chunk == one.chunk and overlap(old, one) for old in world.labels.values()):
            world.labels[1_000 + key] = one
    return world


def of_bytes(result):
    """Return everything that a caller may see, which must not depend on hidden rows."""
    arrays = (result.keys, result.chunks, result.documents, result.scores)
    stats = result.stats
    return *(a.tobytes() for a in arrays), result.frequencies, stats.admissible, stats.length, stats.matched


def simple(tokens, word=1, **more):
    """Make an index of chunks 0, 1, ... in separate documents, each with a label of the same key."""
    index = TextIndex()
    keys = np.arange(len(tokens))
    index.add(keys, keys, tokens)
    index.label(keys, keys, [policy_word(word)] * len(tokens), **more)
    return index


# ---------------------------------------------------------------- the nine conditions


@given(seeds)
def test_1_scores_are_those_of_an_index_rebuilt_with_admissible_chunks_alone(seed):
    """Byte for byte, with all statistics that do not concern hidden text."""
    rng = np.random.default_rng(seed)
    world, policy, as_of = draw_world(rng), draw_policy(rng), int(rng.choice(AS_OF))
    terms = draw_terms(rng, 5)
    index, rebuilt = world.indexed(batches=3), world.rebuilt(policy, as_of).indexed()
    for k in (None, 3):
        a, b = (one.search(terms, k, policy, as_of=as_of, count_matched=True) for one in (index, rebuilt))
        assert of_bytes(a) == of_bytes(b)
    assert index.count(terms, policy, as_of=as_of) == rebuilt.count(terms, policy, as_of=as_of)
    assert hits(index.search(terms, None, policy, as_of=as_of)) == world.answer(terms, policy, as_of)


@given(seeds, st.permutations(range(5)))
def test_2_neither_the_order_of_terms_nor_that_of_chunks_matters(seed, order):
    """Terms are summed in the order of their bytes."""
    rng = np.random.default_rng(seed)
    world, policy, as_of = draw_world(rng), draw_policy(rng), int(rng.choice(AS_OF))
    terms = [*draw_terms(rng, 5), "w0", "w1", "a", "é", "w2"][:5]
    shuffled = [terms[i] for i in order]
    expected = hits(world.indexed().search(terms, None, policy, as_of=as_of))
    assert expected == hits(world.indexed().search(shuffled, None, policy, as_of=as_of))
    assert expected == hits(world.indexed(reverse=True, batches=4).search(terms, None, policy, as_of=as_of))


def test_3_a_term_that_no_admissible_chunk_holds_does_not_exist():
    """The answer has the same bytes with it, without it, and with a term that was never indexed."""
    index = simple([["net", "sales"], ["sales"], ["net"]])
    index.add([9], [9], [["secret", "sales"]], headings={9: ["project"]})
    index.label([9], [9], [CLOSED])
    expected = of_bytes(index.search(["sales", "net"], 5, OPEN))
    for word in ("secret", "project", "neverwritten"):
        found = index.search(["sales", word, "net"], 5, OPEN)
        sales, hidden, net = found.frequencies
        assert expected == of_bytes(replace(found, frequencies=(sales, net)))
        assert hidden == 0
        assert (3, 4, (0,)) == index.count([word], OPEN)


@given(seeds)
def test_4_no_statistic_covers_the_whole_index(seed):
    """Hidden text of many times the open text is added and removed, and no bit changes."""
    rng = np.random.default_rng(seed)
    index = simple([draw_terms(rng, 8) for _ in range(12)])
    terms = draw_terms(rng, 5)
    expected = of_bytes(index.search(terms, None, OPEN))
    hidden = draw_chunks(rng, 60, 1_000)
    add(index, hidden)
    assert expected == of_bytes(index.search(terms, None, OPEN))  # without a label
    label(index, {key: Label(key, CLOSED, 0, NEVER, 0) for key in hidden})
    assert expected == of_bytes(index.search(terms, None, OPEN))
    index.delete(list(hidden)[::2])
    assert expected == of_bytes(index.search(terms, None, OPEN))
    index.compact()
    assert expected == of_bytes(index.search(terms, None, OPEN))


@given(seeds, st.integers(1, 30))
def test_5_what_is_left_out_lies_strictly_below_and_ties_go_to_the_smaller_key(seed, k):
    """The k best are the first k of all, though parts are left out and many scores are equal."""
    rng = np.random.default_rng(seed)
    texts = [
        ["w"] * int(n) + ["v"] * int(m) for n, m in zip(*rng.integers(0, [[6], [2]], (2, 300)), strict=True)
    ]
    index = TextIndex()
    keys = rng.permutation(300)
    index.add(keys, keys, texts)
    index.label(1_000 - keys, keys, [policy_word(1)] * 300)
    every = index.search(["w", "v"], None, OPEN)
    best = index.search(["w", "v"], k, OPEN)
    assert hits(every)[:k] == hits(best)
    assert sorted(hits(every), key=lambda hit: (-hit.score, hit.key)) == hits(every)
    assert len(set(every.scores.tolist())) < len(every) / 3  # ties there are


@given(seeds, st.integers(1, 12), st.booleans())
def test_5_light_terms_that_are_not_read_change_nothing(seed, k, headed):
    """With frequent and rare terms and many parts, the k best are the first k of all, also with a mask and a floor."""
    rng = np.random.default_rng(seed)
    ranks = rng.zipf(1.2, (240, 20)).clip(max=400)
    texts = [[f"r{rank}" for rank in row[: rng.integers(0, 21)]] for row in ranks.tolist()]
    documents = np.sort(rng.integers(0, 90, 240))
    heads = {one: ["r3", f"r{one}"] for one in set(documents.tolist())} if headed else {}
    index = TextIndex()
    index.add(np.arange(240), documents, texts, headings=heads)
    index.label(np.arange(240), np.arange(240), policy_word(rng.integers(1, 3, 240)))
    terms = [f"r{rank}" for rank in (1, 2, 3, *rng.zipf(1.3, 5).clip(max=400).tolist())]
    for mask in (Mask(), OPEN):
        every = hits(index.search(terms, None, mask))
        assert every[:k] == hits(index.search(terms, k, mask))
        floor = every[len(every) // 2].score
        assert [hit for hit in every if hit.score >= floor] == hits(
            index.search(terms, None, mask, floor=floor)
        )
        assert [hit for hit in every if hit.score >= floor][:k] == hits(
            index.search(terms, k, mask, floor=floor)
        )


def test_5_parts_are_left_out_at_all():
    """Most of a few hundred parts are not scored, and matches are counted only on request."""
    rng = np.random.default_rng(1)
    index = simple([["w"] * int(n) + ["v"] * 20 for n in rng.zipf(1.5, 500).clip(max=40)])
    found = index.search(["w"], 3, OPEN)
    assert found.stats.parts_skipped > 250
    assert found.stats.matched is None
    assert 500 == index.search(["w"], 3, OPEN, count_matched=True).stats.matched


def test_6_a_scale_for_fusion_can_be_made_of_admissible_chunks_alone():
    """The highest possible score, computed from counts, bounds the best score, and no hidden chunk changes it."""
    rng = np.random.default_rng(3)
    index = simple([draw_terms(rng, 12) for _ in range(80)])
    terms = ["w1", "w2", "ab"]

    def most(k1=0.9):
        chunks, _, frequencies = index.count(terms, OPEN)
        return sum(np.log1p((chunks - n + 0.5) / (n + 0.5)) * (k1 + 1.0) for n in frequencies if n)

    before = most()
    assert 0.0 < index.search(terms, 1, OPEN).scores[0] <= before
    index.add(np.arange(100, 200), [7] * 100, [["w1", "w2"]] * 100)
    index.label(np.arange(100, 200), np.arange(100, 200), [CLOSED] * 100)
    assert before == most()


def test_7_terms_are_taken_as_they_are():
    """No list derived from the index splits, corrects, drops or adds a term, of a text or of a query."""
    index = simple([["the", "the", "sales"], ["the"], ["sale"]])
    assert {0, 1} == set(index.search(["the"], None, OPEN).keys.tolist())
    assert [2] == index.search(["sale"], None, OPEN).keys.tolist()
    assert 0 == len(index.search(["The", "sal"], None, OPEN))
    before = tokenize("The net sales of 1,000")
    simple([["net"]] * 50)
    assert before == tokenize("The net sales of 1,000")


def test_8_what_is_skipped_moves_counts_of_work_and_nothing_else():
    """Runs of hidden parts are skipped; their number is counted, and is not part of what a session sees."""
    index = simple([["sales"], ["sales", "net"]])
    before = index.search(["sales"], 5, OPEN)
    index.add(np.arange(10, 30), np.arange(10, 30), [["sales"]] * 20)
    index.label(np.arange(10, 30), np.arange(10, 30), [CLOSED] * 20)
    after = index.search(["sales"], 5, OPEN)
    assert of_bytes(before) == of_bytes(after)
    assert (0, 20) == (before.stats.runs_skipped, after.stats.runs_skipped)
    assert before.stats.postings == after.stats.postings
    assert before.stats.runs == after.stats.runs


def test_9_an_earlier_instant_has_the_statistics_of_then():
    """A superseded version is found at its own time by its own label, and counts at no other time."""
    index = TextIndex()
    index.add([1, 2, 3], [5, 5, 6], [["old", "sales"], ["new", "sales"], ["sales"]])
    word = policy_word(1)
    index.label([10, 20, 30], [1, 2, 3], [word] * 3, public_at=[0, 100, 0], expires_at=[100, NEVER, NEVER])
    assert {10, 30} == set(index.search(["sales", "old"], None, OPEN, as_of=99).keys.tolist())
    assert (2, 3, (1, 0)) == index.count(["old", "new"], OPEN, as_of=99)
    assert {20, 30} == set(index.search(["sales", "old"], None, OPEN, as_of=100).keys.tolist())
    assert (2, 3, (0, 1)) == index.count(["old", "new"], OPEN, as_of=100)
    index.label([11], [1], [CLOSED], closes=[10], expires_at=100)  # a relabel: no posting is touched
    assert (1, 1, (0, 0)) == index.count(["old", "new"], OPEN, as_of=99)
    index.close_labels([20])
    assert [30] == index.search(["sales"], None, OPEN, as_of=100).keys.tolist()


def test_10_erasure_takes_words_out_of_memory_and_files(tmp_path):
    """A word that occurred only in deleted chunks is in no term after compact(), and in no saved file."""
    index = simple([["sales", "whistleblower"], ["sales"], ["net", "whistle"]])
    index.save(tmp_path / "before")
    assert b"whistleblower" in (tmp_path / "before").read_bytes()
    terms, size = index.term_count, index.nbytes
    index.delete([0])
    assert 0 == len(index.search(["whistleblower"], None, OPEN))
    assert terms == index.term_count  # still stored, but not searchable
    index.compact()
    assert terms - 1 == index.term_count
    assert size > index.nbytes
    index.save(tmp_path / "after")
    assert b"whistleblower" not in (tmp_path / "after").read_bytes()
    mapped = TextIndex.load(tmp_path / "before", mmap=True)
    mapped.delete([0])
    mapped.save(tmp_path / "before")
    assert (tmp_path / "after").read_bytes() == (tmp_path / "before").read_bytes()


# ---------------------------------------------------------------- headings, labels, terms


def test_a_heading_counts_in_each_chunk_of_its_document():
    """As if it stood at the beginning of each, in frequencies, lengths and scores, to the last bit."""
    plain, headed = TextIndex(), TextIndex()
    top, texts = ["acme", "sales", "acme"], [["net", "sales"], ["cost"], []]
    plain.add([1, 2, 3, 4], [7, 7, 7, 8], [top + text for text in texts] + [["net"]])
    headed.add([1, 2, 3, 4], [7, 7, 7, 8], [*texts, ["net"]], headings={7: top})
    for index in (plain, headed):
        index.label([1, 2, 3, 4], [1, 2, 3, 4], [policy_word(1)] * 4)
    for terms in (["acme"], ["sales", "net"], ["cost", "acme", "acme"]):
        for k in (None, 2):
            assert hits(plain.search(terms, k, OPEN)) == hits(headed.search(terms, k, OPEN))
        assert plain.count(terms, OPEN) == headed.count(terms, OPEN)
    assert headed.nbytes < plain.nbytes


def test_a_term_that_is_named_twice_counts_twice():
    """Its part of the score doubles."""
    index = simple([["a", "b"], ["b"], ["c"]])
    once, twice = (index.search(terms, None, OPEN).scores.tolist() for terms in (["a"], ["a", "a"]))
    assert [2 * one for one in once] == twice


def test_a_chunk_with_several_labels_counts_once_by_the_one_that_admits_it():
    """The result names the label that is valid at the instant."""
    index = TextIndex()
    index.add([1], [1], [["sales"]])
    index.label([7, 8], [1, 1], [policy_word(1)] * 2, public_at=[0, 50], expires_at=[50, NEVER])
    for as_of, key in ((0, 7), (49, 7), (50, 8), (NEVER - 1, 8)):
        found = index.search(["sales"], 5, OPEN, as_of=as_of)
        assert ([key], 1) == (found.keys.tolist(), found.stats.admissible)


def test_of_several_searches_a_chunk_counts_once_by_its_smallest_label():
    """Whether two searches admit one label or two labels of one chunk, it counts once."""
    index = simple([["sales", "net"], ["sales"], ["cost"]], public_at=0, expires_at=10)
    index.label([7, 9], [0, 1], [policy_word(1), policy_word(2)], public_at=[10, 10], expires_at=[20, 20])
    early, late = Search(Policy(OPEN), 5), Search(Policy(OPEN), 15)
    both = index.search(["sales"], None, [late, early, early])
    assert ([1, 0], [1, 0]) == (both.keys.tolist(), both.chunks.tolist())
    assert (3, 4) == (both.stats.admissible, both.stats.length)
    assert (3, 4, (2,)) == index.count(["sales"], (late, early))
    alone = index.search(["sales"], None, [early])
    assert of_bytes(alone) == of_bytes(index.search(["sales"], None, OPEN, as_of=5)) == of_bytes(both)
    assert [7] == index.search(["sales"], None, [late]).keys.tolist()
    assert [9] == index.admissible(Mask(2), [1], as_of=10).keys.tolist()
    assert [0, 1, 2] == index.documents([late, early]).tolist()
    assert 0 == len(index.search(["sales"], None, [Search(Policy(), 5)]))


def test_lists_of_some_documents_take_each_once():
    """A document added or asked for twice has one entry; a hidden one has none."""
    index = TextIndex()
    index.add([5, 4], [8, 7], [["x"], ["y"]])
    index.add([3, 2, 1], [8, 8, 6], [["x"], ["x"], ["z"]])
    index.label([30, 50, 40, 10], [3, 5, 4, 1], [policy_word(1)] * 3 + [CLOSED])
    assert [7, 8] == index.documents(OPEN).tolist()
    keys, chunks, documents = index.admissible(OPEN, [8, 8, 6, 99])
    assert ([30, 50], [3, 5], [8, 8]) == (keys.tolist(), chunks.tolist(), documents.tolist())
    index.delete([5, 3])
    assert [7] == index.documents(OPEN).tolist()
    assert all(column.tolist() == [] for column in index.admissible(OPEN, [8]))
    assert all(column.tolist() == [] for column in index.admissible(OPEN, []))
    assert [] == TextIndex().documents(OPEN).tolist()


def test_windows_of_a_chunk_do_not_overlap():
    """In one call or two; closing the other in the same call makes room, and an empty window needs none."""
    index = simple([["sales"], ["sales"]])
    word = policy_word(1)
    with pytest.raises(InvalidArgument, match=r"label 5 \(position 0\) overlaps"):
        index.label([5], [0], [word])
    with pytest.raises(InvalidArgument, match=r"label 6 \(position 1\) overlaps"):
        index.label([5, 6], [0, 0], [word] * 2, public_at=[10, 19], expires_at=[20, 30], closes=[0])
    index.label([5], [0], [word], public_at=20, expires_at=10)
    index.label([6], [0], [word], closes=[0])
    assert [1, 6] == index.search(["sales"], None, OPEN).keys.tolist()


def test_a_chunk_has_as_many_labels_as_it_may_and_no_more(tmp_path):
    """4,096 windows of one minute each; one more is refused, and changes nothing."""
    index = TextIndex()
    index.add([1], [1], [["sales"]])
    minutes = np.arange(4_096)
    index.label(
        minutes, minutes * 0 + 1, policy_word(minutes % 3 + 1), public_at=minutes, expires_at=minutes + 1
    )
    with pytest.raises(InvalidArgument, match="4,096 labels"):
        index.label([5_000], [1], [policy_word(1)], public_at=5_000)
    assert [4_095] == index.search(["sales"], 1, Mask(), as_of=4_095).keys.tolist()
    index.save(tmp_path / "a")
    assert 4_096 == TextIndex.load(tmp_path / "a").label_count


def test_relabelling_all_of_a_part_one_by_one_makes_it_even_again():
    """The counts stay right at every step."""
    index = TextIndex()
    index.add(range(50), [1] * 50, [["sales"]] * 50)
    index.label(range(50), range(50), [policy_word(1)] * 50)
    for key in range(50):
        index.label([100 + key], [key], [policy_word(1 | 4)], closes=[key])
        admitted = index.count(["sales"], Mask(required=4))
        assert (key + 1, key + 1, (key + 1,)) == admitted
    assert 50 == len(index.search(["sales"], None, Mask(required=4)))
    index.verify()


def test_answers_do_not_change_while_labels_are_replaced():
    """A relabel is one step: searches during many of them find every chunk, each once."""
    index = simple([["sales"]] * 40)

    def relabel():
        for round_ in range(examples(400, least=150)):
            old = np.arange(40) + 1_000 * round_
            index.label(
                old + 1_000, np.arange(40), policy_word(1 | (np.arange(40) * round_ % 4) << 1), closes=old
            )

    def search():
        for _ in range(examples(400, least=150)):
            found = index.search(["sales"], None, OPEN)
            assert list(range(40)) == sorted(found.chunks.tolist())
            assert 40 == found.stats.admissible

    with ThreadPoolExecutor(3) as pool:
        for job in [pool.submit(relabel), pool.submit(search), pool.submit(search)]:
            job.result()


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda i: i.add([0], [0], [["x"]]), r"key 0 \(position 0\) is a duplicate"),
        (lambda i: i.add([5, 5], [0, 0], [["x"], ["y"]]), r"key 5 \(position 1\) is a duplicate"),
        (lambda i: i.add([-1], [0], [["x"]]), "negative"),
        (lambda i: i.add([5], [-1], [["x"]]), "numbered 0 or more"),
        (lambda i: i.add([5], [0], [["x"], ["y"]]), "2 lists of tokens were given for 1 chunks"),
        (lambda i: i.add([5], [0], ["net sales"]), "tokenize"),
        (lambda i: i.add([5], [0], [[""]]), "empty string"),
        (lambda i: i.add([5], [0], [[3]]), "not text"),
        (lambda i: i.add([5], [0], [["\ud800"]]), "not text"),
        (lambda i: i.add([5], [0], [["x" * 65_536]]), "65,535 bytes"),
        (lambda i: i.add([5], [0], [["x"]], headings={1: ["y"]}), "document 1, but no chunk"),
        (lambda i: i.label([5], [9], [policy_word(1)]), r"key 9 \(position 0\) is not in"),
        (lambda i: i.label([0], [1], [policy_word(1)], closes=[1]), "duplicate"),
        (lambda i: i.label([5], [0, 1], [policy_word(1)]), "2 chunks were given for 1 labels"),
        (lambda i: i.label([5], [0], [1 << 31], closes=[0]), "control bits"),
        (lambda i: i.label([5], [0], [policy_word(1) | 1 << 30], closes=[0]), "control bits"),
        (lambda i: i.close_labels([7]), r"key 7 \(position 0\) is not in"),
        (lambda i: i.close_labels([0, 0]), "twice"),
        (lambda i: i.delete([7]), r"key 7 \(position 0\) is not in"),
        (lambda i: i.search(["x"], 0, OPEN), "k is 0"),
        (lambda i: i.search("x y", 1, OPEN), "list of terms"),
        (lambda i: i.search([""], 1, OPEN), "empty string"),
        (lambda i: i.search(["x"], 1, None), "nothing is searched without one"),
        (lambda i: i.search(["x"], 1, OPEN, k1=-1), "k1 must be"),
        (lambda i: i.search(["x"], 1, OPEN, b=1.5), "b must be"),
        (lambda i: i.search(["x"], 1, OPEN, b="half"), "want a number"),
        (lambda i: i.search(["x"], 1, OPEN, floor=float("nan")), "want a number"),
        (lambda i: i.search(["x"], 1, OPEN, floor=float("inf")), "floor must be"),
        (lambda i: i.search(["x"] * 4_097, 1, OPEN), "at most 4096 terms"),
        (lambda i: i.search(["x"], 1, []), r"0 searches; want 1 to 8 .to admit nothing, pass Policy\(\)"),
        (lambda i: i.count(["x"], [Search(Policy(OPEN), 0)] * 9), "9 searches; want 1 to 8"),
        (
            lambda i: i.documents([Search(Policy(OPEN), 0), OPEN]),
            r"policy\[1\] is .*want a carag.policy.Search",
        ),
        (lambda i: i.documents((Search(None, 0),)), "nothing is searched without one"),
        (
            lambda i: i.search(["x"], 1, [Search(Policy(OPEN), 5, 4)]),
            r"alive_at \(minute 4\) is before as_of",
        ),
        (lambda i: i.search(["x"], 1, [Search(Policy(OPEN), -1)]), "as_of is -1"),
        (lambda i: i.search(["x"], 1, [Search(Policy(OPEN), 0)], as_of=0), "with a list of searches"),
        (lambda i: i.admissible([Search(Policy(OPEN), 0)], [0], alive_at=0), "with a list of searches"),
        (lambda i: i.search(["x"], 1, {1: OPEN}), "nothing is searched without one"),
        (lambda i: i.count(["x"], OPEN, as_of=5, alive_at=4), r"alive_at \(minute 4\)"),
        (lambda i: i.admissible(OPEN, [0, -1]), "negative"),
        (lambda i: i.admissible(OPEN, ["x"]), "documents are"),
        (lambda i: i.admissible(None, [0]), "nothing is searched without one"),
        (lambda i: i.documents(None), "nothing is searched without one"),
    ],
)
def test_what_is_refused_says_why_and_changes_nothing(call, message):
    """The error names the fault, and the index is unchanged."""
    index = simple([["net", "sales"], ["sales"]])
    with pytest.raises(InvalidArgument, match=message):
        call(index)
    assert ([0, 1], [0, 1]) == (index.chunks().tolist(), index.labels().tolist())
    assert [1, 0] == index.search(["sales"], None, OPEN).keys.tolist()
    index.verify()


def test_no_policy_admits_what_has_no_label():
    """A chunk without a label, a word without a version, or any chunk under a policy without masks."""
    index = simple([["sales"]])
    index.add([5], [5], [["sales"]])
    with pytest.warns(UnlabelledWarning):
        index.label([5], [5], [1])
    assert [0] == index.search(["sales"], None, Mask()).keys.tolist()
    assert 0 == len(index.search(["sales"], None, Policy()))


def test_a_closed_index_says_so():
    """Every call on it raises."""
    with TextIndex() as index:
        pass
    with pytest.raises(InvalidArgument, match="closed"):
        index.search(["x"], 1, OPEN)
