"""``carag.toml`` yields to options and the environment, is never a store's, and holds no secret."""

from __future__ import annotations

import itertools
import json
import os
import re
import sys
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from carag.cli import Exit
from carag.cli._configuration import SETTINGS, Configuration, begun
from carag.cli.app import run
from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MODELS = """
class Lengths:
    dim, fingerprint = 2, "1"

    def __init__(self, name="lengths"):
        self.name = name

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        return [len(text), 1 + text.count("e")]


def says(word):
    return lambda question, passages, withheld: f"{word}. [1]"
"""
SESSION = ("--role", "public", "--purpose", "read")


@pytest.fixture
def home(own_settings: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current directory with notes, and a folder of models that is not on Python's path."""
    (own_settings / "notes").mkdir()
    (own_settings / "notes" / "a.md").write_text(
        "---\nclassification: public\n---\nThe canteen opens at noon.\n"
    )
    (own_settings / "models").mkdir()
    (own_settings / "models" / "configured_models.py").write_text(MODELS)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield own_settings
    sys.modules.pop("configured_models", None)


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(("schema = 1", *lines)) + "\n", encoding="utf-8")
    return path


def made(home: Path, *lines: str, name: str = "store") -> Path:
    """Make a store with one document, by an own embedder that the file names, with these further lines."""
    head = (f'store = "{name}"', 'path = "models"', *lines, 'embedder.name = "configured_models:Lengths"')
    file = write(home / "carag.toml", *head)
    assert run(["init", "--profile", "generic"]) == Exit.OK
    assert run(["ingest", "notes"]) == Exit.OK
    return file


def asked(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, dict[str, Any], str]:
    capsys.readouterr()
    code = run([*map(str, words), "--json"])
    said = capsys.readouterr()
    return code, json.loads(said.out or "{}"), said.err


def test_commands_beside_the_file_need_no_option(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The user's own models come from the folder that it names, with its arguments; audit commands know the store."""
    made(home, 'generator = { name = "configured_models:says", word = "Noon" }')
    code, said, _ = asked(capsys, "ask", "When does the canteen open?", *SESSION)
    assert (code, said["text"]) == (Exit.OK, "Noon. [1]")
    assert run(["audit", "verify"]) == run(["explain", "a.md:00000", *SESSION]) == Exit.OK


def test_from_another_directory_paths_start_at_the_file(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Named by the option, or by the environment."""
    file = made(home)
    (home / "elsewhere").mkdir()
    monkeypatch.chdir(home / "elsewhere")
    assert asked(capsys, "ask", "When does the canteen open?", *SESSION)[0] == Exit.USAGE
    assert asked(capsys, "--config", file, "ask", "When does the canteen open?", *SESSION)[0] == Exit.OK
    monkeypatch.setenv("CARAG_CONFIG", os.path.relpath(file))
    assert asked(capsys, "ask", "When does the canteen open?", *SESSION)[0] == Exit.OK


@pytest.mark.parametrize(("option", "variable", "file"), [*itertools.product([False, True], repeat=3)])
def test_an_option_goes_before_the_environment_and_that_before_the_file(
    option: bool, variable: bool, file: bool, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For each of the eight combinations, the one that is first, or the default; seen by what the engine is given."""
    given: dict[str, Any] = {}

    def opened(path: Path, **settings: Any) -> None:
        given.update(settings, store=path)
        raise InvalidArgument("seen")

    monkeypatch.setattr("carag.engine.Engine.open", opened)
    words = ["ask", "When does the canteen open?", *SESSION]
    if option:
        words += ["--generator", "local:o", "--store", "o"]
    if variable:
        monkeypatch.setenv("CARAG_GENERATOR", "local:v")
        monkeypatch.setenv("CARAG_STORE", "v")
    if file:
        write(home / "carag.toml", 'store = "f"', 'generator.name = "local:f"')
    code = run(words)
    first = next((name for name, on in (("o", option), ("v", variable), ("f", file)) if on), None)
    if first is None:
        assert code == Exit.USAGE
    else:
        assert (given["generator"], str(given["store"])) == (f"local:{first}", first)


@pytest.mark.parametrize(
    "words",
    [
        ["ask", "When does the canteen open?", *SESSION],
        ["explain", "a:00000", *SESSION],
        ["ingest", "notes"],
        ["sync", "notes"],
        ["gate", "show"],
        ["policy", "apply", "generic"],
        ["audit", "accept", "--labels"],
    ],
    ids=lambda words: words[0],
)
def test_where_rows_are_is_told_to_the_engine(
    words: list[str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the file, or the option, which goes before it; without either, nothing is set."""
    given: list[Any] = []

    def opened(_: Path, **settings: Any) -> None:
        given.append(settings.get("backend", "nothing"))
        raise InvalidArgument("seen")

    monkeypatch.setattr("carag.engine.Engine.open", opened)
    write(home / "carag.toml", 'store = "s"')
    run(words)
    write(home / "carag.toml", 'store = "s"', 'backend = "redis://f"')
    run(words)
    run([*words, "--backend", "native"])
    assert ["nothing", "redis://f", "native"] == given


def test_arguments_belong_to_the_name_of_the_file(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another name goes without them, and the same name, said again, with them."""
    made(home, 'generator = { name = "configured_models:says", word = "Noon" }')
    own, other = ("--generator", "configured_models:says"), ("--generator", "extractive")
    assert asked(capsys, "ask", "When does the canteen open?", *SESSION, *own)[1]["text"] == "Noon. [1]"
    assert "noon" in asked(capsys, "ask", "When does the canteen open?", *SESSION, *other)[1]["text"]
    monkeypatch.setenv("CARAG_GENERATOR", "configured_models:says")
    assert asked(capsys, "ask", "When does the canteen open?", *SESSION)[1]["text"] == "Noon. [1]"


def test_the_embedder_of_the_file_is_not_that_of_another_store(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second store in the directory is made, and opens, with its own."""
    made(home)
    words = ("--embedder", "wordllama", "--store", "other")
    assert run(["init", "--profile", "generic", *words]) == Exit.OK
    capsys.readouterr()
    code, said, error = asked(capsys, "ask", "When?", *SESSION, "--store", "other")
    assert (code, said.get("why")) == (Exit.DECLINED, "NO_ADMISSIBLE_EVIDENCE"), error


def test_what_a_model_has_against_its_arguments_names_the_line(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made(home)
    write(home / "carag.toml", 'store = "store"', "[generator]", 'name = "extractive"', "warmth = 1")
    code, _, error = asked(capsys, "ask", "When does the canteen open?", *SESSION, "--embedder", "wordllama")
    assert (code, "carag.toml, line 3: generator: " in error, "warmth" in error) == (65, True, True), error


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (
            ['stoer = "x"'],
            r"line 2: stoer: no such key; want one of schema, store, retain, .*configuration\.md",
        ),
        (['role = "public"'], "line 2: role: no such key"),
        (["", "store = 7"], "line 3: store: is 7"),
        (['store = ""'], "line 2: store: is ''"),
        (['retain = "ever"'], "line 2: retain: is 'ever'; want one of ai6m, fin5y, fin6y, fin7y"),
        (["[embedder]", "words = 2"], "line 2: embedder name: is missing"),
        (["store = "], "line 2: not valid TOML"),
        (["schema = 1"], "line 2: not valid TOML"),
        (
            ['evidence = "postgresql://a@b/c"'],
            "line 2: evidence: a second copy of the records is no longer written, .* remove this line; .*carag share",
        ),
    ],
)
def test_a_mistake_is_refused_with_its_line(
    lines: list[str], why: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And not ignored: a misspelt key would leave a setting out without a word."""
    write(home / "carag.toml", *lines)
    code, _, error = asked(capsys, "audit", "verify")
    assert code == Exit.BAD_INPUT
    assert re.search(why, error), error


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'schema = 2\nstore = "s"\n', "line 1: schema: is 2"),
        (b'store = "s"\n', "schema: is missing"),
        (b"schema = 1\n# \xff\n", "line 2: not UTF-8"),
        (b"schema = 1\n" + b"#" * (1 << 16), "longer than 65536 bytes"),
    ],
)
def test_what_is_no_such_file_is_refused(
    data: bytes, why: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "carag.toml").write_bytes(data)
    code, _, error = asked(capsys, "audit", "verify")
    assert (code, why in error) == (Exit.BAD_INPUT, True), error


def test_a_file_that_is_named_must_be_there(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And is not read where nothing is asked of it."""
    code, _, error = asked(capsys, "--config", home / "none.toml", "audit", "verify")
    assert (code, "No such file" in error) == (Exit.BAD_INPUT, True)
    assert asked(capsys, "--config", home / "none.toml", "policy", "show")[0] == Exit.OK


@pytest.mark.parametrize(
    "line",
    [
        'embedder.api_key = "s3cret"',
        'generator.Token = "s3cret"',
        'generator.tokens = ["s3cret"]',
        'generator.headers.client_secret = "s3cret"',
        'generator.servers = [{ password = "s3cret" }]',
        "generator.password = 51423",
        'api_key = "s3cret"',
        '[[embedder]]\nkey = "s3cret"',
    ],
)
def test_a_secret_in_the_file_is_refused_and_not_shown(
    line: str, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even in a traceback; and the message says where secrets go."""
    monkeypatch.setenv("CARAG_DEBUG", "1")
    write(home / "carag.toml", *([] if "[[" in line else ['generator.name = "extractive"']), line)
    code, _, error = asked(capsys, "audit", "verify")
    assert (code, "_env" in error, "s3cret" in error, "51423" in error) == (65, True, False, False), error
    assert re.search(r"carag\.toml, line [234]: ", error), error


def test_the_name_of_a_variable_and_a_count_of_tokens_are_no_secrets(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(home / "carag.toml", 'generator = { name = "x", key_env = "CHAT_KEY", max_tokens = 80 }')
    assert "no store" not in asked(capsys, "audit", "verify")[2]
    assert Configuration(home / "carag.toml").setting("generator") == "x"


def test_a_file_in_a_store_is_refused_however_it_is_found(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In it, below it, through a link in either direction, and in a copy of its log; outside it is read."""
    made(home).unlink()
    inside = write(home / "store" / "carag.toml", 'store = "."')
    (home / "store" / "deep").mkdir()
    deep = write(home / "store" / "deep" / "carag.toml", 'store = ".."')
    (home / "link.toml").symlink_to(inside)
    (home / "store" / "out.toml").symlink_to(write(home / "fine.toml", 'store = "store"'))
    for file in (inside, deep, home / "link.toml", home / "store" / "out.toml"):
        code, _, error = asked(capsys, "--config", file, "audit", "verify")
        assert (code, "inside a store are never read" in error) == (Exit.BAD_INPUT, True), (file, error)
    monkeypatch.chdir(home / "store" / "deep")
    assert "inside a store are never read" in asked(capsys, "audit", "verify")[2]
    assert asked(capsys, "--config", home / "fine.toml", "audit", "verify")[0] == Exit.OK


def test_a_file_that_was_only_found_must_be_ones_own(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user's could name code; someone who names it has seen it."""
    file = made(home)
    monkeypatch.setattr("os.geteuid", lambda: file.stat().st_uid + 1)
    monkeypatch.setattr("carag.cli._configuration._ROOT", -1)
    code, _, error = asked(capsys, "audit", "verify")
    assert (code, "belongs to another user" in error) == (Exit.BAD_INPUT, True), error
    assert asked(capsys, "--config", file, "audit", "verify")[0] == Exit.OK


def test_init_writes_a_file_that_the_next_commands_read(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only once: it is never overwritten, and a message says so."""
    monkeypatch.syspath_prepend(str(home / "models"))
    words = ("init", "--profile", "generic", "--embedder", "configured_models:Lengths", "--store")
    code, said, _ = asked(capsys, *words, "store")
    assert (code, said["config"]) == (Exit.OK, "carag.toml")
    assert (
        asked(capsys, "ingest", "notes")[0]
        == asked(capsys, "ask", "When does the canteen open?", *SESSION)[0]
        == Exit.OK
    )
    before = (home / "carag.toml").read_bytes()
    assert run([*words, "other"]) == Exit.OK
    said = capsys.readouterr().out
    assert "carag.toml already exists and is left as it is" in said
    assert "carag ingest PATH --store other" in said
    assert (home / "carag.toml").read_bytes() == before
    assert run(["--config", "new.toml", *words, "third"]) == Exit.OK
    assert 'store = "third"' in (home / "new.toml").read_text()


def test_init_writes_nothing_into_a_store(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the place was given, nothing is made; otherwise a message says so."""
    monkeypatch.syspath_prepend(str(home / "models"))
    words = ("init", "--profile", "generic", "--embedder", "configured_models:Lengths", "--store")
    assert run(["--config", "store/carag.toml", *words, "store"]) == Exit.BAD_INPUT
    assert not (home / "store").exists()
    (home / "here").mkdir()
    monkeypatch.chdir(home / "here")
    assert run([*words, "."]) == Exit.OK
    said = capsys.readouterr().out
    assert ("carag.toml was not written" in said, "PATH --store ." in said) == (True, True)
    assert not (home / "here" / "carag.toml").exists()


def test_init_makes_no_store_beside_a_file_that_cannot_be_read(home: Path) -> None:
    write(home / "carag.toml", "stoer = 1")
    assert run(["init", "--profile", "generic", "--embedder", "wordllama", "--store", "s"]) == Exit.BAD_INPUT
    assert not (home / "s").exists()


@pytest.mark.parametrize("embedder", [None, "wordllama", "configured_models:Lengths"])
def test_every_commented_line_of_the_file_that_init_writes_is_true(embedder: str | None, home: Path) -> None:
    """Each without its mark, and all at once, make a file that is read and states what the line states."""
    lines = begun(home / "store", home, embedder).splitlines()
    marked = [number for number, line in enumerate(lines) if line.startswith("# ")]
    stated = set()
    for chosen in [*([number] for number in marked), marked]:
        text = [line.removeprefix("# ") if number in chosen else line for number, line in enumerate(lines)]
        (home / "carag.toml").write_text("\n".join(text))
        configuration = Configuration()
        assert configuration.setting("store") == "store"
        for number in chosen:
            key, _, text_of_value = lines[number].removeprefix("# ").partition(" = ")
            name = key.removesuffix(".name")
            stated.add(name)
            value = tomllib.loads(f"value = {text_of_value}")["value"]
            if name != "path":
                wanted = value["name"] if isinstance(value, dict) else value
                assert configuration.setting(name) == wanted
    assert stated | {"embedder"} == {*SETTINGS, "path"} - {"store"}


@pytest.mark.parametrize(
    "name", ["a b", 'say "no"', "tab\there", "back\\slash", "naïve", "del\x7f", "{braces}"]
)
def test_a_store_of_any_name_is_written_and_read_again(name: str, home: Path) -> None:
    text = begun(home / name, home, None)
    assert tomllib.loads(text)["store"] == name
    outside = home.parent / name
    assert tomllib.loads(begun(outside, home, None))["store"] == str(outside)
    with pytest.raises(InvalidArgument, match="not UTF-8"):
        begun(home / "\udcff", home, None)
