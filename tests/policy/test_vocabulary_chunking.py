"""Impossible lengths of passages are refused when a profile is read."""

from __future__ import annotations

import pytest

from carag.errors import CaragError
from carag.policy.profile import Profile


@pytest.mark.parametrize(
    ("chunking", "said"),
    [
        ("whole = 2000", "apply to clauses only"),
        ("overlap = 9", "apply to clauses only"),
        ('by = "clauses", whole = 1499', "1000, 1500, 1499.; want"),
        ("target = 10, limit = 9", "10, 9, 9.; want"),
        ('by = "clauses", whole = 0', "whole"),
        ('by = "clauses", whole = 1048577', "1048576"),
    ],
)
def test_lengths_ascend_and_those_of_clauses_are_not_for_passages(chunking: str, said: str) -> None:
    text, roles = Profile.open("generic").texts
    with pytest.raises(CaragError, match=said):
        Profile.from_texts(
            text.replace('name = "generic"', f'name = "office"\nchunking = {{{chunking}}}'), roles
        )


def test_without_a_length_of_its_own_a_clause_is_no_longer_than_a_passage() -> None:
    text, roles = Profile.open("generic").texts
    named = text.replace('name = "generic"', 'name = "office"\nchunking = {by = "clauses", limit = 1700}')
    assert Profile.from_texts(named, roles).vocabulary.whole == 1700
