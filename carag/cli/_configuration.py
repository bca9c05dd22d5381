"""Read ``carag.toml``: settings for whoever runs ``carag``, behind what an option or the environment says.

Whoever writes the file decides which code runs, so it is never taken from a store: that may come from anybody. It is
read only when a command looks for a setting that neither an option nor the environment gives.
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

__all__ = [
    "FILE",
    "SETTINGS",
    "Configuration",
    "Kind",
    "begun",
    "check_outside_stores",
    "in_store",
    "read_toml",
    "toml_text",
]

Kind = Literal["embedder", "generator", "reranker"]

FILE: Final = "carag.toml"
"""What is looked for in the current directory."""
SETTINGS: Final = (
    *("store", "retain", "not_before", "evidence", "backend", "shadow"),
    *("embedder", "generator", "ranker", "reranker"),
)
"""Parameters of commands that the file can give, under the names they have there."""
_PAGE: Final = "docs/reference/configuration.md"
_MAX_BYTES: Final = 1 << 16
_MARKS: Final = ("corpus.db", "audit.db", "shared.url")
"""A directory with one of these files is a store, or a copy of its log."""
_ROOT: Final = 0
"""The number of the user who may write anywhere."""
_SECRET: Final = re.compile("key|token|secret|password", re.IGNORECASE)

Text = Field(default=None, min_length=1)


_BEGUN: Final = """\
## Settings of carag in this directory. An option goes before the environment, and that before this file:
## docs/reference/configuration.md. Paths start at this file. Whoever writes here decides which code runs.
schema = 1
store = {store}

## What makes vectors: the store keeps what it was made with. Arguments stand beside the name, as embedder.url = "...".
{mark}embedder.name = {embedder}

## What writes answers; MODULE:FACTORY makes one of your own, imported from Python's path and from the folder in path.
# generator.name = "extractive"
# path = "models"

## What finds passages: by similarity, words and what the question names; "dense" by similarity alone.
# ranker = "{ranker}"

## What orders the passages found, before a generator reads them. It is sent their texts.
# reranker = {{ name = "jina:MODEL", url = "http://127.0.0.1:8080/v1" }}

## How long records must be kept: {classes}.
# retain = "{default}"

## A checkpoint or receipt kept elsewhere: a store put back to an earlier state is not opened.
# not_before = "receipt.json"

## A PostgreSQL server that gets every record, too, before anything is answered: carag audit postgres sets it up.
# evidence = "postgresql://carag_app@HOST/DATABASE"

## Where vectors are searched: "native", in an index file of the store, or a server that holds a copy of its rows.
# backend = "postgresql://carag_rows@HOST/DATABASE"

## Where a store may move next: a server that gets every change, too, and is asked every question, to compare.
# shadow = "postgresql://carag_rows@HOST/DATABASE?collection=NEXT"

## A service, which carag serve runs, has a table [service]: docs/how-to/run-the-service.md.
"""


class _Strict(BaseModel):
    # Whatever stands in the wrong place could be a secret, and pydantic's own message would show it in a traceback.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)


class _Model(_Strict):
    model_config = ConfigDict(extra="allow")
    name: str = Field(min_length=1)


class _Document(_Strict):
    schema_: Literal[1] = Field(alias="schema")
    store: str | None = Text
    retain: str | None = None
    not_before: str | None = Text
    evidence: str | None = Text
    backend: str | None = Text
    shadow: str | None = Text
    path: str | None = Text
    embedder: _Model | None = None
    generator: _Model | None = None
    ranker: str | None = None
    reranker: _Model | None = None
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
    """What one file says, if there is one.

    Parameters
    ----------
    given : Path, optional
        The file; if None, ``carag.toml`` in the current directory, which need not be there.
    is_made : bool
        Whether the command is about to write it, so that the one given need not be there either.
    """

    def __init__(self, given: Path | None = None, *, is_made: bool = False) -> None:
        self.path = given or Path(FILE)
        self.is_given = given is not None
        self._may_be_absent = is_made or given is None

    def names(self, store: Path) -> bool:
        """Tell whether the file is there and is read, and its store is this one."""
        if in_store(self.path) is not None:
            return False
        stated = self.setting("store")
        return stated is not None and Path(stated).resolve() == store.resolve()

    def check_begin(self, store: Path) -> None:
        """Check that :meth:`begin` will do what it is asked to, before the store is made.

        Raises
        ------
        InvalidArgument
            If a file is there that cannot be read, or one given would lie in the store, or cannot name it.
        """
        if self.is_given and store.resolve() in self.path.resolve().parents:
            raise InvalidArgument(
                f"{self.path} would lie in the store {store}, where it is not read; name another place"
            )
        if self._said is None:
            begun(store, self.path.parent, None)

    def begin(self, store: Path, embedder: str | None) -> str:
        """Write the file for a new store, if there is none; return what came of it, in words.

        Raises
        ------
        InvalidArgument
            If it cannot be written.
        """
        if in_store(self.path) is not None:
            return f"no {self.path} was written: it would lie in a store, where it is not read"
        try:
            with self.path.open("x", encoding="utf-8") as file:
                file.write(begun(store, self.path.parent, embedder))
        except FileExistsError:
            return f"{self.path} was there, and is left as it is"
        except OSError as error:
            raise InvalidArgument(f"the store is made, but not {self.path}: {error.strerror}") from error
        self.__dict__.pop("_said", None)  # read it anew
        self.__dict__.pop("_toml", None)
        if self.is_given:
            return (
                f"{self.path} names the store: carag --config {self.path}, or CARAG_CONFIG, needs no --store"
            )
        return f"{self.path} names the store: commands in this directory need no --store"

    def lookups(self) -> dict[str, Lookup]:
        """Return how each parameter of a command is looked up in the file, for Click's ``default_map``."""
        if self._may_be_absent and not os.path.lexists(self.path):
            return {}
        return {name: Lookup(self, name) for name in SETTINGS}

    def setting(self, name: str) -> str | None:
        """Return one of :data:`SETTINGS`, paths as from the current directory; None if it is not stated."""
        value = None if self._said is None else getattr(self._said, name)
        if isinstance(value, _Model):
            return value.name
        return str(self.path.parent / value) if value and name in ("store", "not_before") else value

    def service(self) -> ServiceSettings:
        """Return what the file says of a service, paths as from the current directory.

        Raises
        ------
        InvalidArgument
            If it says nothing.
        """
        if self._said is None or self._said.service is None:
            raise InvalidArgument(
                f"{self.path} has no table [service], which says whose tokens count; see {_PAGE}"
            )
        return self._said.service.at(self.path.parent)

    def made(self, what: Kind, name: str, *, not_in: Path) -> Any:
        """Make a model from a name in force; arguments and folder count only if the name is that of the file.

        Returns
        -------
        str or object
            The name itself where there is nothing to make: CARAG's own, without arguments.

        Raises
        ------
        InvalidArgument
            As for :func:`carag.engine.made_by_name`.
        """
        from carag.engine.named import is_factory, made_by_name

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
                    sys.path.append(folder)  # last: nothing there stands in for what is installed
            return made_by_name(what, name, arguments, not_in=not_in)

    @cached_property
    def _said(self) -> _Document | None:
        if self._may_be_absent and not os.path.lexists(self.path):
            return None
        check_outside_stores(self.path)
        if not self.is_given:
            _check_owner(self.path)
        _check_no_secrets(self._toml)  # before anything could show one
        return self._toml.read(_Document)

    @cached_property
    def _toml(self) -> Toml:
        return read_toml(self.path)


@dataclass(frozen=True)
class Lookup:
    """A default that is looked up when Click asks for it; help shows the name of the file, and reads nothing."""

    configuration: Configuration
    name: str

    def __call__(self) -> str | None:
        """Return the value, or None if the file does not state it."""
        return self.configuration.setting(self.name)

    def __str__(self) -> str:
        return f"as in {self.configuration.path}"


def read_toml(path: Path) -> Toml:
    """Read a file of settings.

    Raises
    ------
    InvalidArgument
        If it cannot be read, is longer than 64 KiB or not UTF-8.
    """
    data = read_bytes(path, "name a file of settings", most=_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise InvalidArgument(
            f"{path} is longer than {_MAX_BYTES} bytes; want a file of settings, see {_PAGE}"
        )
    try:
        return Toml(shown(str(path)), data.decode("utf-8"), _PAGE)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InvalidArgument(f"{path}, line {line}: it is not UTF-8 text") from None


def begun(store: Path, home: Path, embedder: str | None) -> str:
    """Return the text of a file for a new store; each line without its ``# `` is a setting, too.

    Parameters
    ----------
    store, home : Path
        The store, and the directory of the file.
    embedder : str, optional
        What the store was made with, if that was named.

    Raises
    ------
    InvalidArgument
        If the store's name cannot stand in a file.
    """
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
    """Return the store in which a file lies, by its name or where a link leads, or None."""
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - the name as it is, links and all, without its dots
    folders = [*absolute.parents, *path.resolve().parents]
    return next((one for one in folders for mark in _MARKS if (one / mark).exists()), None)


def check_outside_stores(path: Path) -> None:
    """Refuse settings that lie in a store.

    Raises
    ------
    InvalidArgument
        If they do.
    """
    if (store := in_store(path)) is not None:
        raise InvalidArgument(
            f"{path} lies in the store {store}, and settings that come with a store are not read; move the file out, "
            "or work in another directory"
        )


def toml_text(value: str) -> str:
    """Write a text as a string of TOML, whose escapes are those of JSON but for DEL.

    Raises
    ------
    InvalidArgument
        If it is a file's name of bytes that are no UTF-8.
    """
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidArgument(
            f"{quoted(value)} is not UTF-8, and cannot stand in a file of settings"
        ) from None
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _check_owner(path: Path) -> None:
    """Refuse a file that was only found, and that another user wrote: it could name code to run.

    Git refuses another user's repository for the same reason (git-config, safe.directory).
    """
    owners = {path.lstat().st_uid, path.stat().st_uid if path.exists() else _ROOT}
    for owner in owners - {_ROOT, os.geteuid()}:
        raise InvalidArgument(
            f"{path} belongs to another user (number {owner}), and could name code to run; look into it, and give it "
            f"yourself if you trust it: carag --config {path}"
        )


def _check_no_secrets(toml: Toml) -> None:
    for place in _secrets(toml.parsed()):
        with toml.at(*place):
            name = shown(str(place[-1]))
            raise InvalidArgument(
                f"no secret stands in a file: put it into the environment, and name its variable here as {name}_env"
            )


def _secrets(
    said: Mapping[str, Any] | list[Any], place: tuple[str | int, ...] = ()
) -> Iterator[tuple[str | int, ...]]:
    """Yield where something stands whose name says that it is a secret; ``max_tokens = 80`` is a count."""
    for name, value in enumerate(said) if isinstance(said, list) else said.items():
        words = {word.lower() for word in _SECRET.findall(str(name))}
        is_count = words == {"token"} and type(value) is int
        if words and not str(name).lower().endswith("_env") and not is_count:
            yield (*place, name)
        elif isinstance(value, dict | list):
            yield from _secrets(value, (*place, name))
