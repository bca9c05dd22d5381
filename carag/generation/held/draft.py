"""Take the sentences out of a draft whose figures or names the passages that they cite do not state."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.generation.held.judge import Unheld, why_not
from carag.generation.held.stated import stated_in
from carag.generation.held.when import times_in
from carag.generation.marks import cited_positions, leading_marks, marks_in, without_marks
from carag.labelling.quantities import figures
from carag.labelling.sentences import sentences
from carag.retrieval.reading.slots import blanked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.generation.generator import Draft
    from carag.generation.held.stated import Stated
    from carag.retrieval.evidence import Passage


_NAME: Final = re.compile(r"\w*[^\W\d_a-zà-öø-ÿ]\w*")
"""A word with a capital letter."""
_AMOUNT: Final = re.compile(
    r"\b(?:half|halved?|dozens?|hundreds|thousands|millions|billions|twice|thrice|doubled?|tripled?|quadrupled?"
    r"|daily|weekly|monthly|quarterly|yearly|annually|percentage\spoints?|every\s(?:other|second|third|fourth|fifth)"
    r"|(?:an?|one|two|three|four)[\s-](?:third|fifth|sixth|seventh|eighth|ninth|tenth|twentieth|hundredth)s?)\b",
    re.IGNORECASE,
)
"""Words that state an amount, but are not read as a figure: a passage must have them."""
_BEGINS: Final = frozenset(["", "\n", *'.;:!?…)]|•”’"'])
"""What may stand before a sentence or a line; nothing at the start of a text."""
_ENDS: Final = tuple('.;:!?…)”’"')
_FOLLOWS: Final = frozenset(["", "\n", "|", "•"])
"""What may stand after one that does not end so."""
_OPENING: Final = re.compile(r"[\W_]*\w+")
"""The first word of a sentence, whose capital letter says nothing."""


class Held(NamedTuple):
    """What is left of a draft."""

    text: str
    left_out: tuple[Unheld, ...]
    """Why each sentence that is missing was left out."""


class _Sentence(NamedTuple):
    start: int
    end: int
    """With the marks behind it."""
    cited: tuple[int, ...]


def held(question: str, draft: Draft, passages: Sequence[Passage]) -> Held:
    """Hold each sentence of a draft against the passages that it cites; those that do not hold are left out.

    A sentence is held to its own marks, or else to the next ones. A sentence that a passage has word for word holds.

    Examples
    --------
    >>> from carag.generation.generator import Draft
    >>> from carag.retrieval.evidence import Passage
    >>> text = "Nail Co paid a milestone payment of $4,000,000 and owes a royalty of 5%."
    >>> passage = Passage(
    ...     chunk_id="1:0", text=text, similarity=0.7, word=0, accession_number="1", form="10-K", company="Nail Co",
    ...     filed="2025-02-01", document="10-K", start=0, end=len(text),
    ... )
    >>> draft = Draft("The royalty is $4,000,000 [1]. The milestone payment was $4 million [1].", (0,))
    >>> held("What is paid?", draft, [passage])
    Held(text='The milestone payment was $4 million [1].', left_out=(<Unheld.OTHER_LABEL: 'OTHER_LABEL'>,))
    """
    stated: dict[int, list[Stated]] = {}
    asked = _words_of(question)
    shown: dict[int, frozenset[str]] = {}

    def why(one: _Sentence) -> Unheld | None:
        said = draft.text[one.start : one.end]
        bare = without_marks(said).strip()
        cited = [at for at in one.cited if 0 <= at < len(passages)]
        if said == draft.worked or any(_has(passages[at], bare) for at in cited):
            return None
        read = [*((one.start, one.end) for one in figures(bare)), *(one[:2] for one in times_in(bare))]
        names, amounts = _names(blanked(bare, read)), _words_of(" ".join(_AMOUNT.findall(bare)))
        for reason, own in ((Unheld.NAME_NOT_STATED, names - asked), (Unheld.NOT_IN_PASSAGE, amounts)):
            among = (cited or range(len(passages))) if own else ()
            shown.update({at: _words_of(_shown(passages[at])) for at in among if at not in shown})
            if not own <= frozenset().union(*map(shown.__getitem__, among)):
                return reason
        if not read:
            return None
        stated.update({at: stated_in(passages[at]) for at in cited if at not in stated})
        return (
            why_not(bare, [each for at in cited for each in stated[at]], question)
            if cited
            else Unheld.NOT_CITED
        )

    judged = [(one, why(one)) for one in _sentences(draft)]
    left_out = tuple(reason for _, reason in judged if reason is not None)
    return Held(_without(draft.text, judged) if left_out else draft.text, left_out)


def _names(sentence: str) -> frozenset[str]:
    """Return the words with capital letters after the first word, in lower case."""
    opening = _OPENING.match(sentence)
    return frozenset(map(str.lower, _NAME.findall(sentence, opening.end() if opening else 0)))


def _words_of(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower()))


def _shown(passage: Passage) -> str:
    """Return everything about a passage that a generator may have seen."""
    head = "" if passage.head is None else passage.head.text
    return " ".join((passage.text, head, passage.company, passage.form, passage.document, passage.source))


def _sentences(draft: Draft) -> list[_Sentence]:
    """Cut a draft into its sentences, each with the marks behind it and the passages that it cites."""
    text = draft.text
    spans: list[tuple[int, int]] = []
    for start, end in sentences(text):
        behind = start + leading_marks(text[start:end])
        if spans and behind > start:
            spans[-1] = (spans[-1][0], behind)
        if any(map(str.isalnum, text[behind:end])):
            spans.append((behind + len(text[behind:end]) - len(text[behind:end].lstrip()), end))
    has_marks = bool(marks_in(text))
    found: list[_Sentence] = []
    following: tuple[int, ...] = () if has_marks else draft.cited
    for start, end in reversed(spans):
        following = cited_positions(text[start:end]) or following
        found.append(_Sentence(start, end, following))
    return found[::-1]


def _has(passage: Passage, said: str) -> bool:
    """Tell whether a passage, or the head rows that came with it, has whole sentences or lines word for word."""
    wanted = " ".join(said.split())
    head = "" if passage.head is None else passage.head.text
    for text in (passage.text, head):
        lines = "\n".join(filter(None, (" ".join(line.split()) for line in text.split("\n"))))
        flat = lines.replace("\n", " ")
        at = flat.find(wanted)
        while at >= 0:
            end = at + len(wanted)
            before, after = lines[:at].rstrip(" ")[-1:], lines[end:].lstrip(" ")[:1]
            if before in _BEGINS and (wanted.endswith(_ENDS) or after in _FOLLOWS):
                return True
            at = flat.find(wanted, at + 1)
    return False


def _without(text: str, judged: Sequence[tuple[_Sentence, Unheld | None]]) -> str:
    """Leave sentences out; the marks of one that is left out stay for those before it that have none."""
    kept: list[str] = []
    end = 0
    waits = False
    for one, reason in judged:
        marks = marks_in(text[one.start : one.end])
        if reason is None:
            kept.append(text[end : one.end])
            waits = not marks
        elif waits and marks:
            kept.append(f" {''.join(marks)}")
            waits = False
        end = one.end
    return "".join(kept).strip()
