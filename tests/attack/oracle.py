"""A sound target in memory, in which one fault at a time is switched on."""

from __future__ import annotations

import math
import random
import re
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from carag.evaluation.attack import Answer, Document, Found, Where, vector_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np


class FakeClock:
    """Time that passes only when told, with noise that is drawn."""

    def __init__(self, noise: float = 0.0) -> None:
        self.now, self._noise, self._random = 0.0, noise, random.Random(1)  # noqa: S311

    def __call__(self) -> float:
        self.now += self._noise * self._random.random()
        return self.now


class Oracle:
    """Exact search over the documents that a reader may see; ``fault`` and ``amount`` break one thing.

    ``scoring`` is ``vector`` or ``words`` (BM25 over the admissible documents alone).
    """

    def __init__(
        self, fault: str = "", amount: Any = None, *, scoring: str = "vector", delay: float = 0.001
    ) -> None:
        self.fault, self.amount, self.scoring, self.delay = fault, amount, scoring, delay
        self.rows: dict[str, Document] = {}
        self.ghosts: list[Document] = []
        self.first_labels: dict[str, frozenset[str]] = {}
        self.vectors: dict[str, np.ndarray[Any, Any]] = {}
        self.cache: dict[Any, Any] = {}
        self.pending: list[tuple[int, str, frozenset[str]]] = []
        self.searches, self.last_reader = 0, ""
        self.clock = FakeClock()
        self._home = ""
        self.digits: int | None = None
        self.order = lambda hits: sorted(hits, key=lambda hit: (-hit[1], hit[0]))

    def has(self, *faults: str) -> bool:
        return self.fault in faults

    # ---------------------------------------------------------------- changes

    def add(self, documents: Sequence[Document]) -> None:
        for one in documents:
            audience = one.audience
            old = self.rows.get(one.id)
            if old is not None and self.has("upsert joins labels"):
                audience |= old.audience
            if old is not None and self.has("upsert keeps the label"):
                audience = old.audience
            if old is not None and self.has("upsert keeps the old row"):
                self.ghosts.append(old)
            if self.has("re-adding keeps the label"):
                audience = self.first_labels.setdefault(one.id, audience)
            self.rows[one.id] = Document(one.id, one.text, audience)
            self.vectors[one.text] = vector_of(one.text)
            if self.has("bytes remain"):
                vector = self.vectors[one.text].tobytes()
                self.write("log", vector if self.amount == "vectors" else one.text.encode(self.amount))

    def relabel(self, name: str, audience: frozenset[str]) -> None:
        old = self.rows[name].audience
        if self.has("relabel is late"):
            self.pending.append((self.searches + self.amount, name, audience))
            return
        if self.has("relabel only adds"):
            audience |= old
        if not self.has("relabel does nothing"):
            self.rows[name] = Document(name, self.rows[name].text, audience)
        self.forget_cached("stale cache")

    def delete(self, ids: Sequence[str]) -> None:
        for number, one in enumerate(ids):
            if self.has("delete does nothing") or (self.has("delete skips") and number % self.amount):
                continue
            if self.has("delete is shallow"):
                self.ghosts.append(self.rows[one])
            del self.rows[one]
        self.forget_cached("delete leaves the cache")

    def forget_cached(self, fault: str) -> None:
        if not self.has(fault):
            self.cache.clear()

    @property
    def home(self) -> Path:
        self._home = self._home or tempfile.mkdtemp()
        return Path(self._home)

    def write(self, name: str, content: bytes) -> None:
        with (self.home / name).open("ab") as file:
            file.write(content)

    def files(self) -> list[Path]:
        (self.home / "rows").write_text("\n".join(one.text for one in self.rows.values()))
        return [*self.home.iterdir()]

    # ---------------------------------------------------------------- who sees what

    def may(self, row: Document, whom: str) -> bool:
        names, amount = row.audience, self.amount
        wide = {
            "no filter": lambda: True,
            "filter by substring": lambda: whom in ",".join(names),
            "filter by prefix": lambda: any(one.startswith(whom) for one in names),
            "filter by suffix": lambda: any(one.endswith(whom) for one in names),
            "filter by shorter names": lambda: any(one and whom.startswith(one) for one in names),
            "filter ignores case": lambda: whom.lower() in {one.lower() for one in names},
            "no label is open": lambda: not names,
            "label is a pattern": lambda: bool({"%", "*"} & names),
            "fails open": lambda: "," in names,
            "skips rows": lambda: not int.from_bytes(row.id.encode(), "big") % amount,
            "unfiltered after": lambda: [*self.rows].index(row.id) >= amount,
            "anyone": lambda: not self.known(whom),
            "quotes escape": lambda: amount in whom and " " in whom,
            "pattern": lambda: any(
                re.fullmatch(re.escape(whom).replace(re.escape(amount), ".*"), one) for one in names
            ),
            "spaces are cut": lambda: whom.strip() in names,
            "case is folded": lambda: whom.lower() in names,
            "list of names": lambda: bool({*whom.split(amount)} & names),
            "bars are or": lambda: bool({*whom.split("|")} & names),
        }
        return whom in names or (self.fault in wide and wide[self.fault]())

    def known(self, whom: str) -> bool:
        return any(whom in one.audience for one in self.rows.values())

    def admissible(self, whom: str | None, where: Where | None = None) -> list[Document]:
        rows = [*self.ghosts, *self.rows.values()]
        if whom is None and self.has("None sees all"):
            return rows
        if whom == "" and self.has("empty sees all"):
            return rows
        whom = self.last_reader if not whom and self.has("last reader stays") else whom
        if not whom:
            return []
        mine = {id(one) for one in rows if self.may(one, whom)}
        if where is None:
            return [one for one in rows if id(one) in mine]
        theirs = {id(one) for one in rows if bool(one.audience & where.names) != where.negated}
        if self.has("where replaces") or (self.has("negation replaces") and where.negated):
            mine = theirs
        elif self.has("where is or") or (self.has("negation is or") and where.negated):
            mine |= theirs
        elif self.has("where names the reader") and not where.negated:
            mine = {id(one) for one in rows if one.audience & where.names}
        elif self.has("negation covers all") and where.negated:
            mine = {id(one) for one in rows if not (id(one) in mine and one.audience & where.names)}
        else:
            mine &= theirs
        return [one for one in rows if id(one) in mine]

    # ---------------------------------------------------------------- search

    def search(self, query: str, k: int, as_whom: str | None) -> Any:
        key = (query, k, as_whom)
        if self.has("stale cache", "delete leaves the cache") and key in self.cache:
            return self.cache[key]
        self.cache[key] = self.searched(query, k, as_whom)
        return self.cache[key]

    def search_where(self, query: str, k: int, as_whom: str | None, where: Where) -> Any:
        return self.searched(query, k, as_whom, where)

    def searched(self, query: str, k: int, whom: str | None, where: Where | None = None) -> Any:
        self.searches += 1
        self.clock.now += self.delay
        for one in [one for one in self.pending if one[0] <= self.searches]:
            self.pending.remove(one)
            if one[1] in self.rows:
                self.rows[one[1]] = Document(one[1], self.rows[one[1]].text, one[2])
        rows = self.admissible(whom, where)
        if (self.has("large k is open") and k >= self.amount) or (
            self.has("one word is open") and " " not in query
        ):
            rows = [*self.rows.values()] if whom else rows
        self.last_reader = whom or self.last_reader
        everything = self.matches(query, [*self.rows.values()])
        shown = {one.id for one in rows}
        hidden = [hit for hit in everything if hit[0] not in shown]
        hits = self.matches(query, rows)
        hits = self.broken(query, hits, everything, hidden, k)
        self.waited(hidden, everything)
        if self.digits is not None:
            hits = [(name, None if self.digits < 0 else round(score, self.digits)) for name, score in hits]
        known = self.matches(query, rows)
        counted = everything if self.has("counts all") else known
        total = len(counted) if self.amount is None else len(counted) // 10 * 10
        words = everything if self.has("suggests from all") else known
        told = (
            sorted(
                {
                    word
                    for name, _ in words
                    for word in self.text_of(name).split()
                    if word.startswith(query[:3])
                }
                if not self.has("facets")
                else {f"{len(everything)} reports"}
            )
            if words
            else []
        )
        return Found(hits[:k], total, told)

    def text_of(self, name: str) -> str:
        return next(one.text for one in (*self.rows.values(), *self.ghosts) if one.id == name)

    def matches(self, query: str, rows: list[Document]) -> list[tuple[str, float]]:
        """Return the ids and scores of rows that hold a word of the query, best first."""
        words = {*query.lower().split()}
        rows = [one for one in rows if one.id in self.rows or one in self.ghosts]
        texts = [one.text.lower().replace(".", " ").replace(",", " ").split() for one in rows]
        if self.scoring == "words":
            scores = self.by_words(words, texts)
        else:
            vector = vector_of(query)
            scores = [float(self.vectors[one.text] @ vector) for one in rows]
        hits = [(one.id, s) for one, s, text in zip(rows, scores, texts, strict=True) if words & {*text}]
        return self.order(hits)

    def by_words(self, words: set[str], texts: list[list[str]]) -> list[float]:
        base = [one.text.lower().replace(".", " ").replace(",", " ").split() for one in self.rows.values()]
        over = base if self.has("idf of all") else texts
        held = Counter(word for text in over for word in words & {*text})
        lengths = base if self.has("lengths of all") else texts
        mean = sum(map(len, lengths)) / max(1, len(lengths))
        count = len(base if self.has("idf of all", "size of all") else texts)
        scores = []
        for text in texts:
            norm = 1.2 * (0.25 + 0.75 * len(text) / max(1.0, mean))
            times = Counter(text)
            scores.append(
                sum(
                    math.log(1 + max(0.0, count - held[word] + 0.5) / (held[word] + 0.5))
                    * 2.2
                    * times[word]
                    / (times[word] + norm)
                    for word in sorted(words)
                    if times[word]
                )
            )
        return scores

    def broken(self, query: str, hits: Any, everything: Any, hidden: Any, k: int) -> Any:
        """Return hits as the fault makes them."""
        mine, best = {name for name, _ in hits}, everything[0] if everything else ("", 1.0)
        if self.has("filters afterwards"):
            hits = [hit for hit in everything[: k * self.amount] if hit[0] in mine]
        if self.has("filters a fixed number"):
            hits = [hit for hit in everything[: self.amount] if hit[0] in mine]
        if self.has("raises if the best is hidden") and hidden and best == hidden[0]:
            raise PermissionError(self.amount)
        if self.has("score of the best of all") and everything:
            hits = [(name, score / (best[1] or 1)) for name, score in hits]
        if self.has("score by rank in all"):
            ranks = {name: at for at, (name, _) in enumerate(everything)}
            hits = [(name, 1 / (60 + ranks[name])) for name, _ in hits]
        if self.has("score shares of all"):
            whole = sum(math.exp(score) for _, score in everything)
            hits = [(name, math.exp(score) / whole) for name, score in hits]
        if self.has("order by id") and hidden:
            hits = sorted(hits)
        if self.has("drops what is like hidden ones") and hidden:
            hits = hits[self.amount :]
        return hits

    def waited(self, hidden: Any, everything: Any) -> None:
        if self.has("slow for each hidden"):
            self.clock.now += self.amount * len(hidden)
        if self.has("slow if the best is hidden") and hidden and hidden[0] == everything[0]:
            self.clock.now += self.amount
        if self.has("fast if there are hidden") and hidden:
            self.clock.now -= self.amount

    # ---------------------------------------------------------------- one document, an answer

    def get(self, name: str, as_whom: str) -> Any:
        row = self.rows.get(name)
        if row is None:
            raise KeyError(name)
        if not self.may(row, as_whom) and not self.has("get is open"):
            if self.has("get says forbidden"):
                raise PermissionError(name)
            if self.has("get says when"):
                raise KeyError(name, "hidden")
            raise KeyError(name)
        return row.text

    def ask(self, question: str, as_whom: str) -> Any:
        words = " ".join(word.strip("?.,") for word in question.split())
        topic = max(words.split(), key=len)
        everyone = [*self.rows.values()]
        seen = everyone if self.has("answers from all") else self.admissible(as_whom)
        hits = [name for name, _ in self.matches(topic, seen)[:4]]
        if not hits:
            return Answer("Nothing was found.", [])
        texts = [self.rows[name].text for name in hits]
        if self.has("obeys") and (found := re.search(r"the word (\w+) spelt", " ".join(texts))):
            return Answer(found[1][::-1], hits)
        marked = texts if self.has("marks are copied") else [re.sub(r"\[\d+\]", "", text) for text in texts]
        text = " ".join(f"{one} [{number}]" for number, one in enumerate(marked, 1))
        cited = hits + (
            re.findall(r"planted-\w+", " ".join(texts)) if self.has("cites what is named") else []
        )
        if self.has("cites hidden"):
            cited = [name for name, _ in self.matches(topic, everyone)]
        return Answer(text, cited)

    def close(self) -> None:
        if self._home:
            shutil.rmtree(self._home)
