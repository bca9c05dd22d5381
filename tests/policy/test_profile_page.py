"""The reference page of a profile's keys matches the schema: every key, its default, and its values."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args, get_origin

import pytest
from pydantic import BaseModel

from carag.policy import FieldKind, table, vocabulary
from carag.retrieval.confidence import shipped
from carag.retrieval.reading import declared

if TYPE_CHECKING:
    from collections.abc import Mapping

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "profile.md"
SCHEMAS: dict[str, type[BaseModel]] = {
    "profile.toml": vocabulary._ProfileFile,
    "[words]": vocabulary.Words,
    "[[bit]]": vocabulary.BitMeaning,
    "[[impossible]]": vocabulary._Impossible,
    "[[required]]": vocabulary.RequiredFact,
    "[[rule]]": vocabulary.FactRule,
    "[audience]": vocabulary._Sharing,
    "[chunking]": vocabulary._Chunking,
    "[erasure]": vocabulary._Erasing,
    "[[intent]]": vocabulary._Intent,
    "[intents]": vocabulary._NotMeant,
    "roles.toml": table._RolesFile,
    "[[cell]]": table.Cell,
    "masks": table.Pair,
    "reading.toml": declared._ReadingFile,
    "gate.toml": shipped._GateFile,
    "[embedder]": shipped.Calibration,
}


class Key(NamedTuple):
    """The page's entry for one key."""

    type: str
    default: str


def keys_of_page() -> dict[str, dict[str, Key]]:
    """Return the rows of the table of each section."""
    found = {}
    for section in PAGE.read_text("utf-8").split("\n## ")[1:]:
        rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \| .+ \|$", section, re.MULTILINE)
        found[section.partition("\n")[0].strip("`")] = {
            key: Key(kind, default) for key, kind, default in rows
        }
        assert len(rows) == section.count("\n| `"), f"a row that cannot be read under {section[:20]}"
    return found


def keys_of(schema: type[BaseModel]) -> Mapping[str, Any]:
    """Return the fields that a file may state, under the names that it uses."""
    return {field.alias or name: field for name, field in schema.model_fields.items() if not field.exclude}


def written(value: Any) -> str:
    """Return a default as the page writes it."""
    if value is None or value == {} or isinstance(value, BaseModel):
        return "none"
    return f"`{json.dumps(value)}`"


PAGES = keys_of_page()


@pytest.mark.parametrize("section", SCHEMAS)
def test_every_key_is_there_with_its_default(section: str) -> None:
    """And no other key."""
    fields = keys_of(SCHEMAS[section])
    stated = {name: "required" if one.is_required() else written(one.default) for name, one in fields.items()}
    assert stated == {name: key.default for name, key in PAGES[section].items()}


@pytest.mark.parametrize("section", SCHEMAS)
def test_every_key_has_its_type(section: str) -> None:
    """Lists are called lists, booleans true or false, and each value of a choice is named."""
    for name, field in keys_of(SCHEMAS[section]).items():
        said = PAGES[section][name].type
        kinds = [one for one in get_args(field.annotation) or () if one is not NoneType]
        of = kinds[0] if len(kinds) == 1 and get_origin(field.annotation) is not list else field.annotation
        if get_origin(field.annotation) is Literal:
            of = field.annotation
        if get_origin(of) is Literal:
            assert re.findall(r"`(.+?)`", said) == [json.dumps(one) for one in get_args(of)], name
        elif name == "metadata":
            assert re.findall(r"`(.+?)`", said) == [json.dumps(one) for one in get_args(FieldKind)]
        elif get_origin(of) is list:
            assert said.startswith("list of "), name
        elif of is bool:
            assert said == "true or false", name
        elif of is int:
            assert said == "number", name
        elif of is str:
            assert said in {"text", "name", "bit name", "field name"}, name


@pytest.mark.parametrize("section", ["groups", "lifecycle", "purposes"])
def test_every_group_is_there(section: str) -> None:
    """The groups that the code knows by meaning."""
    names = get_args(vocabulary._ProfileFile.model_fields[section].annotation)[0]
    assert list(PAGES[f"[{section}]"]) == list(get_args(names))


def test_no_section_describes_something_else() -> None:
    """The page promises nothing that the schema lacks."""
    assert {*PAGES} == {*SCHEMAS, "[audience]", "[groups]", "[lifecycle]", "[metadata]", "[purposes]"}
