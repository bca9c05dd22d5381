"""Read ``carag.toml``: settings that apply where neither an option nor the environment gives a value.

The file can name code to run, so it is never read from inside a store, which may come from a stranger. It is read only
when a command needs a setting from it.
"""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from carag.audit import DEFAULT_CLASS, RETENTION
from carag.cli._files import read_bytes
from carag.errors import InvalidArgument
from carag.limits import quoted, shown
from carag.policy.toml_lines import Toml
from carag.service.settings import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


Kind = Literal["embedder", "generator", "reranker", "passage_reader"]

FILE: Final = "carag.toml"
"""The name of the file in the current directory."""
SETTINGS: Final = (
    *("store", "retain", "not_before", "backend"),
    *("embedder", "generator", "ranker", "reranker", "passage_reader"),
)
"""Command parameters that the file can set, under the same names."""
_PAGE: Final = "docs/reference/configuration.md"
_MAX_BYTES: Final = 1 << 16
_MARKS: Final = ("corpus.db", "audit.db", "shared.url")
"""A directory with one of these files is a store, or holds a copy of a store's log."""
_ROOT: Final = 0
"""The user id of root."""
_SECRET: Final = re.compile("key|token|secret|password", re.IGNORECASE)

Text = Field(default=None, min_length=1)


_BEGUN: Final = """\
## Settings for carag in this directory. Options come first, then the environment, then this file:
## docs/reference/configuration.md. Paths are relative to this file.
## Anyone who can write this file can make carag run code.
schema = 1
store = {store}

## The embedder, which makes vectors: a store keeps the one it was made with.
## Arguments go next to the name, as embedder.url = "...".
{mark}embedder.name = {embedder}

## What writes answers; MODULE:FACTORY names your own, imported from Python's path and from the folder in path.
# generator.name = "extractive"
# path = "models"

## How passages are found: by similarity, by words and by what the question names; "dense" uses similarity alone.
# ranker = "{ranker}"

## The reranker, which puts the passages found in order before a generator reads them. It is sent their texts.
# reranker = {{ name = "jina:MODEL", url = "http://127.0.0.1:8080/v1" }}

## A reader, which declines a question that the first passages are unlikely to answer.
# passage_reader.name = "carag-reader-1"

## How long records must be kept: {classes}.
# retain = "{default}"

## A checkpoint or receipt kept elsewhere: a store that was rolled back behind it does not open.
# not_before = "receipt.json"

## Where vectors are searched: "native", in an index file of the store, or on a server that holds a copy of its rows.
# backend = "postgresql://carag_rows@HOST/DATABASE"

## The service that carag serve runs is configured in a table [service]: docs/how-to/run-the-service.md.
"""


class _Strict(BaseModel):
    # A misplaced value could be a secret, and pydantic's own message would show it in a traceback.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)


class _Model(_Strict):
    model_config = ConfigDict(extra="allow")
    name: str = Field(min_length=1)


class _Document(_Strict):
    schema_: Literal[1] = Field(alias="schema")
    store: str | None = Text
    retain: str | None = None
    not_before: str | None = Text
    backend: str | None = Text
    path: str | None = Text
    embedder: _Model | None = None
    generator: _Model | None = None
    ranker: str | None = None
    reranker: _Model | None = None
    passage_reader: _Model | None = None
    service: ServiceSettings | None = None

    @field_validator("retain")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        if value is not None and value not in RETENTION:
            raise ValueError(f"is {quoted(value)}; want one of {', '.join(RETENTION)}")
        return value

    @field_validator("ranker")
    @classmethod
    def _there_is(cls, value: str | None) -> str | None:
        from carag.retrieval import RANKERS, diversity_of

        diversity = None if value is None else diversity_of(value)
        plain = value if diversity is None else diversity[0]
        if plain is not None and plain not in RANKERS:
            raise ValueError(f"is {quoted(value)}; want one of {', '.join(RANKERS)}")
        return value


class Configuration:
    """The settings of one file; without ``given``, of ``carag.toml`` in the current directory, which may be absent.

    ``is_made`` says that the command is about to write the file, so that even a given one may be absent.
    """

    def __init__(self, given: Path | None = None, *, is_made: bool = False) -> None:
        self.path = given or Path(FILE)
        self.is_given = given is not None
        self._may_be_absent = is_made or given is None

    def names(self, store: Path) -> bool:
        """Tell whether the file exists, may be read, and names this store."""
        if in_store(self.path) is not None:
            return False
        stated = self.setting("store")
        return stated is not None and Path(stated).resolve() == store.resolve()

    def check_begin(self, store: Path) -> None:
        """Check, before the store is made, that :meth:`begin` will be able to write the file; else InvalidArgument."""
        if self.is_given and store.resolve() in self.path.resolve().parents:
            raise InvalidArgument(
                f"{self.path} would lie in the store {store}, where it is never read; name another place"
            )
        if self._said is None:
            begun(store, self.path.parent, None)

    def begin(self, store: Path, embedder: str | None) -> str:
        """Write the file for a new store unless it exists; return what was done, in words."""
        if in_store(self.path) is not None:
            return f"{self.path} was not written: it would lie in a store, where it is never read"
        try:
            with self.path.open("x", encoding="utf-8") as file:
                file.write(begun(store, self.path.parent, embedder))
        except FileExistsError:
            return f"{self.path} already exists and is left as it is"
        except OSError as error:
            raise InvalidArgument(
                f"the store is made, but {self.path} cannot be written: {error.strerror}"
            ) from error
        self.__dict__.pop("_said", None)  # so that it is read again
        self.__dict__.pop("_toml", None)
        if self.is_given:
            return (
                f"{self.path} names the store: carag --config {self.path}, or CARAG_CONFIG, needs no --store"
            )
        return f"{self.path} names the store: commands in this directory need no --store"

    def lookups(self) -> dict[str, Lookup]:
        """Return a look-up for each parameter in the file, for Click's ``default_map``."""
        if self._may_be_absent and not os.path.lexists(self.path):
            return {}
        return {name: Lookup(self, name) for name in SETTINGS}

    def setting(self, name: str) -> str | None:
        """Return one of :data:`SETTINGS`, or None; paths are made relative to the current directory."""
        value = None if self._said is None else getattr(self._said, name)
        if isinstance(value, _Model):
            return value.name
        return str(self.path.parent / value) if value and name in ("store", "not_before") else value

    def service(self) -> ServiceSettings:
        """Return the table ``[service]``, its paths relative to the current directory; InvalidArgument without it."""
        if self._said is None or self._said.service is None:
            raise InvalidArgument(
                f"{self.path} has no table [service], which says whose tokens are accepted; see {_PAGE}"
            )
        return self._said.service.at(self.path.parent)

    def made(self, what: Kind, name: str, *, not_in: Path) -> Any:
        """Make the model of this name, with the file's arguments and folder if the file names the same model.

        The name of one of CARAG's own models, if it has no arguments, is returned as it is. Raises as
        :func:`carag.engine.made_by_name` does.
        """
        from carag.engine.factories import is_factory, made_by_name

        stated: _Model | None = None if self._said is None else getattr(self._said, what)
        if self._said is None or stated is None or stated.name != name:
            return made_by_name(what, name, not_in=not_in) if is_factory(name) else name
        arguments = stated.model_extra or {}
        if not is_factory(name) and not arguments:
            return name
        with self._toml.at(what):
            if is_factory(name) and self._said.path is not None:
                folder = str((self.path.parent / self._said.path).resolve())
                if folder not in sys.path:
                    sys.path.append(folder)  # last, so that nothing there can replace an installed module
            return made_by_name(what, name, arguments, not_in=not_in)

    @cached_property
    def _said(self) -> _Document | None:
        if self._may_be_absent and not os.path.lexists(self.path):
            return None
        check_outside_stores(self.path)
        if not self.is_given:
            _check_owner(self.path)
        _check_no_secrets(self._toml)  # before any message could show a secret
        _check_no_second_copy(self._toml)
        return self._toml.read(_Document)

    @cached_property
    def _toml(self) -> Toml:
        return read_toml(self.path)


@dataclass(frozen=True)
class Lookup:
    """A default that is read only when Click asks for its value; ``--help`` shows the file's name and reads nothing."""

    configuration: Configuration
    name: str

    def __call__(self) -> str | None:
        """Return the value, or None if the file does not set it."""
        return self.configuration.setting(self.name)

    def __str__(self) -> str:
        return f"as in {self.configuration.path}"


def read_toml(path: Path) -> Toml:
    """Read a settings file: UTF-8 text of at most 64 KiB; InvalidArgument for anything else."""
    data = read_bytes(path, "name a settings file", most=_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise InvalidArgument(
            f"{path} is longer than {_MAX_BYTES} bytes, so it is not a settings file; see {_PAGE}"
        )
    try:
        return Toml(shown(str(path)), data.decode("utf-8"), _PAGE)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InvalidArgument(f"{path}, line {line}: not UTF-8 text; save the file as UTF-8") from None


def begun(store: Path, home: Path, embedder: str | None) -> str:
    """Return the text of a new store's settings file in ``home``; a line becomes a setting without its ``# ``."""
    from carag.retrieval import DEFAULT_EMBEDDER, RANKERS

    there, here = store.resolve(), home.resolve()
    name = there.relative_to(here).as_posix() if there.is_relative_to(here) else str(there)
    chosen = toml_text(embedder or DEFAULT_EMBEDDER)
    return _BEGUN.format(
        store=toml_text(name),
        mark="" if embedder else "# ",
        embedder=chosen,
        ranker=RANKERS[0],
        classes=", ".join(RETENTION),
        default=DEFAULT_CLASS,
    )


def in_store(path: Path) -> Path | None:
    """Return the store that a file lies in, by its path or by the target of a link, or None."""
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - the name as it is, links and all, without its dots
    folders = [*absolute.parents, *path.resolve().parents]
    return next((one for one in folders for mark in _MARKS if (one / mark).exists()), None)


def check_outside_stores(path: Path) -> None:
    """Raise InvalidArgument for settings that lie in a store."""
    if (store := in_store(path)) is not None:
        raise InvalidArgument(
            f"{path} lies in the store {store}, and settings inside a store are never read; move the file out, "
            "or work in another directory"
        )


def toml_text(value: str) -> str:
    """Write a text as a TOML string, escaped as in JSON except for DEL; InvalidArgument if it is not UTF-8."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidArgument(
            f"{quoted(value)} is not UTF-8, so it cannot be written into a settings file; rename it"
        ) from None
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _check_owner(path: Path) -> None:
    """Refuse another user's file if it was found, not given; Git does the same (git-config, safe.directory)."""
    owners = {path.lstat().st_uid, path.stat().st_uid if path.exists() else _ROOT}
    for owner in owners - {_ROOT, os.geteuid()}:
        raise InvalidArgument(
            f"{path} belongs to another user (uid {owner}) and could name code to run; read it, and if you trust it, "
            f"name it yourself: carag --config {path}"
        )


def _check_no_secrets(toml: Toml) -> None:
    for place in _secrets(toml.parsed()):
        with toml.at(*place):
            name = shown(str(place[-1]))
            raise InvalidArgument(
                "a secret must not be in a file: put the secret into the environment, and name its variable here as "
                f"{name}_env"
            )


def _check_no_second_copy(toml: Toml) -> None:
    if "evidence" in toml.parsed():
        with toml.at("evidence"):
            raise InvalidArgument(
                "a second copy of the records is no longer written, and the log in files is complete: remove this "
                "line; to have the records in PostgreSQL, move the store there with carag share"
            )


def _secrets(
    said: Mapping[str, Any] | list[Any], place: tuple[str | int, ...] = ()
) -> Iterator[tuple[str | int, ...]]:
    """Yield the places of values whose names sound like secrets; ``max_tokens = 80`` is a count."""
    for name, value in enumerate(said) if isinstance(said, list) else said.items():
        words = {word.lower() for word in _SECRET.findall(str(name))}
        is_count = words == {"token"} and type(value) is int
        if words and not str(name).lower().endswith("_env") and not is_count:
            yield (*place, name)
        elif isinstance(value, dict | list):
            yield from _secrets(value, (*place, name))
