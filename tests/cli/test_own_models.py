"""The command line opens a store with an embedder of the user's own, and a store handed over runs no code."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from carag.engine.named import is_factory

ROOT = Path(__file__).parents[2]
MODELS = """
class Lengths:
    name, dim, fingerprint = "lengths", 2, "1"

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        return [len(text), 1 + text.count("e")]


def cites():
    return lambda question, passages, withheld: "Own words. [1]"


def fails():
    raise RuntimeError("s3cret")


none = 7
"""
SESSION = ("--role", "public", "--purpose", "read")
WALKS = {  # every command that opens a store or reads its log; whether it still works
    ("explain", "a.md:00000", *SESSION): True,
    ("policy", "show"): True,
    ("policy", "apply", "generic"): True,
    ("audit", "accept", "--labels"): True,
    ("audit", "verify"): True,
    ("audit", "list"): True,
    ("audit", "show", "0"): True,
    ("audit", "replay"): True,
    ("audit", "export", "--out", "OUT"): True,
    ("audit", "prove", "0", "--out", "PROOF"): True,
    ("ask", "When?", *SESSION): False,
    ("ingest", "DOCS"): False,
}


class House:
    """A user's directory with a store, and a way to run the installed command in it."""

    def __init__(self, home: Path) -> None:
        self.home, self.store, self.docs = home, home / "store", home / "docs"
        self.marker = home / "it-ran"
        self.docs.mkdir()
        (self.docs / "a.md").write_text("---\nclassification: public\n---\nThe canteen opens at noon.\n")
        (home / "models").mkdir()
        (home / "models" / "my_models.py").write_text(MODELS)
        (home / "bin").mkdir()
        # As pip writes it: its own directory is searched for modules, and not the current one.
        (home / "bin" / "carag").write_text("from carag.cli import main\nmain()\n")

    def run(self, *words: object, cwd: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join((str(ROOT), str(self.home / "models")))
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CARAG_")}
        return subprocess.run(
            [sys.executable, str(self.home / "bin" / "carag"), *map(str, words)],
            cwd=cwd or self.home,
            env=kept | {"PYTHONPATH": path} | more,
            capture_output=True,
            text=True,
        )

    def made(self) -> House:
        own = ("--embedder", "my_models:Lengths", "--store", self.store)
        assert 0 == self.run("init", "--profile", "generic", *own).returncode
        assert 0 == self.run("ingest", self.docs, *own).returncode
        (self.home / "carag.toml").unlink()  # it names the embedder
        return self


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_a_name_of_carags_own_kind_is_no_module() -> None:
    """Whatever stands after the colon."""
    assert [
        name
        for name in ("local:boom", "bedrock:boom", "minilm", "a.b:c", "a:b", "a:", ":b", "../a:b", "a:b:c")
        if is_factory(name)
    ] == ["a.b:c", "a:b"]


def test_the_command_line_opens_a_store_with_an_own_embedder_and_generator(house: House) -> None:
    """Named by an option, or in the environment; not named, it is told what to do."""
    house.made()
    ask = ("ask", "When?", "--store", house.store, *SESSION)
    done = house.run(*ask, "--embedder", "my_models:Lengths", "--generator", "my_models:cites")
    assert (0, True) == (done.returncode, "Own words. [1]" in done.stdout), done.stderr
    done = house.run(*ask, CARAG_EMBEDDER="my_models:Lengths", CARAG_GENERATOR="my_models:cites")
    assert (0, True) == (done.returncode, "Own words. [1]" in done.stdout), done.stderr
    done = house.run(*ask, "--embedder", "wordllama", CARAG_EMBEDDER="my_models:Lengths")
    assert (65, True) == (done.returncode, "cannot be compared" in done.stderr)
    done = house.run(*ask)
    assert (65, True) == (done.returncode, "--embedder MODULE:FACTORY" in done.stderr)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("no_such:thing", "No module named 'no_such'"),
        ("my_models:nothing", "no callable nothing"),
        ("my_models:none", "no callable none"),
        ("my_models:fails", "fails() raised RuntimeError at my_models.py"),
        ("my_models:cites", "the embedder is"),
    ],
)
def test_what_makes_no_embedder_is_bad_input_and_shows_no_secret(house: House, name: str, why: str) -> None:
    done = house.run("init", "--profile", "generic", "--store", house.store, "--embedder", name)
    assert (65, True, False) == (done.returncode, why in done.stderr, "s3cret" in done.stderr), done.stderr
    assert not house.store.exists()


def hostile(house: House) -> None:
    """What somebody puts into a store before handing it over."""
    with closing(sqlite3.connect(house.store / "corpus.db")) as sql:
        sql.execute("UPDATE meta SET value = 'evil:boom' WHERE name IN ('embedder', 'reader')")
        sql.commit()
    ran = f"open({str(house.marker)!r}, 'w').close()\n"
    for name in ("evil", "sitecustomize", "usercustomize", "my_models", "wordllama", "numpy"):
        (house.store / f"{name}.py").write_text(ran)


@pytest.mark.release
def test_a_store_handed_over_runs_no_code_in_any_command(house: House) -> None:
    """Run from within it, with the module it names importable too; those that need no embedder still work."""
    hostile(house.made())
    (house.home / "models" / "evil.py").write_text((house.store / "evil.py").read_text())
    for number, (words, works) in enumerate(WALKS.items()):
        named = {
            "OUT": house.home / f"out{number}",
            "PROOF": house.home / f"proof{number}",
            "DOCS": house.docs,
        }
        done = house.run(*(named.get(word, word) for word in words), "--store", house.store, cwd=house.store)
        assert works == (done.returncode == 0), (words, done.stdout, done.stderr)
        assert not house.marker.exists(), words


def test_a_module_within_the_store_is_not_imported_even_if_it_is_named(house: House) -> None:
    """Also if the store is on Python's path. And the file would have run: outside of the store it does."""
    house.made()
    (house.store / "evil.py").write_text(f"open({str(house.marker)!r}, 'w').close()\n")
    ask = ("ask", "When?", "--store", house.store, *SESSION, "--embedder", "evil:boom")
    done = house.run(*ask, PYTHONPATH=os.pathsep.join((str(ROOT), str(house.store))))
    assert (65, True) == (done.returncode, "evil lies in the store" in done.stderr), done.stderr
    assert not house.marker.exists()
    (house.store / "evil.py").rename(house.home / "models" / "evil.py")
    assert 65 == house.run(*ask).returncode
    assert house.marker.exists()
