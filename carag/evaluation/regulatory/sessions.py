"""Read the sessions to measure: JSON Lines, one turn per line, with the turns of a session in order."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic import ValidationError

from carag.errors import CorruptFile, InvalidArgument
from carag.evaluation.regulatory.schemas import Batch
from carag.limits import check_label, check_text, quoted, shown
from carag.readers.json_rows import strict_json

if TYPE_CHECKING:
    import hashlib
    from pathlib import Path


_NAMES: Final = ("session_id", "assistant_id", "qa_id")
_TEXTS: Final = ("query", "assistant")
_MAX_TEXT: Final = 1 << 20
"""Most characters in a query or response."""


class MeasuredSession(NamedTuple):
    """A session, with the turns of one assistant."""

    session_id: str
    assistant_id: str
    turns: list[Batch]


def read_sessions(path: Path, digest: hashlib._Hash | None = None) -> list[MeasuredSession]:
    """Read all sessions, and check every line before any session is measured.

    Parameters
    ----------
    path : Path
        UTF-8; each line an object with the strings ``session_id``, ``assistant_id``, ``qa_id``, ``query``,
        ``assistant`` and, optionally, the number ``weight``. Lines of one session may be anywhere in the file.
    digest : hashlib object, optional
        Updated with the bytes read, so that what is hashed is what was measured.

    Raises
    ------
    InvalidArgument
        If the file cannot be read or is empty, or a line is not valid; the message names the line.
    """
    found: dict[str, MeasuredSession] = {}
    seen: defaultdict[str, set[str]] = defaultdict(set)
    for number, line in enumerate(_lines(path, digest), start=1):
        if not line.strip():
            continue
        at = f"{shown(str(path))}:{number}"
        try:
            row = _row(line)
            turn = Batch(
                qa_id=row["qa_id"], query=row["query"], assistant=row["assistant"], weight=row.get("weight")
            )
        except InvalidArgument as error:
            raise InvalidArgument(f"{at}: {error}") from None
        except ValidationError:
            raise InvalidArgument(
                f"{at}: weight is {quoted(row['weight'])}; want a finite number of at least 0"
            ) from None
        session = found.setdefault(
            row["session_id"], MeasuredSession(row["session_id"], row["assistant_id"], [])
        )
        if session.assistant_id != row["assistant_id"]:
            raise InvalidArgument(
                f"{at}: session {quoted(session.session_id)} belongs to the assistant "
                f"{quoted(session.assistant_id)} above, but this line names {quoted(row['assistant_id'])}; use one "
                "assistant per session"
            )
        if turn.qa_id in seen[session.session_id]:
            raise InvalidArgument(
                f"{at}: session {quoted(session.session_id)} already has a turn with the qa_id "
                f"{quoted(turn.qa_id)} above; give each turn its own"
            )
        seen[session.session_id].add(turn.qa_id)
        session.turns.append(turn)
    if not found:
        raise InvalidArgument(f"{shown(str(path))} contains no turns; want one per line")
    return list(found.values())


def _lines(path: Path, digest: hashlib._Hash | None) -> list[str]:
    try:
        data = path.read_bytes()
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"{shown(str(path))} is not UTF-8 ({error.reason}); save it as UTF-8") from None
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InvalidArgument(f"cannot read {shown(str(path))}: {why}; want a file of JSON Lines") from None
    if digest is not None:
        digest.update(data)
    return text.split("\n")


def _row(line: str) -> dict[str, Any]:
    try:
        row = strict_json(line)
    except CorruptFile as error:
        raise InvalidArgument(str(error)) from None
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(f"not valid JSON ({error}); want one object per line") from None
    wanted = ", ".join((*_NAMES, *_TEXTS, "weight"))
    if not isinstance(row, dict):
        raise InvalidArgument(f"the line is a {type(row).__name__}; want an object with {wanted}")
    if missing := [name for name in (*_NAMES, *_TEXTS) if name not in row]:
        raise InvalidArgument(f"{missing[0]} is missing; want {wanted}")
    if unknown := [name for name in row if name not in (*_NAMES, *_TEXTS, "weight")]:
        raise InvalidArgument(f"unknown member {quoted(unknown[0])}; want {wanted}")
    for name in _NAMES:
        check_label(name, row[name])
    for name in _TEXTS:
        check_text(name, row[name], _MAX_TEXT)
    weight = row.get("weight")
    if weight is not None and (isinstance(weight, bool) or not isinstance(weight, (int, float))):
        raise InvalidArgument(f"weight is {quoted(weight)}; want a number of at least 0")
    return row
