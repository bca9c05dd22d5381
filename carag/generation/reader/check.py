"""Decline what a reader finds unlikely to be answered by the first passages: after the gate, before the generator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument
from carag.generation.reader.port import OwnReader, own_reader
from carag.generation.registry import reader_by_name
from carag.limits import check_label, quoted
from carag.retrieval.confidence.shipped import reader_thresholds_of
from carag.retrieval.reading.languages import language_of
from carag.retrieval.reading.names import words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from carag.policy import Profile
    from carag.retrieval.evidence import Passage


READ: Final = 3
"""Passages that are read, from the first."""
_LATIN: Final = "\u024f"
"""The last letter of the Latin alphabets of Europe."""


@dataclass(frozen=True, slots=True)
class AnswerCheck:
    """A reader, and the least score that answers."""

    reader: OwnReader
    threshold: float

    def reads(self, question: str) -> bool:
        """Tell whether the reader is asked: it reads every language, or the question is in English."""
        return self.reader.every_language or is_english(question)

    def missed(
        self, question: str, passages: Sequence[Passage], before_remote: Callable[[], None] | None = None
    ) -> str:
        """Say in a text for people why there is no answer; empty if a passage is likely enough to answer.

        - ``before_remote``: called before question and passages leave this machine; if it raises, they stay.
        """
        if self.reader.remote and before_remote is not None:
            before_remote()
        best = max(self.reader.holds(question, [one.text for one in passages[:READ]]))
        if best >= self.threshold:
            return ""
        return (
            f"CARAG defers: the reader {self.reader.name} finds it unlikely that the first passages this session may "
            f"use answer the question ({best:.3f}; needed {self.threshold:.3f}). Read the passages themselves, or "
            "rephrase the question in the documents' own words."
        )


def is_english(question: str) -> bool:
    """Tell by letters and function words whether a question is in English, as it is if nothing says otherwise.

    Examples
    --------
    >>> is_english("Who audits banks?"), is_english("Wer prüft die Banken?"), is_english("谁审计银行？")
    (True, False, False)
    """
    if any(one.isalpha() and one > _LATIN for one in question):
        return False
    return language_of(tuple(words_of(question))) == "English"


def check_for(given: object, profile: Profile) -> AnswerCheck | None:
    """Return the check by a reader, by name or a user's own; None without one.

    Raises InvalidArgument if neither reader nor profile states a threshold, or as :func:`reader_by_name` does.
    """
    if given is None:
        return None
    thresholds = reader_thresholds_of(profile)
    reader = own_reader(reader_by_name(given) if isinstance(given, str) else given)
    threshold = thresholds.get(reader.name) if reader.threshold is None else reader.threshold
    if threshold is None:
        raise InvalidArgument(
            f"neither the reader {quoted(reader.name)} nor the profile {profile.name!r} states the least score that "
            f"answers; give the reader a threshold, or the profile [reader.{reader.name}] in gate.toml"
        )
    check_label(
        "the reader's name, fingerprint and threshold, which share one field of a record,",
        f"{reader.name} {reader.fingerprint} {threshold}",
    )
    return AnswerCheck(reader, threshold)
