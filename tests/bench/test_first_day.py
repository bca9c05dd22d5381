"""Claims about what a new store answers before anybody calibrates its gate."""

from __future__ import annotations

import pytest

from bench.first_day.__main__ import SETTINGS, asked_of, read_set, stores_of


@pytest.mark.parametrize("name", ["development", "held_out"])
def test_each_set_has_the_stated_size_and_repeats_nothing(name: str) -> None:
    documents, off = read_set(name)
    asked = [question for one in documents for question in one["questions"]] + off
    assert (30, 20, len(asked)) == (len({one["id"] for one in documents}), len(off), len(set(asked)))
    assert len(asked) >= 60


@pytest.mark.release
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_new_store_answers_what_its_documents_answer_and_little_else(setting: str) -> None:
    """At least 85 % of the questions whose document is among the first three, and 10 % of those on other subjects."""
    documents, off = read_set("development")
    stores = stores_of(setting, documents, off)
    rows = [row for some, strange in stores for row in asked_of(setting, "wordllama", some, strange)]
    found = [row.why for row in rows if row.document and row.counts]
    strangers = [row.why for row in rows if not row.document]
    assert found.count("ANSWERED") >= 0.85 * len(found)
    assert strangers.count("ANSWERED") <= 0.1 * len(strangers)
