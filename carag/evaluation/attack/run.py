"""Run every check on one target, and remove what was planted, however it ends."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING, Final

from carag.evaluation.attack import answers, channels, lifecycle, rows, timing
from carag.evaluation.attack.findings import MOST_FINDINGS, NotTried, Outcome, Report
from carag.evaluation.attack.probe import QUICK, Probe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from carag.evaluation.attack.findings import Finding
    from carag.evaluation.attack.probe import Bounds
    from carag.evaluation.attack.target import Target

    _Check = Callable[[Probe], Iterator[Finding]]

CHECKS: Final[tuple[_Check, ...]] = (
    *(rows.closed, rows.forgotten, rows.unknown, rows.overridden, rows.inverted, rows.fewer, rows.fetched),
    *(
        channels.count,
        channels.score,
        channels.order,
        channels.error,
        channels.suggestion,
        channels.statistics,
    ),
    *(lifecycle.stale, lifecycle.replaced, lifecycle.deleted, lifecycle.added_again, lifecycle.files),
    *(answers.told, answers.instructed, answers.cited, timing.time),
)
"""All checks, in their order; the first says whether a target can be tested at all."""


def attack(
    target: Target,
    name: str,
    bounds: Bounds = QUICK,
    *,
    seed: int = 0,
    clock: Callable[[], float] = perf_counter,
    checks: tuple[_Check, ...] = CHECKS,
    say: Callable[[str], object] = lambda _: None,
) -> Report:
    """Attack a target, and report what was found.

    Parameters
    ----------
    target : Target
        It is given documents of its own, and closed at the end.
    name : str
        What the report calls it.
    bounds : Bounds
        Time is looked at between requests, so that one request that hangs is not interrupted.
    seed : int
        Decides all documents and questions.
    clock : callable
        Returns seconds; what a timing is measured with.
    checks : tuple of callable
        Some of :data:`CHECKS`.
    say : callable
        Is called with a line about each check that begins.

    Returns
    -------
    Report
    """
    probe = Probe(target, bounds, seed, clock)
    outcomes: dict[str, Outcome] = {}
    left = ""
    try:
        for number in range(bounds.rounds):
            for check in checks:
                made = _made(probe, check)
                say(f"round {number + 1} of {bounds.rounds}, {made.check}: {made.state}")
                outcomes[made.check] = _joined(outcomes.get(made.check), made)
    finally:
        left = probe.clean()
        with suppress(Exception):  # a target's own end is not a finding
            getattr(target, "close", lambda: None)()
    seconds = probe.clock() - probe.started
    return Report(name, seed, seconds, probe.requests, tuple(outcomes.values()), left)


def _made(probe: Probe, check: _Check) -> Outcome:
    """Make one check, and remove its documents, so that it changes nothing for the next."""
    begun, name = probe.requests, check.__name__.replace("_", " ")
    found: list[Finding] = []
    not_tried = ""
    try:
        found.extend(replace(one, check=name) for one in islice(check(probe), MOST_FINDINGS))
    except NotTried as why:
        not_tried = str(why)
    if callable(getattr(probe.target, "delete", None)):
        probe.clean()
    title = (check.__doc__ or "").partition("\n")[0].removeprefix("See whether ").rstrip(".")
    return Outcome(name, title, tuple(found), not_tried, probe.requests - begun)


def _joined(before: Outcome | None, after: Outcome) -> Outcome:
    """Join the outcomes of a check in two rounds: what was tried once was tried."""
    if before is None:
        return after
    not_tried = before.not_tried and after.not_tried
    found = (*before.findings, *after.findings)[:MOST_FINDINGS]
    return Outcome(after.check, after.title, found, not_tried, before.requests + after.requests)
