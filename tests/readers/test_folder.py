"""A folder is read with nothing lost: each file is a document, or a problem with its place and kind."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from carag.errors import InvalidArgument, MissingExtra
from carag.readers import Problem, ReadDocument, folder, json_rows, plain, read_folder
from tests.readers.writers import docx_of, pdf
from tests.sizes import examples

if TYPE_CHECKING:
    from pathlib import Path

WORDS = ["the", "quick", "brown", "fox", "sold", "shares", "of", "Example", "Holdings", "plc", "that", "year"]


def sentence(source: random.Random) -> str:
    return " ".join(source.choice(WORDS) for _ in range(9))


def write(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def outcomes(root: Path) -> dict[str, ReadDocument | Problem]:
    """By place; no place has two outcomes."""
    found = list(read_folder(root))
    by_place = {one.where: one for one in found}
    assert len(found) == len(by_place), found
    return by_place


def kinds(root: Path) -> dict[str, str]:
    return {
        where: one.kind.value if isinstance(one, Problem) else "read" for where, one in outcomes(root).items()
    }


def test_no_file_of_a_folder_is_lost_and_every_page_is_in_its_place(tmp_path: Path) -> None:
    """Six formats, in subfolders, with metadata in a sidecar: text, pages and facts are read as they were written."""
    source = random.Random(7)  # noqa: S311 - the same files each time
    pages: dict[str, list[list[str]]] = {}
    lines: dict[str, list[str]] = {}
    many = examples(200)
    for number in range(many):
        ending = ("pdf", "docx", "html", "md", "txt", "jsonl")[number % 6]
        name = f"{'abc'[number % 3]}/{number:03}.{ending}"
        said = [f"Document {number}", *(sentence(source) for _ in range(source.randrange(1, 6)))]
        content: str | bytes
        if ending == "pdf":
            pages[name] = [
                [f"Page {page} of {number}", *(sentence(source) for _ in range(source.randrange(30)))]
                for page in range(source.randrange(1, 6))
            ]
            content = pdf(pages[name])
        elif ending == "docx":
            content = docx_of(said)
        elif ending == "html":
            content = "<!DOCTYPE html><title>T</title>" + "".join(f"<p>{line}</p>" for line in said)
        elif ending == "jsonl":
            content = json.dumps({"id": f"row-{number}", "text": "\n\n".join(said), "number": number})
        else:
            content = "\n\n".join(said)
        lines[name] = said
        write(tmp_path, {name: content})
    rows = "".join(f"{name},{name[0]}\n" for name in lines)
    write(tmp_path, {"metadata.csv": "file,folder\n" + rows})

    found = list(read_folder(tmp_path))

    documents = {one.where.removesuffix(":1"): one for one in found if isinstance(one, ReadDocument)}
    assert [*documents] == sorted(lines)
    assert len(found) == len(documents) == many
    for name, document in documents.items():
        assert name[0] == document.facts["folder"]
        if name in pages:
            bounds = [*document.pages, len(document.text)]
            got = [document.text[start:end] for start, end in pairwise(bounds)]
            assert ["\n".join(page) + "\n" for page in pages[name]] == got
        else:
            assert "\n\n".join(lines[name]) == document.text
            assert () == document.pages
        number = int(name[2:5])
        expected = (f"row-{number}", number) if name.endswith("jsonl") else (name, None)
        assert expected == (document.id, document.facts.get("number"))


def test_what_is_no_document_is_listed_with_its_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that are broken, encrypted, empty, too large, of an unknown format, or not readable as text."""
    monkeypatch.setattr(folder, "MAX_FILE", 100_000)
    sound = pdf([["one", "two"]])
    write(
        tmp_path,
        {
            "a.md": "fine",
            "broken.docx": docx_of(["one"])[:-100],
            "broken.pdf": sound[: len(sound) // 2],
            "empty.html": "<script>x</script>",
            "empty.jsonl": "\n\n",
            "empty.pdf": pdf([[]]),
            "empty.txt": "\u200b \n\u202e",
            "huge.txt": "x" * 100_001,
            "latin.txt": b"caf\xe9",
            "locked.pdf": pdf([["one"]], password="a word"),  # noqa: S106 - of no other file
            "nothing.pdf": b"",
            "nul.txt": "a\0b",
            "picture.png": b"\x89PNG",
            "sub/metadata.jsonl": '{"id": "x", "text": "never a document"}',
        },
    )
    assert {
        "a.md": "read",
        "broken.docx": "broken",
        "broken.pdf": "broken",
        "empty.html": "empty",
        "empty.jsonl": "empty",
        "empty.pdf": "empty",
        "empty.txt": "empty",
        "huge.txt": "too_large",
        "latin.txt": "broken",
        "locked.pdf": "encrypted",
        "nothing.pdf": "empty",
        "nul.txt": "broken",
        "picture.png": "skipped",
        "sub/metadata.jsonl": "skipped",
    } == kinds(tmp_path)


def test_nothing_outside_of_the_folder_is_read(tmp_path: Path) -> None:
    """Links out of it, to a loop, a folder or nothing, and pipes, are problems; a link within it is a file."""
    write(tmp_path, {"secret.txt": "secret", "in/a.txt": "inside", "in/sub/b.txt": "below"})
    inside = tmp_path / "in"
    (inside / "out.txt").symlink_to(tmp_path / "secret.txt")
    (inside / "up").symlink_to(tmp_path)
    (inside / "within.txt").symlink_to("sub/b.txt")
    (inside / "folder.txt").symlink_to("sub")
    (inside / "loop.txt").symlink_to("loop.txt")
    (inside / "gone.txt").symlink_to("nowhere.txt")
    (inside / "way.txt").symlink_to("sub/../../secret.txt")
    os.mkfifo(inside / "pipe.txt")
    assert {
        "a.txt": "read",
        "folder.txt": "skipped",
        "gone.txt": "broken",
        "loop.txt": "broken",
        "out.txt": "outside",
        "pipe.txt": "skipped",
        "sub/b.txt": "read",
        "up": "skipped",
        "way.txt": "outside",
        "within.txt": "read",
    } == kinds(inside)
    assert "secret" not in str(outcomes(inside))


def test_a_sidecar_outside_of_the_folder_is_not_read_either(tmp_path: Path) -> None:
    """As its contents are unknown, no document is let through."""
    write(tmp_path, {"rows.csv": "file,owner\na.txt,me\n", "in/a.txt": "inside"})
    (tmp_path / "in/metadata.csv").symlink_to(tmp_path / "rows.csv")
    assert {"a.txt": "broken", "metadata.csv": "outside"} == kinds(tmp_path / "in")


@pytest.mark.parametrize("claimant", ["a.md", "c.md", "a.jsonl", "metadata.csv"])
def test_no_file_displaces_another_by_stating_its_path_as_its_id(tmp_path: Path, claimant: str) -> None:
    """Whichever is read first, the file with that path keeps the id, and the other is the problem."""
    content = {
        "a.jsonl": json.dumps({"id": "b.md", "text": "not b"}),
        "metadata.csv": "file,id\na.txt,b.md\n",
    }.get(claimant, "---\nid: b.md\n---\nnot b")
    found = outcomes(write(tmp_path, {"a.txt": "a", "b.md": "b", claimant: content}))
    place = {"a.jsonl": "a.jsonl:1", "metadata.csv": "a.txt"}.get(claimant, claimant)
    problem, kept = found[place], found["b.md"]
    assert isinstance(problem, Problem)
    assert (problem.kind.value, "the path of another file" in problem.reason) == ("duplicate", True)
    assert isinstance(kept, ReadDocument)
    assert (kept.id, kept.text) == ("b.md", "b")


def test_two_documents_never_have_one_id(tmp_path: Path) -> None:
    """The second is a problem, which names the place of the first."""
    rows = [{"id": "x", "text": "one"}, {"id": "x", "text": "two"}, {"id": 7, "text": "three"}]
    write(
        tmp_path,
        {
            "a.jsonl": "\n".join(json.dumps(row) for row in rows),
            "b.md": "---\nid: x\n---\nfour",
            "c.md": '---\nid: "7"\n---\nfive',
            "d.txt": "---\nid: c.txt\n---\nsix",
        },
    )
    found = outcomes(tmp_path)
    assert Counter(read=3, duplicate=3) == Counter(kinds(tmp_path).values())
    for place, first in {"a.jsonl:2": "a.jsonl:1", "b.md": "a.jsonl:1", "c.md": "a.jsonl:3"}.items():
        problem = found[place]
        assert isinstance(problem, Problem)
        assert f"same id as {first}," in problem.reason


@pytest.mark.parametrize(
    "row",
    [
        "{",
        "[]",
        '{"id": "a"}',
        '{"text": "a"}',
        '{"id": null, "text": "a"}',
        '{"id": 1.5, "text": "a"}',
        '{"id": true, "text": "a"}',
        '{"id": "a.v2", "text": "a"}',
        '{"id": "a", "text": 1}',
        '{"id": "a", "text": "a", "id": "b"}',
        '{"id": "a", "text": "a", "owner": {"name": "b"}}',
        '{"id": "a", "text": "a", "sizes": [1, 2]}',
        '{"id": "a", "text": "a", "size": NaN}',
        '{"id": "a", "text": "a", "size": 1e999}',
        '{"id": "a", "text": "a", "size": 9223372036854775808}',
        '{"id": "a", "text": "a\\ud800"}',
        '{"id": "a", "text": "a\\u0000"}',
        '{"id": "a", "text": "a", "b\\u202e": "c"}',
        '{"id": "a\\u202e", "text": "a"}',
        "[" * 100_000,
    ],
)
def test_a_row_that_is_no_document_is_a_problem_and_the_next_is_read(tmp_path: Path, row: str) -> None:
    write(tmp_path, {"a.jsonl": row + '\n\n{"id": "next", "text": "fine"}'})
    assert {"a.jsonl:1": "broken", "a.jsonl:3": "read"} == kinds(tmp_path)


def test_a_line_that_is_too_long_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read in pieces of the limit."""
    monkeypatch.setattr(json_rows, "MAX_LINE", 100)
    write(tmp_path, {"a.jsonl": "x" * 1000 + '\n{"id": "next", "text": "fine"}'})
    assert {"a.jsonl:1": "too_large", "a.jsonl:2": "read"} == kinds(tmp_path)


def test_a_fault_of_the_program_is_told_without_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other files are read."""

    def faulty(content: bytes) -> None:
        raise KeyError(content)

    for module in (plain, folder):
        monkeypatch.setattr(module, "read_plain", faulty)
    write(tmp_path, {"a.txt": "secret", "b.jsonl": '{"id": "b", "text": "fine"}'})
    assert {"a.txt": "failed", "b.jsonl:1": "read"} == kinds(tmp_path)
    assert "secret" not in str(outcomes(tmp_path)["a.txt"])


def test_a_folder_that_cannot_be_listed_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``os.walk`` would skip it silently."""
    write(tmp_path, {"a.txt": "fine", "shut/b.txt": "unseen"})
    scandir = os.scandir

    def denied(path: Path) -> object:
        if path.name == "shut":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", denied)
    assert {"a.txt": "read", "shut": "broken"} == kinds(tmp_path)


def test_a_name_that_is_no_id_must_be_given_one(tmp_path: Path) -> None:
    """A name that is too long, not printable, or not even Unicode."""
    long = "n" * 200 + ".txt"
    write(tmp_path, {long: "a", "s\u202e.txt": "b", "named.md": "---\nid: short\n---\nc"})
    (tmp_path / os.fsdecode(b"\xff.txt")).write_text("d")
    assert {"broken": 3, "read": 1} == Counter(kinds(tmp_path).values())
    write(tmp_path, {"metadata.jsonl": json.dumps({"file": long, "id": "stated"})})
    assert "stated" == next(one.id for one in read_folder(tmp_path) if one.where == long)


def test_one_file_is_read_with_what_its_folder_states_of_it(tmp_path: Path) -> None:
    """The sidecar's rows about other files are not problems then."""
    write(
        tmp_path,
        {"a.txt": "one", "b.txt": "two", "metadata.csv": "file,owner\na.txt,me\nb.txt,you\nc.txt,he\n"},
    )
    (document,) = read_folder(tmp_path / "a.txt")
    assert ReadDocument("a.txt", "one", {"owner": "me"}, (), "a.txt", "") == document


def test_the_order_is_that_of_the_paths(tmp_path: Path) -> None:
    """Whatever the order of the file system."""
    names = ["b/a.txt", "a.txt", "b.txt", "a/z.txt", "B.txt", "a-b.txt"]
    write(tmp_path, dict.fromkeys(names, "text"))
    assert sorted(names) == [one.where for one in read_folder(str(tmp_path))]


def test_a_title_is_the_one_stated_or_else_the_files_own(tmp_path: Path) -> None:
    """The file's own counts only if it fits on a line."""
    write(
        tmp_path,
        {
            "a.html": "<title> An\n HTML title </title><p>x",
            "b.pdf": pdf([["x"]], title="A PDF title"),
            "c.docx": docx_of(["x"], title="A DOCX title"),
            "d.html": f"<title>{'x' * 201}</title><p>x",
            "e.md": "---\ntitle: Stated\n---\n# Heading",
            "f.html": "<title>Own</title><p>x",
            "metadata.csv": "file,title\nf.html,Stated\n",
        },
    )
    titles = [one.title for one in read_folder(tmp_path)]
    assert ["An HTML title", "A PDF title", "A DOCX title", "", "Stated", "Stated"] == titles


def test_what_is_missing_is_named_before_work_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing path or extra is reported at once, not with the first document."""
    with pytest.raises(InvalidArgument, match="does not exist"):
        read_folder(tmp_path / "nowhere")

    def missing(what: str, *extras: str) -> None:
        raise MissingExtra(f"{what} needs {extras}")

    monkeypatch.setattr(folder, "require", missing)
    write(tmp_path, {"a.txt": "fine"})
    assert {"a.txt": "read"} == kinds(tmp_path)
    write(tmp_path, {"b.PDF": b""})
    with pytest.raises(MissingExtra, match="readers"):
        read_folder(tmp_path)


def test_line_ends_are_one_kind_and_nothing_else_of_a_text_changes(tmp_path: Path) -> None:
    """Invisible characters stay: the code that shows or logs text decides about them, not the reader."""
    text = "# A\u200bB\u202e \t\u00ad\n\n\n  indented\u2028\x1b[31m\ufe0f"
    write(tmp_path, {"a.md": "\ufeff" + text.replace("\n", "\r\n"), "b.txt": text.encode("utf-16")})
    assert [text, text] == [one.text for one in read_folder(tmp_path)]
