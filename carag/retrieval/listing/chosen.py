"""Choose the documents that a question about the documents themselves asks for, among those that a session may use."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from carag.labelling.acts import Done, done
from carag.labelling.document import ActKind
from carag.policy import from_minutes
from carag.retrieval.reading.collective import Order, read_choice, title_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from zoneinfo import ZoneInfo

    from numpy.typing import NDArray

    from carag.policy import Decision, Vocabulary
    from carag.retrieval.authority import Inquiry
    from carag.retrieval.catalogue import Understood
    from carag.retrieval.listing.admitted import Admitted
    from carag.retrieval.listing.catalogued import Catalogued
    from carag.retrieval.reading import Declared, Documents
    from carag.retrieval.reading.collective import Choice
    from carag.store.store import CorpusStore


_INITIALS: Final = re.compile(r"[a-z]{2,6}(?=/)")
"""The authority in a number such as RBI/2024-25/93, in lower case."""
_LONGEST: Final = 80
"""Characters in the longest value of a field that a question may name."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_REVISES: Final = frozenset({ActKind.AMENDS})
"""A new version of a document's text counts as such an act."""


class Chosen(NamedTuple):
    """The documents that a question asks for."""

    choice: Choice
    numbers: list[int]
    """By their numbers in the store, newest first unless the oldest are asked for."""
    among: int
    """How many there are before only the latest or oldest are taken."""


def chosen(
    question: str,
    collection: Catalogued,
    admitted: Admitted,
    decision: Decision,
    authority: Inquiry | None = None,
) -> Chosen | None:
    """Choose among the documents that a session may use; None if the question is not certain to ask for documents.

    ``authority`` is asked about the documents chosen, and those that it does not allow are not counted either.
    """
    catalogue, vocabulary = collection.catalogue, collection.profile.vocabulary
    understood = catalogue.read(question, admitted.numbers)
    choice = _choice(question, understood, catalogue.declared, vocabulary, decision)
    if choice is None:
        return None
    records = understood.records
    titled = np.array([choice.words <= title_words(one) for one in records.titles], np.bool_)
    if choice.words and not titled.any():  # the words may be of a text
        return None
    found = titled & _meets(choice, understood)
    if choice.changed:
        found &= _changed(choice, collection.store, records, vocabulary.zone, decision)
    at = np.flatnonzero(found)
    ids = records.ids
    if authority is not None:
        allowed = authority.allows(ids[one] for one in at)
        at = at[[ids[one] in allowed for one in at]]
    days = records.dated.tolist()
    is_oldest = choice.order is Order.OLDEST
    ordered = sorted(at.tolist(), key=lambda one: (_undated(days[one], oldest=is_oldest), ids[one]))
    if choice.order is not None:
        ordered = [one for one in ordered if days[one] > 0]
        first = days[ordered[0]] if ordered else 0
        taken = ordered[: choice.many] or [one for one in ordered if days[one] == first]
        return Chosen(choice, records.numbers[taken].tolist(), len(at))
    return Chosen(choice, records.numbers[ordered].tolist(), len(at))


def _choice(
    question: str, understood: Understood, declared: Declared, vocabulary: Vocabulary, decision: Decision
) -> Choice | None:
    named = {declared.title, *declared.numbers}
    fields = () if declared.companies else [name for name in understood.fields if name not in named]

    def values() -> dict[str, set[str]]:
        return {name: {one for one in understood.stated(name) if 1 < len(one) <= _LONGEST} for name in fields}

    rules = vocabulary.intents.named(decision.intents)
    return read_choice(
        question,
        understood.reading,
        declared,
        profile=vocabulary.profile,
        values=values,
        authorities=_authorities(understood, declared),
        intents=[phrase for rule in rules for phrase in rule.phrases],
    )


def _authorities(understood: Understood, declared: Declared) -> Iterator[str]:
    """Yield the initials with which most of the documents' numbers begin."""
    for name in declared.numbers[:1]:
        numbers = [one for one in understood.stated(name) if one]
        begins = Counter(match[0] for one in numbers if (match := _INITIALS.match(one)))
        yield from (one.upper() for one, often in begins.items() if 2 * often > len(numbers))


def _meets(choice: Choice, understood: Understood) -> NDArray[np.bool_]:
    """Tell which documents meet the conditions that their metadata decide, except that on titles."""
    records = understood.records
    found = np.ones(len(records), np.bool_)
    if choice.entities:
        found &= records.of_entities(choice.entities)
    if choice.kinds:
        found &= records.of_kinds(choice.kinds)
    if choice.is_amendment:
        found &= np.array([one.endswith("/a") for one in understood.stated("form")], np.bool_)
    for name, values in choice.values:
        found &= np.array([one in values for one in understood.stated(name)], np.bool_)
    bounds = choice.bounds
    if bounds is not None and not choice.changed:
        days = records.dated if bounds.of == "dated" else records.periods
        first = 1 if bounds.first is None else bounds.first.toordinal()
        last = date.max.toordinal() if bounds.last is None else bounds.last.toordinal()
        found &= (days >= first) & (days <= last)
    return found


def _undated(day: int, *, oldest: bool) -> int:
    """Return a key of order by day, under which unknown days are last."""
    return (day if oldest else -day) if day else date.max.toordinal()


# --- what documents do to each other ----------------------------------------------------------------------


def acts_among(store: CorpusStore, numbers: Sequence[int], decision: Decision) -> list[Done]:
    """Return what some documents have done to one another by the session's instant; no other document has a part."""
    facts = [one for one in store.documents.facts_in(numbers) if "public_at" in one]
    ids = {one["id"] for one in facts}
    ended = [
        Done(ActKind.REPLACES, one["public_at"], one["id"], one["supersedes"])
        for one in facts
        if one["supersedes"] in ids
    ]
    return [act for act in (*ended, *done(facts)) if act.at <= decision.as_of]


def _changed(
    choice: Choice, store: CorpusStore, records: Documents, zone: ZoneInfo, decision: Decision
) -> NDArray[np.bool_]:
    """Tell which documents were changed within the bounds: by other documents, or by a new version of their text."""
    days: dict[str, list[date]] = {}
    for act in acts_among(store, records.numbers.tolist(), decision):
        if act.kind in choice.changed:
            days.setdefault(act.to, []).append(from_minutes(act.at).astimezone(zone).date())
    if choice.changed & _REVISES:
        of = dict(zip(records.numbers.tolist(), records.ids, strict=True))
        for number, since in store.documents.revised(of).items():
            known = _EPOCH + timedelta(microseconds=since)
            days.setdefault(of[number], []).append(known.astimezone(zone).date())
    bounds = choice.bounds
    return np.array(
        [any(bounds is None or bounds.holds(day) for day in days.get(one, ())) for one in records.ids],
        np.bool_,
    )
