"""Compute token F1 as SQuAD's own script does (Rajpurkar et al., 2016; evaluate-v2.0.py)."""

from __future__ import annotations

import re
import string
from collections import Counter
from typing import Final

_ARTICLES: Final = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION: Final = str.maketrans("", "", string.punctuation)


def normalised_tokens(text: str) -> list[str]:
    """Lower the case, drop ASCII punctuation and articles, and split at white space, in SQuAD's order."""
    return _ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()


def token_f1(answer: str, gold: str) -> float:
    """Return the harmonic mean of precision and recall of tokens, as multisets, rounded to four digits.

    If neither text has a token the score is 1; if only one has none, it is 0.
    """
    said, wanted = normalised_tokens(answer), normalised_tokens(gold)
    if not said or not wanted:
        return float(said == wanted)
    common = (Counter(said) & Counter(wanted)).total()
    return round(2 * common / (len(said) + len(wanted)), 4)
