"""Lines of TOML keys: every key that ``tomllib`` finds has the line on which it is written."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.policy.shipped import SHIPPED, shipped_text
from carag.policy.toml_lines import Toml, lines_of
from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Iterator

    Place = tuple[str | int, ...]

BARE = st.from_regex(r"[A-Za-z0-9_-]{1,6}", fullmatch=True)
QUOTED = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Zl", "Zp"), exclude_characters="\"'\\"), max_size=6
)
STRINGS = st.sampled_from(
    [
        '"a"',
        '"]"',
        '"\\"#["',
        "'{\\'",
        '"""\nx = 1\n[a]\n\\""""',
        "'''\n[[b]] '' \n'''",
        '""""q""""',
        "''",
        '""',
        '""""""',
    ]
)
SCALARS = (
    st.sampled_from(["1", "0x1f", "1.5e+3", "inf", "true", "1979-05-27 07:32:00Z", "07:32:00.5"]) | STRINGS
)
SPACE = st.sampled_from(["", " ", "\t", "  "])
BREAK = st.sampled_from(["", " ", "\n", "\n\n  ", " # ] } [x] = '\n\t", "\r\n"])


@st.composite
def keys(draw: st.DrawFn, taken: set[str]) -> str:
    """Draw a key in some notation, with a name that is not in its table."""
    name = draw(BARE | QUOTED)
    while name in taken:
        name += "_"
    taken.add(name)
    is_bare = name.isascii() and name.replace("-", "a").replace("_", "a").isalnum()
    quote = draw(st.sampled_from(["", '"', "'"] if is_bare else ['"', "'"]))
    return f"{quote}{name}{quote}"


@st.composite
def values(draw: st.DrawFn, depth: int = 2) -> str:
    """Draw a scalar, a list on one line or several, or an inline table."""
    kind = draw(st.sampled_from(["scalar", "list", "table"])) if depth else "scalar"
    if kind == "scalar":
        return draw(SCALARS)
    several = draw(st.integers(0, 3))
    if kind == "list":
        items = [f"{draw(BREAK)}{draw(values(depth=depth - 1))}{draw(BREAK)}" for _ in range(several)]
        return f"[{','.join(items)}{',' if items and draw(st.booleans()) else ''}{draw(BREAK)}]"
    taken: set[str] = set()
    pairs = [f"{draw(pair(taken, depth - 1))}" for _ in range(several)]
    return "{" + ", ".join(pairs) + "}"


@st.composite
def pair(draw: st.DrawFn, taken: set[str], depth: int) -> str:
    """Draw a key, plain or dotted, and its value."""
    key = draw(keys(taken))
    if draw(st.booleans()):
        key += f"{draw(SPACE)}.{draw(SPACE)}{draw(keys(set()))}"
    return f"{draw(SPACE)}{key}{draw(SPACE)}={draw(SPACE)}{draw(values(depth=depth))}{draw(SPACE)}"


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Draw pairs, then tables and lists of tables, each with tables of its own."""
    taken: set[str] = set()
    lines = [draw(pair(taken, 2)) for _ in range(draw(st.integers(0, 3)))]
    for _ in range(draw(st.integers(0, 4))):
        name, within = draw(keys(taken)), set[str]()
        several = draw(st.booleans())
        for _ in range(draw(st.integers(1, 3)) if several else 1):
            within = set()
            lines.append(f"[[{name}]]" if several else f"[ {name} ] # {name} = [")
            lines += [draw(pair(within, 2)) for _ in range(draw(st.integers(0, 2)))]
            if draw(st.booleans()):
                lines += [f"[{name}.{draw(keys(within))}]", draw(pair(set(), 1))]
            if draw(st.booleans()):
                inner = draw(keys(within))
                lines += [f"[[{name}.{inner}]]", draw(pair(set(), 1)), f"[[{name} . {inner}]]"]
    return "\n".join(line + draw(st.sampled_from(["", " # '''", "\n"])) for line in lines)


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Yield every place that ``tomllib`` finds, at any depth."""
    found = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in found:
        yield (*place, key)
        yield from places(one, (*place, key))


@given(documents())
@settings(max_examples=examples(40))
def test_every_key_has_the_line_on_which_it_stands(text: str) -> None:
    """And nothing else has a line."""
    lines, written = lines_of(text), text.split("\n")
    assert {*places(tomllib.loads(text))} == {*lines}
    for place, line in lines.items():
        assert 1 <= line <= len(written)
        name = next(part for part in reversed(place) if isinstance(part, str))
        assert isinstance(place[-1], int) or name in written[line - 1]


@pytest.mark.parametrize("profile", SHIPPED)
@pytest.mark.parametrize("file", ["profile.toml", "roles.toml"])
def test_every_key_of_a_shipped_profile_has_its_line(profile: str, file: str) -> None:
    """Each at the start of its line, in a mask, or as a header."""
    text = shipped_text(profile, file)
    lines, written = lines_of(text), text.split("\n")
    assert {*places(tomllib.loads(text))} == {*lines}
    for place, line in lines.items():
        assert (
            isinstance(place[-1], int)
            or f"{place[-1]} =" in written[line - 1]
            or f"[{place[-1]}]" in written[line - 1]
        )
    assert len(set(lines.values())) > len(lines) / 4


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a = 1\nb = ", 2),
        ("a = 1\nb = 2 3\n", 2),
        ("a = 1\nb = '", 2),
        (f"a = 1\n\nb = {'[' * 5000}\n", 3),
        (f"a = 1\nb = {'1' * 5000}\nc = {'1' * 5000}", 2),
        (f"a = {'1' * 5000}", 1),
    ],
)
def test_invalid_toml_is_refused_with_its_line(text: str, line: int) -> None:
    """Also where ``tomllib`` raises an undocumented error without a position."""
    from pydantic import BaseModel

    with pytest.raises(InvalidArgument, match=rf"^a\.toml, line {line}: not valid TOML: .+"):
        Toml("a.toml", text).read(BaseModel)
