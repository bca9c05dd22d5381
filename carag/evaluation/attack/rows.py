"""Checks of what is returned: rows that are closed to a reader, and rows that are missing."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from carag.evaluation.attack.findings import Finding, NotTried
from carag.evaluation.attack.target import Where

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.evaluation.attack.probe import Probe

_KS: Final = (1, 5, 50)
_HOSTILE: Final = r"""* % .* __________ x'_OR_'1'='1 x"_OR_"1"=="1 x')_OR_('1'='1 x"]_or_id_!=_" x\ {}'_-- {}_ {}x {},{}
x}}_|_@audience:{{{} x|{} null"""
"""Names that escape from a filter put together as text, or match as a pattern; an underscore stands for a space."""
_REFUSED: Final = "no row, or an error"
_ONLY: Final = "only rows for the reader"


def _mixed(probe: Probe, hidden: int) -> str:
    """Plant reports of which the reader may see 10, and hidden ones that come before them; return their topic."""
    topic, reader, officer = probe.word(), probe.reader, probe.officer
    probe.plant(probe.reports(topic, 8, reader) + probe.reports(topic, 2, reader, officer))
    probe.rows(topic, 10)
    if probe.made_up:
        # Names that a filter may confuse with the reader's: by a substring, a pattern, or without regard to case.
        for name in (f"{reader}s", f"x{reader}", reader[:-1], reader.upper(), "%", "*", ","):
            with suppress(NotTried):  # a target that refuses such a name cannot confuse it
                probe.plant(probe.reports(topic, 2, name, near=True))
    with suppress(NotTried):  # nor can one that refuses documents for no one show them
        probe.plant(probe.reports(topic, 3, near=True))
    probe.plant(probe.reports(topic, hidden, officer, near=True))
    return topic


def closed(probe: Probe) -> Iterator[Finding]:
    """See whether rows that the reader may not see are returned."""
    topic = _mixed(probe, probe.bounds.hidden)
    for k in _KS:
        for question in (f"{topic} report", topic):
            for row in probe.closed_rows(probe.seen(question, k, probe.reader), probe.reader):
                names = ", ".join(sorted(probe.planted[row].audience)) or "no one"
                came = f"{row}, for {names}, asked by {probe.reader}"
                yield Finding(f"{question!r}, k = {k}", came, _ONLY)


def forgotten(probe: Probe) -> Iterator[Finding]:
    """See whether rows are returned if no reader is named."""
    topic = _mixed(probe, 5)
    for whom in (None, ""):
        seen = probe.seen(f"{topic} report", 10, whom)
        if probe.closed_rows(seen):
            yield Finding(f"as_whom = {whom!r}", str(seen), _REFUSED)


def unknown(probe: Probe) -> Iterator[Finding]:
    """See whether rows are returned to a name that stands in no document, or is written to escape from a filter."""
    if not probe.made_up:
        raise NotTried("the target brings its own readers")
    topic, reader = probe.word(), probe.reader
    probe.plant(probe.reports(topic, 5, reader) + probe.reports(topic, 5, probe.officer))
    probe.rows(topic, 10)
    hostile = _HOSTILE.format(*[reader] * 4, probe.officer, reader, reader).split()
    for one in (probe.word(), reader[:4], reader.capitalize(), *hostile):
        whom = one if one.startswith("__") else one.replace("_", " ")
        seen = probe.seen(topic, 10, whom)
        if probe.closed_rows(seen, whom):
            yield Finding(f"as_whom = {whom!r}", str(seen), _REFUSED)


def overridden(probe: Probe) -> Iterator[Finding]:
    """See whether a filter that the caller chooses widens what is returned."""
    yield from _filtered(probe, Where(frozenset({probe.officer})))
    yield from _filtered(probe, Where(frozenset({probe.reader, probe.officer})))


def inverted(probe: Probe) -> Iterator[Finding]:
    """See whether a negated filter that the caller chooses returns what is closed."""
    yield from _filtered(probe, Where(frozenset({probe.reader}), negated=True))
    yield from _filtered(probe, Where(frozenset({probe.word()}), negated=True))


def _filtered(probe: Probe, where: Where) -> Iterator[Finding]:
    probe.offers("search_where")
    topic = _mixed(probe, 5)
    control = probe.seen(topic, 50, probe.reader, Where(frozenset({probe.reader})))
    if not probe.planted.keys() & set(control.ids):
        raise NotTried(f"a filter for the reader's own rows gave {control}")
    seen = probe.seen(topic, 50, probe.reader, where)
    if seen.error and where.negated:
        raise NotTried(f"a negated filter gave {seen.error}")
    if rows := probe.closed_rows(seen, probe.reader):
        asked = f"{'none' if where.negated else 'one'} of {', '.join(sorted(where.names))}"
        yield Finding(asked, f"{len(rows)} closed rows, such as {rows[0]}", _ONLY)


def fewer(probe: Probe) -> Iterator[Finding]:
    """See whether fewer than k rows are returned, though more are open to the reader, because of hidden ones."""
    for open_ones in (3, 20):
        topic = probe.word()
        probe.plant(probe.reports(topic, open_ones, probe.reader))
        ks = [k for k in (1, 3, 10, 20) if k <= open_ones]
        before = {k: len(probe.rows(f"{topic} report", k).ids) for k in ks}
        probe.plant(probe.reports(topic, probe.bounds.hidden, probe.officer, near=True))
        for k, many in before.items():
            seen = probe.seen(f"{topic} report", k, probe.reader)
            if seen.error:  # once may be an accident
                seen = probe.seen(f"{topic} report", k, probe.reader)
            # What is closed does not count: it is another check's finding.
            came = len(set(seen.ids) - {*probe.closed_rows(seen, probe.reader)})
            if came < min(k, many):
                asked = f"'{topic} report', k = {k}, {probe.bounds.hidden} nearer hidden rows"
                yield Finding(asked, seen.error or f"{came} rows", f"{many} rows, as without hidden ones")


def fetched(probe: Probe) -> Iterator[Finding]:
    """See whether a closed document is returned by its id, or is refused otherwise than an id that does not exist."""
    get, topic, absent = probe.offers("get"), probe.word(), f"planted-{probe.word()}"
    own, hidden = (probe.reports(topic, 1, name)[0] for name in (probe.reader, probe.officer))
    probe.plant([own, hidden])
    if not probe.done("get", get, own.id, probe.reader):
        raise NotTried("`get` returned nothing for a document that the reader may see")
    replies = [(one, *probe.tried(get, one, probe.reader)) for one in (hidden.id, absent)]
    told = [f"{reply!r} {error}".replace(one, "ID")[:300] for one, reply, error in replies]
    if told[0] != told[1]:
        came = f"{told[0]}; for an id that does not exist {told[1]}"
        yield Finding("get of a closed document's id", came, "the same reply for both")
