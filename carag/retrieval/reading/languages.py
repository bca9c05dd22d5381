"""Tell what a capital means in the language of a question: in German every noun has one, so it does not mark a name.

A language is recognised by its function words alone, which are fixed lists: the content of a store never changes how a
question is read. They are words of questions, which often begin a sentence with a capital that means nothing.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

from carag.retrieval.reading.names import LEGAL_FORMS, common_words, words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.retrieval.reading.names import Word


_WORDS: Final = {
    "German": (
        "aber alle als am an auch auf aus bei beim beträgt bis brauchen braucht dann darf das dass dauert dem den "
        "denn der des die dies diese diesem diesen dieser dieses droht durch dürfen ein eine einem einen einer eines "
        "er es für gegen gehört gelten gibt gilt haben hat hatte heißt ihr ihre im in innerhalb ist jede jeder kann "
        "kein keine kostet können man mit muss müssen nach nicht noch ob oder ohne regelt sein seine seit sich sie "
        "sind so soll sollen sowie steht um und unser unsere unter verdienen verdient vom von vor wann war warum was "
        "wegen welche welchem welchen welcher welches wem wen wenn wer werden weshalb wessen wie wieso wieviel "
        "wieviele wird wo wofür woher wohin womit worin wozu wurde zahlen zahlt zu zum zur zwischen über"
    ),
    "French": (
        "après au aucun aux avant avec ce cela ces cet cette combien comment dans de depuis des doit doivent dont du "
        "elle en entre est et eux faut il ils je la laquelle le lequel les lesquelles lesquels leur leurs lors mais "
        "ne nos notre nous on ont ou où par pas peut peuvent plus pour pourquoi quand que quel quelle quelles quels "
        "qui quoi sa sans selon ses si son sont sous sur un une vos votre vous y à être"
    ),
    "Spanish": (
        "a al antes como con cual cuales cuando cuanta cuantas cuanto cuantos cuál cuáles cuándo cuánta cuántas "
        "cuánto cuántos cómo de debe deben del desde después donde dónde el ella en entre es esta este está están "
        "existe ha han hasta hay la las le lo los más no nuestra nuestro o para pero por porque puede pueden que "
        "quien quienes quién quiénes qué se según sin sobre son su sus tiene tienen un una y"
    ),
    "Italian": (
        "a agli ai al alla alle anche che chi ci come con cos cosa così cui da dai dal dalla dalle dei del della "
        "delle deve devono di dopo dove e entro fra gli ha hanno i il in la le lo ma nei nel nella nelle non nostra "
        "nostro o per perché più possono prima può qual quale quali quando quanta quante quanti quanto se senza si "
        "sono su sui sul sulla sulle tra un una uno è"
    ),
    "Dutch": (
        "aan al als bij binnen dan dat de deze die dit door een en er geen geldt haar hebben heeft het hoe hoelang "
        "hoeveel hun ik in is kan kunnen maar mag met moet moeten mogen na naar niet of om onder ons onze op over te "
        "tegen tot tussen uit van vanaf volgens voor waar waarmee waarom waarvoor wanneer wat we welk welke wie "
        "wiens wij worden wordt zal zich zijn zonder zou"
    ),
}
_TITLES: Final = frozenset(["dr", "familie", "firma", "frau", "herr", "herrn", "konzern", "prof"])
"""German words before the name of a person or company."""
_ELISION: Final = re.compile(r"(?:[cdjlmnst]|qu|un|(?:da|de|ne|su|a)ll)['’](?=[^\W\d_])", re.IGNORECASE)
"""French and Italian write an article and its noun as one word: ``l'AMF``, ``dell'IVASS``."""
_ENDINGS: Final = ("e", "en", "er", "es", "n", "s")
_PLAIN: Final = str.maketrans("äöüÄÖÜ", "aouAOU")
_SHORTEST: Final = 3
"""Characters in the shortest stem."""


@cache
def function_words(language: str) -> frozenset[str]:
    """Return a language's words of questions, folded as names are; for English, all common words."""
    if language == "English":
        return common_words()
    return frozenset(word.folded for word in words_of(_WORDS[language]))


def language_of(words: Sequence[Word]) -> str:
    """Tell the language of a question: the one with the most function words in it, or English if none has more."""
    said = [word.folded for number, word in enumerate(words) if not number or word.written.islower()]
    return max(("English", *_WORDS), key=lambda one: sum(word in function_words(one) for word in said))


def names_in_german(run: Sequence[Word]) -> list[Word]:
    """Return the names in a run of capitalised German words: those next to a legal form or a title, and acronyms."""
    if len(run) > 1 and run[0].folded in _TITLES:
        return list(run[1:])
    if any(word.folded in LEGAL_FORMS for word in run[1:]):
        return list(run)
    return [word for word in run if sum(map(str.isupper, word.written)) > 1]


def inflected(word: str) -> frozenset[str]:
    """Return the possible inflections of a German noun, and some that it does not have."""
    stems = {word, *(word.removesuffix(one) for one in _ENDINGS if len(word) - len(one) >= _SHORTEST)}
    stems |= {stem.translate(_PLAIN) for stem in stems}
    return frozenset(stem + ending for stem in stems for ending in ("", *_ENDINGS))


def unelided(word: Word) -> Word:
    """Return a word without an article before its apostrophe: AMF of ``l'AMF``."""
    elided = _ELISION.match(word.written)
    if elided is None:
        return word
    bare = next(words_of(word.written[elided.end() :]))
    return bare._replace(start=word.start + elided.end(), end=word.end)
