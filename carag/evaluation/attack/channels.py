"""Checks of what tells that hidden documents exist: the same question before and after they are planted.

Nothing that a reader sees may depend on them (noninterference; Goguen and Meseguer, 1982).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carag.evaluation.attack.findings import Finding, NotTried

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from carag.evaluation.attack.probe import Probe, Seen

_TIMES: Final = 3
"""How often a question is asked; only what is the same each time is compared."""
_K: Final = 8
_ROUNDING: Final = 1e-6
"""A relative change of a score that single precision alone may cause, in a library that multiplies in blocks."""
_SURE: Final = f"deterministic: the same in {_TIMES} of {_TIMES} searches before and after"
_RIGHT: Final = "the same as before"


def _steady(probe: Probe, question: str) -> Seen:
    first, *others = (probe.seen(question, _K, probe.reader) for _ in range(_TIMES))
    if any(_moved(first, one) or one._replace(scores=()) != first._replace(scores=()) for one in others):
        raise NotTried("the same question gives different replies without any change")
    return first


def _compared(
    probe: Probe, what: str, shows: Callable[[Seen], bool], differs: Callable[[Probe, Seen, Seen], str]
) -> Iterator[Finding]:
    """Ask about a topic on which the reader has rows, and about what stands in hidden documents alone."""
    topic, other = probe.word(), probe.word()
    hidden = probe.reports(topic, probe.bounds.hidden, probe.officer, near=True)
    hidden += probe.reports(other, 3, probe.officer)
    secret = hidden[0].text.split()[-1].strip(".")
    probe.plant(probe.reports(topic, 2 * _K, probe.reader))
    probe.rows(topic, _K)
    before = {one: _steady(probe, one) for one in (f"{topic} report", f"{other} report", secret, secret[:6])}
    probe.plant(hidden)
    after = {one: _steady(probe, one) for one in before}
    if not any(map(shows, (*before.values(), *after.values()))):
        raise NotTried(f"`search` shows no {what}")
    for one in before:
        if came := differs(probe, before[one], after[one]):
            yield Finding(repr(one), came, _RIGHT, _SURE)


def _field(name: str) -> tuple[Callable[[Seen], bool], Callable[[Probe, Seen, Seen], str]]:
    """Return what tells whether a search shows a field, and what compares it; an error is another check's matter."""

    def differs(_: Probe, before: Seen, after: Seen) -> str:
        was, now = getattr(before, name), getattr(after, name)
        return f"{was} became {now}" if was != now and not after.error else ""

    return lambda seen: getattr(seen, name) is not None, differs


def count(probe: Probe) -> Iterator[Finding]:
    """See whether a count changes when hidden documents are added."""
    yield from _compared(probe, "count", *_field("total"))


def score(probe: Probe) -> Iterator[Finding]:
    """See whether a row's score changes when hidden documents are added."""
    yield from _compared(probe, "scores", lambda one: {*one.scores} - {None} != set(), _scores)


def order(probe: Probe) -> Iterator[Finding]:
    """See whether the rows of the reader, or their order, change when hidden documents are added."""
    yield from _compared(probe, "two rows", lambda seen: len(seen.ids) > 1, _reordered)


def error(probe: Probe) -> Iterator[Finding]:
    """See whether a search fails because of hidden documents, or fails in another way."""

    def differs(_: Probe, before: Seen, after: Seen) -> str:
        said = [one.error or "no error" for one in (before, after)]
        return " became ".join(said) if before.error != after.error else ""

    yield from _compared(probe, "reply", bool, differs)


def suggestion(probe: Probe) -> Iterator[Finding]:
    """See whether suggestions, such as completions, corrections and facets, change when hidden documents are added."""
    yield from _compared(probe, "suggestions", *_field("suggestions"))


def statistics(probe: Probe) -> Iterator[Finding]:
    """See whether statistics of words, such as how rare one is or how long a document is, count hidden documents."""
    first, second = probe.word(), probe.word()
    question, many = f"{first} {second}", probe.bounds.hidden
    probe.plant(probe.reports(first, 2, probe.reader) + probe.reports(second, 2, probe.reader))
    probe.rows(question, _K)
    before = _steady(probe, question)
    for what, hidden in (
        (f"hold {first!r}", probe.reports(first, many, probe.officer)),
        (f"hold {second!r}", probe.reports(second, 2 * many, probe.officer)),
        ("are long", probe.reports(probe.word(), 10, probe.officer, words=60)),
    ):
        probe.plant(hidden)
        after = _steady(probe, question)
        if came := _reordered(probe, before, after) or _moved(before, after):
            yield Finding(f"{question!r}, hidden documents that {what}", came, _RIGHT, _SURE)


def _scores(_: Probe, before: Seen, after: Seen) -> str:
    return _moved(before, after)


def _moved(before: Seen, after: Seen) -> str:
    was = dict(zip(before.ids, before.scores, strict=True))
    for one, now in zip(after.ids, after.scores, strict=True):
        then = was.get(one)
        if then is not None and now is not None and abs(now - then) > _ROUNDING * max(1.0, abs(then)):
            return f"the score of {one} went from {then:.9g} to {now:.9g}"
    return ""


def _reordered(probe: Probe, before: Seen, after: Seen) -> str:
    """Describe other rows, or another order; rows that are missing at the end are not compared here."""
    closed = {*probe.closed_rows(after, probe.reader)}
    now = [one for one in after.ids if one not in closed]
    at = next((i for i, both in enumerate(zip(before.ids, now, strict=False)) if both[0] != both[1]), None)
    return "" if at is None else f"row {at + 1} was {before.ids[at]} and became {now[at]}"
