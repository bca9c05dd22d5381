"""A profile with one slip, made in any of hundreds of ways, is refused with the file, the line and the reason."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from carag.cli import Exit, app
from carag.errors import InvalidArgument
from carag.policy import Profile
from tests.profiles.mutated import BASES, FILES, Mutant, mutants

if TYPE_CHECKING:
    from pathlib import Path

REFUSAL = re.compile(r"^(profile|roles)\.toml, line ([1-9]\d*): (\S.{8,})$")


def write(folder: Path, mutant: Mutant) -> None:
    for file, text in zip(FILES, mutant.texts, strict=True):
        (folder / file).write_text(text, "utf-8", newline="")


def wrongly_refused(folder: Path, mutant: Mutant) -> str:
    """Return what is wrong with the refusal of a mutant, and nothing where all is as it should be."""
    write(folder, mutant)
    try:
        Profile.open(folder)
    except InvalidArgument as error:
        said = str(error)
    else:
        return "it is accepted"
    for told in said.splitlines():
        found = REFUSAL.match(told)
        if not found and not re.fullmatch(r"and \d+ mistakes more", told):
            return f"no file, line and reason: {told}"
    file, number, _ = REFUSAL.match(said.splitlines()[0]).groups()  # type: ignore[union-attr]
    text = mutant.texts[FILES.index(f"{file}.toml")]
    if int(number) > text.count("\n") + 1:
        return f"no such line: {said}"
    if mutant.lines and (f"{file}.toml" != mutant.file or int(number) not in mutant.lines):
        return f"not one of {mutant.file} {sorted(mutant.lines)}: {said}"
    return ""


def test_the_profiles_that_are_mutated_are_valid(tmp_path: Path) -> None:
    """Each as it stands: so what is refused below is the slip."""
    for name, texts in BASES.items():
        write(tmp_path, Mutant("none", name, FILES[0], texts, frozenset()))
        assert Profile.open(tmp_path).name == name


def refused_everywhere(folder: Path, places: int) -> tuple[int, int]:
    """Check each mutant, and return how many different texts and kinds of slips there were."""
    several = {mutant.texts: mutant for mutant in mutants(places)}
    wrong = {
        (one.slip, one.base, one.file): why
        for one in several.values()
        if (why := wrongly_refused(folder, one))
    }
    assert wrong == {}
    return len(several), len({(one.slip, one.file) for one in several.values()})


def test_hundreds_of_malformed_profiles_are_refused_with_a_line_and_a_reason(tmp_path: Path) -> None:
    """Of each slip one in each profile: none is accepted, and none raises another error."""
    texts, slips = refused_everywhere(tmp_path, 1)
    assert texts >= 200
    assert slips >= 100


@pytest.mark.full
def test_thousands_of_malformed_profiles_are_refused_with_a_line_and_a_reason(tmp_path: Path) -> None:
    """In up to twelve places of each file."""
    assert refused_everywhere(tmp_path, 12)[0] >= 2000


def test_lint_says_the_same_line_and_exits_65(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On standard error; nothing is printed that a pipeline could take for a finding."""
    for mutant in list(mutants(1))[::20]:
        write(tmp_path, mutant)
        with pytest.raises(InvalidArgument) as refused:
            Profile.open(tmp_path)
        first = str(refused.value).splitlines()[0]
        assert app.run(["policy", "lint", str(tmp_path)]) == Exit.BAD_INPUT
        out, err = capsys.readouterr()
        assert (out, re.sub(r"\s", "", first) in re.sub(r"\s", "", err)) == ("", True), err
