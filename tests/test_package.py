"""The structure of the project: which room may import which, what is exported, what the pages promise."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import carag
from tests.loaded import loaded

ROOT = Path(__file__).parents[1]
lines = loaded(Path(__file__).parents[1] / "scripts" / "lines.py", "scripts.lines")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

ANYWHERE = {"errors", "extras", "http", "lazy", "limits", "visible"}
# A room may import the rooms named here, itself, and those above; nothing else of CARAG. The order is that of the data.
MAY_IMPORT = {
    **{name: set() for name in ANYWHERE},
    "policy": set(),
    "postgres": set(),
    "audit": {"postgres"},  # so that an auditor needs no more of CARAG than these two
    "labelling": {"policy"},
    "readers": set(),
    "sources": {"readers"},
    "profiles": {"labelling", "readers", "policy"},
    "store": {"labelling", "policy", "postgres"},
    "index": {"policy"},
    "backends": {"index", "policy", "postgres"},
    "retrieval": {"backends", "index", "store", "labelling", "policy"},
    "generation": {"retrieval", "labelling", "policy"},
    "engine": {
        "generation",
        "retrieval",
        "backends",
        "index",
        "store",
        "profiles",
        "labelling",
        "readers",
        "policy",
        "postgres",
        "audit",
    },
    "adapters": {"engine", "retrieval", "index", "policy", "audit"},
    "evaluation": {
        "engine",
        "generation",
        "retrieval",
        "backends",
        "index",
        "store",
        "profiles",
        "labelling",
        "readers",
        "policy",
    },
    "service": {
        "engine",
        "generation",
        "retrieval",
        "labelling",
        "policy",
        "audit",
    },
    "cli": {
        "service",
        "evaluation",
        "engine",
        "generation",
        "retrieval",
        "profiles",
        "sources",
        "labelling",
        "policy",
        "audit",
    },
}
_BASE = {"_clock", "_files", "_notes", "_sqlite"}
# Inside a divided room: a folder or file may import those named here, and itself; nothing else of the room.
SUB_ROOMS: dict[str, dict[str, set[str]]] = {
    "audit": {
        **{name: set() for name in _BASE},
        "tlog": set(),
        "records": {"tlog"},
        "_notes": {"_files"},
        "_shared": set(),
        "private": {"tlog", "records", "_shared", *_BASE},
        "state": {"tlog", "records"},
        "receipts": {"tlog", "records", "state", *_BASE},
        "log": {"tlog", "records", "private", "receipts", "_shared", *_BASE},
        "operations": {"tlog", "records", "receipts", "log"},
        "auditor": {"tlog", "records", "receipts", "log", "_shared", *_BASE},
        "anchors": {"tlog", "records", "receipts", "log", "auditor", *_BASE},
    },
    "profiles.edgar": {
        "facts": set(),
        "reading": {"facts"},
        "rules": {"facts"},
        "documents": {"facts", "reading", "rules"},
    },
    "evaluation": {
        "row": set(),
        "run_metadata": set(),
        "searched": set(),
        "models": set(),
        "regulatory": set(),
        "judge": set(),
        "paid": {"judge"},
        "statistics": {"row"},
        "cases": {"row", "models"},
        "systems": {"row", "searched", "models", "cases"},
        "safety": {"row", "run_metadata", "searched", "judge", "models", "cases", "systems"},
        "report": {"row", "run_metadata", "statistics"},
        "run": {"row", "run_metadata", "searched", "judge", "models", "cases", "systems", "safety", "report"},
        "run_store": {"row", "run_metadata", "searched", "models", "cases", "systems", "report"},
    },
}
MAX_ROOMS = 17
MAX_LOOSE = 8  # modules of carag/ that stand in no room
MAX_FILES = 25  # in a folder
MAX_FUNCTION = 60  # lines of a body
MAX_METHODS = 20
MAX_LOADED = 242  # modules of carag that `carag.Engine` loads
LARGE = {"AuditLog": 23, "Engine": 22}
CEILINGS = {"carag": 68_800, "csrc": 13_150}
EIGHT = ["hnswlib", "numpy", "numba", "cffi", "boto3", "pydantic", "pymerkle", "pytest-benchmark"]


def modules() -> list[Path]:
    return sorted(path for path in (ROOT / "carag").rglob("*.py") if "__pycache__" not in path.parts)


def room(path: Path) -> str:
    return path.relative_to(ROOT / "carag").parts[0].removesuffix(".py")


def module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def imports(path: Path) -> frozenset[str]:
    """Absolute names of everything a module imports, wherever the statement stands."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


def test_rooms_import_in_one_direction() -> None:
    """cli, evaluation -> engine -> generation -> retrieval -> index, store -> labelling -> policy."""
    offenders = {}
    for path in modules():
        if (own := room(path)) not in {"__init__", "__main__"}:
            reached = {name.split(".")[1] for name in imports(path) if name.startswith("carag.")}
            offenders[module(path)] = reached - MAY_IMPORT[own] - ANYWHERE - {own}
    assert {} == {name: reached for name, reached in offenders.items() if reached}


@pytest.mark.parametrize("name", SUB_ROOMS)
def test_sub_rooms_import_in_one_direction(name: str) -> None:
    """They follow the table, which has no circle and leaves nothing out."""
    allowed = SUB_ROOMS[name]
    list(TopologicalSorter(allowed).static_order())  # raises CycleError
    here = f"carag.{name}."
    inside = {
        path: module(path).removeprefix(here).split(".")[0]
        for path in modules()
        if module(path).startswith(here)
    }
    assert set(inside.values()) == set(allowed)
    for path, own in inside.items():
        reached = {one.removeprefix(here).split(".")[0] for one in imports(path) if one.startswith(here)}
        assert set() == reached - allowed[own] - {own}, path


def test_no_imports_make_a_circle() -> None:
    """Neither at the top of a module, nor inside a function, nor for a type: `TopologicalSorter` raises CycleError."""
    reached = {module(path): imports(path) for path in modules()}
    # What is imported is a module, or a name in one.
    graph = {
        one: {name if name in reached else name.rpartition(".")[0] for name in names} & set(reached) - {one}
        for one, names in reached.items()
    }
    list(TopologicalSorter(graph).static_order())


def test_the_house_is_seen_at_a_glance() -> None:
    """Few rooms, few modules outside of them, and no folder of the package or the core too full."""
    assert len([path for path in (ROOT / "carag").iterdir() if (path / "__init__.py").exists()]) <= MAX_ROOMS
    assert len(list((ROOT / "carag").glob("*.py"))) <= MAX_LOOSE
    files = [*modules(), *(ROOT / "csrc").rglob("*.[ch]")]
    full = {str(folder): many for folder, many in Counter(path.parent for path in files).items()}
    assert {} == {folder: many for folder, many in full.items() if many > MAX_FILES}


def test_the_package_needs_no_checkout() -> None:
    """Benchmarks, tests and scripts import carag, never the other way round."""
    reached = {module(path): {name.split(".")[0] for name in imports(path)} for path in modules()}
    assert [] == [name for name, roots in reached.items() if roots & {"bench", "tests", "scripts"}]


def test_only_the_index_room_touches_the_core() -> None:
    """The other rooms go through Index."""
    users = {room(path) for path in modules() if any("carag.index._core" in name for name in imports(path))}
    assert {"index"} == users


def test_boto3_stays_in_the_adapters_and_inside_functions() -> None:
    """Importing CARAG never imports an optional package."""
    for path in modules():
        top = {
            name.split(".")[0]
            for node in tree(path).body
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in (
                [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            )
        }
        assert set() == top & {
            "boto3",
            "botocore",
            "xllamacpp",
            "psycopg",
            "pymerkle",
            "hnswlib",
            "numba",
            "jwt",
            "rfc3161_client",
            "redis",
            "qdrant_client",
            "pymilvus",
            "grpc",
        }, path
        if any(name.split(".")[0] in {"boto3", "botocore"} for name in imports(path)):
            assert path.name in {"bedrock.py", "s3.py"}


def test_the_auditors_part_stands_alone() -> None:
    """The audit room needs neither numpy nor the core: an auditor can run it by itself."""
    for path in modules():
        if room(path) == "audit":
            outside = {name.split(".")[0] for name in imports(path)}
            assert set() == outside & {"numpy", "pydantic", "cffi", "onnxruntime", "rich", "typer"}, path


def test_a_name_that_is_looked_up_later_is_not_that_of_a_module() -> None:
    """Python sets a module as an attribute of its package when it is imported, and then nothing is looked up."""
    homes = [path for path in modules() if path.name == "__init__.py" and "lazily(" in path.read_text()]
    assert len(homes) > 5
    for path in homes:
        within = {one.stem for one in path.parent.iterdir()}
        later = {
            name
            for node in ast.walk(tree(path))
            if isinstance(node, ast.Dict)
            for value in node.values
            if isinstance(value, ast.Constant)
            for name in value.value.split()
        }
        assert set() == later & within, path
        typed = {
            alias.name
            for node in tree(path).body
            if isinstance(node, ast.If)
            for one in node.body
            if isinstance(one, ast.ImportFrom) and one.module != "typing"
            for alias in one.names
        }
        assert typed == later, f"{path}: what a type checker sees is not what is looked up"


def test_what_is_exported_is_importable() -> None:
    """__all__ names exist and hold no private name."""
    for name in carag.__all__:
        assert hasattr(carag, name), name
    assert sorted(carag.__all__) == list(carag.__all__)


def test_a_clone_named_carag_does_not_hide_the_package(tmp_path: Path) -> None:
    """Python started next to a folder with the package's name, such as a clone, still imports the package."""
    (tmp_path / "carag").mkdir()
    program = [sys.executable, "-c", "import carag; carag.Index"]
    without = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(program, cwd=tmp_path, env=without, capture_output=True, text=True)
    assert "" == done.stderr


def test_the_engine_loads_no_more_than_it_needs() -> None:
    """Nor any backend, model, reader of files or profile with code, before one is named; help loads no engine."""
    counted = "import sys, {}; print(*(one for one in sys.modules if one.startswith('carag')))"

    def modules_after(statement: str) -> set[str]:
        program = [sys.executable, "-c", counted.format(statement)]
        return {*subprocess.run(program, capture_output=True, text=True, check=True).stdout.split()}

    found = modules_after("carag; carag.Engine")
    assert 100 < len(found) <= MAX_LOADED
    named_only = (
        "backends.postgres",
        "profiles",
        "generation.figures",
        "readers.office",
        "readers.pdf",
        "retrieval.minilm",
        "service",
    )
    assert set() == {one for one in found for start in named_only if one.startswith(f"carag.{start}")}
    assert set() == {one for one in modules_after("carag.cli.app") if one.startswith("carag.engine")}


def test_versions_agree() -> None:
    """One version, in pyproject.toml and in the package."""
    assert PYPROJECT["project"]["version"] == carag.__version__


def bodies(path: Path) -> dict[str, int]:
    """Lines of each function below its signature and docstring."""
    found = {}
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            start = first.lineno if ast.get_docstring(node) is None else (first.end_lineno or 0) + 1
            found[f"{path.relative_to(ROOT)}:{node.name}"] = (node.end_lineno or 0) - start + 1
    return found


def test_functions_fit_on_a_screen() -> None:
    """At most 60 lines, in the package and in what is measured with it."""
    files = [*modules(), *(ROOT / "bench").rglob("*.py"), *(ROOT / "scripts").glob("*.py")]
    found = {name: many for path in files for name, many in bodies(path).items()}
    assert len(found) > 4000
    assert {} == {name: many for name, many in found.items() if many > MAX_FUNCTION}


def test_classes_offer_little_enough_to_learn() -> None:
    """At most 20 public methods and properties."""
    found = {
        node.name: sum(
            isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.name[0] != "_"
            for one in node.body
        )
        for path in modules()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef)
    }
    assert {} == {name: many for name, many in found.items() if many > LARGE.get(name, MAX_METHODS)}


def test_the_house_grows_no_heavier() -> None:
    """Lines of code, without blanks, comments and docstrings, as scripts/lines.py counts them."""
    counted = {folder: lines.count(ROOT / folder).total() for folder in CEILINGS}
    assert {} == {folder: many for folder, many in counted.items() if many > CEILINGS[folder]}
    assert all(many > 10_000 for many in counted.values())


def test_the_docs_say_where_each_named_package_serves() -> None:
    """One table row for each of the eight, naming a file that really uses it; the README names them all."""
    page = (ROOT / "docs/reference/packages.md").read_text()
    rows = dict(re.findall(r"^\| `([\w-]+)` \| `([^`]+)`", page, flags=re.MULTILINE))
    assert set() == {one for one in EIGHT if f"`{one}`" not in (ROOT / "README.md").read_text()}
    for package in EIGHT:
        user = ROOT / rows[package]
        assert user.is_file(), f"{package}: {rows[package]} does not exist"
        assert package.replace("-", "_").removeprefix("pytest_") in user.read_text(), package


def test_the_threats_name_tests_that_there_are() -> None:
    """Every law on the page names a test file, or a test in the file named last; dots stand for that file."""
    page = (ROOT / "docs/explanation/threats.md").read_text()
    found = re.findall(r"`(tests/[\w/]+\.\w+|…)(?:::(\w+))?`", page)
    assert len(found) > 40
    file = ""
    for named, test in found:
        file = file if named == "…" else named
        assert (ROOT / file).is_file(), file
        assert not test or f"def {test}(" in (ROOT / file).read_text(), (file, test)


def test_each_named_package_is_declared() -> None:
    """Required or in an extra."""
    project = PYPROJECT["project"]
    declared = [*project["dependencies"], *sum(project["optional-dependencies"].values(), [])]
    names = {re.split(r"[^\w-]", item)[0] for item in declared}
    assert set(EIGHT) <= names


def test_the_docs_tell_where_we_differ_from_the_paper() -> None:
    """The page exists, with reasons."""
    page = (ROOT / "docs/explanation/differences.md").read_text()
    assert page.count("\n| ") >= 7


def test_every_question_of_a_newcomer_has_its_file() -> None:
    """The answers of tests/where.toml stand where it says."""
    for question, file, name in tomllib.loads((ROOT / "tests/where.toml").read_text())["questions"]:
        assert name in (ROOT / file).read_text(), f"{question}: {file} does not hold {name!r}"
