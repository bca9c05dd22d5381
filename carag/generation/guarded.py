"""Guard a generator: call it only on good evidence, and reject drafts whose citations do not hold.

A citation is built from the metadata of the cited passage, never from the model's words, so a model cannot invent an
accession number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from carag.generation.generator import Stop
from carag.generation.marks import cited_positions
from carag.generation.prompts import INSUFFICIENT_EVIDENCE
from carag.limits import document_of_chunk

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.generation.generator import Draft, Generator
    from carag.generation.held.judge import Unheld
    from carag.generation.reader.check import AnswerCheck
    from carag.retrieval.confidence.gate import ConfidenceGate
    from carag.retrieval.evidence import Evidence, Passage, Topic, Words


class DeclineCode(StrEnum):
    """Why there is no answer; stable codes, for records."""

    NO_ADMISSIBLE_EVIDENCE = "NO_ADMISSIBLE_EVIDENCE"
    """The session may use no passage."""
    NOTHING_ABOUT_IT = "NOTHING_ABOUT_IT"
    """No document that the session may use is about the company or time that the question names."""
    BELOW_GATE = "BELOW_GATE"
    """The best admissible passage is not similar enough; no model was called."""
    DRIFTED = "DRIFTED"
    """It would have been similar enough before the questions drifted from the gate's calibration; no model was
    called."""
    TOO_FEW_WORDS = "TOO_FEW_WORDS"
    """The admissible passages contain too few of the question's words; no model was called."""
    ASKED_BACK = "ASKED_BACK"
    """The question names nothing, and several documents are about it: the text asks which; no model was called."""
    READER_DECLINED = "READER_DECLINED"
    """The reader finds it unlikely that the first passages answer the question; no generator was called."""
    MODEL_DECLINED = "MODEL_DECLINED"
    """The generator said that it has no answer, or a content filter stopped the generator."""
    BAD_CITATION = "BAD_CITATION"
    """The draft cites nothing, or a passage that the generator was not given, or its text has a mark without a
    citation."""
    FIGURES_NOT_STATED = "FIGURES_NOT_STATED"
    """Every sentence of the draft has a figure that the passages it cites do not state, or not under this label, time
    and unit, or a name that they do not have."""


class ToldCode(StrEnum):
    """What was answered about the documents themselves; stable codes, for records."""

    LISTED = "LISTED"
    """Documents were listed: all that meet the question, the latest, or those that replaced another."""
    COUNTED = "COUNTED"
    """The documents that meet the question were counted."""
    NONE_LISTED = "NONE_LISTED"
    """No document that the session may use meets the question."""
    SHOWN = "SHOWN"
    """A section or a table was shown as it stands."""
    OUTLINED = "OUTLINED"
    """The headings of a document or section were shown, each with its first sentence."""
    COMPARED = "COMPARED"
    """The same question was asked about several names, and at least one was answered."""


ANSWERED: Final = "ANSWERED"
"""The code of a record whose request was answered."""
MODEL_CALLED: Final = frozenset(
    {ANSWERED, ToldCode.COMPARED.value}
    | {
        one.value
        for one in (DeclineCode.MODEL_DECLINED, DeclineCode.BAD_CITATION, DeclineCode.FIGURES_NOT_STATED)
    }
)
"""The codes of requests for which a generator ran; all others were settled before that."""
UNGATED: Final = frozenset(ToldCode) - {ToldCode.COMPARED}
"""Codes of answers whose passages were not compared with the question: their similarity is 0, and says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """The source of a statement, from the metadata of the passage."""

    number: int
    """The number in the answer's text, as in ``[number]``, from 1."""
    chunk_id: str
    accession_number: str
    """The same as :attr:`document_id`, which should be used; `form`, `company` and `filed` are empty except for a
    filing."""
    form: str
    company: str
    filed: str
    """ISO date, or empty where unknown."""
    document: str
    start: int
    end: int
    """Character offsets in that document's text."""
    source: str = ""
    """How the store's profile names the document and its part."""

    @property
    def document_id(self) -> str:
        """The id under which the document was added; for a filing, its accession number."""
        return document_of_chunk(self.chunk_id)[0]

    @property
    def version(self) -> int:
        """Which text of the document this comes from: 1 is the first that the store had."""
        return document_of_chunk(self.chunk_id)[1]


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer whose every citation is an admissible passage."""

    text: str
    citations: tuple[Citation, ...]
    complete: bool = True
    """Whether the generator finished; if not, the text is cut off at its token limit."""
    left_out: tuple[Unheld, ...] = ()
    """Why each sentence that the guard took out did not hold."""


@dataclass(frozen=True, slots=True)
class Declined:
    """No answer, and why."""

    code: DeclineCode
    message: str
    """A text for people; it does not depend on anything hidden."""
    left_out: tuple[Unheld, ...] = ()
    """For :attr:`DeclineCode.FIGURES_NOT_STATED`: why each sentence did not hold."""


@dataclass(frozen=True, slots=True)
class Told:
    """An answer about the documents themselves, with the passages that show it."""

    code: ToldCode
    text: str
    evidence: Evidence
    citations: tuple[Citation, ...]
    complete: bool = True
    """False if something was cut off, as the text says."""


class GuardedGenerator:
    """A generator behind a confidence gate and perhaps a reader, whose drafts are checked."""

    def __init__(self, generator: Generator, gate: ConfidenceGate, check: AnswerCheck | None = None) -> None:
        self.generator = generator
        self.gate = gate
        self.check = check

    def answer(
        self, question: str, evidence: Evidence, *, before_remote: Callable[[], None] | None = None
    ) -> Answered | Declined:
        """Answer from admissible evidence, or decline.

        Parameters
        ----------
        before_remote : callable, optional
            Called before question and passages leave this machine; if it raises, they stay.

        Raises
        ------
        ModelUnavailable
            If the reader or the generator fails; no other takes its place.
        """
        passages = evidence.shown
        check = self.check if self.check is not None and self.check.reads(question) else None
        question = evidence.respelt or question
        if evidence.passages and not passages:
            return Declined(DeclineCode.NOTHING_ABOUT_IT, _nothing_about(evidence.topic))
        words = evidence.words
        if passages and words is not None and words.share < words.least:
            return Declined(DeclineCode.TOO_FEW_WORDS, _too_few(words))
        gate = self.gate.among(evidence.admissible)
        if not gate.passes(passages, evidence.nearest):
            code = DeclineCode.BELOW_GATE if passages else DeclineCode.NO_ADMISSIBLE_EVIDENCE
            if gate.is_shut_by_drift(passages, evidence.nearest):
                code = DeclineCode.DRIFTED
            return Declined(code, gate.message(passages, evidence.nearest))
        from carag.generation.ask_back import question_back  # reads questions: loaded when one is asked

        if back := question_back(question, passages, evidence.topic):
            return Declined(DeclineCode.ASKED_BACK, back)
        if check is not None and (missed := check.missed(question, passages, before_remote)):
            return Declined(DeclineCode.READER_DECLINED, missed)
        if self.generator.remote and before_remote is not None:
            before_remote()
        withheld = replace(evidence.withheld, topic=evidence.topic)
        draft = self.generator.generate(question, passages, withheld)
        return _judge(question, draft, passages)


def _judge(question: str, draft: Draft, passages: tuple[Passage, ...]) -> Answered | Declined:
    if draft.stop is Stop.FILTERED:
        return Declined(
            DeclineCode.MODEL_DECLINED,
            "The generator's content filter stopped the answer. Read the passages themselves, or rephrase "
            "the question.",
        )
    if INSUFFICIENT_EVIDENCE in draft.text or not draft.text.strip():
        return Declined(
            DeclineCode.MODEL_DECLINED,
            "The passages this session may use do not answer the question. Rephrase it in the documents' "
            "own words, or name the document and the time that it is about.",
        )
    cited = tuple(dict.fromkeys(draft.cited))
    is_held = all(type(one) is int and 0 <= one < len(passages) for one in cited)
    if not cited or not is_held or not set(cited_positions(draft.text)) <= set(cited):
        return Declined(
            DeclineCode.BAD_CITATION,
            "The generator's draft does not cite the passages it was given, or marks a citation that it does not "
            "state, so it is not shown. "
            "Read the passages themselves, or rephrase the question.",
        )
    from carag.generation.held import held  # reads tables and figures: loaded when there is a draft

    text, left_out = held(question, draft, passages)
    if left_out:
        cited = tuple(one for one in cited if one in cited_positions(text))
        if not cited:
            return Declined(
                DeclineCode.FIGURES_NOT_STATED,
                "Every sentence of the generator's draft has a name or a figure that the passages it cites do not "
                "state, or not of this, for this time or in this unit, so none is shown. Read the passages themselves, "
                "or rephrase the question.",
                left_out,
            )
    citations = tuple(citation_of(position, passages[position]) for position in cited)
    return Answered(text, citations, complete=draft.stop is Stop.END, left_out=left_out)


def _nothing_about(topic: Topic) -> str:
    """Write the message in the same words whether or not hidden documents are about the topic."""
    similar = f" Some of them speak of “{topic.similar}”." if topic.similar else ""
    return (
        f"None of the documents this session may use is about {topic.absent or topic.understood}.{similar} If the "
        "question means another person or time, name it as the documents do."
    )


def _too_few(words: Words) -> str:
    return (
        "CARAG defers on confidence: the passages this session may use hold too few of the question's words "
        f"({words.share:.2f} of what they could; needed {words.least:.2f}). Rephrase the question in the documents' "
        "own words, or name the document and the time that it is about."
    )


def citation_of(position: int, passage: Passage) -> Citation:
    """Make the citation of a passage, at a position from 0, from its metadata."""
    return Citation(
        number=position + 1,
        chunk_id=passage.chunk_id,
        accession_number=passage.accession_number,
        form=passage.form,
        company=passage.company,
        filed=passage.filed,
        document=passage.document,
        start=passage.start,
        end=passage.end,
        source=passage.source,
    )
