"""Unite the facts that several sources state about one filing, some with metadata but no text.

A source without text (a row of EDGAR's submissions, of an index, of a data set) makes a *statement*. All statements
about one accession number are kept, with the facts of its text if one was read, and united when needed:

- Two statements that contradict each other about a fact from which a label is derived quarantine the filing
  (``FACTS_DISAGREE``).
- Each reading has its effects on other filings, so a contradiction hides whatever either reading hides.
- If the text is known, the text decides the facts that only a text shows, and its time counts; a statement can still
  add a period, an item or a registrant that the text's source omits.

This is a set union, so order and repetition make no difference.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from carag.labelling.canonical_json import canonical_json
from carag.profiles.edgar.facts.cross_check import StatedFacts, compare
from carag.profiles.edgar.facts.forms import FormFamily, form_families, periodic_family
from carag.profiles.edgar.rules.filing_events import state_bits, state_history
from carag.profiles.edgar.rules.filing_facts import FilingFacts
from carag.profiles.edgar.rules.labeller import label
from carag.profiles.edgar.rules.rules import QuarantineCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from carag.labelling.label import Label
    from carag.labelling.labelled import Facts
    from carag.labelling.lifecycle import StateBits, StateSpan
    from carag.profiles.edgar.facts.filing import Filing


_DATA_REQUIRED: Final = date(2011, 6, 15)
"""Financial statements for periods ended after this day have XBRL (Regulation S-T 405)."""


def learn(known: dict[str, Facts], filing: Filing, *, metadata_only: bool) -> None:
    """Add the facts of a filing, with its text or without, to those known by accession number."""
    gather = facts_of_metadata if metadata_only else facts_of_text
    facts, number = gather(filing, label(filing, metadata_only=metadata_only)), filing.accession_number
    # Two filings without an accession number cannot be recognised as the same filing.
    known[number] = united(known[number], facts) if number and number in known else facts


def states(facts: Iterable[Facts]) -> dict[str, StateBits]:
    """Compute the state bits of filings, by accession number, from facts as a store keeps them."""
    return state_bits(reading for one in facts for reading in readings(one))


def facts_of_text(filing: Filing, label: Label) -> dict[str, Any]:
    """Gather the facts of a filing with text, including those that other sources must not contradict."""
    from_headings = filing.provenance.get("items") == "headings in the text"
    own = {
        **_stated("the filing itself", filing),
        "items": [] if from_headings else list(filing.items),
        "ciks": [] if 0 in filing.subjects else list(filing.subjects),
        "quarantine": list(label.quarantine) if label.quarantine else None,
    }
    return {**FilingFacts.of(filing, label).to_json(), "own": own, "stated": []}


def facts_of_metadata(filing: Filing, label: Label) -> dict[str, Any]:
    """Gather the facts of a filing whose text is unknown."""
    facts = replace(
        FilingFacts.of(filing, label),
        statements=False,  # non-reliance matters only for a filing that has passages
        may_be_certified=filing.is_amendment and not _carries_none(filing),
    )
    stated = {**_stated("a row without text", filing), "facts": facts.to_json()}
    return _main({"own": None, "stated": [stated]})


def is_metadata_only(facts: Mapping[str, Any]) -> bool:
    """Tell whether facts come only from statements."""
    return facts.get("own", True) is None


def united(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Unite the known facts about one accession number; of two texts, the second counts."""
    distinct = {
        canonical_json(one, "statement"): one for facts in (first, second) for one in facts.get("stated", ())
    }
    stated = [distinct[text] for text in sorted(distinct)]
    with_text = [one for one in (second, first) if not is_metadata_only(one)]
    return _main({**(with_text[0] if with_text else {"own": None}), "stated": stated})


def quarantine_of(facts: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return why a filing is quarantined: by its own facts, or by contradictory sources."""
    own = facts.get("own")
    sources: list[Mapping[str, Any]] = [*([own] if own else ()), *facts.get("stated", ())]
    found = [
        one.text for pair in combinations(sources, 2) for one in compare(*_comparable(*pair)).disagreements
    ]
    quarantine = own["quarantine"] if own else None
    if not found:
        return tuple(quarantine) if quarantine else None
    if quarantine and quarantine[0] == QuarantineCode.FACTS_DISAGREE:
        found.insert(0, quarantine[1])
    return QuarantineCode.FACTS_DISAGREE.value, "; ".join(dict.fromkeys(found))


def readings(facts: Mapping[str, Any]) -> list[FilingFacts]:
    """Return the facts from which to compute events: one reading, or several if the sources leave a doubt."""
    main = FilingFacts.from_json({name: facts[name] for name in facts if name not in {"own", "stated"}})
    stated = [FilingFacts.from_json(one["facts"]) for one in facts.get("stated", ())]
    if is_metadata_only(facts):
        found = [_joined(one, stated) for one in stated]
    else:
        found = [main, *(_completed(main, one) for one in stated)]
    return list(dict.fromkeys(found))


def remnant(known: Facts, name: str) -> Facts:
    """Return what stays of an erased filing's facts: what decides the states of other filings, without its sources."""
    return {one: known[one] for one in known if one not in {"own", "stated"}} | {"accession_number": name}


def histories(facts: Iterable[Mapping[str, Any]]) -> dict[str, tuple[StateSpan, ...]]:
    """Compute the histories of filings, by accession number, from facts as a store keeps them."""
    return state_history(reading for one in facts for reading in readings(one))


def _main(facts: dict[str, Any]) -> dict[str, Any]:
    if is_metadata_only(facts):
        first = FilingFacts.from_json(facts["stated"][0]["facts"])
        all_stated = [FilingFacts.from_json(one["facts"]) for one in facts["stated"]]
        return {**_joined(first, all_stated).to_json(), **facts}
    return facts


def _joined(one: FilingFacts, stated: Iterable[FilingFacts]) -> FilingFacts:
    """Give one statement the lists of all statements, because a submissions row names only one registrant."""
    every = [one, *stated]
    return replace(
        one,
        ciks=tuple(sorted({cik for other in every for cik in other.ciks})),
        items=tuple(sorted({item for other in every for item in other.items})),
        file_numbers=tuple(sorted({number for other in every for number in other.file_numbers})),
    )


def _completed(main: FilingFacts, stated: FilingFacts) -> FilingFacts:
    """Add a statement's further facts to a filing with text; times and contents stay those of the text."""

    def with_more(own: tuple[Any, ...], more: tuple[Any, ...]) -> tuple[Any, ...]:
        return (*own, *(one for one in more if one not in own))

    return replace(
        main,
        form=stated.form or main.form,
        is_amendment=stated.is_amendment if stated.form else main.is_amendment,
        period=stated.period or main.period,
        ciks=with_more(main.ciks, stated.ciks),
        items=with_more(main.items, stated.items),
        file_numbers=with_more(main.file_numbers, stated.file_numbers),
    )


def _carries_none(filing: Filing) -> bool:
    """Tell whether facts show that an amendment has no financial statements that could supersede a report's."""
    if FormFamily.CURRENT in form_families(filing.base_form):
        return "2.02" not in filing.items and all(filing.items) and bool(filing.items)
    under_405 = periodic_family(filing.base_form) in {"10-K", "10-Q"}
    dated = filing.period is not None and filing.period > _DATA_REQUIRED
    return under_405 and dated and filing.carries_xbrl is False


def _stated(source: str, filing: Filing) -> dict[str, Any]:
    times = (filing.accepted, filing.accepted_earliest)
    return {
        "source": source,
        "form": filing.form or "",
        "filed": filing.filed.isoformat() if filing.filed else None,
        "accepted": [time.isoformat() for time in times if time],
        "period": filing.period.isoformat() if filing.period else None,
        "items": list(filing.items) if all(filing.items) else [],
        "ciks": list(filing.ciks),
    }


def _comparable(first: Mapping[str, Any], second: Mapping[str, Any]) -> tuple[StatedFacts, StatedFacts]:
    """Prepare two sources: the rows of two registrants name one registrant each, which is not a contradiction."""
    both_rows = "facts" in first and "facts" in second
    one, other = (
        StatedFacts(
            source=stated["source"],
            form=stated["form"],
            filed=date.fromisoformat(stated["filed"]) if stated["filed"] else None,
            accepted=tuple(datetime.fromisoformat(time) for time in stated["accepted"]),
            period=date.fromisoformat(stated["period"]) if stated["period"] else None,
            items=tuple(stated["items"]),
            ciks=() if both_rows else tuple(stated["ciks"]),
        )
        for stated in (first, second)
    )
    return one, other
