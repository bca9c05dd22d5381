"""Ask questions under the policy in force and under another one, without a record, and tell which passages differ.

Only ids are returned. Nothing leaves this machine, because it would leave without a record.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.audit import AuditLog
from carag.engine.collection import Collection
from carag.engine.recorder import Rules
from carag.engine.requests import DEFAULT_K
from carag.errors import InvalidArgument, Refused
from carag.limits import check_question, quoted, shown
from carag.policy import Session, as_of_minutes, known_at_microseconds
from carag.readers.json_rows import parsed_lines, row_of
from carag.retrieval import Retriever, ranker_by_name
from carag.retrieval.reading import Declared

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike
    from pathlib import Path

    from carag.policy import Profile

_MAX_LINE: Final = 1 << 20
"""Greatest number of bytes in one line."""
_KEYS: Final = ("question", "role", "purpose")
_MAY: Final = ("principals",)


class Asked(NamedTuple):
    """A question, and who asks it."""

    line: int
    """Line number in the file, from 1."""
    question: str
    session: Session


class QuestionEffect(NamedTuple):
    """The ids of the passages that enter and leave the best ones for a question."""

    line: int
    role: str
    purpose: str
    entered: tuple[str, ...]
    left: tuple[str, ...]


def read_asked(path: str | PathLike[str]) -> list[Asked]:
    """Read questions: strict JSON Lines with ``question``, ``role``, ``purpose`` and, where wanted, ``principals``.

    Raises InvalidArgument, with the line, if the file cannot be read or is empty, or a line is not valid.
    """
    found, _ = parsed_lines(path, _MAX_LINE, _asked)
    if not found:
        raise InvalidArgument(f"{shown(str(path))} has no questions; want lines with {', '.join(_KEYS)}")
    return found


def question_effects(
    directory: Path, asked: Iterable[Asked], new: Profile, *, embedder: object | None = None
) -> tuple[QuestionEffect, ...]:
    """Return the questions whose best passages differ, given the labels and groups that are stored.

    The store is held meanwhile, but no engine is opened, so nothing is recorded. ``embedder`` is as for
    :meth:`carag.Engine.open`.

    Raises InvalidArgument if the store's embedder is remote, or both policies refuse a session; StoreLocked if another
    process holds the store.
    """
    started = datetime.now(UTC)
    with (
        AuditLog.open(directory),  # whose lock covers the store
        Collection.open(
            directory, create=False, embedder=embedder, clock=lambda: known_at_microseconds(started)
        ) as collection,
    ):
        if collection.embedder.remote:
            raise InvalidArgument(
                "the store's embedder is remote, so these questions would leave this machine without a record; leave "
                "the questions out"
            )
        declared = collection.catalogue.declared
        sides = (
            Rules.of("", collection.profile, declared, intents=True),
            Rules.of("", new, Declared.of(new), intents=True),
        )
        retriever = Retriever(collection, ranker_by_name(None, collection.catalogue))
        groups = collection.store.groups

        def found(one: Asked, rules: Rules) -> frozenset[str] | Refused:
            try:
                decision = rules.decide(one.question, one.session, started)
            except Refused as refusal:
                return refusal
            decision = replace(decision, identity=groups.identity(one.session, as_of_minutes(started)))
            evidence = retriever.retrieve(one.question, decision, DEFAULT_K)
            return frozenset(passage.chunk_id for passage in evidence.passages)

        several = (_effect(one, *(found(one, rules) for rules in sides)) for one in asked)
        return tuple(one for one in several if one.entered or one.left)


def _effect(asked: Asked, *sides: frozenset[str] | Refused) -> QuestionEffect:
    if all(isinstance(side, Refused) for side in sides):
        raise InvalidArgument(
            f"the question in line {asked.line} is refused under both policies: {sides[-1]}; leave it out, or correct "
            "its role and purpose"
        )
    was, now = (frozenset() if isinstance(side, Refused) else side for side in sides)
    names = asked.session.role, asked.session.purpose
    return QuestionEffect(asked.line, *names, tuple(sorted(now - was)), tuple(sorted(was - now)))


def _asked(number: int, line: bytes | None) -> Asked:
    row = row_of(line)
    if unknown := [name for name in row if name not in (*_KEYS, *_MAY)]:
        raise InvalidArgument(f"the key {quoted(unknown[0])} is unknown; want {', '.join((*_KEYS, *_MAY))}")
    if missing := [name for name in _KEYS if name not in row]:
        raise InvalidArgument(f"the key {missing[0]} is missing; want {', '.join(_KEYS)}")
    check_question("question", row["question"])
    session = Session(role=row["role"], purpose=row["purpose"], principals=row.get("principals", ()))
    return Asked(number, row["question"], session)
