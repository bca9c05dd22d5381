"""Name the place of a clause, such as ``Annex II, clause 4(b)(ii)``."""

from __future__ import annotations

from typing import Final, NamedTuple


class Path(NamedTuple):
    """The place of a piece of text: the headings above it, and the labels of its clause, the outermost first."""

    headings: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    def __str__(self) -> str:
        clause = ("clause " + "".join(self.labels),) if self.labels else ()
        return ", ".join((*self.headings, *clause))


NOWHERE: Final = Path()


def between(first: Path, last: Path) -> str:
    """Name the range from one piece to another, as a citation shows it."""
    if first == last or (not last.labels and last.headings == first.headings[: len(last.headings)]):
        return str(first)
    if not first.labels and first.headings == last.headings:
        return ", ".join((*first.headings, "up to clause " + "".join(last.labels)))
    if first.headings != last.headings:
        return " to ".join(str(one) for one in (first, last) if any(one))
    same = len(first.labels) == len(last.labels) and first.labels[:-1] == last.labels[:-1]
    end = last.labels[-1] if same else "".join(last.labels)
    return ", ".join((*first.headings, f"clauses {''.join(first.labels)}-{end}"))
