"""Front matter and sidecars: what is stated comes back as stated, and contradictions are refused."""

from __future__ import annotations

import csv
import io
import json
from string import ascii_letters
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from carag.errors import CorruptFile
from carag.readers import Problem, ReadDocument, facts, read_folder, sidecar
from carag.readers.front_matter import split_front_matter
from carag.readers.sidecar import Sidecar

if TYPE_CHECKING:
    from pathlib import Path

    from carag.readers import Fact

names = st.text(ascii_letters, min_size=1, max_size=8).filter(lambda name: name not in {"id", "file", "text"})
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
integers = st.integers(-(2**63), 2**63 - 1)
floats = st.floats(allow_nan=False, allow_infinity=False)
values = texts | integers | floats | st.booleans() | st.lists(texts, max_size=4)
fields = st.dictionaries(names, values, max_size=5)


def front_matter(stated: dict[str, Fact]) -> str:
    def written(value: Fact) -> str:
        return f"{value:.17e}" if isinstance(value, float) else json.dumps(value)

    return "---\n" + "".join(f"{name}: {written(value)}\n" for name, value in stated.items()) + "---\n"


def typed(stated: dict[str, Fact]) -> dict[str, tuple[type, Fact]]:
    """1, 1.0 and True are equal, but not the same."""
    return {name: (type(value), value) for name, value in stated.items()}


def sidecar_of(name: str, content: str) -> Sidecar:
    read = Sidecar()
    read.add(name, content.encode())
    return read


# Front matter


@given(fields, texts)
def test_front_matter_comes_back_with_its_types(stated: dict[str, Fact], body: str) -> None:
    """The text after it is unchanged."""
    found, rest = split_front_matter(front_matter(stated) + body)
    assert typed(stated) == typed(found)
    assert body == rest


@given(names, texts)
def test_what_is_not_quoted_is_the_text_itself_or_refused(name: str, value: str) -> None:
    """Or it is a number or Boolean in that spelling; never anything else."""
    assume("\n" not in value)  # it would be another line
    try:
        found, _ = split_front_matter(f"---\n{name}: {value}\n---\n")
    except CorruptFile:
        return
    (read,) = found.values()
    if isinstance(read, bool):
        assert value.strip() == str(read).lower()
    elif isinstance(read, int | float):
        assert float(value) == read
    elif value.strip()[:1] not in {"'", '"', "["}:
        assert value.strip(" \t") == read


@given(fields, st.data())
def test_a_key_that_stands_twice_is_refused_with_its_line(
    stated: dict[str, Fact], data: st.DataObject
) -> None:
    """Even if the values are equal."""
    lines = front_matter(stated or {"a": 1}).split("\n")[1:-2]
    again = data.draw(st.sampled_from(lines))
    with pytest.raises(CorruptFile, match=f"line {len(lines) + 2} of the front matter.*twice"):
        split_front_matter("\n".join(["---", *lines, again, "---", ""]))


@pytest.mark.parametrize(
    "text", ["", "text", "--\na: b\n---\n", " ---\na: b\n---\n", "---", "----\n", "a\n---\nb: c\n---"]
)
def test_a_text_without_a_fence_on_its_first_line_has_no_front_matter(text: str) -> None:
    assert ({}, text) == split_front_matter(text)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("a: b c", "b c"),
        ("a:   b  ", "b"),
        ("a: 2024-01-31", "2024-01-31"),
        ("a: https://example.com/#x", "https://example.com/#x"),
        ("a: 'it''s: 1'", "it's: 1"),
        (r'a: "\u00e9\n"', "é\n"),
        ("a: -7", -7),
        ("a: 0", 0),
        ("a: -0.5", -0.5),
        ("a: 1.5e+3", 1500.0),
        ("a: true", True),
        ("a: []", []),
        ("a: [b]", ["b"]),
        ("a: [b c , 'd, e',\"f\" ]", ["b c", "d, e", "f"]),
    ],
)
def test_the_subset_reads_as_yaml_does(line: str, value: Fact) -> None:
    assert {"a": (type(value), value)} == typed(split_front_matter(f"---\n{line}\n---\n")[0])


@pytest.mark.parametrize(
    "line",
    [
        *("a", "a:b", ": b", " a: b", "- a", "# a", "1a: b", "a b: c", "a:", "? a", "..."),
        *(f"a: {value}" for value in ("no", "Yes", "ON", "null", "~", "True", "FALSE", "y")),
        *(f"a: {value}" for value in ("007", "1_000", "10:30", "0x1F", "1e5", "1.", "+1", ".5", ".inf")),
        *(
            f"a: {value}"
            for value in ("b: c", "b #c", "b:", "&b", "*b", "!!python/object:os.system", "|", ">")
        ),
        *(
            f"a: {value}"
            for value in ("{b: c}", "@b", "`b", "%b", '"b', "'b'c'", '"b" c', r'"\q"', "- b", "b\tc")
        ),
        *(
            f"a: {value}"
            for value in ("[b", "b]c: [", "[1]", "[true]", "[b,]", "[,b]", "[[b]]", "['b' c]", "[no]")
        ),
    ],
)
def test_anything_else_is_a_problem_with_its_line(line: str) -> None:
    """Nothing is guessed, and nothing is executed."""
    with pytest.raises(CorruptFile, match="line 3 of the front matter"):
        split_front_matter(f"---\nfine: 1\n{line}\n---\n")


def test_front_matter_without_an_end_is_refused() -> None:
    """Otherwise the whole text could be taken for front matter."""
    with pytest.raises(CorruptFile, match="does not end; add another line ---"):
        split_front_matter("---\na: b\n")


def test_metadata_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """In fields, items and characters."""
    many = {str(number): 1 for number in range(facts.MAX_FACTS + 1)}
    for stated in (many, {"a": ["b"] * (facts.MAX_ITEMS + 1)}, {"a": "b" * (facts.MAX_FACT + 1)}, {"": 1}):
        with pytest.raises(CorruptFile):
            facts.check_facts(stated)


# Sidecars

cells = texts.filter(lambda cell: cell == cell.strip() and "\r" not in cell)
rows = st.dictionaries(texts.filter(bool), st.dictionaries(names, cells, max_size=3), min_size=1, max_size=5)


@given(rows, st.sampled_from(["file", "id"]))
def test_a_csv_comes_back_as_texts_and_an_empty_cell_states_nothing(
    stated: dict[str, dict[str, str]], column: str
) -> None:
    out = io.StringIO()
    columns = sorted({name for row in stated.values() for name in row})
    written = csv.writer(out)
    written.writerow([*columns, column])
    for key, row in stated.items():
        written.writerow([*(row.get(name, "") for name in columns), key])
    read = sidecar_of("metadata.csv", out.getvalue())
    assert [] == read.problems["metadata.csv"]
    for key, row in stated.items():
        ((_, found),) = read.of(key, key)
        assert {name: cell for name, cell in row.items() if cell} == {
            name: fact for name, fact in found.items() if name != "id"
        }


@given(st.dictionaries(texts.filter(bool), fields, min_size=1, max_size=5))
def test_json_lines_come_back_with_their_types(stated: dict[str, dict[str, Fact]]) -> None:
    """Each with its line number."""
    lines = [json.dumps({"file": key, **row}) for key, row in stated.items()]
    read = sidecar_of("metadata.jsonl", "\n".join(lines))
    for number, (key, row) in enumerate(stated.items(), 1):
        ((where, found),) = read.of(key, key)
        assert f"metadata.jsonl:{number}" == where
        assert typed(row) == typed(found)


@given(fields, fields)
def test_what_is_stated_twice_is_equal_or_refused(one: dict[str, Fact], other: dict[str, Fact]) -> None:
    """Neither statement is preferred, whichever comes first."""
    agree = all(typed(one)[name] == typed(other)[name] for name in one.keys() & other.keys())
    for first, second in ((one, other), (other, one)):
        if agree:
            assert typed(one | other) == typed(facts.merged_facts([("a", first), ("b", second)]))
        else:
            with pytest.raises(CorruptFile, match=r" in a and .* in b"):
                facts.merged_facts([("a", first), ("b", second)])


def read(root: Path, **files: str) -> list[ReadDocument | Problem]:
    for name, content in files.items():
        (root / name.replace("__", ".")).write_text(content)
    return list(read_folder(root))


def places(found: list[ReadDocument | Problem]) -> dict[str, bool]:
    """Whether each place is a document."""
    return {one.where: isinstance(one, ReadDocument) for one in found}


def test_three_places_that_agree_are_merged(tmp_path: Path) -> None:
    """By path and by id."""
    (document,) = read(
        tmp_path,
        a__md="---\nid: a-1\nowner: me\n---\nx",
        metadata__csv="file,owner,desk\na.md,me,7\n",
        metadata__jsonl='{"id": "a-1", "desk": "7", "year": 2024}',
    )
    assert ReadDocument("a-1", "x", {"owner": "me", "desk": "7", "year": 2024}, (), "a.md", "") == document


@pytest.mark.parametrize(
    "files",
    [
        {"a__md": "---\nowner: me\n---\nx", "metadata__csv": "file,owner\na.md,you\n"},
        {"a__md": "---\nyear: 2024\n---\nx", "metadata__csv": "file,year\na.md,2024\n"},
        {"a__md": "---\nid: b\n---\nx", "metadata__csv": "file,id\na.md,c\n"},
        {
            "a__md": "x",
            "metadata__csv": "file,owner\na.md,me\n",
            "metadata__jsonl": '{"id": "a.md", "owner": "you"}',
        },
        {
            "a__md": "---\nid: b\n---\nx",
            "metadata__csv": "file,o\na.md,me\n",
            "metadata__jsonl": '{"id": "b", "o": "you"}',
        },
    ],
)
def test_a_contradiction_is_a_problem_of_the_document(tmp_path: Path, files: dict[str, str]) -> None:
    """It names both places."""
    (problem,) = read(tmp_path, **files)
    assert isinstance(problem, Problem)
    assert ("a.md", "broken") == problem[:2]
    assert " in metadata." in problem.reason


def test_two_rows_about_one_file_close_it(tmp_path: Path) -> None:
    """Even if they agree; other files are read."""
    found = read(tmp_path, a__md="x", b__md="y", metadata__csv="file,owner\na.md,me\na.md,me\nb.md,me\n")
    assert {"a.md": False, "b.md": True, "metadata.csv:3": False} == places(found)


def test_a_row_about_nothing_is_a_problem_and_closes_nothing(tmp_path: Path) -> None:
    """It comes last; a sidecar is not a document."""
    found = read(
        tmp_path,
        a__md="x",
        metadata__csv="file,owner\nA.md,me\n./a.md,me\nmetadata.csv,me\n",
        metadata__jsonl='{"id": "z"}\n{"id": "a.md", "owner": "me"}',
    )
    late = ["metadata.csv:2", "metadata.csv:3", "metadata.csv:4", "metadata.jsonl:1"]
    assert [("a.md", True), *((where, False) for where in late)] == [*places(found).items()]


@pytest.mark.parametrize(
    ("row", "place"),
    [
        ('{"file": "b.md", "owner": {"name": "me"}}', "metadata.jsonl:2"),
        ('{"id": "b.md", "size": NaN}', "metadata.jsonl:2"),
        ('{"owner": "me"}', "metadata.jsonl:2"),
        ("{", "metadata.jsonl:2"),
    ],
)
def test_a_row_that_cannot_be_used_closes_what_it_may_be_about(tmp_path: Path, row: str, place: str) -> None:
    """The file that it names, or every file without a row of its own."""
    found = read(tmp_path, a__md="x", b__md="y", metadata__jsonl='{"file": "a.md", "owner": "me"}\n' + row)
    assert {"a.md": True, "b.md": False, place: False} == places(found)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "name,owner\na.md,me\n",
        "file;owner\na.md;me\n",
        "file,owner,owner\na.md,me,you\n",
        "file,\na.md,me\n",
        "file,owner\nb.md\n",
        'file,owner\n"b.md,me\n',
        'file,owner\n"b.md"x,me\n',
        "file,owner\nb.md,\0\n",
        "\ud8ff",
    ],
)
def test_a_sidecar_that_cannot_be_read_closes_what_it_may_be_about(tmp_path: Path, content: str) -> None:
    """No document is let through without the metadata stated for it."""
    (tmp_path / "metadata.csv").write_bytes(content.encode("utf-8", "surrogatepass"))
    found = read(tmp_path, b__md="x")
    assert not any(isinstance(one, ReadDocument) for one in found)
    assert 2 == len(found)


def test_a_sidecar_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The documents that it may be about are refused too."""
    monkeypatch.setattr("carag.readers.folder.MAX_SIDECAR", 10)
    found = read(tmp_path, a__md="x", metadata__csv="file,owner\na.md,me\n")
    assert {"a.md": "broken", "metadata.csv": "too_large"} == {
        one.where: one[1] for one in found if isinstance(one, Problem)
    }
    assert sidecar.MAX_SIDECAR > 10


def test_a_row_about_a_file_of_rows_is_about_each(tmp_path: Path) -> None:
    """No two documents share a list."""
    found = read(
        tmp_path,
        a__jsonl='{"id": 1, "text": "x"}\n{"id": 2, "text": "y", "tags": ["t", "u"]}\n{"id": 3, "text": "z"}',
        metadata__jsonl='{"file": "a.jsonl", "tags": ["t"]}\n{"id": 3, "owner": "me"}',
    )
    assert {"a.jsonl:1": True, "a.jsonl:2": False, "a.jsonl:3": True} == places(found)
    first, last = (one for one in found if isinstance(one, ReadDocument))
    assert ({"tags": ["t"]}, {"tags": ["t"], "owner": "me"}) == (first.facts, last.facts)
    assert first.facts["tags"] is not last.facts["tags"]
