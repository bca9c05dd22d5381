"""Read questions that ask the same of several names: "Compare the tax rate of A and B in 2022"."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.retrieval.reading.question import plain

if TYPE_CHECKING:
    from carag.retrieval.reading.question import Reading


_NAMES: Final = r"\x01(?:(?:, (?:and )?| and | with | to | vs\.? | versus | against )\x01){1,3}"
_FORMS: Final = (
    re.compile(
        rf"compare (?:the )?(?P<what>[^\x01]+?) (?:of|for|between|at|in|by|reported by) {_NAMES}(?P<tail> [^\x01]+)?",
        re.IGNORECASE,
    ),
    re.compile(
        rf"compare {_NAMES} (?:on|by|in|for|as to|regarding|with respect to) (?:their |the )?(?P<what>[^\x01]+)",
        re.IGNORECASE,
    ),
    re.compile(
        r"how (?:does|did|do) \x01 (?P<what>[^\x01]+?) compare "
        r"(?:with|to|against) (?:that of )?\x01(?P<tail> [^\x01]+)?",
        re.IGNORECASE,
    ),
)
"""With the names replaced by ``\\x01``, without the genitive's 's."""


_BEGINS: Final = re.compile(r"compare |how (?:does|did|do) .* compare ", re.IGNORECASE)


class SameQuestion(NamedTuple):
    """A question about one of several names."""

    name: str
    question: str


def may_compare(question: str) -> bool:
    """Tell whether a question begins like one that compares, whatever it names."""
    return _BEGINS.match(_asked(question)) is not None


def read_compared(question: str, reading: Reading) -> tuple[SameQuestion, ...]:
    """Return the question for each name, in the order of the question; none if nothing is compared.

    Examples
    --------
    >>> from carag.retrieval.reading import Names, read_question
    >>> asked = "Compare the tax rate of Amcor and Delta in 2022."
    >>> reading = read_question(asked, names=Names([("Amcor", [], 7), ("Delta", [], 8)]))
    >>> [one.question for one in read_compared(asked, reading)]
    ['What is the tax rate of Amcor in 2022?', 'What is the tax rate of Delta in 2022?']
    """
    text = _asked(question)
    names = list(dict.fromkeys(one.text for one in reading.entities or reading.titles))
    if len(names) < 2:
        return ()
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(name)}(?:['’]s?)?(?!\w)", "\x01", text)
    for form in _FORMS:
        if match := form.fullmatch(text):
            tail = match.groupdict().get("tail") or ""
            return tuple(
                SameQuestion(name, f"What is the {match['what']} of {name}{tail}?") for name in names
            )
    return ()


def _asked(question: str) -> str:
    return re.sub(r"\s", " ", plain(question)).strip(" ?.!").removeprefix("Please ").removeprefix("please ")
