"""Checks of what tells that hidden documents exist: the same question before and after they are planted.

Nothing that a reader sees may depend on them (noninterference; Goguen and Meseguer, 1982).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from carag.evaluation.attack.findings import Finding, NotTried

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from carag.evaluation.attack.probe import Probe, Seen
    from carag.evaluation.attack.target import Document

_TIMES: Final = 3
"""How often a question is asked; only what is the same each time is compared."""
_K: Final = 8
_ROUNDING: Final = 1e-6
"""A relative change of a score that single precision alone may cause, in a library that multiplies in blocks."""


class _Twins(NamedTuple):
    """What a reader saw of a question without and with hidden documents."""

    question: str
    before: Seen
    after: Seen


def _steady(probe: Probe, question: str) -> Seen:
    first, *others = (probe.seen(question, _K, probe.reader) for _ in range(_TIMES))
    if any(_moved(first, one) or one._replace(scores=()) != first._replace(scores=()) for one in others):
        raise NotTried("the same question gives different replies without any change")
    return first


def _twins(probe: Probe) -> list[_Twins]:
    """Ask about a topic on which the reader has rows, and about two that stand in hidden documents alone."""
    topic, other = probe.word(), probe.word()
    hidden = probe.reports(topic, probe.bounds.hidden, probe.officer, near=True)
    hidden += probe.reports(other, 3, probe.officer)
    probe.plant(probe.reports(topic, 2 * _K, probe.reader))
    probe.rows(topic, _K)
    secret = hidden[0].text.split()[-1].strip(".")
    questions = (f"{topic} report", f"{other} report", secret, secret[:6])
    before = [_steady(probe, one) for one in questions]
    probe.plant(hidden)
    return [_Twins(one, was, _steady(probe, one)) for one, was in zip(questions, before, strict=True)]


def _compared(
    probe: Probe, check: str, offers: Callable[[Seen], bool], differs: Callable[[Probe, Seen, Seen], str]
) -> Iterator[Finding]:
    twins = _twins(probe)
    if not any(offers(one.before) or offers(one.after) for one in twins):
        raise NotTried(f"`search` shows no {check}")
    for one in twins:
        if came := differs(probe, one.before, one.after):
            yield Finding(check, repr(one.question), came, "the same as before", _sure())


def _sure() -> str:
    return f"deterministic: the same in {_TIMES} of {_TIMES} searches before and after"


def count(probe: Probe) -> Iterator[Finding]:
    """See whether a count changes when hidden documents are added."""

    def differs(_: Probe, before: Seen, after: Seen) -> str:
        told = not after.error and before.total != after.total
        return f"a count of {before.total} became {after.total}" if told else ""

    yield from _compared(probe, "count", lambda seen: seen.total is not None, differs)


def score(probe: Probe) -> Iterator[Finding]:
    """See whether a row's score changes when hidden documents are added."""
    yield from _compared(probe, "score", _has_scores, lambda _, before, after: _moved(before, after))


def order(probe: Probe) -> Iterator[Finding]:
    """See whether the rows of the reader, or their order, change when hidden documents are added."""
    yield from _compared(probe, "order", lambda seen: len(seen.ids) > 1, _reordered)


def error(probe: Probe) -> Iterator[Finding]:
    """See whether a search fails because of hidden documents, or fails in another way."""

    def differs(_: Probe, before: Seen, after: Seen) -> str:
        return (
            f"{before.error or 'no error'} became {after.error or 'no error'}"
            if before.error != after.error
            else ""
        )

    yield from _compared(probe, "error", lambda _: True, differs)


def suggestion(probe: Probe) -> Iterator[Finding]:
    """See whether suggestions, such as completions, corrections and facets, change when hidden documents are added."""

    def differs(_: Probe, before: Seen, after: Seen) -> str:
        told = before.suggestions != after.suggestions and not after.error
        return f"{before.suggestions} became {after.suggestions}" if told else ""

    yield from _compared(probe, "suggestion", lambda seen: seen.suggestions is not None, differs)


def statistics(probe: Probe) -> Iterator[Finding]:
    """See whether statistics of words, such as how rare one is or how long a document is, count hidden documents."""
    words = [probe.word() for _ in range(2)]
    question = " ".join(words)
    own = [one for word in words for one in probe.reports(word, 2, probe.reader)]
    probe.plant(own)
    probe.rows(question, _K)
    before = _steady(probe, question)
    batches: dict[str, list[Document]] = {
        f"hold {words[0]!r}": probe.reports(words[0], probe.bounds.hidden, probe.officer),
        f"hold {words[1]!r}": probe.reports(words[1], 2 * probe.bounds.hidden, probe.officer),
        "are long": [
            type(one)(one.id, " ".join([one.text, *(probe.word() for _ in range(60))]), one.audience)
            for one in probe.reports(probe.word(), 10, probe.officer)
        ],
    }
    for what, hidden in batches.items():
        probe.plant(hidden)
        after = _steady(probe, question)
        if came := _reordered(probe, before, after) or _moved(before, after):
            yield Finding(
                "statistics",
                f"{question!r}, hidden documents that {what}",
                came,
                "the same as before",
                _sure(),
            )


def _has_scores(seen: Seen) -> bool:
    return any(one is not None for one in seen.scores)


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
