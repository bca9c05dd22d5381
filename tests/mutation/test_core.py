"""The core's guards are tested by breaking them: no mutant of core.toml goes unnoticed without a reason."""

from __future__ import annotations

import shutil

import pytest

from tests.mutation.core import mutants, run, score, unexplained

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="mutants are compiled by gcc")


def notices_all(listed, capsys):
    results = run(listed)
    with capsys.disabled():
        print(f"\n{score(results)}")  # noqa: T201
    assert [] == unexplained(results)


@pytest.mark.release
def test_every_mutant_of_the_word_test_is_noticed(capsys):
    """Whatever is broken in policy.h, the law test of the header fails, or the list says why it means the same."""
    notices_all([one for one in mutants() if one.file == "policy.h"], capsys)


@pytest.mark.full
def test_every_mutant_of_a_guard_is_noticed(capsys):
    """So for kernels, catalog, plans, emission, changes, adding and loading: some test fails, or there is a reason."""
    notices_all(mutants(), capsys)
