"""Read your own questions and canaries, and check all of them against a store before anything is asked."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from carag.errors import CaragError, InvalidArgument
from carag.evaluation.cases.pairs import pair_of
from carag.evaluation.cases.questions import Question
from carag.evaluation.row import UNSTATED
from carag.limits import check_question, check_text, quoted
from carag.policy import Session, parse_moment
from carag.policy.bits import nearest
from carag.readers.json_rows import lines_of, row_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from carag.evaluation.cases.ground_truth import GroundTruth
    from carag.evaluation.cases.pairs import Pair
    from carag.retrieval import Embedder


_QUESTION: Final = {"question": True, "role": True, "purpose": True, "documents": False, "as_of": False}
"""The keys of a question, and whether each is required."""
_CANARY: Final = {"document": True, "text": True}


@dataclass(frozen=True, slots=True)
class OwnQuestion:
    """A question of your own, in a session."""

    line: int  # where its text first occurs in the file; rows name the question by this number
    text: str = field(repr=False)
    session: Session
    documents: (
        tuple[str, ...] | None
    )  # ids of documents that each hold the answer; () if none does, None if unstated


def read_questions(path: Path, truth: GroundTruth) -> list[OwnQuestion]:
    """Read a file of questions.

    Raise InvalidArgument if the file cannot be read or holds no question, or a line is not a valid question: not a JSON
    object, a missing or unknown key, a wrong type, a role, purpose or document that the store does not have, or a
    repetition.
    """
    found: list[OwnQuestion] = []
    first: dict[str, int] = {}
    asked: dict[tuple[str, Session], int] = {}
    for number, row in _rows(path, _QUESTION):
        with _at(path, number):
            one = _question(number, row, truth)
            before = asked.setdefault((one.text, one.session), number)
            if before != number:
                raise InvalidArgument(
                    f"line {before} asks the same question in the same session; remove one of them"
                )
        found.append(replace(one, line=first.setdefault(one.text, number)))
    if not found:
        raise InvalidArgument(
            f'{path} contains no question; want lines like {{"question": ..., "role": ..., "purpose": ...}}'
        )
    return found


def read_canaries(path: Path, truth: GroundTruth) -> dict[str, str]:
    """Read a file of canaries: texts by ``line-N``, the name that rows give them.

    Raise InvalidArgument if the file cannot be read or holds no canary, or a line is not a valid canary, or no passage
    of its document contains the text.
    """
    found: dict[str, str] = {}
    for number, row in _rows(path, _CANARY):
        with _at(path, number):
            document, text = row["document"], row["text"]
            rows = _rows_of(truth, document)
            check_text("text", text)
            if not text.strip():
                raise InvalidArgument("text is empty; copy a string from the document")
            if not any(text in truth.text(one) for one in rows):
                raise InvalidArgument(
                    f"no passage of {quoted(document)} contains exactly this text; copy at most one sentence from "
                    "the document, because passages end at sentences"
                )
        found[f"line-{number}"] = text
    if not found:
        raise InvalidArgument(f'{path} contains no canary; want lines like {{"document": ..., "text": ...}}')
    return found


def own_pairs(
    questions: list[OwnQuestion], canaries: Mapping[str, str], truth: GroundTruth, embedder: Embedder
) -> list[Pair]:
    """Make the pairs; all are in the reported split, since nothing is tuned on them, and each question is a cluster."""
    pairs = []
    for one in questions:
        question = Question(f"line-{one.line}", one.text, None, ())
        documents = one.documents or ()
        # Each of these documents contains the answer, so together they are one piece of evidence.
        rows = tuple(row for name in documents for row in truth.rows_of[name])
        pair = pair_of(
            *(truth, question, one.session, (rows,) if rows else (), embedder.embed_query(one.text)),
            filer=one.line,
            canaries=canaries,
        )
        share = UNSTATED if one.documents is None else pair.stratum.share
        pairs.append(
            replace(pair, split="reported", documents=documents, stratum=replace(pair.stratum, share=share))
        )
    return pairs


def _question(number: int, row: Mapping[str, Any], truth: GroundTruth) -> OwnQuestion:
    check_question("question", row["question"])
    table = truth.profile.table
    for name, known in (("role", table.roles), ("purpose", table.purposes)):
        if not isinstance(row[name], str) or row[name] not in known:
            raise InvalidArgument(f"{name} is {quoted(row[name])}; {nearest(str(row[name]), known)}")
    as_of = row.get("as_of")
    if as_of is not None:
        if not isinstance(as_of, str):
            raise InvalidArgument(
                f"as_of is {quoted(as_of)}; want a string with a date, or a time with a zone"
            )
        as_of = parse_moment(as_of)
    documents = row.get("documents")
    if documents is not None:
        if not isinstance(documents, list):
            raise InvalidArgument(f"documents is {quoted(documents)}; want a list of ids")
        for at, name in enumerate(documents):
            _rows_of(truth, name)
            if name in documents[:at]:
                raise InvalidArgument(f"documents names {quoted(name)} twice; want each id once")
        documents = tuple(documents)
    session = Session(role=row["role"], purpose=row["purpose"], as_of=as_of)
    return OwnQuestion(number, row["question"], session, documents)


def _rows_of(truth: GroundTruth, document: object) -> tuple[int, ...]:
    if not isinstance(document, str) or document not in truth.rows_of:
        raise InvalidArgument(
            f"{quoted(document)} is not a document in the store; want the id of a document that it holds now"
        )
    return truth.rows_of[document]


def _rows(path: Path, keys: Mapping[str, bool]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a file with their line numbers, checking the keys of each."""
    try:
        with path.open("rb") as stream:
            for number, line in lines_of(stream):
                with _at(path, number):
                    row = row_of(line)
                    for key in row:
                        if key not in keys:
                            raise InvalidArgument(f"unknown key {quoted(key)}; {nearest(key, keys)}")
                    if missing := [key for key, must in keys.items() if must and key not in row]:
                        raise InvalidArgument(f"missing {' and '.join(missing)}; want {', '.join(keys)}")
                yield number, row
    except OSError as error:
        raise InvalidArgument(f"cannot read {path}: {error.strerror}; name a readable file") from error


@contextmanager
def _at(path: Path, number: int) -> Iterator[None]:
    try:
        yield
    except CaragError as error:
        raise InvalidArgument(f"{path}, line {number}: {error}; nothing was asked") from error
