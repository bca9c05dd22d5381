"""Answers about the AI Act that were labelled twice: what is counted, and what the page says of the labels."""

from __future__ import annotations

import lzma
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from bench.metric import advised
from bench.metric.advised import OPEN, SEALED, Labels, Pair, agreement, overlap, precisions, read
from bench.metric.corpora import act

if TYPE_CHECKING:
    from pathlib import Path

CITED, DENIED = {"art_1": "SUPPORTS"}, {"art_1": "CONTRADICTS", "art_2": "SUPPORTS"}


def pair(first: Labels, second: Labels, session: int = 1) -> Pair:
    return Pair(f"s{session}", session, "May we?", "You may.", (first, second))


def test_each_half_has_150_answers_of_30_sessions() -> None:
    halves = [read(OPEN), read(SEALED)]
    assert [len(half) for half in halves] == [150, 150]
    assert [len({one.session for one in half}) for half in halves] == [30, 30]
    assert len({one.id for half in halves for one in half}) == 300
    counted = Counter(one.labels[0].verdict for half in halves for one in half)
    assert counted == {"COMPLIANT": 136, "NON_COMPLIANT": 135, "IRRELEVANT": 29}


def test_every_article_is_one_of_the_act(shared_data: Path) -> None:
    known = {*act(shared_data)}
    for one in [*read(OPEN), *read(SEALED)]:
        assert {name for labels in one.labels for name in labels.articles} <= known
        assert all(bool(labels.articles) is (labels.verdict != "IRRELEVANT") for labels in one.labels)


def test_what_the_labellers_say_differently_is_not_counted() -> None:
    one = pair(Labels(CITED, "COMPLIANT"), Labels(DENIED, "NON_COMPLIANT"))
    assert (one.verdict, one.articles) == ("IRRELEVANT", {})
    same = pair(Labels(DENIED, "NON_COMPLIANT"), Labels(DENIED, "NON_COMPLIANT"))
    assert (same.verdict, same.articles) == ("NON_COMPLIANT", DENIED)
    assert overlap([one, same]) == (1 / 2 + 1) / 2


def test_agreement_is_that_of_the_two_labellings() -> None:
    """Three of four verdicts are the same; by chance half would be: kappa is (3/4 - 1/2) / (1 - 1/2)."""
    yes, no = Labels(CITED, "COMPLIANT"), Labels({"art_1": "CONTRADICTS"}, "NON_COMPLIANT")
    pairs = [pair(*both, at) for at, both in enumerate([(yes, yes), (yes, no), (no, no), (no, no)])]
    chance = (2 * 1 + 2 * 3) / 16
    for figure in agreement(pairs).values():
        assert figure.value == pytest.approx((3 / 4 - chance) / (1 - chance))


def test_a_reading_of_the_sealed_half_is_on_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The count is that of the lines, which the page states."""
    monkeypatch.setattr(advised, "READINGS", tmp_path / "readings")
    run = dict.fromkeys(("processor", "processors", "kernel", "system", "python", "numpy", "date"), "")
    run |= {"load": 0.0, "commit": ""}
    assert "have not been measured" in advised.page({}, read(OPEN), {}, run)
    (tmp_path / "readings").write_text("2026-11-29 a\n2026-11-30 b\n", encoding="utf-8")
    assert "were measured 2 times" in advised.page({}, read(OPEN), {"mpnet": "missing"}, run)
    assert lzma.decompress(SEALED.read_bytes())


def test_precision_at_a_share_is_the_best_from_there_on() -> None:
    """Of three contradictions among five, in the order of their scores: right, wrong, right, right, wrong."""
    found = precisions([0.1, 0.2, 0.3, 0.4, 0.5], [True, False, True, True, False])
    assert found == pytest.approx([1, 3 / 4, 3 / 4, 3 / 4])
