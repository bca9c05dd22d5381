"""The guards written in Python are tested by breaking them: no mutant goes unnoticed without a reason."""

from __future__ import annotations

import ast

import pytest

from tests.mutation import by_hand
from tests.mutation.mutants import LISTED, reasons, run, score, unexplained
from tests.mutation.words import words_only

ORIGINAL = """
def check(name, size):
    label("size", size)
    if size > 3:
        raise Refused("TOO_LARGE", f"{name} is {size}; want 3 at most")
    return "as it is" if size else size
"""


@pytest.mark.full
@pytest.mark.parametrize("group", LISTED["group"], ids=[group["name"] for group in LISTED["group"]])
def test_every_mutant_of_a_guard_is_noticed(group, capsys):
    """Some test fails, or the list says why it means the same; and what the list says is still so."""
    results = run(group)
    with capsys.disabled():
        print(f"\n{group['name']}: {score(results)}")  # noqa: T201
    assert [] == unexplained(results)


@pytest.mark.full
def test_what_is_broken_by_hand_is_noticed(capsys):
    """Properties, decorators and constants, which mutmut does not reach."""
    results = by_hand.run(by_hand.mutants())
    with capsys.disabled():
        print(f"\n{by_hand.score(results)}")  # noqa: T201
    assert [] == by_hand.unexplained(results)


def test_each_mutant_by_hand_is_found_once():
    """The list fits the files as they are."""
    assert by_hand.mutants()


def test_each_mutant_is_explained_once():
    """A reason stands for mutants of a file that is mutated."""
    listed = [tuple(change) for block in LISTED["same"] for change in block["mutants"]]
    assert len(listed) == len(reasons())
    assert {change.file for change in reasons()} <= {
        file for group in LISTED["group"] for file in group["files"]
    }


@pytest.mark.parametrize(
    ("found", "becomes", "expected"),
    [
        ('f"{name} is {size}; want 3 at most"', "None", True),
        ('"as it is"', '"XXas it isXX"', True),
        ('label("size"', "label(None", True),
        ('"TOO_LARGE"', "None", False),
        ('"TOO_LARGE", ', "", False),
        (', f"{name} is {size}; want 3 at most"', "", False),
        ("size > 3", "size >= 3", False),
        ('label("size", size)', "label(size)", False),
        ('"as it is" if size', '"as it is" if not size', False),
    ],
)
def test_what_only_words_differently_is_told_from_what_acts_otherwise(found, becomes, expected):
    """Messages, texts of several words and names for a value are words; codes and the number of values are not."""
    mutant = ORIGINAL.replace(found, becomes)
    assert mutant != ORIGINAL
    trees = [ast.parse(text).body[0] for text in (ORIGINAL, mutant)]
    assert expected is words_only(*trees, {"label": 0})
