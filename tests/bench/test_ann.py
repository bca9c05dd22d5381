"""The harness measures what it says: truth, policies, recall, interpolation, and a run from end to end."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from carag.errors import InvalidArgument
from tests.backends.postgres_servers import psycopg_or_skip

SHARES = (1.0, 0.5, 0.2, 0.1, 0.05, 0.01, 0.0)


@pytest.fixture(scope="module")
def small(bench, tmp_path_factory):
    """A data set of 5,000 rows with its labels, its neighbours and its cells."""
    data = bench("datasets").load("mixture-5k-64", tmp_path_factory.mktemp("cache"))
    rows = bench("policies").label(data)
    near = bench("truth").nearest(data.vectors, data.queries, 100)
    return data, rows, near, bench("policies").cells(rows, near, data.seed, shares=SHARES)


def brute_force(data, rows, cell, at, k=10):
    """The exact best rows of one question, the plainest way."""
    query, mask = cell.asked[at]
    request = cell.requests[mask]
    passing = [
        row
        for row, word in enumerate(rows.words.tolist())
        if word & request.required == request.required
        and not word & request.forbidden
        and (request.as_of is None or rows.public_at[row] <= request.as_of)
        and (request.denied is None or rows.entities[row] not in request.denied)
    ]
    exact = data.vectors[passing].astype(np.float64) @ data.queries[query].astype(np.float64)
    best = np.argsort(-exact, kind="stable")[:k]
    return (
        passing,
        np.array(passing)[best] if passing else np.empty(0, dtype=np.int64),
        np.sort(exact)[::-1][:k],
    )


# ---------------------------------------------------------------- data and policies


def test_a_set_is_the_same_however_often_it_is_made(bench, tmp_path):
    """Vectors, queries, words and policies come from the seed alone, and the cache changes nothing."""
    datasets, policies = bench("datasets"), bench("policies")
    first, again = (datasets.load("mixture-5k-64", tmp_path / name) for name in ("a", "b"))
    kept = datasets.load("mixture-5k-64", tmp_path / "a")
    for other in (again, kept):
        assert np.array_equal(first.vectors, other.vectors)
        assert np.array_equal(first.queries, other.queries)
        assert np.array_equal(policies.label(first).words, policies.label(other).words)
    assert (5_000, 64) == first.vectors.shape
    assert np.allclose(1, np.linalg.norm(first.vectors, axis=1))


def test_real_text_is_refused_without_the_data(bench, tmp_path, monkeypatch):
    """A set of real text names the variable it needs instead of making something up."""
    monkeypatch.delenv("CARAG_SHARED_DATA", raising=False)
    with pytest.raises(InvalidArgument, match="CARAG_SHARED_DATA"):
        bench("datasets").load("text-26k-384", tmp_path)
    with pytest.raises(InvalidArgument, match="mixture-26k-1024"):
        bench("datasets").load("text-27k", tmp_path)


def test_words_are_zipf_and_follow_content(small):
    """400 distinct words of 27 bits, the largest near 3.5 %; near rows share words far more often than any two."""
    data, rows, _, _ = small
    distinct, counts = np.unique(rows.words, return_counts=True)
    assert 400 == len(distinct)
    assert int(distinct.max()) < 1 << 27
    assert 0.03 <= counts.max() / len(rows.words) <= 0.045
    neighbours = np.argsort(-(data.vectors[:200] @ data.vectors.T), axis=1)[:, 1:11]
    together = np.mean(rows.words[neighbours] == rows.words[:200, np.newaxis])
    by_chance = np.sum((counts / len(rows.words)) ** 2)
    assert together > 3 * by_chance


def test_policies_hit_their_share(small):
    """From 1 % up a mask admits its share to a quarter, mostly to a tenth; empty admits nothing."""
    _, rows, _, cells = small
    for cell in cells:
        admitted = np.array([request.admissible(rows).mean() for request in cell.requests])
        if cell.share == 1.0:
            assert (cell.variant == "session") == (admitted.min() < 1.0)
        else:
            slack = 0.1 if cell.share >= 0.05 else 0.25
            assert np.all(np.abs(np.log((admitted + 1e-12) / (cell.share + 1e-12))) <= slack + 1e-9), (
                cell.name
            )


def test_correlation_is_what_it_says(small):
    """anti: none of the 100 nearest, at most a tenth of chance. corr: at least half. neutral: whatever the query."""
    _, rows, near, cells = small
    seen = set()
    for cell in cells:
        seen.add((cell.variant.value, cell.correlation.value))
        hits = [cell.requests[mask].admissible(rows)[near[query]].sum() for query, mask in cell.asked]
        if cell.correlation == "anti":
            assert max(hits) <= 10 * cell.share, cell.name
            assert 0 == min(hits), cell.name
        elif cell.correlation == "corr":
            fewest = np.minimum(90 if cell.share >= 0.5 else 50, cell.share * len(rows.words) / 2 / 1.3)
            assert min(hits) >= fewest, cell.name
        else:
            assert np.array_equal(np.arange(len(near)), cell.asked[:, 0])
    assert {
        (variant, kind) for variant in ("word", "session") for kind in ("neutral", "anti", "corr")
    } == seen


def test_sessions_carry_an_instant_and_a_thousand_denied_entities(small):
    """The session variant asks word, as_of and a deny list that closes some rows, not most."""
    _, rows, _, cells = small
    request = next(cell for cell in cells if cell.variant == "session").requests[0]
    assert 1_000 == len(set(request.denied.tolist()))
    denied = np.isin(rows.entities, request.denied)
    assert 0 < denied.mean() < 0.3
    assert 0.9 <= np.mean(rows.public_at <= request.as_of) <= 0.99


# ---------------------------------------------------------------- truth


def test_truth_equals_brute_force(bench, small):
    """The bar of every question is the k-th best exact similarity among the admissible rows."""
    data, rows, _, cells = small
    made = bench("truth").bars(rows, data.queries, cells, 10)
    for cell, bar in zip(cells, made, strict=True):
        for at in range(0, len(cell.asked), 61):
            passing, best, exact = brute_force(data, rows, cell, at)
            assert len(passing) == bar.admissible[at]
            assert min(10, len(passing)) == len(best) == bar.wanted[at]
            assert pytest.approx(exact[-1], abs=1e-12) == bar.similarity[at] if len(best) else True


def test_the_judge_counts_what_is_right_short_and_wrong(bench, small):
    """Right rows count in any order, padding does not; a closed, unknown or repeated row is a violation."""
    data, rows, _, cells = small
    truth = bench("truth")
    cell = next(cell for cell in cells if cell.share == 0.1 and cell.correlation == "neutral")
    passing, best, exact = brute_force(data, rows, cell, 3)
    query, mask = cell.asked[3]

    def verdict(ids):
        asked = (data.queries[query], cell.requests[mask], rows, 10, float(exact[-1]))
        return truth.judge(np.array(ids, dtype=np.int64), *asked)

    closed = next(row for row in range(len(rows.words)) if row not in set(passing))
    far = next(row for row in passing if row not in set(best.tolist()))
    right = best.tolist()
    assert truth.Verdict(1.0, short=False, violations=0) == verdict(right[::-1])
    assert truth.Verdict(0.9, short=True, violations=0) == verdict([*right[:9], -1])
    assert truth.Verdict(0.9, short=False, violations=0) == verdict([*right[:9], far])
    assert truth.Verdict(0.9, short=False, violations=1) == verdict([*right[:9], closed])
    assert truth.Verdict(0.9, short=True, violations=1) == verdict([*right[:9], right[0]])
    assert truth.Verdict(0.9, short=True, violations=1) == verdict([*right[:9], len(rows.words)])
    assert truth.Verdict(0.0, short=True, violations=0) == verdict([])


def test_ties_pass(bench):
    """Two equal rows at the bar are both right."""
    engine, truth = bench("engine"), bench("truth")
    vectors = np.array([[1, 0], [0.6, 0.8], [0.6, 0.8], [0, 1]], dtype=np.float32)
    zeros = np.zeros(4, dtype=np.uint32)
    rows = engine.Rows(vectors, zeros, zeros, zeros, 1)
    for second in (1, 2):
        ids = np.array([0, second])
        assert 1.0 == truth.judge(ids, vectors[0], engine.Request(), rows, 2, 0.6).recall


# ---------------------------------------------------------------- audiences


def test_a_session_may_see_the_share_of_rows_that_lists_share_with_it(bench, small):
    """As plain sets say; a bit of the words marks the same rows, and classes are few enough."""
    audiences, data = bench("audiences"), small[0]
    rows, cells = audiences.share(data, audiences.SHARES, queries=9)
    assert len(set(rows.lists)) == len(rows.lists) == 1 + audiences.AUDIENCES
    assert {1, audiences.MOST} == {len(min(rows.lists[1:], key=len)), len(max(rows.lists, key=len))}
    assert len({*zip(rows.words.tolist(), rows.audiences.tolist(), strict=True)}) <= 50_000
    for cell, part in zip(cells, audiences.SHARES, strict=True):
        (request,) = cell.requests
        assert audiences.HELD == len(set(request.groups))
        plainly = [not {*request.groups}.isdisjoint(some) for some in rows.groups()]
        assert plainly == request.admissible(rows).tolist()
        assert plainly == bench("engine").Request(required=request.twin).admissible(rows).tolist()
        assert 0.7 * part <= np.mean(plainly) <= 1.3 * part
        assert request.admissible(rows.some(np.array([7]))).tolist() == plainly[7:8]


@pytest.mark.release
def test_a_run_over_audiences_finds_what_is_shared_and_nothing_else(bench, tmp_path, monkeypatch, capsys):
    """CARAG in three ways, and PostgreSQL with row-level security."""
    psycopg_or_skip()
    monkeypatch.setattr(bench("session"), "CLASSES", (500, 1_000))
    out, text = tmp_path / "rows.jsonl", tmp_path / "REPORT.md"
    common = ["--fast", "--cache", str(tmp_path / "cache"), "--out", str(out)]
    assert 64 == bench("__main__").main(["audiences", *common, "--peers", "numpy-grouped"])
    assert "want some of wardowl-faiss" in capsys.readouterr().err
    assert 0 == bench("__main__").main(["audiences", *common])
    assert 0 == bench("__main__").main(["report", str(out), "--out", str(text)])
    records = [json.loads(line) for line in out.read_text().splitlines()]
    cells = [record for record in records if record["kind"] == "cell"]
    ours = {"carag", "carag-made-again", "carag-by-word"}
    assert ours | {"pgvector-rls"} == {cell["engine"] for cell in cells}
    assert {(0, 0)} == {(cell["violations"], cell["short"]) for cell in cells}
    assert min(cell["recall"] for cell in cells if cell["engine"] in ours) >= 0.99
    assert [500, 1_000] == [record["classes"] for record in records if record["kind"] == "classes"]
    assert "| 0.5 % | pgvector-rls |" in text.read_text()


# ---------------------------------------------------------------- curves


def test_throughput_is_interpolated_and_never_extrapolated(bench):
    """Log-linear between neighbours; a point beyond the recall counts as it is; out of reach is None."""
    curves = bench("curves")
    sweep = [curves.Point(16, 0.90, 4_000.0), curves.Point(32, 0.98, 2_000.0), curves.Point(64, 1.0, 500.0)]
    assert pytest.approx(math.sqrt(2_000 * 500)) == curves.qps_at(sweep, 0.99)
    assert 2_000 == curves.qps_at(sweep, 0.98)
    assert 4_000 == curves.qps_at(sweep, 0.5)
    assert curves.qps_at(sweep[:2], 0.99) is None
    assert curves.qps_at([], 0.5) is None
    own_choice = curves.Point(0, 0.0, 9_000.0)
    assert curves.qps_at([own_choice, *sweep], 0.85) == curves.qps_at(sweep, 0.85)


# ---------------------------------------------------------------- engines


@pytest.mark.parametrize("name", ["numpy-grouped", "numba-scan"])
def test_exact_peers_are_exact(bench, small, tmp_path, name):
    """The scans find every row of the truth in every cell, sessions included."""
    data, rows, _, cells = small
    pytest.importorskip({"numba-scan": "numba"}.get(name, "numpy"))
    engine = bench("peers").peer(name)
    engine.build(rows, bench("engine").Store(tmp_path / "graphs", "small"))
    truth = bench("truth")
    for cell, bar in zip(cells, truth.bars(rows, data.queries, cells, 10), strict=True):
        for at in range(0, len(cell.asked), 97):
            query, mask = cell.asked[at]
            request = cell.requests[mask]
            ids = engine.search(data.queries[query], 10, engine.policy(request), 0)
            asked = (data.queries[query], request, rows, int(bar.wanted[at]), float(bar.similarity[at]))
            assert truth.Verdict(1.0, short=False, violations=0) == truth.judge(ids, *asked), (cell.name, at)


def test_an_unknown_peer_is_refused_by_name(bench):
    """The message lists the peers there are."""
    with pytest.raises(InvalidArgument, match="numpy-grouped"):
        bench("peers").peer("hnsw")


@pytest.mark.release
def test_a_peer_that_filters_afterwards_returns_what_is_admissible(bench, small, tmp_path):
    """Under every policy no other row, and at a large effort most of the right ones; threads build no graph twice."""
    data, rows, _, cells = small
    pytest.importorskip("glass")
    engine = bench("peers").peer("glass-sq8")
    engine.build(rows, bench("engine").Store(tmp_path / "graphs", "small"))
    truth = bench("truth")
    recalls = []
    for cell, bar in zip(cells, truth.bars(rows, data.queries, cells, 10), strict=True):
        for at in range(0, len(cell.asked), 97):
            query, mask = cell.asked[at]
            ids = engine.search(data.queries[query], 10, cell.requests[mask], 512)
            asked = (data.queries[query], cell.requests[mask], rows, int(bar.wanted[at]))
            verdict = truth.judge(ids, *asked, float(bar.similarity[at]))
            assert 0 == verdict.violations, (cell.name, at)
            recalls.append(verdict.recall)
    assert np.mean(recalls) >= 0.9


def test_filtering_afterwards_widens_until_there_are_enough(bench, small):
    """Whatever the policy, an exact list of neighbours gives the exact answer, asked no wider than needed."""
    data, rows, _, cells = small
    widths = []

    class Sorted(bench("peers.postfilter").PostFilter):
        def _ready(self, store):
            raise AssertionError

        def _nearest(self, query, count, width):
            widths.append(width)
            return np.argsort(-(self._rows.vectors @ query), kind="stable")[:count]

    engine = Sorted()
    engine._rows = rows
    for cell in cells:
        for at in range(0, len(cell.asked), 61):
            passing, best, _ = brute_force(data, rows, cell, at)
            query, mask = cell.asked[at]
            widths.clear()
            ids = engine.search(data.queries[query], 10, cell.requests[mask], 16)
            assert set(best.tolist()) == set(ids.tolist()), (cell.name, at)
            assert widths == sorted(set(widths))
            assert 16 == widths[0]
            if len(passing) == len(rows.words):
                assert [16] == widths
            elif len(passing) >= 10:
                exact = data.vectors @ data.queries[query]
                rank = np.count_nonzero(exact >= exact[best[-1]])
                assert all(width < rank for width in widths[:-1])


# ---------------------------------------------------------------- the clock and the sweep


class Clock:
    """Stands in for the module that a measurement reads the time from."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now


def measured(bench, small, monkeypatch, *, policy=0.0, search=0.0, flatter=0, events=None, **settings):
    """Measure a make-believe engine whose calls take a stated time, in one cell.

    Its answers are right at an effort of 20 or more; at 10 the first `flatter` questions are, too. What it is asked
    goes into `events`: "s" to search, "w" to tell how an answer came about.
    """
    events = [] if events is None else events
    data, rows, _, cells = small
    run, truth = bench("run"), bench("truth")
    cell = next(cell for cell in cells if cell.share == 0.5 and cell.correlation == "neutral")
    (bars,) = truth.bars(rows, data.queries, [cell], 10)
    right = [set(brute_force(data, rows, cell, at)[1].tolist()) for at in range(len(cell.asked))]
    place = {query.tobytes(): at for at, query in enumerate(data.queries[cell.asked[:, 0]])}
    clock = Clock()
    monkeypatch.setattr(run, "time", clock)

    class Stub(bench("engine").Engine):
        name, bits, efforts = "stub", 32, (10, 20, 40)

        def build(self, rows, store):
            raise AssertionError

        def policy(self, request):
            clock.now += policy
            return request

        def search(self, query, k, policy, effort):
            clock.now += search
            events.append("s")
            self.last = at = place[query.tobytes()]
            return np.array([*right[at]] if effort >= 20 or at < flatter else [], dtype=np.int64)

        def work(self, answer):
            events.append("w")
            return bench("engine").Work("even" if answer % 2 == 0 else "odd", False, 0)

    entry = run.Entry(Stub(), bench("engine").Build(0.0, 1, 0.0), always=True)
    about = run.Field("small", rows, data.queries, 7, "test")
    return list(run.measure_cell([entry], cell, bars, about, run.Settings(**settings)))


@pytest.mark.parametrize(("inside", "micros"), [(True, 1_500), (False, 500)])
def test_making_the_policy_is_timed(bench, small, monkeypatch, inside, micros):
    """A call's time is that of making the policy and of searching, unless settings say otherwise."""
    rows = measured(bench, small, monkeypatch, policy=1e-3, search=5e-4, policy_inside=inside)
    assert [pytest.approx(micros)] * len(rows) == [row.p50_us for row in rows]
    assert bench("run").Settings().policy_inside


def test_every_point_of_the_rounds_is_asked_enough(bench, small, monkeypatch):
    """200 questions each, though the time of a cell allows twenty; fewer only below what a sweep puts up with."""
    rows = measured(bench, small, monkeypatch, search=0.04, seconds=0.8)
    assert {200} == {row.n for row in rows if row.phase == "rounds"}
    rows = measured(bench, small, monkeypatch, search=0.06, seconds=0.8)
    assert max(row.n for row in rows if row.phase == "rounds") < 200


def test_a_few_questions_do_not_end_a_sweep(bench, small, monkeypatch):
    """Right answers to the scout's few questions are not believed: the larger effort is in the rounds, too."""
    rows = measured(bench, small, monkeypatch, search=2e-3, flatter=35)
    reached = [row.effort for row in rows if row.phase == "rounds" and row.recall >= 0.99]
    assert [20] == reached


def test_nothing_is_asked_between_two_timed_calls(bench, small, monkeypatch):
    """How an answer came about is read when all are asked, and is that of its own question: it empties caches."""
    events = []
    rows = measured(bench, small, monkeypatch, search=2e-3, events=events)
    assert "sws" not in "".join(events)
    for row in rows:
        assert row.n == sum(row.plans.values())
        assert all(abs(row.plans[plan] - row.n / 2) <= 1 for plan in ("even", "odd"))


# ---------------------------------------------------------------- end to end


def test_a_smoke_run_writes_rows_and_a_report(bench, tmp_path, capsys):
    """Two engines, measured, reported, and the page's section replaced; answers of exact plans are exact."""
    main, report = bench("__main__").main, bench("report")
    rows, text, page = tmp_path / "rows.jsonl", tmp_path / "REPORT.md", tmp_path / "page.md"
    begin = f"<!-- bench.ann: this section is written by `{report._COMMAND}` -->"
    page.write_text(f"before\n{begin}\nsuperseded\n<!-- /bench.ann -->\nafter\n")
    variants = "word,session"
    common = ["--fast", "--variants", variants, "--cache", str(tmp_path / "cache"), "--out", str(rows)]
    assert 0 == main([*common, "--peers", "numpy-grouped"])
    assert 0 == main(["report", str(rows), "--out", str(text), "--page", str(page)])
    capsys.readouterr()

    records = [json.loads(line) for line in rows.read_text().splitlines()]
    assert "machine" == records[0]["kind"]
    cells = [record for record in records if record["kind"] == "cell"]
    assert {"carag", "numpy-grouped"} <= {cell["engine"] for cell in cells}
    assert {0} == {cell["violations"] for cell in cells}
    assert {0} == {cell["short"] for cell in cells if not cell["engine"].endswith("-alone")}
    for cell in cells:
        if cell["engine"] in ("carag-exact", "numpy-grouped"):
            assert 1.0 == cell["recall"]
        assert cell["p50_us"] <= cell["p95_us"] <= cell["p99_us"]

    written = page.read_text()
    assert written.startswith("before\n")
    assert written.endswith("\nafter\n")
    assert "superseded" not in written
    for part in (written, text.read_text()):
        assert "mixture-5k-64" in part
    assert "numpy-grouped" in text.read_text()


def test_a_page_without_the_markers_is_left_alone(bench):
    """No guess where the section might go."""
    with pytest.raises(InvalidArgument, match="put the two lines in"):
        bench("report").replace_section("# CARAG\n", "new")


def test_a_file_that_holds_no_results_is_refused(bench, tmp_path):
    """Neither another file nor an empty run makes a report."""
    results, path = bench("results"), tmp_path / "x.jsonl"
    for content, message in (
        ("nonsense", "JSON lines"),
        ('{"kind":"x"}', "kind 'x'"),
        ("", "no measured cell"),
    ):
        path.write_text(content)
        with pytest.raises(InvalidArgument, match=message):
            results.read([path])
