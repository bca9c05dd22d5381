"""Load the documents that responses are held against: from a folder, or from a store as a session may read it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument
from carag.labelling.declared import label_facts
from carag.limits import shown
from carag.policy import NEVER, VERSION_WORD, Profile, Session, infer
from carag.readers import Problem, read_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from os import PathLike

    from carag.engine import Engine
    from carag.policy import Decision

__all__ = [
    "CorpusConnector",
    "LocalCorpusConnector",
    "RegulatoryDocument",
    "StoreCorpusConnector",
    "public_decision",
]

_GAP: Final = 16
"""Characters between two passages that are taken for the white space at which the text was cut."""


@dataclass(frozen=True, slots=True)
class RegulatoryDocument:
    """A document, or a stretch of one, with its label."""

    text: str
    source: str
    """What it is cited by. Stretches of one document share it, and their passages are numbered on."""
    start: int = 0
    """Where the text begins in its document, in characters."""
    word: int = VERSION_WORD
    """Policy word; by default that of what is public."""
    public_at: int = 0
    """Minutes since 1970, as is ``expires_at``."""
    expires_at: int = NEVER


class CorpusConnector(ABC):
    """Where the documents of a corpus are; the paper's interface."""

    @abstractmethod
    def load_documents(self) -> list[RegulatoryDocument]:
        """Return all documents."""


class LocalCorpusConnector(CorpusConnector):
    """The files of a folder, as :func:`carag.readers.read_folder` reads them, under the profile ``generic``.

    A file that states no classification is public, for who names a folder as a corpus of regulation says that; one that
    states another is labelled by it.

    Parameters
    ----------
    corpus_dir : path
        A folder, or one file.
    """

    def __init__(self, corpus_dir: str | PathLike[str]) -> None:
        self.corpus_dir = corpus_dir

    def load_documents(self) -> list[RegulatoryDocument]:
        """Read every file.

        Raises
        ------
        InvalidArgument
            If the folder is missing or empty, or a file cannot be read: a regulation that is missing in silence would
            make every response compliant with it.
        """
        found, problems = [], []
        vocabulary = Profile.open("generic").vocabulary
        for one in read_folder(str(self.corpus_dir)):
            if isinstance(one, Problem):
                problems.append(f"{one.where}: {one.kind.value}: {one.reason}")
                continue
            label = label_facts({"classification": "public", **one.facts}, vocabulary)
            if label.quarantine is not None:
                problems.append(f"{one.where}: {label.quarantine.text}")
            found.append(RegulatoryDocument(one.text, one.id, word=label.word))
        if problems:
            raise InvalidArgument(
                f"{shown(str(self.corpus_dir))} holds what cannot be read: {'; '.join(problems[:3])}"
                f"{f'; and {len(problems) - 3} more' if len(problems) > 3 else ''}; mend these files, or move them out"
            )
        if not found:
            raise InvalidArgument(
                f"{shown(str(self.corpus_dir))} holds no documents; want PDF, DOCX, HTML, Markdown, text or JSON Lines"
            )
        return found


class StoreCorpusConnector(CorpusConnector):
    """What a session may read in a store, as stretches of adjacent passages with one label.

    Parameters
    ----------
    engine : Engine
        Of the store. Whoever shows a result puts it on record first: :meth:`carag.Engine.evaluated`.
    session : Session
    """

    def __init__(self, engine: Engine, session: Session) -> None:
        self._engine = engine
        self._session = session

    def load_documents(self) -> list[RegulatoryDocument]:
        """Read every passage that the session may use.

        Raises
        ------
        Refused
            If the session may use nothing.
        """
        return list(_stretches(self._engine, self._session))


def _stretches(engine: Engine, session: Session) -> Iterator[RegulatoryDocument]:
    open_: RegulatoryDocument | None = None
    for one in engine.readable(session):
        source = f"{one.accession_number} {one.document}" if one.form else one.accession_number
        new = RegulatoryDocument(one.text, source, one.start, one.word, one.public_at, one.expires_at)
        gap = -1 if open_ is None else new.start - open_.start - len(open_.text)
        if (
            open_ is not None
            and 0 <= gap <= _GAP
            and replace(open_, text="", start=0) == replace(new, text="", start=0)
        ):
            open_ = replace(open_, text=open_.text + "\n" * gap + new.text)
            continue
        if open_ is not None:
            yield open_
        open_ = new
    if open_ is not None:
        yield open_


def _label_of(one: RegulatoryDocument) -> tuple[str, int, int, int]:
    return one.source, one.word, one.public_at, one.expires_at


def public_decision(now: datetime) -> Decision:
    """Return what anybody may read under the profile ``generic``: the policy of a folder."""
    return infer(Session(role="public", purpose="read"), Profile.open("generic").table, now=now)
