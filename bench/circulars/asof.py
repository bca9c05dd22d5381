"""Count how many questions about a day are answered from the text that was then in force.

    CARAG_SHARED_DATA=DIR python -m bench.circulars.asof --out bench/circulars/ASOF.md

Real pairs are those of ``supersedes.tsv`` of which both texts are in ``DIR/rbi/circulars.jsonl.gz``; what one does to
the other is stated in the rows as the table marks it, because reading it from the texts is measured elsewhere
(``SUPERSESSION.md``). The other questions are about invented circulars that :func:`constructed` makes.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import tempfile
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from carag import Engine, Session
from carag.policy import DayUse
from carag.retrieval import ConfidenceGate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from carag.engine import Answer

__all__ = ["NOW", "Asked", "constructed", "judged", "opened", "real"]

_HERE: Final = Path(__file__).parent
NOW: Final = datetime(2026, 11, 2, tzinfo=UTC)
"""The clock of the stores, so that what is today does not move."""
_MANY: Final = 100
"""Questions in all."""
_WEEK: Final = timedelta(days=7)
_FIELD: Final = {"replaces": "supersedes", "withdraws": "withdraws", "amends": "amends"}
"""By act, the field of a row that states it."""
_ROLES: Final = (("compliance", "surveil"), ("analyst", "research"), ("branch", "operate"))
_FORMS: Final = ("on %d %B %Y", "as on %d.%m.%Y", "as of %B %d, %Y", "as at %Y-%m-%d")
_TOPICS: Final = (
    ("lockers", "the rent of a locker"),
    ("passbooks", "the fee for a lost passbook"),
    ("cheques", "the charge for a returned cheque"),
    ("ferries", "the advance on a ferry's freight"),
    ("orchards", "the margin of a loan on an orchard"),
    ("guarantees", "the commission on a guarantee"),
    ("postal orders", "the limit of a postal order"),
    ("coins", "the bag of coins that a branch accepts"),
    ("looms", "the subsidy for a hand loom"),
    ("tickets", "the deposit for season tickets"),
    ("warehouses", "the share of a warehouse receipt that is lent"),
    ("seals", "the price of a seal for a bag of notes"),
    ("pensions", "the delay of a pension payment"),
    ("telegrams", "the cost of a telegraphic transfer"),
)
"""Subjects of invented circulars."""


_FIRST: Final = (0, "", 0)
_CASES: Final[
    tuple[tuple[str, tuple[tuple[int, str, int], ...], tuple[tuple[int, int | None, int | None], ...]], ...]
] = (
    (
        "once",
        ((365, "superseded", 0),),
        ((0, 0, 1), (364, 0, 1), (365, 1, None), (372, 1, None), (730, 1, None)),
    ),
    (
        "chain",
        ((365, "superseded", 0), (730, "superseded", 0)),
        ((0, 0, 2), (364, 0, 2), (365, 1, 2), (729, 1, 2), (730, 2, None), (737, 2, None)),
    ),
    ("same day", ((0, "superseded", 0),), ((0, 1, None), (7, 1, None), (365, 1, None), (730, 1, None))),
    (
        "amended",
        ((365, "modified as stated here", 0),),
        ((0, 0, 1), (7, 0, 1), (121, 0, 1), (182, 0, 1), (364, 0, 1)),
    ),
    (
        "withdrawn",
        ((365, "withdrawn", 0),),
        ((0, 0, 1), (7, 0, 1), (364, 0, 1), (365, None, None), (372, None, None)),
    ),
    (
        "pending",
        ((365, "superseded", 60),),
        ((0, 0, 1), (365, 0, 1), (372, 0, 1), (424, 0, 1), (425, 1, None), (432, 1, None)),
    ),
)
"""What becomes of an invented circular: later versions, each with the days after the first on which it is issued, what
it does to the one before, and the days until it is in force; and days to ask about, each with the version then in force
and the one that is named beside."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about a day, and what must and what must not be cited."""

    id: str
    case: str
    question: str
    day: date
    role: str
    purpose: str
    then: str | None
    """The circular in force that day; None if none was, and then nothing of ``never`` may be cited."""
    never: frozenset[str]
    """Circulars on the same subject that were not in force that day."""
    beside: str | None = None
    """The circular that must be named as having replaced, withdrawn or amended it since."""


def constructed() -> tuple[list[dict[str, Any]], list[Asked]]:
    """Make invented circulars in versions, and questions about days between them."""
    rows: list[dict[str, Any]] = []
    asked: list[Asked] = []
    for number, case in enumerate(zip(_TOPICS, cycle(_CASES), strict=False)):
        (topic, what), (kind, versions, days) = case
        first = date(2019, 1, 7) + timedelta(days=17 * number)
        ids = [f"invented-{number}-{version}" for version in range(len(versions) + 1)]
        for version, (issued, act, force) in enumerate((_FIRST, *versions)):
            day = first + timedelta(days=issued)
            does = f"The circular {rows[-1]['circular_number']} stands {act}. " if act else ""
            rule = f"1. For {topic}, {what} shall be {version + 1}{number + 1}0 crowns at most."
            rows.append(
                {
                    "id": ids[version],
                    "circular_number": f"BAE/{day.year}-{(day.year + 1) % 100:02}/{len(rows) + 101}",
                    "title": f"Withdrawal {number}" if act == "withdrawn" else f"Instructions on {topic}",
                    "date": day.isoformat(),
                    "effective_date": (day + timedelta(days=force)).isoformat(),
                    "meant_for": "All Commercial Banks",
                    "doc_type": "circular",
                    "text": f"1. {does}"
                    if act == "withdrawn"
                    else f"{rule}\n\n2. {does}It is read with the other rules.",
                }
            )
        for after, then, beside in days:
            day = first + timedelta(days=after)
            role, purpose = _ROLES[len(asked) % len(_ROLES)]
            never = {id_ for at, id_ in enumerate(ids) if at != then}
            asked.append(
                Asked(
                    f"c{len(asked) + 1:03}",
                    kind,
                    f"What was {what} {day.strftime(_FORMS[len(asked) % len(_FORMS)])}?",
                    day,
                    role,
                    purpose,
                    None if then is None else ids[then],
                    # Who withdraws may be cited once it has; until then it is in force no more than a later version.
                    frozenset(never if kind != "withdrawn" or then is not None else {ids[0]}),
                    None if beside is None else ids[beside],
                )
            )
    return rows, asked


def real(data: Path) -> tuple[list[dict[str, Any]], list[Asked]]:
    """Return the rows of the data, with what the table marks stated in them, and questions about the marked pairs."""
    with gzip.open(data / "rbi" / "circulars.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = {row["id"]: row for row in map(json.loads, lines)}
    pairs: dict[tuple[str, str], tuple[str, date]] = {}
    with (_HERE / "supersedes.tsv").open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file, delimiter="\t"):
            new, old, act = line["circular"], line["row"], line["act"]
            if (
                old == "-"
                or act == "none"
                or not all(rows[one]["date"] and rows[one]["text"] for one in (new, old))
            ):
                continue
            since = date.fromisoformat(line["effective"] if line["effective"] != "-" else rows[new]["date"])
            known = pairs.get((old, new))
            if known is None or (list(_FIELD).index(act), since) < (list(_FIELD).index(known[0]), known[1]):
                pairs[old, new] = act, since
    for (old, new), (act, _) in pairs.items():
        rows[new].setdefault(_FIELD[act], []).append(old)
    ended: dict[str, tuple[date, str]] = {}
    for (old, new), (act, since) in pairs.items():
        if act != "amends" and since <= NOW.date():
            ended[old] = min(ended.get(old, (date.max, "")), (date.fromisoformat(rows[new]["date"]), new))
    asked: list[Asked] = []
    for (old, new), (act, since) in sorted(pairs.items()):
        issued = date.fromisoformat(rows[new]["date"])
        before, after = issued - timedelta(days=1), max(issued, since) + _WEEK
        days: list[tuple[date, str, frozenset[str], str | None]] = []
        if date.fromisoformat(rows[old]["date"]) <= before < ended.get(old, (date.max, ""))[0]:
            days.append((before, old, frozenset({new}), _last(new, ended)))
        if act == "replaces" and after < ended.get(new, (date.max, ""))[0]:
            days.append((after, new, frozenset({old}), None))
        for day, then, never, beside in days:
            form = _FORMS[day.toordinal() % len(_FORMS)]
            asked.append(
                Asked(
                    f"r{len(asked) + 1:03}",
                    act,
                    f"What was said under {_named(rows, then, never)} {day.strftime(form)}?",
                    day,
                    *_ROLES[0],
                    then,
                    never,
                    beside,
                )
            )
    return list(rows.values()), list(_once(asked))


def _once(asked: list[Asked]) -> Iterator[Asked]:
    """Yield each question once: where a circular replaces several, of the same title, none of them may be cited."""
    alike: dict[tuple[str, str | None], list[Asked]] = defaultdict(list)
    for one in asked:
        alike[one.question, one.then].append(one)
    for same in alike.values():
        yield replace(same[0], never=frozenset().union(*(one.never for one in same)))


def _last(new: str, ended: dict[str, tuple[date, str]]) -> str:
    """Return what may be used today of what has replaced a circular, and what has replaced that."""
    while new in ended:
        new = ended[new][1]
    return new


def _named(rows: dict[str, dict[str, Any]], then: str, never: frozenset[str]) -> str:
    """Name a circular by its title, and by its number too where a third has the same title."""
    titles = {id_: " ".join(row["title"].split()) for id_, row in rows.items() if row["title"]}
    third = [id_ for id_, title in titles.items() if title == titles[then] and id_ not in {then, *never}]
    number = rows[then]["circular_number"] if third else None
    return f"{number}, “{titles[then]}”" if number else f"“{titles[then]}”"


def _written(one: Asked, form: str) -> Asked:
    """Return a question with its day in another form."""
    for other in _FORMS:
        if one.question.endswith(end := f" {one.day.strftime(other)}?"):
            return replace(one, question=f"{one.question.removesuffix(end)} {one.day.strftime(form)}?")
    raise ValueError(f"{one.id} does not end with its day")


def opened(home: Path, rows: Iterable[dict[str, Any]]) -> Engine:
    """Open a store of rows. Its gate lets all pass: which passages are too distant to answer is not counted here."""
    (home / "in").mkdir(parents=True)
    (home / "in" / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    engine = Engine.open(
        home / "store",
        profile="circulars",
        embedder="wordllama",
        clock=lambda: NOW,
        gate=ConfidenceGate(-1.0),
    )
    engine.ingest(home / "in")  # rows without a text or a day are reported and not found, as in any store
    return engine


def judged(engine: Engine, one: Asked) -> str:
    """Ask, and say what is wrong; empty if the answer is from the text then in force and says what came since."""
    answer = engine.ask(one.question, Session(role=one.role, purpose=one.purpose))
    if answer.asked_day is None or answer.asked_day != (DayUse.USED, (one.day,)):
        return "the day was not read"
    return _wrong_with(answer, one)


def _wrong_with(answer: Answer, one: Asked) -> str:
    cited = {each.accession_number for each in answer.citations}
    if gone := cited & one.never:
        return f"cites {min(gone)}, which was not in force"
    if one.then is None:
        return ""
    if one.then not in cited:
        return f"does not cite {one.then}: {answer.why}"
    beside = {
        each.by.accession_number for each in answer.superseded if each.cited.accession_number == one.then
    }
    return f"does not name {one.beside}" if one.beside is not None and one.beside not in beside else ""


def main() -> None:
    """Count, print and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=os.environ.get("CARAG_SHARED_DATA"))
    parser.add_argument("--out", type=Path, help="default: print only")
    given = parser.parse_args()
    if given.data is None:
        parser.error("set CARAG_SHARED_DATA or give --data: the directory that holds rbi/circulars.jsonl.gz")
    wrong: list[tuple[Asked, str]] = []
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    real_rows, real_asked = real(given.data)
    rows, asked = constructed()
    every: list[str] = []
    for name, several, questions in (
        ("real", real_rows, real_asked[:_MANY]),
        ("constructed", rows, asked[: max(0, _MANY - len(real_asked))]),
    ):
        with tempfile.TemporaryDirectory() as home, opened(Path(home), several) as engine:
            for one in questions:
                said = judged(engine, one)
                counts[name, one.case][0] += not said
                counts[name, one.case][1] += 1
                if said:
                    wrong.append((one, said))
            if name == "real":
                every = [judged(engine, _written(one, form)) for one in questions for form in _FORMS]
    page = _page(counts, wrong, every)
    print(page)
    if given.out:
        given.out.write_text(page, encoding="utf-8")


def _page(counts: dict[tuple[str, str], list[int]], wrong: list[tuple[Asked, str]], every: list[str]) -> str:
    right, of = (sum(many[at] for many in counts.values()) for at in (0, 1))
    table = "\n".join(
        f"| {texts} | {case} | {many[0]} of {many[1]} |" for (texts, case), many in sorted(counts.items())
    )
    listed = "\n".join(f"- {one.id} ({one.case}, {one.day}): {said}." for one, said in wrong) or "None."
    return f"""# Questions about a day

<!-- Written by `python -m bench.circulars.asof --out bench/circulars/ASOF.md`. -->

**{right} of {of}** questions about a day are answered from the text that was then in force: the day is read from the
question, that circular is cited, no other version of it is, and what has replaced, withdrawn or amended it since is
named beside.

| texts | case | right |
|---|---|---|
{table}

Real pairs are the lines of [supersedes.tsv](supersedes.md) of which both texts are in the data; what one does to the
other is stated in the rows, for reading it from the texts is [measured apart](SUPERSESSION.md). They are asked for by
title, with its number where a third circular has the same title, the day before the later one was issued and, where it
replaces the other, a week after it applies, as compliance. The others are invented circulars in versions, asked for by
subject, in three roles and four ways of writing a day. Generator: extractive; embedder: wordllama; no gate, for which
passages are too distant is measured elsewhere. What is named beside is what may be used today: of a chain its end. A
question about a day on which nothing was in force is right if nothing of that circular is cited.

Each of the real ones asked in all four ways of writing its day: {every.count("")} of {len(every)} right.

{chr(10).join(sorted(f"- {said}." for said in every if said))}

## Wrong

{listed}
"""


if __name__ == "__main__":
    main()
