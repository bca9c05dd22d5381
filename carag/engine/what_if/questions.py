"""Ask questions under the policy in force and under another one, without a record, and tell which passages differ.

Only ids are returned. Nothing leaves this machine, because it would leave without a record.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.engine.recorder import Rules
from carag.engine.requests import DEFAULT_K, identity_of
from carag.errors import InvalidArgument, Refused
from carag.limits import check_question, quoted, shown
from carag.policy import Session
from carag.readers.json_rows import parsed_lines, row_of
from carag.retrieval.reading import Declared

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from os import PathLike

    from carag.engine.requests import Requests
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


def question_effects(requests: Requests, asked: Iterable[Asked], new: Profile) -> tuple[QuestionEffect, ...]:
    """Return the questions whose best passages differ, given the labels and groups that are stored.

    Raises InvalidArgument if the store's embedder is remote, or both policies refuse a session.
    """
    if requests.collection.embedder.remote:
        raise InvalidArgument(
            "the store's embedder is remote, so these questions would leave this machine without a record; leave the "
            "questions out"
        )
    started = requests.recorder.clock()
    sides = requests.in_force.keep_up(), Rules.of("", new, Declared.of(new), intents=True)
    found = []
    for one in asked:
        before, after = (_found(requests, one, rules, started) for rules in sides)
        if isinstance(before, Refused) and isinstance(after, Refused):
            raise InvalidArgument(
                f"the question in line {one.line} is refused under both policies: {after}; leave it out, or "
                "correct its role and purpose"
            )
        was, now = (frozenset() if isinstance(side, Refused) else side for side in (before, after))
        if was != now:
            session = one.session
            entered, left = tuple(sorted(now - was)), tuple(sorted(was - now))
            found.append(QuestionEffect(one.line, session.role, session.purpose, entered, left))
    return tuple(found)


def _found(requests: Requests, asked: Asked, rules: Rules, started: datetime) -> frozenset[str] | Refused:
    try:
        decision = rules.decide(asked.question, asked.session, started)
    except Refused as refusal:
        return refusal
    identity = identity_of(requests.collection.store.groups, asked.session, started)
    evidence = requests.retriever.retrieve(asked.question, replace(decision, identity=identity), DEFAULT_K)
    return frozenset(one.chunk_id for one in evidence.passages)


def _asked(number: int, line: bytes | None) -> Asked:
    row = row_of(line)
    if unknown := [name for name in row if name not in (*_KEYS, *_MAY)]:
        raise InvalidArgument(f"the key {quoted(unknown[0])} is unknown; want {', '.join((*_KEYS, *_MAY))}")
    if missing := [name for name in _KEYS if name not in row]:
        raise InvalidArgument(f"the key {missing[0]} is missing; want {', '.join(_KEYS)}")
    check_question("question", row["question"])
    session = Session(role=row["role"], purpose=row["purpose"], principals=row.get("principals", ()))
    return Asked(number, row["question"], session)
