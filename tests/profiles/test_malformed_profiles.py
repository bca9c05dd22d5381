"""A profile with one slip, made in any of hundreds of ways, is refused with the file, the line and the reason."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from carag.cli import Exit, app
from carag.errors import InvalidArgument
from carag.policy import Profile
from tests.profiles.mutated import BASES, FILES, Mutant, mutants
from tests.sizes import examples

if TYPE_CHECKING:
    from pathlib import Path

REFUSAL = re.compile(r"^(profile|roles)\.toml, line ([1-9]\d*): (\S.{8,})$")


def write(folder: Path, mutant: Mutant) -> None:
    for file, text in zip(FILES, mutant.texts, strict=True):
        (folder / file).write_text(text, "utf-8", newline="")


def wrongly_refused(folder: Path, mutant: Mutant) -> str:
    """Return what is wrong with the refusal of a mutant; empty if it is right."""
    write(folder, mutant)
    try:
        Profile.open(folder)
    except InvalidArgument as error:
        said = str(error)
    else:
        return "it is accepted"
    for told in said.splitlines():
        found = REFUSAL.match(told)
        if not found and not re.fullmatch(r"and \d+ more mistakes", told):
            return f"no file, line and reason: {told}"
    file, number, _ = REFUSAL.match(said.splitlines()[0]).groups()  # type: ignore[union-attr]
    text = mutant.texts[FILES.index(f"{file}.toml")]
    if int(number) > text.count("\n") + 1:
        return f"no such line: {said}"
    if mutant.lines and (f"{file}.toml" != mutant.file or int(number) not in mutant.lines):
        return f"not one of {mutant.file} {sorted(mutant.lines)}: {said}"
    return ""


def test_the_profiles_that_are_mutated_are_valid(tmp_path: Path) -> None:
    """So the refusals below are due to the slips."""
    for name, texts in BASES.items():
        write(tmp_path, Mutant("none", name, FILES[0], texts, frozenset()))
        assert Profile.open(tmp_path).name == name


def by_slip(places: int) -> list[list[Mutant]]:
    """The mutants of each kind of slip, each group starting with another profile."""
    groups: dict[tuple[str, str], list[Mutant]] = defaultdict(list)
    for mutant in {mutant.texts: mutant for mutant in mutants(places)}.values():
        groups[mutant.slip, mutant.file].append(mutant)
    return [group[at % len(group) :] + group[: at % len(group)] for at, group in enumerate(groups.values())]


@pytest.mark.parametrize(
    ("places", "least"), [(1, 200), pytest.param(12, 2000, marks=pytest.mark.full)], ids=["one", "twelve"]
)
def test_malformed_profiles_are_refused_with_a_line_and_a_reason(
    tmp_path: Path, places: int, least: int
) -> None:
    """Each slip in one profile, for a release in each, in full in up to twelve places of each: none is accepted, and
    none raises another error."""
    groups = by_slip(places)
    assert len(groups) >= 100
    assert sum(map(len, groups)) >= least
    most = examples(len(BASES), least=1) * places
    several = [one for group in groups for one in group[:most]]
    wrong = {
        (one.slip, one.base, one.file): why for one in several if (why := wrongly_refused(tmp_path, one))
    }
    assert wrong == {}


def test_lint_says_the_same_line_and_exits_65(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On standard error; nothing is printed that a pipeline could take for a finding."""
    for mutant, *_ in by_slip(1)[:: 150 // examples(30)]:
        write(tmp_path, mutant)
        with pytest.raises(InvalidArgument) as refused:
            Profile.open(tmp_path)
        first = str(refused.value).splitlines()[0]
        assert app.run(["policy", "lint", str(tmp_path)]) == Exit.BAD_INPUT
        out, err = capsys.readouterr()
        assert (out, re.sub(r"\s", "", first) in re.sub(r"\s", "", err)) == ("", True), err
