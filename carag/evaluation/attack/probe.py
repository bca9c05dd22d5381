"""Ask a target within bounds of requests and time, plant documents in it, and remove them again."""

from __future__ import annotations

import random
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from carag.evaluation.attack.findings import NotTried
from carag.evaluation.attack.target import Document, Found, Where
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.evaluation.attack.target import Target

_MOST_HITS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much an attack may do: seconds, requests, rounds of all checks, hidden documents, repeats of a timing."""

    seconds: float = 60.0
    requests: int = 3_000
    rounds: int = 1
    hidden: int = 60
    repeats: int = 6


QUICK: Final = Bounds()
THOROUGH: Final = Bounds(seconds=3_600.0, requests=60_000, rounds=3, hidden=600, repeats=40)


class Seen(NamedTuple):
    """What a caller saw of one search."""

    ids: tuple[str, ...] = ()
    scores: tuple[float | None, ...] = ()
    total: int | None = None
    suggestions: tuple[str, ...] | None = None
    error: str = ""

    def __str__(self) -> str:
        """Write it in a few words."""
        return self.error or f"{len(self.ids)} rows: {', '.join(self.ids[:5])}"


@dataclass
class Probe:
    """A target, and what was planted in it and asked of it so far."""

    target: Target
    bounds: Bounds
    seed: int
    clock: Callable[[], float]
    requests: int = 0
    planted: dict[str, Document] = field(default_factory=dict)
    doubtful: set[str] = field(default_factory=set)  # ids of which an `add` failed, perhaps in part

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311 - the words of a test, not a secret
        self._words: set[str] = set()
        self.started = self.clock()
        self.made_up = not (people := getattr(self.target, "people", ()))
        self.reader, self.officer = map(str, people or (self.word(), self.word()))

    def word(self) -> str:
        """Return a word that was not used before."""
        while True:
            made = "".join(
                self._random.choice("bdfgklmnprstvz") + self._random.choice("aeiou") for _ in range(5)
            )
            if made not in self._words:
                self._words.add(made)
                return made

    def offers(self, name: str) -> Callable[..., Any]:
        """Return a method that a target may have."""
        method: Callable[..., Any] | None = getattr(self.target, name, None)
        if not callable(method):
            raise NotTried(f"the target has no `{name}`")
        return method

    # ---------------------------------------------------------------- documents

    def reports(
        self, topic: str, count: int, *audience: str, near: bool = False, words: int = 3
    ) -> list[Document]:
        """Write reports on a topic for an audience; ``near`` ones come before the others in a search for it."""
        made = []
        for _ in range(count):
            *some, last = (self.word() for _ in range(words))
            told = f"on {topic}, {topic} and {last}" if near else f"mentions {', '.join(some)} and {last}"
            text = f"The {topic} report {told}."
            made.append(Document(f"planted-{self.word()}", text, frozenset(audience)))
        return made

    def plant(self, documents: list[Document]) -> None:
        """Add documents to the target."""
        added = {one.id: one for one in documents}
        self.doubtful |= added.keys() - self.planted.keys()
        self.done("add", self.target.add, documents)
        self.doubtful -= added.keys()
        self.planted |= added

    def delete(self, ids: list[str]) -> None:
        """Delete documents from the target."""
        self.done("delete", self.offers("delete"), ids)
        for one in ids:
            del self.planted[one]

    def clean(self) -> str:
        """Remove what was planted, whatever the bounds; return what is left and why, or nothing."""
        for one in self.doubtful:
            with suppress(Exception):  # it may never have been there
                self.offers("delete")([one])
        self.doubtful.clear()
        try:
            if self.planted:
                self.offers("delete")([*self.planted])
        except Exception as error:  # noqa: BLE001 - a target may raise anything, and the report says it
            return f"{len(self.planted)} planted documents remain: {_told(error)}"
        self.planted.clear()
        return ""

    # ---------------------------------------------------------------- requests

    def done(self, name: str, method: Callable[..., Any], *arguments: object) -> Any:
        """Call a method of the target as one request; NotTried if it raises or the bounds are reached."""
        reply, error = self.tried(method, *arguments)
        if error:
            raise NotTried(f"`{name}` raised {error}")
        return reply

    def tried(self, method: Callable[..., Any], *arguments: object) -> tuple[Any, str]:
        """Call a method of the target as one request; return its result, and what it raised or an empty text."""
        if self.requests >= self.bounds.requests:
            raise NotTried(f"the limit of {self.bounds.requests} requests was reached")
        if self.clock() - self.started > self.bounds.seconds:
            raise NotTried(f"the limit of {self.bounds.seconds:g} s was reached")
        self.requests += 1
        try:
            return method(*arguments), ""
        except Exception as error:  # noqa: BLE001 - a target may raise anything, and it is part of what is seen
            return None, _told(error)

    def seen(self, question: str, k: int, as_whom: str | None, where: Where | None = None) -> Seen:
        """Search, and return what a caller sees; a malformed reply is an error like any other."""
        arguments = (question, k, as_whom) if where is None else (question, k, as_whom, where)
        method = self.target.search if where is None else self.offers("search_where")
        reply, error = self.tried(lambda: _seen(method(*arguments)))
        return Seen(error=error) if error else reply

    def rows(self, question: str, k: int, as_whom: str | None = "") -> Seen:
        """Search as the reader; NotTried if it raises or returns no planted row: nothing could be found then."""
        seen = self.seen(question, k, as_whom or self.reader)
        if seen.error:
            raise NotTried(f"`search` raised {seen.error}")
        if not self.planted.keys() & set(seen.ids):
            raise NotTried("`search` returned no planted document to a reader who may see some")
        return seen

    def closed_rows(self, seen: Seen, *names: str) -> list[str]:
        """Return the planted ids that were seen although none of the names is in their audience."""
        return [one for one in seen.ids if one in self.planted and not self.planted[one].audience & {*names}]


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {quoted(str(error))}"


def _seen(reply: object) -> Seen:
    """Check a reply of a target, and take it apart."""
    found = reply if isinstance(reply, Found) else Found(reply)  # type: ignore[arg-type] # checked below
    if not isinstance(found.hits, Iterable) or isinstance(found.hits, str | bytes):
        raise TypeError(f"hits is {quoted(reply)}; want pairs of id and score, or a Found")
    ids, scores = [], []
    for hit in islice(found.hits, _MOST_HITS):
        if not isinstance(hit, tuple | list) or len(hit) != 2 or not isinstance(hit[0], str):
            raise TypeError(f"a hit is {quoted(hit)}; want a pair of id (a str) and score (a float or None)")
        ids.append(hit[0])
        scores.append(None if hit[1] is None else float(hit[1]))
    told = None if found.suggestions is None else tuple(map(str, found.suggestions))
    return Seen(tuple(ids), tuple(scores), found.total, told)
