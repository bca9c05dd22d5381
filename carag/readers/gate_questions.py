"""Read the questions that a gate is calibrated with: strict JSON Lines, refused with the line and the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from carag.errors import InvalidArgument
from carag.limits import check_question, quoted, shown
from carag.readers.json_rows import parsed_lines, row_of

if TYPE_CHECKING:
    from os import PathLike


MAX_LINE: Final = 1 << 18
"""Greatest number of bytes in one line: a question of 8,192 characters, each escaped as 12 bytes, and 1,000 ids."""
MAX_QUESTIONS: Final = 10_000
"""Greatest number of questions: each is searched and recorded."""
MAX_DOCUMENTS: Final = 1000
"""Greatest number of documents that hold one answer."""
_KEYS: Final = ("question", "documents")
_MAY: Final = ("passages",)


class GateQuestion(NamedTuple):
    """A question, and the ids of the documents that hold its answer; none if no document does."""

    line: int
    """Line number in the file, from 1."""
    question: str
    documents: tuple[str, ...]
    passages: tuple[str, ...] = ()
    """Chunk ids, one of which a right answer must cite; if empty, a right answer must cite one of the documents."""


def read_gate_questions(path: str | PathLike[str]) -> tuple[list[GateQuestion], bytes]:
    """Return all questions of a file, and the SHA-256 of the file.

    Raises ``InvalidArgument`` if the file cannot be read or is empty, or if a line is not a valid question or repeats
    an earlier one (spaces do not count).
    """
    seen: dict[str, int] = {}
    found, digest = parsed_lines(path, MAX_LINE, lambda number, line: _question(number, line, seen))
    if not found:
        raise InvalidArgument(
            f'{shown(str(path))} has no questions; want lines such as {{"question": "…", "documents": ["id"]}}'
        )
    return found, digest


def _question(number: int, line: bytes | None, seen: dict[str, int]) -> GateQuestion:
    if line is None:
        raise InvalidArgument(f"the line has more than {MAX_LINE} bytes; want fewer")
    row = row_of(line)
    if unknown := [name for name in row if name not in (*_KEYS, *_MAY)]:
        raise InvalidArgument(f"the key {quoted(unknown[0])} is unknown; want question, documents, passages")
    if missing := [name for name in _KEYS if name not in row]:
        raise InvalidArgument(f"the key {missing[0]} is missing; want question and documents")
    check_question("question", row["question"])
    before = seen.setdefault(" ".join(row["question"].split()), number)
    if before != number:
        raise InvalidArgument(f"the question already occurs in line {before}; want it once")
    if len(seen) > MAX_QUESTIONS:
        raise InvalidArgument(f"more than {MAX_QUESTIONS} questions; want fewer")
    documents, passages = (_ids(name, row.get(name, [])) for name in ("documents", "passages"))
    for passage in passages:
        if passage.rpartition(":")[0] not in documents:
            raise InvalidArgument(
                f"the passage {quoted(passage)} is not in any of the documents; want their chunk ids, such as ID:00000"
            )
    return GateQuestion(number, row["question"], documents, passages)


def _ids(name: str, given: Any) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise InvalidArgument(
            f"{name} is {quoted(given)}; want a list of ids, empty if the store has no answer"
        )
    if len(given) > MAX_DOCUMENTS:
        raise InvalidArgument(f"{len(given)} {name}; want {MAX_DOCUMENTS} at most")
    if len(set(given)) != len(given):
        raise InvalidArgument(f"{name} lists the same {name.removesuffix('s')} twice; want it once")
    return tuple(given)
