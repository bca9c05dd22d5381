"""Turn what a folder holds into documents; one without a label is quarantined, what cannot become one is a problem."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from carag.errors import InvalidArgument
from carag.labelling.document import Document
from carag.policy import parse_moment
from carag.readers import Problem, read_folder
from carag.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from carag.readers import Fact, ReadDocument


PlacedReader: TypeAlias = "Callable[[Path], Iterable[tuple[str, Document | str]]]"
"""Reads a folder: documents, or problems in words, each with its place; empty if unknown."""

_TIMES: Final = ("public_at", "expires_at")
_TEXTS: Final = ("supersedes", "language")
_FIELD: Final = re.compile("[a-z][a-z0-9_]*", re.ASCII)


def placed_reader(reader: str) -> PlacedReader:
    """Return what reads a folder for a profile with this ``reader``: ``folder``, or the name of a shipped one."""
    if reader == "folder":
        return placed_documents
    own = import_module(f"carag.profiles.{reader}.reader")
    return partial(placed_documents, document_of=own.document_of, leaves_out=own.leaves_out)


def placed_documents(
    path: Path,
    *,
    document_of: Callable[[ReadDocument], Document] | None = None,
    leaves_out: Callable[[str], bool] | None = None,
) -> Iterator[tuple[str, Document | str]]:
    """Read every file of a folder; yield a document, or a problem in words, preceded by its file, or file and row."""
    made = document_of or _document
    for one in read_folder(path, leaves_out=leaves_out):
        if isinstance(one, Problem):
            yield one.where, f"{one.where}: {one.kind.value}: {one.reason}"
            continue
        try:
            yield one.where, replace(made(one), read_by=one.read_by)
        except InvalidArgument as error:
            yield one.where, f"{one.where}: broken: {visible(str(error))}"


def _document(read: ReadDocument) -> Document:
    facts = dict(read.facts)
    own: dict[str, Any] = {name: _moment(name, facts.pop(name)) for name in _TIMES if name in facts}
    own |= {name: facts.pop(name) for name in _TEXTS if name in facts}
    if "entities" in facts:
        own["entities"] = _entities(facts.pop("entities"))
    plain = {
        name: value for name, value in facts.items() if _FIELD.fullmatch(name) and not isinstance(value, list)
    }
    titled = {"title": read.title} if read.title else {}
    return Document(
        id=read.id, text=read.text, facts=facts, metadata={**plain, **titled}, pages=read.pages, **own
    )


def _moment(name: str, stated: Fact) -> Any:
    if not isinstance(stated, str):
        raise InvalidArgument(f"{name} is {stated!r}; want a date or a time with its zone, in ISO 8601")
    return parse_moment(stated)


def _entities(stated: Fact) -> tuple[int, ...]:
    several = stated if isinstance(stated, list) else [stated]
    try:
        return tuple(int(one) for one in several if not isinstance(one, bool))
    except ValueError:
        raise InvalidArgument(f"entities are {stated!r}; want whole numbers") from None
