"""The command line opens a store with an embedder of the user's own, and a store handed over runs no code."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from carag.cli.app import run
from carag.engine.factories import is_factory
from carag.policy.shipped import shipped_text

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
TWO = ("--actor", "C. Co", "--approver", "D. Po")
WALKS = {  # every command that opens a store, reads its log or checks what it gave; whether it still works
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
    ("audit", "consistency", "1"): True,
    ("audit", "disclose", "3", "--actor", "E. Ve", "--role", "auditor", "--why", "TEST"): True,
    ("audit", "hold", "--matter", "M", "--actor", "C. Co", "--first", "0", "--last", "1"): True,
    ("audit", "release", "HOLD", *TWO): True,
    ("audit", "erase", "--expired", *TWO): True,
    ("audit", "anchor", "--to", "witness:http://127.0.0.1:9"): False,
    ("audit", "rotate"): True,
    ("audit", "postgres", "--url", "postgresql://a@127.0.0.1:9/b"): False,
    ("audit", "copy", "--out", "COPY"): False,
    ("verify", "RECEIPT", "--key", "VKEY"): True,
    ("receipt", "redact", "RECEIPT", "--out", "LESS"): True,
    ("trust", "planted:boom"): False,
    ("trust", "--withdraw"): False,
    ("trust", "--list"): True,
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
        own = ("--embedder", "my_models:Lengths", "--store", str(self.store))
        assert 0 == run(["init", "--profile", "generic", *own])
        assert 0 == run(["ingest", str(self.docs), *own])
        (self.home / "carag.toml").unlink()  # it names the embedder
        return self


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    """A directory whose models can be imported in this process, too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "models"))
    monkeypatch.delitem(sys.modules, "my_models", raising=False)
    return House(tmp_path)


def test_a_name_of_carags_own_kind_is_no_module() -> None:
    """Whatever comes after the colon."""
    assert [
        name
        for name in ("local:boom", "bedrock:boom", "minilm", "a.b:c", "a:b", "a:", ":b", "../a:b", "a:b:c")
        if is_factory(name)
    ] == ["a.b:c", "a:b"]


def test_the_command_line_opens_a_store_with_an_own_embedder_and_generator(
    house: House, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Named by an option, or in the environment; if not named, the error says what to do."""
    house.made()
    ask = ["ask", "When?", "--store", str(house.store), *SESSION]
    done = house.run(*ask, "--embedder", "my_models:Lengths", "--generator", "my_models:cites")
    assert (0, True) == (done.returncode, "Own words. [1]" in done.stdout), done.stderr
    capsys.readouterr()
    assert 65 == run(ask)
    assert "--embedder MODULE:FACTORY" in capsys.readouterr().err
    monkeypatch.setenv("CARAG_EMBEDDER", "my_models:Lengths")
    assert 65 == run([*ask, "--embedder", "wordllama"])
    assert "cannot be compared" in capsys.readouterr().err
    monkeypatch.setenv("CARAG_GENERATOR", "my_models:cites")
    assert 0 == run(ask)
    assert "Own words. [1]" in capsys.readouterr().out


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
def test_what_makes_no_embedder_is_bad_input_and_shows_no_secret(
    house: House, name: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(["init", "--profile", "generic", "--store", str(house.store), "--embedder", name])
    said = capsys.readouterr().err
    assert (65, True, False) == (code, why in said, "s3cret" in said), said
    assert not house.store.exists()


def hostile(house: House) -> None:
    """What somebody puts into a store before handing it over."""
    note(house, "embedder", "evil:boom")
    note(house, "reader", "evil:boom")
    ran = f"open({str(house.marker)!r}, 'w').close()\n"
    for name in ("evil", "planted", "sitecustomize", "usercustomize", "my_models", "wordllama", "numpy"):
        (house.store / f"{name}.py").write_text(ran)
    # Also where it could be found: the module that everything hostile names.
    (house.home / "models" / "evil.py").write_text(ran)
    pin = {"factory": "evil:boom", "name": "evil:boom", "fingerprint": kept(house, "embedder_fingerprint")}
    lines = [f"{name} = {json.dumps(value)}\n" for name, value in pin.items()]
    keys = (house.store / "vkey").read_text().split()
    text = f"schema = 1\n[[embedder]]\n{''.join(lines)}keys = {json.dumps(keys)}\n"
    for folder in (house.store, house.store / "carag", house.store / ".config" / "carag"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "trusted.toml").write_text(text)
        (folder / "trusted.toml").chmod(0o600)


def note(house: House, name: str, value: str) -> None:
    """Write into the store's notes, past everything that guards them."""
    with closing(sqlite3.connect(house.store / "corpus.db")) as sql:
        sql.execute("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)", (name, value))
        sql.commit()


def kept(house: House, name: str) -> str:
    with closing(sqlite3.connect(house.store / "corpus.db")) as sql:
        return str(sql.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()[0])


def walk(house: House, *, where: Path) -> dict[tuple[str, ...], subprocess.CompletedProcess[str]]:
    """Run every command from a directory; return how each ended, after nothing of the store's ran."""
    ended = {}
    for number, words in enumerate(WALKS):
        named = {one: house.home / f"{one}{number}" for one in ("OUT", "PROOF", "COPY", "LESS")}
        named |= {"DOCS": house.docs, "RECEIPT": house.home / "r.json", "VKEY": house.home / "kept.vkey"}
        said = [str(named.get(word, word)) for word in words]
        if "HOLD" in said:
            listed = house.run("audit", "list", "--json", "--store", house.store).stdout.splitlines()
            held = [one["record"] for one in map(json.loads, listed) if one["kind"] == "hold"]
            said[said.index("HOLD")] = str(*held)
        store = () if words[0] in ("verify", "receipt") else ("--store", house.store)
        ended[words] = house.run(*said, *store, cwd=where)
        assert not house.marker.exists(), words
    return ended


def given(house: House) -> House:
    """A store with an answer, made hostile; the receipt and the key are kept elsewhere."""
    house.made()
    own = ("--embedder", "my_models:Lengths", "--generator", "my_models:cites")
    ask = ("ask", "When?", "--store", house.store, *SESSION, *own)
    assert 0 == house.run(*ask, "--receipt", house.home / "r.json").returncode
    (house.home / "kept.vkey").write_bytes((house.store / "vkey").read_bytes())
    hostile(house)
    return house


@pytest.mark.release
def test_a_store_handed_over_runs_no_code_in_any_command(house: House) -> None:
    """Run from within it, with the module it names importable too; those that need no embedder still work."""
    for words, done in walk(given(house), where=house.store).items():
        assert WALKS[words] == (done.returncode == 0), (words, done.stdout, done.stderr)


@pytest.mark.release
def test_settings_in_a_store_handed_over_run_no_code_and_are_refused(house: House) -> None:
    """Run from within it, where a carag.toml names what to run: every command that looks for settings says so."""
    given(house)
    (house.store / "carag.toml").write_text(
        'schema = 1\nstore = "."\npath = "."\nembedder.name = "evil:boom"\ngenerator.name = "evil:boom"\n'
    )
    ended = walk(house, where=house.store)
    refused = {words[0] for words, done in ended.items() if "inside a store are never read" in done.stderr}
    assert refused >= {"explain", "ask", "ingest"}
    for words, done in ended.items():
        assert WALKS[words] or done.returncode != 0, (words, done.stdout, done.stderr)
    done = house.run("audit", "verify", cwd=house.store)
    assert (65, True) == (done.returncode, "inside a store are never read" in done.stderr)


@pytest.mark.release
def test_a_profile_in_a_store_handed_over_runs_no_code(house: House) -> None:
    """Its texts are data: one that names its own reader is not a valid profile, and the error says so."""
    given(house)
    text = shipped_text("generic", "profile.toml").replace(
        "schema = 1", 'schema = 1\nreader = "evil:boom"', 1
    )
    note(house, "profile_texts", json.dumps([text, shipped_text("generic", "roles.toml")]))
    ended = walk(house, where=house.store)
    for words in (("explain", "a.md:00000", *SESSION), ("policy", "show")):
        assert "reader: is 'evil:boom'" in ended[words].stderr, ended[words]


def test_a_module_within_the_store_is_not_imported_even_if_it_is_named(house: House) -> None:
    """Also if the store is on Python's path. And the file would have run: outside of the store it does."""
    house.made()
    (house.store / "evil.py").write_text(f"open({str(house.marker)!r}, 'w').close()\n")
    ask = ("ask", "When?", "--store", house.store, *SESSION, "--embedder", "evil:boom")
    done = house.run(*ask, PYTHONPATH=os.pathsep.join((str(ROOT), str(house.store))))
    assert (65, True) == (done.returncode, "evil is inside the store" in done.stderr), done.stderr
    assert not house.marker.exists()
    (house.store / "evil.py").rename(house.home / "models" / "evil.py")
    assert 65 == house.run(*ask).returncode
    assert house.marker.exists()
