"""Claims about the figures of the metric's benchmark (``bench/metric``): each computed by hand beside it."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

VERDICTS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30)
MARKS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.2, 0.5, 0.7, 1.0]), st.booleans()), min_size=2, max_size=30
)


@pytest.fixture(scope="module")
def room() -> Iterator[Callable[[str], ModuleType]]:
    """``room("measures")`` imports ``bench.metric.measures``: ``bench`` is outside the package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[2]))
        yield lambda name: importlib.import_module(f"bench.metric.{name}")


@pytest.fixture(scope="module")
def of(room: Callable[[str], ModuleType]) -> Any:
    return room("measures")


def ones(count: int) -> np.ndarray:
    return np.ones(count)


def test_one_that_is_named_twice_is_found_once(of: Any) -> None:
    assert of.recall_at(["a", "a"], {"a", "b"}, 2) == 0.5


def test_ndcg_discounts_by_the_logarithm_of_the_rank(of: Any) -> None:
    """Gold at ranks 1 and 3 of three gold ones: (1 + 1/2) / (1 + 1/log2(3) + 1/2) = 1.5 / 2.1309."""
    assert of.ndcg_at(["a", "x", "b"], {"a", "b", "c"}, 3) == pytest.approx(1.5 / 2.1309298, abs=1e-6)
    assert of.ndcg_at(["x", "a"], {"a"}, 1) == 0
    assert of.ndcg_at(["a", "x", "b"], {"a", "b", "c"}, 1) == 1, "one place can hold one of three"


def test_macro_f1_is_the_mean_over_both_labels(of: Any) -> None:
    """Rows of truth: (3 right, 1 wrong), (1 wrong, 1 right). F1: 6/8 and 2/4."""
    assert of.macro_f1(np.array([[3.0, 1.0], [1.0, 1.0]])) == pytest.approx((6 / 8 + 2 / 4) / 2)


@given(pairs=VERDICTS)
def test_kappa_of_a_constant_is_zero_and_of_the_truth_is_one(of: Any, pairs: list[tuple[bool, bool]]) -> None:
    truth = [one for one, _ in pairs]
    assert of.kappa(of.confusion(truth, ["x"] * len(truth), ones(len(truth)))) == pytest.approx(0)
    itself = of.kappa(of.confusion(truth, truth, ones(len(truth))))
    assert itself == pytest.approx(1 if len({*truth}) > 1 else 0)


@given(pairs=VERDICTS)
def test_kappa_does_not_ask_who_is_right(of: Any, pairs: list[tuple[bool, bool]]) -> None:
    one, other = zip(*pairs, strict=True)
    count = ones(len(pairs))
    assert of.kappa(of.confusion(one, other, count)) == pytest.approx(
        of.kappa(of.confusion(other, one, count))
    )


def test_a_weight_of_two_is_the_item_twice(of: Any) -> None:
    truth, said = [True, False, False], [True, True, False]
    weighted = of.confusion(truth, said, np.array([[1.0, 2.0, 1.0]]))
    assert weighted[0].tolist() == of.confusion([*truth, False], [*said, True], ones(4)).tolist()


def test_a_score_below_the_threshold_contradicts(of: Any) -> None:
    """As the metric has it: equal is support. Scores 0.3 (contradicts) and 0.6 (supports) part from 0.31 to 0.6."""
    found = dict(zip(of.THRESHOLDS, of.f1_by_threshold([0.3, 0.6], [True, False]), strict=True))
    assert found[0.31] == found[0.6] == 1
    assert found[0.3] == found[0.61] == pytest.approx(1 / 3)
    assert of.best_threshold([0.3, 0.6], [True, False]) == pytest.approx(0.46), (
        "the middle of those that are best"
    )


def test_average_precision_takes_equal_scores_together(of: Any) -> None:
    """Ascending, two equal: 1 of 1 caught; then 2 of 3: 1/2 + 1/2 * 2/3."""
    marks, truth = [0.4, 0.1, 0.9, 0.4], [True, True, False, False]
    assert of.average_precision(marks, truth, ones(4)) == pytest.approx(1 / 2 + 1 / 3)


@given(items=MARKS)
def test_the_area_counts_pairs(of: Any, items: list[tuple[float, bool]]) -> None:
    """A contradiction below a support is a win, one beside it half of one; so counted one by one."""
    marks, truth = [one for one, _ in items], [one for _, one in items]
    below = [mark for mark, contradicts in items if contradicts]
    above = [mark for mark, contradicts in items if not contradicts]
    found = float(of.area(marks, truth, ones(len(items))))
    if not below or not above:
        assert np.isnan(found)
        return
    wins = sum((one < other) + (one == other) / 2 for one in below for other in above)
    assert found == pytest.approx(wins / (len(below) * len(above)))


def test_a_paired_difference_of_the_same_is_zero_in_every_replicate(of: Any) -> None:
    values = [0.0, 1.0, 0.5, 0.25]
    found = of.interval(lambda w: of.mean(values, w) - of.mean(values, w), [1, 1, 2, 2])
    assert (0.0, 0.0, 0.0, False) == (found.value, found.low, found.high, found.excludes_zero)


def test_pairing_shows_what_two_intervals_of_their_own_would_hide(of: Any) -> None:
    """One is better by 0.1 on each item, and items differ by far more: only the paired interval excludes 0."""
    worse = [at / 10 for at in range(10)]
    better = [one + 0.1 for one in worse]
    alone, other = (of.interval(lambda w, v=v: of.mean(v, w), range(10)) for v in (worse, better))
    paired = of.interval(lambda w: of.mean(better, w) - of.mean(worse, w), range(10))
    assert alone.high > other.low
    assert paired.low == pytest.approx(0.1) == paired.high
    assert paired.excludes_zero


def test_items_of_one_cluster_count_as_one(of: Any) -> None:
    """Fifty copies of two items that differ: as clusters of two they vary as two items do, not as a hundred."""
    values = [0.0] * 50 + [1.0] * 50
    clustered = of.interval(lambda w: of.mean(values, w), [1] * 50 + [2] * 50)
    single = of.interval(lambda w: of.mean(values, w), range(100))
    assert (0.0, 1.0, 2) == (clustered.low, clustered.high, clustered.clusters)
    assert 0.4 <= single.low < 0.5 < single.high <= 0.6


def test_a_figure_without_a_value_is_refused(of: Any) -> None:
    from carag.errors import InvalidArgument

    with pytest.raises(InvalidArgument, match="no value"):
        of.interval(lambda w: of.area([0.1, 0.2], [True, True], w), [1, 2])


def test_an_article_stands_where_its_best_chunk_does(room: Any) -> None:
    ranked = room("retrieval").ranked
    assert ["b", "a", "c"] == ranked(np.array([0.2, 0.9, 0.8, 0.1]), ["a", "b", "a", "c"])
    assert ["a", "b"] == ranked(np.array([0.5, 0.5]), ["a", "b"]), "of equal ones the first in the corpus"


def test_a_threshold_is_not_chosen_on_the_cluster_that_it_judges(room: Any) -> None:
    """Each cluster alone would want 0.5 or so; the other one wants another, and gets it here."""
    marks, truth = [0.1, 0.3, 0.7, 0.9], [True, False, True, False]
    left = room("classification").cross_validated(marks, truth, [1, 1, 2, 2])
    assert all(0.7 < one <= 0.9 for one in left[:2])
    assert all(0.1 < one <= 0.3 for one in left[2:])


def test_only_an_interval_without_zero_makes_a_recommendation(room: Any) -> None:
    recommended = room("advice").recommended
    values = {"a": 0.9, "b": 0.8, "c": 0.1}
    said = recommended(values, {"a - b": {"low": -0.01, "high": 0.2}, "c - a": {"low": -0.9, "high": -0.6}})
    assert said == "no difference shown between `a` and `b`; `a` is better than `c`"
    assert recommended(values, {}) == "no difference shown between `a`, `b` and `c`"


def test_what_is_kept_is_computed_once_and_survives(room: Any, tmp_path: Path) -> None:
    kept, asked = room("kept"), []

    def rows(places: list[int]) -> np.ndarray:
        asked.extend(places)
        return np.array([[float(at)] for at in places], np.float32)

    keys = [kept.key("a"), kept.key("b"), kept.key("a")]
    first = kept.Kept(tmp_path)
    found = [float(row[0]) for row in first.rows("model", keys, rows)]
    assert found == [found[0], 1.0, found[0]]
    assert len(asked) == 2
    first.close()
    again = kept.Kept(tmp_path)
    assert found == [float(row[0]) for row in again.rows("model", keys, rows)]
    assert len(asked) == 2
    assert len(again.rows("another model", keys[:1], rows)) == 1
    assert len(asked) == 3, "another model's values are another's"
    again.close()


def test_bm25_stays_in_its_bounds_and_knows_rare_words(room: Any) -> None:
    """The score is a share of what its words could reach: 1 is never reached, and no common word is 0."""
    of_corpus = room("models").Bm25(["logs are kept", "fees are due", "rules are few"])
    same, rare, common, none = of_corpus.score("logs are kept", ["logs are kept", "logs", "are", "x"])
    assert 1 > same > rare > common > none == 0
    assert of_corpus.score("", ["logs"]) == [0.0]
    assert of_corpus.score("logs", ["logs " * 10_000])[0] < 1


class Judge:
    name = "judge"
    fingerprint = "judge-1"
    remote = False
    asked = 0

    def judge(self, claim: str, passages: list[str]) -> np.ndarray:
        self.asked += len(passages)
        return np.array([[0.1, 0.3, 0.6], [0.0, 0.0, 1.0]])[[int(text) for text in passages]]


def test_of_a_judge_the_part_that_supports_is_the_score(room: Any) -> None:
    """0.1 of 0.4; where neither is said, neither is likelier."""
    assert room("models").Stance(Judge()).score("claim", ["0", "1"]) == [pytest.approx(0.25), 0.5]


@pytest.mark.release  # the model itself: three seconds
def test_tokens_computed_once_give_the_scores_of_maxsim(room: Any) -> None:
    from carag.retrieval.maxsim import MaxSim

    response, passages = "Logs are kept for six months.", ["Keep the logs.", "Fees rise. " * 200]
    ours = room("models").TokenMaxSim()
    assert (
        ours.score(response, passages)
        == ours.score(response, passages)
        == MaxSim().rerank(response, passages)
    )


def test_a_score_is_the_mean_over_claims_of_the_best_passage(room: Any) -> None:
    """Claims a and b score 0.2, 0.8 and 0.4, 0.1: (0.8 + 0.4) / 2."""

    class Told:
        name = "told"

        def score(self, query: str, documents: list[str]) -> list[float]:
            return {"a": [0.2, 0.8], "b": [0.4, 0.1]}[query]

    room_of = room("classification")
    item = room_of.Judged("1", 1, ("a", "b"), ("p", "q"), contradicts=False)
    assert room_of.scored(Told(), [item]) == [pytest.approx(0.6)]


def test_a_slow_model_reads_one_sentence_of_the_first_turns(room: Any) -> None:
    """A statement of one sentence is read whole."""
    room_of = room("classification")
    turns = tuple(
        f"Head\n\nThis is number {at}. It is a longer sentence, the longest of {at}." for at in range(9)
    )
    item = room_of.Judged("1", 1, turns, ("p",), contradicts=False)
    read = room_of._drawn(item)
    assert room_of.SLOW_TURNS == len(read) == 2
    assert [f"It is a longer sentence, the longest of {at}." for at in range(2)] == read
    assert room_of._drawn(item._replace(claims=("One. Two.",))) == ["One. Two."]


def test_fewer_turns_are_the_first_of_more(room: Any) -> None:
    """Drawn ones stand first, the same in every run, and none is lost or doubled."""
    every = [f"turn {at}" for at in range(23)]
    drawn = room("corpora")._drawn_first("use1-art9-A", every)
    assert sorted(drawn) == sorted(every)
    assert drawn != every
    assert drawn == room("corpora")._drawn_first("use1-art9-A", every)
    assert drawn[:5] != room("corpora")._drawn_first("use2-art9-A", every)[:5]


def excerpt(room: Any, use: int, scenario: str, article: str, median: int, *said: str) -> Any:
    name = f"use{use}-{article}-{scenario}"
    return room("corpora").Excerpt(
        name, use, scenario, article, "Article", tuple(said), (median,) * 3, median
    )


def test_a_session_is_the_documentation_of_one_use_in_one_scenario(room: Any) -> None:
    """Undecided excerpts are measured, but do not count in the truth; each excerpt has one weight, however long."""
    documentation = [
        excerpt(room, 1, "A", "art9", 5, "one", "two"),
        excerpt(room, 1, "A", "art10", 2, "one"),
        excerpt(room, 1, "A", "art12", 3, "one"),
        excerpt(room, 1, "B", "art9", 1, "one"),
        excerpt(room, 2, "A", "art9", 3, "one"),
    ]
    whole = room("joint").sessions_of(documentation)
    assert ["use1-A", "use1-B", "use2-A"] == [one.session_id for one in whole]
    assert [1 / 6, 1 / 6, 1 / 3, 1 / 3] == [pytest.approx(turn.weight) for turn in whole[0].turns]
    assert [True, False, False] == [one.is_compliant for one in room("joint").truths(documentation)]


def test_another_threshold_judges_as_the_metric_itself_would(room: Any) -> None:
    """The verdicts computed from kept scores are those of the metric that is set to that threshold."""
    from carag.evaluation.regulatory import Regulatory, Settings, Variant

    speed, joint = room("speed"), room("joint")
    documentation = [
        excerpt(
            room,
            1 + at % 2,
            "AB"[at % 3 // 2],
            f"art{at}",
            5,
            *(one.assistant for one in speed._turns(at + 2)),
        )
        for at in range(6)
    ]
    fake, seen = speed.Fake(), set()
    articles = {one.source: one.text for one in speed.Drawn(30).load_documents()}
    sessions = joint.sessions_of(documentation)
    alone = [session for one in documentation for session in joint.sessions_of([one])]
    cells = joint._measured(fake, fake, Variant.PAPER, joint._searched(fake, articles), sessions)
    for limit in (0.3, 0.5, 0.6):
        metric = Regulatory(
            room("corpora").ActCorpus(articles), fake, fake, Settings(contradiction_threshold=limit)
        )
        names = [one.id for one in documentation]
        for name, result in zip(names, metric.measure(alone), strict=True):
            assert joint._verdict(cells.marks[name], limit) == result.verdict.value
            assert limit != 0.6 or cells.verdicts[name] == result.verdict.value
            seen.add(result.verdict.value)
    assert len(seen) > 1, "verdicts of one kind would show nothing"


def test_the_fake_models_are_no_part_of_what_is_timed(room: Any) -> None:
    found = room("speed").measured(40, 120, 2)
    assert found["chunks"] == 120
    for name, one in found["variants"].items():
        assert len(one["ms"]) == 2
        assert one["median ms"] > one["median search ms"] > 0
        assert one["median passages"] == 10 if name != "reference" else 10 < one["median passages"] <= 20


def test_the_page_is_a_function_of_the_results(room: Any) -> None:
    """What is published is what was measured: the page is made again from results.json alone."""
    home = Path(room("report").__file__).parent
    found = json.loads((home / "results.json").read_text(encoding="utf-8"))
    assert room("report").report(found) == (home / "RESULTS.md").read_text(encoding="utf-8")
    assert not found["about"]["quick"]
