"""The documentation: every code block is run or says why not, and every list in it agrees with the tree."""

from __future__ import annotations

import ast
import doctest
import importlib
import os
import re
import runpy
import subprocess
import sys
import tomllib
import venv
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from pathlib import Path
from typing import NamedTuple

import pytest

import carag

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
BUILT = {DOCS / "reference" / name for name in ("commands.md", "map.md")}
"""Pages that ./scripts/docs builds, which may lie there from a run of it."""
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES += sorted(set(DOCS.rglob("*.md")) - BUILT)
DECISIONS = sorted((DOCS / "decisions").glob("[0-9]*.md"))
STATUS = re.compile(
    r"(accepted|superseded by \[\d{4}\]\(.+\.md\))(; (supersedes|amends|amended by) \[\d{4}\]\(.+\.md\))?"
)
FIRST = [DOCS / "tutorials" / "own-documents.md", DOCS / "how-to" / "write-a-policy.md"]
"""What a newcomer reads first, which is run where only what it names is installed."""
SHOWN = {"text", "{toctree}", "{include}", "{literalinclude}", "{eval-rst}"}
"""What no machine runs: pictures and formats, and directives, which the site runs."""
BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<why>.+) -->\n)?```(?P<kind>.*)\n(?P<text>(?:.*\n)*?)```$", re.MULTILINE
)
README = (ROOT / "README.md").read_text("utf-8")


class Block(NamedTuple):
    """One code block of a page, and the reason why it is not run."""

    kind: str
    text: str
    why: str | None


def blocks(page: Path) -> list[Block]:
    return [Block(one["kind"], one["text"], one["why"]) for one in BLOCK.finditer(page.read_text("utf-8"))]


def label(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


class Shell:
    """Runs the blocks of one page, one after the other, in a directory beside the corpus and the scripts."""

    def __init__(self, home: Path, python: str | Path = sys.executable) -> None:
        self.home, self.programs = home, home.with_name(f"{home.name}-bin")
        for name in ("data", "scripts"):
            (home / name).symlink_to(ROOT / name)
        self.programs.mkdir()
        for name, runs in (("python", ""), ("carag", " -m carag")):  # files: `$!` is the program's own number
            program = self.programs / name
            program.write_text(f'#!/bin/sh\nexec "{python}"{runs} "$@"\n')
            program.chmod(0o755)

    def run(self, command: str) -> str:
        """Return what a command prints; it must end with 0."""
        path = f"{self.programs}{os.pathsep}{os.environ['PATH']}"
        environment = {
            **os.environ,
            "PATH": path,
            "PYTHONPATH": str(ROOT),
            "COLUMNS": "100",
            "NO_COLOR": "1",
        }
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.home, env=environment, capture_output=True, text=True
        )
        assert 0 == done.returncode, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_every_code_block_is_run_or_says_why_not(page: Path) -> None:
    """Python by doctest, shell by the test below; code of an unknown kind is an error."""
    text = page.read_text("utf-8")
    assert text.count("\n```") + text.startswith("```") == 2 * len(blocks(page)), (
        "a fence without its other half"
    )
    for block in blocks(page):
        assert block.kind.partition(" ")[0] in SHOWN | {"python", "sh", "console"}, block
        assert block.kind != "python" or ">>> " in block.text, f"doctest runs nothing of {block.text}"


@pytest.mark.release
@pytest.mark.parametrize("page", [one for one in PAGES[1:] if one not in FIRST], ids=label)
def test_commands_do_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    """To the letter, from an empty directory; dots stand for anything."""
    follow(page, Shell(tmp_path))


@pytest.fixture(scope="module")
def newcomers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with the packages of the extras that the page on installing names first, and no other."""
    home = tmp_path_factory.mktemp("newcomer")
    named = re.search(r"pip install '\.\[(.+?)\]'", (DOCS / "how-to" / "install.md").read_text("utf-8"))
    assert named is not None
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted, extras = [*declared["dependencies"]], named[1].split(",")
    for extra in extras:  # grows by those that one names in turn
        for need in declared["optional-dependencies"][extra]:
            inner = re.fullmatch(r"carag-engine\[(.+)\]", need)
            extras.extend(inner[1].split(",")) if inner else wanted.append(need)
    venv.create(home, with_pip=True)
    pip = [home / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, *wanted], check=True)
    return home / "bin" / "python"


@pytest.mark.release
@pytest.mark.parametrize("page", FIRST, ids=label)
def test_a_newcomer_needs_only_what_the_pages_name(page: Path, newcomers: Path, tmp_path: Path) -> None:
    """The first pages work where nothing else is installed: their commands, and their Python."""
    shell = Shell(tmp_path, newcomers)
    follow(page, shell)
    shell.run(f"python -m doctest -o ELLIPSIS -o NORMALIZE_WHITESPACE '{page}'")


def follow(page: Path, shell: Shell) -> None:
    """Do what a page says, and compare what is printed."""
    same = OutputChecker()
    for block in [one for one in blocks(page) if not one.why]:
        if block.kind == "sh":
            shell.run(f"set -e\n{block.text}")
        elif block.kind == "console":
            for step in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
                command, _, expected = step.partition("\n")
                printed = shell.run(command)
                assert same.check_output(expected, printed, ELLIPSIS | NORMALIZE_WHITESPACE), printed


def test_the_readme_fits_on_a_screen() -> None:
    """At most 110 lines and 1,200 words."""
    assert len(README.splitlines()) <= 110
    assert len(README.split()) <= 1200


def test_the_readme_runs_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A newcomer pastes its Python somewhere else than in the clone."""
    monkeypatch.chdir(tmp_path)
    ran = doctest.testfile(
        str(ROOT / "README.md"), module_relative=False, optionflags=ELLIPSIS | NORMALIZE_WHITESPACE
    )
    assert 0 == ran.failed < ran.attempted


def test_the_figures_of_the_readme_are_those_of_the_benchmarks() -> None:
    """Every number of its table, and of the reasons above it, stands on the page it links to."""
    measured = (DOCS / "benchmarks.md").read_text("utf-8")
    table = re.findall(r"^\| .+? \| (.+?) \| .+? \|$", README.split("## How it stands")[1], re.MULTILINE)[1:]
    claims = [*table, *re.findall(r"0 \w+ in [\d,]+", " ".join(README.split()))]
    assert len(claims) == 5 + 3
    for number in re.findall(r"\d[\d,.]*\d", " ".join(claims)):
        assert re.search(rf"(?<![\d,.]){re.escape(number)}(?![\d])", measured), number


@pytest.mark.parametrize("page", [*PAGES, ROOT / "ARCHITECTURE.md"], ids=label)
def test_links_lead_somewhere(page: Path) -> None:
    """To a file of the repository, for a reader who has not built the site."""
    for target in re.findall(r"\]\(([^)#:\s]+)[^):]*\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target
        assert (page.parent / target).resolve() not in BUILT, (
            f"{target} is on the site alone: name it by {{doc}}"
        )


@pytest.mark.parametrize("page", [*PAGES, ROOT / "ARCHITECTURE.md"], ids=label)
def test_the_files_that_a_page_names_are_there(page: Path) -> None:
    """A command that makes a figure again names a test that there is."""
    named = re.findall(
        r"\b(?:carag|csrc|tests|bench|scripts|docs)/[\w/.-]+\.(?:py|c|h|toml|md)\b", page.read_text("utf-8")
    )
    assert [] == [file for file in named if not (ROOT / file).exists()]


def test_the_map_says_of_every_module_what_it_does() -> None:
    """As ./scripts/docs builds it; no row is empty."""
    rows = re.findall(
        r"^\| `(.+?)` \| (.+) \|$", runpy.run_path(str(ROOT / "scripts" / "map.py"))["page"](), re.MULTILINE
    )
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "carag").rglob("*.py")}
    assert modules == {name for name, does in rows if len(does.split()) > 1}


def named_by(index: Path) -> set[Path]:
    """Pages that an index links to, those that are on the site alone included."""
    text = index.read_text("utf-8")
    targets = [
        *re.findall(r"\]\(([^)#:]+\.md)\)", text),
        *(f"{one}.md" for one in re.findall(r"{doc}`(.+?)`", text)),
    ]
    return {(index.parent / one).resolve() for one in targets}


def test_the_index_names_every_page() -> None:
    """Where a reader looks for it; a decision stands in the index of the decisions."""
    decisions = DOCS / "decisions" / "index.md"
    assert {*DOCS.rglob("*.md"), *BUILT} - {*DECISIONS, DOCS / "index.md"} == named_by(DOCS / "index.md")
    assert {*DECISIONS, ROOT / "CONTRIBUTING.md"} == named_by(decisions)


@pytest.mark.parametrize("page", DECISIONS, ids=label)
def test_a_decision_has_one_shape(page: Path) -> None:
    """At most 40 lines, a number that goes up by one, a status that the index repeats, and what was rejected."""
    text, number = page.read_text("utf-8"), f"{DECISIONS.index(page) + 1:04}"
    assert page.name.startswith(f"{number}-")
    assert text.startswith(f"# {number}. ")
    assert len(text.splitlines()) <= 40
    assert ["Context", "Decision", "Consequences", "Rejected alternatives"] == re.findall(
        "^## (.+)$", text, re.M
    )
    said = re.search(r"\n\n- Status: (.+)\n- Date: (\d{4}-\d\d-\d\d)\n\n", text)
    assert said is not None
    assert STATUS.fullmatch(said[1]), f"want accepted, or superseded by a decision, not {said[1]!r}"
    assert f"]({page.name}) | {said[1]} | {said[2]} |" in (DOCS / "decisions" / "index.md").read_text("utf-8")


def test_what_supersedes_a_decision_is_named_by_both() -> None:
    """A reader who comes to either finds the other; so with an amendment."""
    back = {"supersedes": "superseded by", "amends": "amended by"}
    back |= {by: does for does, by in back.items()}
    found = {
        (page.name[:4], does, other)
        for page in DECISIONS
        for does, other in re.findall(rf"({'|'.join(back)}) \[(\d{{4}})\]", page.read_text("utf-8"))
    }
    assert found
    assert found == {(other, back[does], one) for one, does, other in found}


def test_the_workflow_runs_the_scripts_of_a_developer() -> None:
    """Each step is a script of this tree without more, so that what CI does can be done here."""
    steps = re.findall(
        r"^ +- run: (.+)$", (ROOT / ".github/workflows/ci.yml").read_text("utf-8"), re.MULTILINE
    )
    assert {"./scripts/check", "./scripts/test", "./.ci/run"} == set(steps)
    assert all(os.access(ROOT / step, os.X_OK) for step in steps)


def test_every_room_that_exports_names_has_a_page_in_the_reference() -> None:
    """Sphinx writes what a page's ``__all__`` names, and ./scripts/docs fails if one is not there."""
    top, pages = (DOCS / "reference" / "api.md").read_text("utf-8").split(":toctree:")
    rooms = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for path in (ROOT / "carag").rglob("__init__.py")
        if any(
            isinstance(one, ast.Assign) and "__all__" in ast.unparse(one)
            for one in ast.walk(ast.parse(path.read_text()))
        )
    }
    named = set(re.findall(r"^   (carag[\w.]+)$", pages, re.MULTILINE))
    assert set() == rooms - {"carag", "carag.cli"} - named
    for room in named:
        assert importlib.import_module(room).__all__
    shown = [tuple(name.rsplit(".", 1)) for name in re.findall(r"^   (carag[\w.]+)$", top, re.MULTILINE)]
    assert sorted(carag.__all__) == [name for _, name in shown]
    for module, name in shown:
        assert module in named
        assert getattr(carag, name) is getattr(importlib.import_module(module), name)


def test_the_exit_codes_are_those_of_the_program() -> None:
    """One row each, and no other rows."""
    from carag.cli import Exit

    rows = re.findall(
        r"^\| (\d+) \|", (DOCS / "reference" / "command-line.md").read_text("utf-8"), re.MULTILINE
    )
    assert [int(code) for code in Exit] == [int(row) for row in rows]


def test_the_formats_are_those_of_the_code() -> None:
    """The page that promises what is read for how long names the versions that are written."""
    from carag.audit.records.record import RECORD_VERSION
    from carag.store._schema import SCHEMA_VERSION

    core = {
        name: re.search(rf"#define {name} (\d+)", (ROOT / "csrc" / file).read_text("utf-8"))
        for name, file in (("CARAG_FILE_VERSION", "carag.h"), ("CARAG_TEXT_VERSION", "text/format.h"))
    }
    page = (DOCS / "reference" / "stability.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `([\w.]+)`(?:: records)? \| .*?(\d+) \|", page, re.MULTILINE))
    index, words = (one[1] for one in core.values() if one)
    written = {
        "corpus.db": SCHEMA_VERSION,
        "audit.db": RECORD_VERSION,
        "index.carag": index,
        "index.words": words,
    }
    assert {file: str(version) for file, version in written.items()} == rows


def test_the_roles_are_those_of_the_table() -> None:
    """Every cell is named, and no other."""
    from carag.policy import PolicyTable

    rows = re.findall(
        r"^\| `(\w+)` \| (.+) \|$", (DOCS / "reference" / "roles.md").read_text("utf-8"), re.MULTILINE
    )
    named = {(role, purpose) for role, purposes in rows for purpose in re.findall(r"`(\w+)`", purposes)}
    table = PolicyTable.from_toml((ROOT / "carag/profiles/edgar/roles.toml").read_text("utf-8"))
    assert {(cell.role, cell.purpose) for cell in table.cells} == named
