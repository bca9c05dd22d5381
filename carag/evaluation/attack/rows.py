"""Checks of what is returned: rows that are closed to a reader, and rows that are missing."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from carag.evaluation.attack.findings import Finding, NotTried
from carag.evaluation.attack.target import Document, Where

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.evaluation.attack.probe import Probe

_KS: Final = (1, 5, 50)


def _mixed(probe: Probe, topic: str, hidden: int) -> None:
    """Plant reports of which the reader may see 10, and hidden ones that come before them."""
    reader, officer = probe.reader, probe.officer
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


def closed(probe: Probe) -> Iterator[Finding]:
    """See whether rows that the reader may not see are returned."""
    topic = probe.word()
    _mixed(probe, topic, probe.bounds.hidden)
    for k in _KS:
        for question in (f"{topic} report", topic):
            seen = probe.seen(question, k, probe.reader)
            for row in probe.closed_rows(seen, probe.reader):
                audience = sorted(probe.planted[row].audience)
                came = f"{row}, for {', '.join(audience) or 'no one'}, asked by {probe.reader}"
                yield Finding("closed", f"{question!r}, k = {k}", came, "only rows for the reader")


def forgotten(probe: Probe) -> Iterator[Finding]:
    """See whether without a reader, rows are returned."""
    topic = probe.word()
    _mixed(probe, topic, 5)
    for whom in (None, ""):
        seen = probe.seen(f"{topic} report", 10, whom)
        if probe.closed_rows(seen):
            yield Finding("forgotten", f"as_whom = {whom!r}", str(seen), "no row, or an error")


def unknown(probe: Probe) -> Iterator[Finding]:
    """See whether rows are returned to a name that stands in no document, or that is written to escape from a filter."""
    if not probe.made_up:
        raise NotTried("the target brings its own readers")
    topic, reader = probe.word(), probe.reader
    probe.plant(probe.reports(topic, 5, reader) + probe.reports(topic, 5, probe.officer))
    probe.rows(topic, 10)
    hostile = (
        *(
            probe.word(),
            reader[:4],
            f"{reader} ",
            f"{reader}x",
            reader.capitalize(),
            "*",
            "%",
            ".*",
            "_" * 10,
        ),
        *(
            "x' OR '1'='1",
            'x" OR "1"=="1',
            "x') OR ('1'='1",
            'x"] or id != "',
            "x\\",
            f"{reader}' --",
            "null",
        ),
        *(f"{reader},{probe.officer}", f"x}} | @audience:{{{reader}", f"x|{reader}"),
    )
    for whom in hostile:
        seen = probe.seen(topic, 10, whom)
        if probe.closed_rows(seen, whom):
            yield Finding("unknown", f"as_whom = {whom!r}", str(seen), "no row, or an error")


def overridden(probe: Probe) -> Iterator[Finding]:
    """See whether a filter that the caller chooses widens what is returned."""
    yield from _filtered(probe, "overridden", Where(frozenset({probe.officer})))
    yield from _filtered(probe, "overridden", Where(frozenset({probe.reader, probe.officer})))


def inverted(probe: Probe) -> Iterator[Finding]:
    """See whether a negated filter that the caller chooses returns what is closed."""
    yield from _filtered(probe, "inverted", Where(frozenset({probe.reader}), negated=True))
    yield from _filtered(probe, "inverted", Where(frozenset({probe.word()}), negated=True))


def _filtered(probe: Probe, check: str, where: Where) -> Iterator[Finding]:
    probe.offers("search_where")
    topic = probe.word()
    _mixed(probe, topic, 5)
    control = probe.seen(topic, 50, probe.reader, Where(frozenset({probe.reader})))
    if not probe.planted.keys() & set(control.ids):
        raise NotTried(f"a filter for the reader's own rows gave {control}")
    seen = probe.seen(topic, 50, probe.reader, where)
    if seen.error and where.negated:
        raise NotTried(f"a negated filter gave {seen.error}")
    if rows := probe.closed_rows(seen, probe.reader):
        names = ", ".join(sorted(where.names))
        came = f"{len(rows)} closed rows, such as {rows[0]}"
        yield Finding(
            check, f"{'none' if where.negated else 'one'} of {names}", came, "only rows for the reader"
        )


def fewer(probe: Probe) -> Iterator[Finding]:
    """See whether fewer than k rows are returned although more are open to the reader: hidden ones took their places."""
    for open_ones in (3, 20):
        topic = probe.word()
        probe.plant(probe.reports(topic, open_ones, probe.reader))
        ks = [k for k in (1, 3, 10, 20) if k <= open_ones]
        before = {k: len(probe.rows(f"{topic} report", k).ids) for k in ks}
        probe.plant(probe.reports(topic, probe.bounds.hidden, probe.officer, near=True))
        for k in ks:
            seen = probe.seen(f"{topic} report", k, probe.reader)
            # What is closed does not count: it is another check's finding.
            came = len(set(seen.ids) - {*probe.closed_rows(seen, probe.reader)})
            if came < min(k, before[k]):
                asked = f"{topic!r} report, k = {k}, {probe.bounds.hidden} nearer hidden rows"
                yield Finding(
                    "fewer", asked, seen.error or f"{came} rows", f"{before[k]} rows, as before hidden ones"
                )


def fetched(probe: Probe) -> Iterator[Finding]:
    """See whether a closed document is returned by its id, or the refusal differs from that for an id that does not exist."""
    get = probe.offers("get")
    topic = probe.word()
    own, hidden = probe.reports(topic, 1, probe.reader)[0], probe.reports(topic, 1, probe.officer)[0]
    absent = Document(f"planted-{probe.word()}", "", frozenset())
    probe.plant([own, hidden])
    if not probe.done("get", get, own.id, probe.reader):
        raise NotTried("`get` returned nothing for a document that the reader may see")
    told = []
    for one in (hidden, absent):
        reply, error = probe.tried(get, one.id, probe.reader)
        told.append(f"{reply!r} {error}".replace(one.id, "ID"))
    if told[0] != told[1]:
        came = f"{told[0][:200]}; for an id that does not exist {told[1][:200]}"
        yield Finding("fetched", "get of a closed document's id", came, "the same reply for both")
