"""Load the documents that responses are compared with: from a folder, or from a store as a session may read it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from carag.engine.freshness import placed_documents
from carag.errors import InvalidArgument
from carag.labelling.declared import label_facts
from carag.limits import shown
from carag.policy import NEVER, NO_LISTS, VERSION_WORD, Audience, Profile, Session, as_of_minutes, infer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from os import PathLike

    from carag.engine import Engine
    from carag.policy import Decision
    from carag.store.values import StoredChunk


_GAP: Final = 16
"""Most characters between two passages that are taken for the white space at which the text was cut."""


@dataclass(frozen=True, slots=True)
class RegulatoryDocument:
    """A document, or a contiguous part of one, with its label."""

    text: str
    source: str
    """The name it is cited by. The parts of a document share one name, and their passages are numbered
    consecutively."""
    start: int = 0
    """Where the text begins in its document, in characters."""
    word: int = VERSION_WORD
    """Policy word; by default that of public text."""
    public_at: int = 0
    """Minutes since 1970, like ``expires_at``."""
    expires_at: int = NEVER
    subjects: tuple[int, ...] = ()
    """Numbers of the entities that it may be about, if its store knows them."""
    audience: Audience = NO_LISTS
    """Who may see it."""


class CorpusConnector(ABC):
    """Where the documents of a corpus are; the paper's interface."""

    @abstractmethod
    def load_documents(self) -> list[RegulatoryDocument]:
        """Return all documents."""

    @property
    def decision(self) -> Decision:
        """What may be read of these documents: by default, what the profile ``generic`` lets anyone read."""
        anybody = Session(role="public", purpose="read")
        return infer(anybody, Profile.open("generic").table, now=datetime.now(UTC))


class LocalCorpusConnector(CorpusConnector):
    """The files of a folder, read as for a store (``docs/how-to/read-a-folder.md``), under the profile ``generic``.

    A file that states no classification is public, because naming a folder as a corpus of regulation says so; any other
    classification labels it. A file that states ``public_at`` or ``expires_at`` is valid from or until then; a
    superseded file is valid until its successor is.

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
            If the folder is missing or empty, or a file cannot be read: if a regulation were silently missing,
            every response would comply with it.
        """
        found, problems = [], []
        ends: dict[str, int] = {}
        vocabulary = Profile.open("generic").vocabulary
        zone = vocabulary.zone
        for _, one in placed_documents(Path(self.corpus_dir)):
            if isinstance(one, str):
                problems.append(one)
                continue
            label = label_facts({"classification": "public", **(one.facts or {})}, vocabulary)
            if label.quarantine is not None:
                problems.append(f"{one.id}: {label.quarantine.text}")
            begin = 0 if one.public_at is None else as_of_minutes(one.public_at, zone)
            end = NEVER if one.expires_at is None else as_of_minutes(one.expires_at, zone)
            if one.supersedes is not None:
                ends[one.supersedes] = min(begin, ends.get(one.supersedes, NEVER))
            shared = Audience(one.allow, one.deny)
            found.append(
                RegulatoryDocument(one.text, one.id, 0, label.word, begin, end, tuple(one.entities), shared)
            )
        if problems:
            raise InvalidArgument(
                f"{shown(str(self.corpus_dir))} contains unreadable files: {'; '.join(problems[:3])}"
                f"{f'; and {len(problems) - 3} more' if len(problems) > 3 else ''}; repair or remove them"
            )
        if not found:
            raise InvalidArgument(
                f"{shown(str(self.corpus_dir))} contains no documents; add PDF, DOCX, HTML, Markdown, text or JSON "
                "Lines files"
            )
        return [replace(one, expires_at=min(one.expires_at, ends.get(one.source, NEVER))) for one in found]


class StoreCorpusConnector(CorpusConnector):
    """What a session may read in a store, joined into runs of adjacent passages with one label.

    Parameters
    ----------
    engine : Engine
        The store's engine. Record a result with ``Engine.evaluations.record`` before showing it.
    """

    def __init__(self, engine: Engine, session: Session) -> None:
        self._engine = engine
        self._session = session

    def load_documents(self) -> list[RegulatoryDocument]:
        """Read every passage that the session may use.

        Raises
        ------
        Refused
            If the session may use nothing; the refusal is recorded.
        """
        return list(_stretches(self._readable[1]))

    @property
    def decision(self) -> Decision:
        """What the session may use."""
        return self._readable[0]

    @cached_property
    def _readable(self) -> tuple[Decision, list[StoredChunk]]:
        return self._engine.evaluations.readable(self._session)


def _stretches(passages: Iterable[StoredChunk]) -> Iterator[RegulatoryDocument]:
    last: RegulatoryDocument | None = None
    ordinal = 0
    for one in passages:
        before, ordinal = ordinal, int(one.chunk_id.rpartition(":")[2])
        source = f"{one.document_id} {one.document}" if one.form else one.document_id
        label = one.word, one.public_at, one.expires_at, one.subjects
        new = RegulatoryDocument(one.text, source, one.start, *label)
        gap = -1 if last is None else new.start - last.start - len(last.text)
        # Only consecutive numbers are joined: a passage that may not be read, however short, is not white space.
        is_next = ordinal == before + 1 and 0 <= gap <= _GAP
        if last is not None and is_next and replace(last, text="", start=0) == replace(new, text="", start=0):
            last = replace(last, text=last.text + "\n" * gap + new.text)
            continue
        if last is not None:
            yield last
        last = new
    if last is not None:
        yield last
