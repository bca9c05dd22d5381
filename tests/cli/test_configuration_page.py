"""The reference of settings is that of the code: every option with its variable and key, and every key of the files."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import pytest

from carag.audit import RETENTION
from carag.cli import _trusted
from carag.cli._configuration import SETTINGS, Configuration, _Document
from carag.cli.app import _NOT_CONFIGURED, _defaults, assembled
from carag.errors import InvalidArgument
from carag.retrieval import RANKERS
from carag.service.release import OPERATIONS
from carag.service.settings import _PACES, ServiceSettings, SlotSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "configuration.md").read_text("utf-8")


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def rows(title: str) -> list[list[str]]:
    """Return the cells of the section's table, without its head."""
    lines = [line for line in section(title).splitlines() if line.startswith("|")]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines[2:]]


def commands(group: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, group
    for name, one in getattr(group, "commands", {}).items():
        yield from commands(one, *path, name)


COMMANDS = dict(commands(assembled()))


def configured(path: tuple[str, ...]) -> bool:
    return not any(path[: len(one)] == one for one in _NOT_CONFIGURED)


def test_every_option_is_there_with_its_variable_and_its_key() -> None:
    """All that a variable or the file can give, and no other."""
    found = {
        (option.opts[0], option.envvar or "none", option.name if option.name in SETTINGS else "none")
        for path, command in COMMANDS.items()
        for option in command.params
        if option.envvar or (option.name in SETTINGS and configured(path))
    }
    assert sorted(found) == sorted(tuple(row[:3]) for row in rows("Settings"))


def test_an_option_has_one_spelling_one_variable_and_one_default() -> None:
    """Anywhere in the file; and the page's default is the code's, if the code states one."""
    stated = {row[0]: row[3] for row in rows("Settings")}
    for path, command in COMMANDS.items():
        for option in command.params:
            if option.name in SETTINGS and configured(path):
                assert stated[option.opts[0]].startswith(str(option.default or "")), (path, option.name)
                assert bool(option.envvar) == (
                    option.name in ("store", "embedder", "generator", "ranker", "reranker", "passage_reader")
                ), path


def test_every_command_is_reached_but_those_that_the_page_names() -> None:
    """And a command that the code mentions exists."""
    (sentence,) = re.findall(
        r"(`carag verify`.+?) do not read\sa\ssettings\sfile\.", section("Settings"), re.DOTALL
    )
    assert set(re.findall(r"`carag (.+?)`", sentence)) == {" ".join(path) for path in _NOT_CONFIGURED}
    assert set(COMMANDS) >= _NOT_CONFIGURED
    reached = _defaults(COMMANDS[()], Configuration(ROOT / "pyproject.toml").lookups())
    for path, command in COMMANDS.items():
        below: Any = reached
        for word in path:
            below = below.get(word, {})
        if not getattr(command, "commands", {}):
            assert {*below} == ({*SETTINGS} if configured(path) else set()), path


def test_every_variable_of_the_environment_is_named() -> None:
    """And each that is named is read somewhere."""
    used = {
        found
        for path in (ROOT / "carag").rglob("*.py")
        if "CARAG_" in (text := path.read_text("utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for found in re.findall(r"(?<![\w.])CARAG_[A-Z_]+\b", node.value)
    }
    assert used == set(re.findall(r"CARAG_[A-Z_]+", PAGE))


@pytest.mark.parametrize(
    ("title", "schema"), [("`carag.toml`", _Document), ("`trusted.toml`", _trusted.Pin)], ids=["file", "pin"]
)
def test_every_key_is_there_with_its_type_and_default(title: str, schema: Any) -> None:
    """And no other; of a choice each value is named."""
    fields = {field.alias or name: field for name, field in schema.model_fields.items()}
    said = {row[0]: row for row in rows(title)}
    assert [*said] == [*fields]
    for name, field in fields.items():
        _, kind, default, _ = said[name]
        assert default == ("required" if field.is_required() else "none"), name
        if get_origin(field.annotation) is Literal:
            assert kind == str(*get_args(field.annotation))
        elif name == "retain":
            assert re.findall(r'"(\w+)"', kind) == [*RETENTION]
        elif name == "ranker":
            assert re.findall(r'"([\w-]+)"', kind) == [*RANKERS]
        elif get_origin(field.annotation) is list:
            assert kind == "list of text"
        else:
            assert kind in (
                {"table"}
                if name in ("embedder", "generator", "reranker", "passage_reader", "service")
                else {"path", "text"}
            ), name


def test_every_key_of_a_service_is_there_with_its_default() -> None:
    """In the order of the code; a default as TOML writes it."""
    fields = ServiceSettings.model_fields
    said = {row[0]: row[2] for row in rows("`[service]`")}
    assert [*said] == [*fields]
    for name, field in fields.items():
        if name == "slots":
            assert isinstance(field.default, SlotSettings), "on unless they are switched off"
            continue
        default = (
            str(field.default).lower() if isinstance(field.default, bool) else str(field.default or "none")
        )
        assert said[name] == ("required" if field.is_required() else default), name


def test_every_slot_is_there_with_its_default() -> None:
    """By the models in use, where the code states none."""
    fields = SlotSettings.model_fields
    said = {row[0]: row[2].replace("`", "") for row in rows("`[service.slots]`")}
    assert [*OPERATIONS] == [*said] == [*fields]
    for name, field in fields.items():
        paces = _PACES.get(name, {"quick": field.default})
        assert [str(one) for one in paces.values()] == re.findall(r"\d+", said[name]), name
        assert (field.default is None) == (name in _PACES)


def test_slots_are_read_from_a_file_and_off_is_a_word(own_settings: Path) -> None:
    """What is neither is refused before anything listens, with its place."""
    service = """schema = 1
[service]
issuer = "i"
audience = "a"
jwks = "j"
algorithms = ["ES256"]
grants = "g"
"""
    for text, slots in (
        ("", SlotSettings()),
        ("[service.slots]\nask = 70\n", SlotSettings(ask=70)),
        ('slots = "off"\n', None),
    ):
        (own_settings / "carag.toml").write_text(service + text)
        assert slots == Configuration().service().slots
    for wrong in (
        'slots = "on"\n',
        "slots = false\n",
        "[service.slots]\nask = 0\n",
        "[service.slots]\nasks = 1\n",
    ):
        (own_settings / "carag.toml").write_text(service + wrong)
        with pytest.raises(InvalidArgument, match="slots"):
            Configuration().service()


def test_the_example_is_read(own_settings: Path) -> None:
    (text,) = re.findall(r"```text\n(.+?)```", section("`carag.toml`"), re.DOTALL)
    (own_settings / "carag.toml").write_text(text)
    assert Configuration().setting("embedder") == "my_models:Words"
