"""Mend misspelt words of a question: words that no admissible passage holds, one letter from a word that some hold.

Only words in small letters are mended. A name that nothing knows may be somebody who is hidden, so it is reported as
unknown and never read as another's. Only what admissible passages hold counts as known, so a hidden passage that holds
the word changes nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.retrieval.reading.names import common_words
from carag.retrieval.reading.question import asking

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


_WORD: Final = re.compile(r"(?<![^\W_])(?<!['’])[a-z]{4,24}(?![^\W_])(?!['’])")
"""Words in the 26 small letters; never a part of a number, of a name or of a word with an apostrophe."""
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
_LONG, _LONGER = 5, 7
"""How many letters a word must have for a letter to be missing or added, and how many for a letter to be wrong: a
shorter word is too near to other words for that (*stove*, *store*)."""
_ENDINGS: Final = ("s", "es", "d", "ed", "ing", "ly")
"""Endings of a word that is itself spelt right, and that the passages hold in another form."""
_AHEAD: Final = 2
"""How many times as frequent as the next candidate a correction must be; otherwise the word could be either."""
_MAX_WORDS: Final = 4
"""Misspelt words that are mended: where there are more, the question is in another language or on another subject."""


class Respelt(NamedTuple):
    """A question as it was meant."""

    text: str
    words: tuple[tuple[str, str], ...]
    """Each misspelt word, and what it is read as."""

    def described(self) -> str:
        """Say what was mended."""
        return "; ".join(f"“{written}” read as “{meant}”" for written, meant in self.words)


def respelt(question: str, count: Callable[[Sequence[str]], Sequence[int]]) -> Respelt | None:
    """Return a question with its misspelt words mended; None if no word is misspelt.

    - ``question``: only words of what it asks are looked at; see :func:`carag.retrieval.reading.asking`.
    - ``count``: tells for each of some terms how many passages that the session may use hold it.

    Examples
    --------
    >>> held = {"collateral": 7, "loan": 9, "limit": 5, "limits": 2}
    >>> respelt("colateral free laon limits", lambda terms: [held.get(one, 0) for one in terms]).text
    'collateral free loan limits'
    """
    candidates = [
        word for word in dict.fromkeys(_WORD.findall(asking(question))) if word not in common_words()
    ]
    unknown = [word for word, held in zip(candidates, count(candidates), strict=True) if not held]
    if not 0 < len(unknown) <= _MAX_WORDS:
        return None
    meant = {word: better for word in unknown if (better := _meant(word, count))}
    if not meant:
        return None
    return Respelt(_WORD.sub(lambda one: meant.get(one[0], one[0]), question), tuple(meant.items()))


def _meant(word: str, count: Callable[[Sequence[str]], Sequence[int]]) -> str | None:
    """Return the word that clearly most passages hold among those one letter away; None if the word is spelt right."""
    forms = [word + ending for ending in _ENDINGS]
    forms += [word.removesuffix(ending) for ending in _ENDINGS if word.endswith(ending)]
    if any(count(forms)):
        return None
    near = sorted(set(_one_letter_away(word)))
    (most, best), (second, _), *_ = sorted(
        [*zip(count(near), near, strict=True), (0, ""), (0, "")], reverse=True
    )
    return best if most and most >= _AHEAD * second else None


def _one_letter_away(word: str) -> Iterator[str]:
    """Yield the words one slip away; few slips change the first letter, and a different last one is an inflection."""
    for at in range(1, len(word)):
        before, after = word[:at], word[at:]
        if len(after) > 1 and after[0] != after[1]:
            yield before + after[1] + after[0] + after[2:]
        if len(word) >= _LONG:
            yield from (before + letter + after for letter in _LETTERS)
        if len(word) >= _LONG and len(after) > 1:
            yield before + after[1:]
        if len(word) >= _LONGER and len(after) > 1:
            yield from (before + letter + after[1:] for letter in _LETTERS if letter != after[0])
