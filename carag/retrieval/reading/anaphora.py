"""Tell by fixed lists of English words whether a question leans on an earlier one, and on which word."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from carag.retrieval.reading.names import words_listed

if TYPE_CHECKING:
    from carag.retrieval.reading.slots import Place


# What introduces a follow-up, or corrects a question.
LEAD: Final = re.compile(
    r"(?:(?:and|or|but|also|then|so|ok|okay|no|nope|yes|sorry|actually|right|hm+)\b[\s,.:;!–-]*)*"
    r"(?:(?:(?:what|how)(?:['’]s|\sis)?\sabout|what\sof"
    r"|(?:the\s)?same(?:\squestion|\sthing)?(?=\s(?:for|in|at|with)\b)"
    r"|i\s(?:meant?|wanted|asked about)|rather|instead|make\s(?:it|that)|try|only|just)\b[\s,:]*)*",
    re.IGNORECASE,
)
COMPARED: Final = re.compile(
    r"(?:(?:please\s|can you\s|could you\s)?compare[ds]?|versus|vs\.?|against|relative\sto"
    r"|how\s(?:does|did|do|is|was)\s(?:it|that|this|they)\scompared?)\b"
    r"(?:\s(?:it|that|this|them))?(?:\s(?:with|to|against)(?:\sthat\s(?:of|in|for))?)?\s*(?:the\s)?",
    re.IGNORECASE,
)
SAME_TIME: Final = re.compile(
    r"\b(?:(?:in|for|during)\s)?(?:that|the\ssame|this)\s(?:fiscal\s|financial\s)?(?:year|quarter|period|month)\b",
    re.IGNORECASE,
)
LATEST: Final = re.compile(
    r"\b(?:latest|last|newest|now|today|currently|current|still|ever)\b", re.IGNORECASE
)
_THANKS: Final = re.compile(
    r"\W*(?:ok(?:ay)?|great|perfect|good|fine|got it|thanks?|thank you|hello|hi|bye|cheers)\b(?:[\s,.!]|$)"
    r"(?!and\b|what\b|how\b|so\b|but\b|now\b|no\b)",
    re.IGNORECASE,
)
VERBS: Final = words_listed("auxiliary_verbs.txt")
QUESTION_WORDS: Final = frozenset(["what", "which", "who", "whom", "whose", "when", "where", "why", "how"])
# Words that say something about an amount or a rule that was asked about, so that these are taken over with them.
AMOUNT: Final = words_listed("amount_words.txt")
_FUNCTION: Final = VERBS | QUESTION_WORDS | words_listed("function_words.txt")
_WORD: Final = re.compile(r"[^\W_](?:[\w'’&-]*\w)?")
_THE_SUBJECT: Final = (
    r"(?:compan(?:y|ies)|firms?|issuer|registrant|group|filer|circulars?|filings?|agreements?|contracts?|notification"
    r"|directions?|notice|memo|lease|document|guidelines)"
)
_LEANING: Final = re.compile(
    rf"\b(?:(?:that|this|the|the\ssame|said|these|those)\s(?:same\s)?{_THE_SUBJECT}"
    rf"(?!\s(?:of|on|for|act|law|that|which|between)\b)"
    rf"|(?:that|this|these|those)\s(?:amount|ceiling|clause|fee|figure|limit|loan|number|policy|provision|rate|report"
    r"|requirement|rules?|section|share|target)"
    rf"|its|it|they|them|their|theirs|he|she|his|her|him|that|this|those|these)\b",
    re.IGNORECASE,
)
# Words before "that" after which it is a pronoun, and not the beginning of a clause.
_BEFORE: Final = _FUNCTION - frozenset(["same", "such", "given", "only", "other", "so", "not"])
# An "it" that stands for nothing, as in "is it allowed to lend".
_EMPTY_IT: Final = re.compile(
    r"\bit\s(?:is\s|was\s|be\s)?(?:possible|necessary|required|allowed|permitted|legal|lawful|mandatory|true|clear|likely"
    r"|enough|safe|better|important|advisable)\s(?:to|that|if|for)\b|\bit\s(?:takes?|means?|costs?)\sto\b|\bit\stakes?\b",
    re.IGNORECASE,
)
# What "it" later in the same question may stand for: a noun with an article, or a name.
_ONE: Final = re.compile(
    r"\b(?:an?|any|each|every|no|the|which|our)\s(?!(?:much|many|was|is|were|are|did|does|do|has|have|can|could|will|would"
    r"|should|must|may|long|often|of|the|more|less|same|time|year|date|end)\b)[\w-]+|\0|(?-i:\b(?<!^)[A-Z]\w+)",
    re.IGNORECASE,
)
# What "they" may stand for: a plural, a noun with an article, or a name.
_SEVERAL: Final = re.compile(
    r"(?<!\bhow\smany\s)\b(?!(?:is|was|does|has|this|its|as|us|always)\b)[a-z]\w+s\b|\bthe\s\w+|\0",
    re.IGNORECASE,
)
# What belongs to something said before, as in "Who was the lender?" or "Is collateral allowed?".
IMPLIED: Final = re.compile(
    r"\bthe\s(?:(?:other|old|new|two|former|latter|non-\w+)\s)?(?!same\b|first\b|most\b)[\w-]+(?=$|\s(?:be|is|was|were|are|had|has|did|to)\b|"
    r"\s\w+ed\b)|\b(?:affected|allowed|permitted|changed|raised|extended)$|\bone$|^(?:at|to|by|for|as|on|in)\s(?:what|which|a)\s"
    r"|^(?:which|what|whose)\s\w+$",
    re.IGNORECASE,
)
# What asks about two turns together, beside a change.
BOTH: Final = re.compile(
    r"\b(?:grow|grew|rise|rose|fall|fell|change|increase|decrease|decline|drop|higher|lower|more|less|both|two|together"
    r"|total|difference)\b",
    re.IGNORECASE,
)
_PLURAL: Final = frozenset({"they", "them", "their", "theirs"})


def is_thanks(text: str) -> bool:
    """Tell whether a text asks nothing."""
    return bool(_THANKS.match(text))


def content(text: str) -> tuple[str, ...]:
    """Return the words of a text that say something, as written.

    Examples
    --------
    >>> content("How much did it pay in dividends?")
    ('pay', 'dividends')
    """
    return tuple(one for one in _WORD.findall(text) if one.casefold() not in _FUNCTION)


def topic(text: str) -> str:
    """Return what a text is about, in its own words, without the words around it; names in the text are NUL.

    Examples
    --------
    >>> topic("How much did it pay in dividends?")
    'pay in dividends'
    """
    found = []
    for piece in re.split(r"\0+|[?;,]|\s\(|\)$", text):
        words = piece.split()
        telling = [number for number, word in enumerate(words) if content(word)]
        if telling:
            said = words[telling[0] : telling[-1] + 1]
            found.append(" ".join(word for word in said if word.casefold() not in VERBS))
    return " ".join(found)


def pronoun(text: str) -> Place | None:
    """Return the place of the first word that stands for something in an earlier question; names in the text are NUL.

    A word that may stand for something named earlier in the same question does not count.

    Examples
    --------
    >>> pronoun("Who signed it?"), pronoun("Can a bank close its branch?"), pronoun("Is it allowed to lend?")
    ((11, 13), None, None)
    """
    for found in _LEANING.finditer(text):
        before = text[: found.start()]
        word = found[0].casefold()
        last = _WORD.findall(before)[-1:]
        if _EMPTY_IT.search(text) and word == "it":
            continue
        if word.partition(" ")[0] in ("that", "this", "these", "those"):
            if last and last[0].casefold() not in _BEFORE:
                continue
            return found.span()
        is_of = bool(re.search(r"\b(?:of|for|under|in|by|with)\s$", before))
        if (_SEVERAL if word in _PLURAL else _ONE).search(before) and not (is_of and "\0" not in before):
            continue
        return found.span()
    return None
