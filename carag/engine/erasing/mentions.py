"""Find the documents in which words stand: in their texts, whole and across passages, or in their facts."""

from __future__ import annotations

import json
import re
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from carag.errors import InvalidArgument
from carag.limits import ERASED, check_text, quoted
from carag.policy.audience import one_spelling

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from carag.store.store import CorpusStore


class Mentions:
    r"""Names, or other words, that are looked for: in any case, width and composition, and as whole words in texts.

    Examples
    --------
    >>> ana = Mentions(["Ana Ruiz", "user:ana"])
    >>> ana.stand_in("Asked by ANA\nRUIZ."), ana.stand_in("Banana Ruiz"), ana.are("user:Ana")
    (True, False, True)
    """

    def __init__(self, names: Iterable[str]) -> None:
        if isinstance(names, str):
            raise InvalidArgument(f"names are {quoted(names)}; want a list of text")
        self.names = tuple(dict.fromkeys(names))
        for one in self.names:
            check_text("a name", one)
        spelt = {" ".join(one_spelling(one).split()) for one in self.names}
        if not spelt or not all(re.search(r"\w", one) for one in spelt):
            raise InvalidArgument("a name has no letter or digit, or no name is given; give at least one")
        self._spelt = spelt
        several = "|".join(
            r"\s+".join(map(re.escape, one.split())) for one in sorted(spelt, key=len, reverse=True)
        )
        self._pattern = re.compile(rf"(?<!\w)(?:{several})(?!\w)")

    def are(self, principal: str) -> bool:
        """Tell whether a principal is one of the names, with its kind or without it."""
        spelt = one_spelling(principal)
        return spelt in self._spelt or spelt.partition(":")[2] in self._spelt

    def stand_in(self, text: str) -> bool:
        """Tell whether one of the names stands in a text, as whole words."""
        return self._pattern.search(one_spelling(text)) is not None

    def stand_in_any(self, value: Any) -> bool:
        """Tell whether one of the names stands in a text of a JSON value."""
        return any(map(self.stand_in, _texts(value)))

    def stand_in_sealed(self, value: str) -> bool:
        """Tell whether one of the names stands in a value of the log, which is a text or JSON."""
        if value[:1] in ("[", "{"):
            try:
                return self.stand_in_any(json.loads(value)) or self.stand_in(value)
            except (ValueError, RecursionError):
                pass
        return self.stand_in(value)


def mentioning(store: CorpusStore, names: Mentions) -> dict[str, set[str]]:
    """Return, by the id of each document in which a name stands, where: ``text`` or ``facts``, in any version."""
    found: dict[str, set[str]] = {}
    for id_, facts in store.documents.stated():
        if not id_.startswith(ERASED) and names.stand_in_any([id_, *facts.values()]):
            found.setdefault(id_, set()).add("facts")
    for id_, text in whole_texts(store):
        if names.stand_in(text):
            found.setdefault(id_, set()).add("text")
    return found


def whole_texts(store: CorpusStore) -> Iterator[tuple[str, str]]:
    """Stream the id and the text of every version of every document, put together again from its passages."""
    for (_, id_), passages in groupby(store.documents.texts(), key=itemgetter(0, 1)):
        text, last = "", 0
        for _, _, start, end, passage in passages:
            shared = last - start
            if 0 <= shared <= len(passage) and text.endswith(passage[:shared]):
                text += passage[shared:]
            else:
                text += "\n" + passage
            last = end
        yield id_, text


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, one in value.items():
            yield name
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)
