"""The simulation keeps its laws, places are measured as they answer, and the page says what the results say."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.distributed.__main__ import RESULTS, main
from bench.distributed.measure import SHARES
from bench.distributed.places import PLACES, Place, TooSlow, fill, places
from bench.distributed.report import BEGIN, END, read, section
from bench.distributed.simulate import UNTROUBLED, Assumptions, Cluster, Piece, simulate
from bench.distributed.sizes import Prices, pieces_of, simulated
from bench.distributed.small import compared
from carag.backends import NativeBackend
from carag.errors import BackendUnavailable, InvalidArgument
from tests.sizes import examples

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "which-backend.md"
TIMES = st.lists(st.floats(0.1, 100), min_size=1, max_size=30)
LONELY = Cluster(1, shards_a_node=1, cores_a_node=1, replicas=1, hedge=None)


class _Disguised:
    """A backend that is not seen to be the native one."""

    def __init__(self, backend):
        self._backend = backend

    def __getattr__(self, name):
        return getattr(self._backend, name)


def piece(ms, admissible=10):
    return Piece("native", 1_000, 8, admissible, np.array(ms, np.float64))


def cluster(nodes, replicas=1, hedge=None):
    return Cluster(nodes, shards_a_node=1, cores_a_node=1, replicas=replicas, hedge=hedge)


@given(TIMES)
@settings(max_examples=examples(20), deadline=None)
def test_one_node_takes_what_its_piece_took(ms):
    """The very distribution: every time is one of the piece, each as often as the others."""
    outcome = simulate(piece(ms), LONELY, UNTROUBLED, questions=2_000)
    assert set() == set(outcome.ms.tolist()) - set(ms)
    shares = [float(np.mean(outcome.ms <= at)) for at in ms]
    assert np.allclose(shares, [float(np.mean(np.array(ms) <= at)) for at in ms], atol=0.05)


@given(TIMES, st.integers(1, 40))
@settings(max_examples=examples(20), deadline=None)
def test_the_slowest_of_all_decides(ms, nodes):
    """More nodes take no less, at any quantile; and as often as all are fast, which is the power of a node's share."""
    few, many = (
        simulate(piece(ms), cluster(count), UNTROUBLED, questions=2_000) for count in (nodes, 4 * nodes)
    )
    assert all(few.quantile(at) <= many.quantile(at) + 1e-9 for at in (0.05, 0.95))
    middle = float(np.median(ms))
    expected = float(np.mean(np.array(ms) <= middle)) ** nodes
    assert expected == pytest.approx(float(np.mean(few.ms <= middle)), abs=0.05)


@given(TIMES, st.integers(1, 20), st.floats(0.5, 0.99), st.integers(0, 5))
@settings(max_examples=examples(20), deadline=None)
def test_a_hedge_takes_no_question_longer(ms, nodes, hedge, seed):
    """Replicas are independent: of the same draws each question ends as soon, or sooner; so does every quantile."""
    plain, hedged = (
        simulate(piece(ms), cluster(nodes, 2, at), Assumptions(seconds=600), questions=2_000, seed=seed)
        for at in (None, hedge)
    )
    assert (hedged.ms <= plain.ms + 1e-9).all()
    assert hedged.quantile(0.99) <= plain.quantile(0.99) + 1e-9


@pytest.mark.parametrize("nodes", [1, 7])
def test_a_lost_node_leads_to_refusals_and_never_to_a_part(nodes):
    """Without a replica a question is refused while its node is away, and in no other case; with one none is."""
    troubled = Assumptions(seconds_between_losses=100, down_seconds=25)
    alone = simulate(piece([5.0]), cluster(nodes), troubled, questions=8_000)
    assert 0.25 == pytest.approx(alone.refused / 8_000, abs=0.03)
    assert (np.isfinite(alone.ms) == (alone.parts == nodes)).all()
    assert 0 == simulate(piece([5.0]), cluster(nodes), UNTROUBLED, questions=8_000).refused
    pair = simulate(piece([5.0]), cluster(nodes, 2), troubled, questions=8_000)
    assert (0, {nodes}) == (pair.refused, set(pair.parts.tolist()))
    assert pair.asked_twice > 0
    overlapping = Assumptions(seconds_between_losses=100, down_seconds=150)
    assert simulate(piece([5.0]), cluster(1, 2), overlapping, questions=8_000).refused > 0


def test_a_node_that_goes_away_under_a_question_is_one_that_is_away():
    """The answer that it had begun never comes: refused, or the replica's, which takes the longer for it."""
    brief = Assumptions(
        network_ms=0,
        network_tail_ms=0,
        slow_share=0,
        straggle_share=0,
        seconds_between_losses=10,
        down_seconds=0,
        seconds=1_000,
    )
    slow = piece([1_000.0])
    alone = simulate(slow, cluster(1), brief, questions=2_000)
    assert 0.1 == pytest.approx(alone.refused / 2_000, abs=0.03)
    pair = simulate(slow, cluster(1, 2), brief, questions=2_000)
    assert 0 == pair.refused
    assert 1_000 < pair.ms.max() <= 2_000 + brief.noticed_ms


def test_an_epoch_that_moves_costs_whoever_does_not_replay():
    """Such a question is asked anew; one that goes on at its own epoch takes what it took."""
    often = Assumptions(
        seconds_between_flips=1, seconds=1_000, slow_share=0, seconds_between_losses=float("inf")
    )
    replayed = simulate(piece([100.0]), LONELY, often, questions=2_000)
    anew = simulate(
        piece([100.0]), LONELY, Assumptions(**{**vars_of(often), "replays": False}), questions=2_000
    )
    assert (0, 0.1) == (replayed.asked_anew, pytest.approx(anew.asked_anew / 2_000, abs=0.02))
    assert anew.quantile(0.99) > 1.9 * replayed.quantile(0.5)


def vars_of(assumed):
    return {name: getattr(assumed, name) for name in Assumptions.__dataclass_fields__}


def test_shards_of_a_node_share_its_cores():
    """Four shards on one core take four times as long as on four; the work is the same."""
    one, four = (
        simulate(piece([3.0]), Cluster(4, 4, cores, 1, None), UNTROUBLED, questions=10) for cores in (1, 4)
    )
    assert (12.0, 3.0) == (one.quantile(0.5), four.quantile(0.5))
    assert one.core_seconds == four.core_seconds == pytest.approx(0.012)


def test_the_same_seed_gives_the_same_figures():
    """And another seed gives others."""
    first, again, other = (
        simulate(piece([1.0, 2.0]), Cluster(9), questions=500, seed=at) for at in (1, 1, 2)
    )
    assert first.ms.tolist() == again.ms.tolist() != other.ms.tolist()


def test_money_is_what_the_asker_says():
    """No price is assumed; with one, cores and memory of all machines are counted."""
    records = [
        {"kind": "piece", "place": "native", "rows": 1_000_000, "dim": 8, "admissible": 10_000, "ms": [1.0]},
        {"kind": "shard", "place": "native", "bytes_a_row": 1_000, "file_bytes_a_row": 2_000},
    ]
    free, paid = (
        next(iter(simulated(records, prices, 0))) for prices in (None, Prices(core_hour=0.1, gb_month=2.0))
    )
    assert "a_month" not in free
    assert (4, 8.0, 16.0) == (paid["machines"], paid["memory_gb"], paid["disk_gb"])
    assert 32 * 0.1 * 730 + 4 * 8 * 2.0 == paid["a_month"]


def test_a_place_that_would_take_too_long_says_so_at_once():
    """Instead of being waited for, or left out without a word."""
    from bench.ann.engine import Rows

    class Slow:
        added = 0

        def add(self, rows, *, batch):
            self.added += len(rows.keys)

    rows = Rows(np.eye(100, dtype=np.float32), *(np.ones(100, np.uint32),) * 3, 2)
    place = Slow()
    with pytest.raises(TooSlow, match=r"loading 100 rows would take 0 minutes .* first 5; 0 are given"):
        fill(place, rows, 0)
    assert 5 == place.added


def test_an_unknown_place_is_refused(tmp_path):
    """With the names of those there are."""
    with pytest.raises(InvalidArgument, match="no place 'oracle'; want some of native, postgresql"):
        places(("oracle",))


def test_a_run_writes_every_share_and_every_place(tmp_path):
    """The native index, and PostgreSQL where it is installed: right, none short, and what was left out named."""
    wanted = ["native", "postgresql", "postgresql-3"]
    out = tmp_path / "side.jsonl"
    words = ["--set", "mixture-5k-64", "--questions", "3", "--places", ",".join(wanted)]
    assert 0 == main(["run", *words, "--cache", str(tmp_path / "cache"), "--out", str(out)])
    records = [json.loads(line) for line in out.read_text().splitlines()]
    missing = {name for name in wanted if PLACES[name].missing}
    assert missing == {one["place"] for one in records if one["kind"] == "left out"}
    cells = [one for one in records if one["kind"] == "cell"]
    names = {"native", "native auto", "native checked", *wanted} - missing
    assert {(name, share) for name in names for share in SHARES} == {
        (one["place"], one["share"]) for one in cells
    }
    for one in cells:
        assert {"n", "seed", "commit", "cpu"} <= one.keys()
        assert (0, 0, 3) == (one["short"], one["violations"], one["n"])
        assert 1.0 == one["recall"] or one["place"] == "native auto"
    assert "5,000 rows × 64" in section(read([out]))


def test_a_place_that_fails_under_questions_is_left_out(tmp_path, monkeypatch):
    """The others are measured to the end, and the reason is written down; of the place itself no figure stays."""

    class Tired(NativeBackend):
        asked = 0

        def search(self, *asked, **more):
            self.asked += 1
            if self.asked > 6:
                raise BackendUnavailable("it sleeps")
            return super().search(*asked, **more)

    @contextmanager
    def opened(_home, dim):
        backend = Tired(dim)
        yield _Disguised(backend)
        backend.close()

    monkeypatch.setitem(PLACES, "tired", Place("a place that tires", opened))
    out = tmp_path / "side.jsonl"
    words = ["--set", "mixture-5k-64", "--questions", "3", "--places", "native,tired"]
    assert 0 == main(["run", *words, "--cache", str(tmp_path / "cache"), "--out", str(out)])
    records = [json.loads(line) for line in out.read_text().splitlines()]
    (left,) = (one for one in records if one["kind"] == "left out")
    assert ("tired", True) == (left["place"], left["why"].endswith("it sleeps"))
    assert set(SHARES) == {one["share"] for one in records if one.get("place") == "native" and "share" in one}
    assert "it sleeps" in section(read([out]))


def test_a_simulation_of_real_processes_is_near():
    """Two shards of their own processes, and what is said of them: all figures, and the right number of cores."""
    (found,) = (one for one in compared(2, 5_000, 32, 20, 0) if one["admissible"] == 1_000)
    assert all(found[f"{at}_{what}_ms"] > 0 for at in ("p50", "p95") for what in ("real", "simulated"))
    assert found["p50_simulated_ms"] >= found["p50_alone_ms"]


def test_committed_simulations_follow_from_committed_pieces():
    """One of each place again, to the last digit."""
    records = read(sorted(RESULTS.glob("*.jsonl")))
    kept = [one for one in records if one["kind"] == "simulated size" and one["rows"] == 10_000_000]
    assert kept
    pieces = {(one.place, one.admissible): one for one in pieces_of(records)}
    for one in kept:
        shape = Cluster(one["shards"])
        again = simulate(pieces[one["place"], one["admissible_a_shard"]], shape, seed=one["seed"])
        assert (one["p99_ms"], one["refused"]) == (round(again.quantile(0.99), 2), again.refused)


def test_the_page_says_what_the_results_say():
    """Written by ``python -m bench.distributed report``."""
    page = PAGE.read_text("utf-8")
    made = section(read(sorted(RESULTS.glob("*.jsonl"))))
    assert f"{BEGIN}\n\n{made}\n\n{END}" in page
