"""Report what another profile with the same bits would open by its rules, groups, words and calendar.

Rules are judged field by field, for every possible document, over values on both sides of every value that either
profile names; where that cannot decide, the change is reported as one that widens.
"""

from __future__ import annotations

from dataclasses import fields, replace
from functools import reduce
from itertools import islice
from math import inf, nextafter
from operator import or_
from typing import TYPE_CHECKING, Any, Final

from carag.labelling.declared import label_facts
from carag.limits import quoted
from carag.policy import QUARANTINE, bit_names
from carag.policy.word import POLICY_BITS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from carag.policy import Mask, PolicyTable, Vocabulary
    from carag.policy.intent import IntentRule


_OTHER: Final = "a value that no rule names"
_ANYWHERE: Final = (True, False, "yes", "no", 1, 0, -1, "", _OTHER)
"""Values that are tried for every field."""
_MOST: Final = 4
"""Greatest number of sentences about one field."""
_RESTRICTING: Final = frozenset({"advice", "publishing"})
"""The kinds of purpose that are restricted more than the other kinds."""
_BY_ABSENCE: Final = frozenset({"personal", "transfer"})
"""Groups without which a session that has no basis for transfers is refused."""

JUDGED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("rules", "required"), "field by field, over the values that either profile names"),
    **dict.fromkeys(
        ("groups", "kinds", "intents", "zone", "reader", "audience_required", "two_persons_erase"),
        "each on its own",
    ),
    **dict.fromkeys(("heading", "citation"), "a field that is shown and was not"),
    **dict.fromkeys(("profile", "flags", "meanings", "lifecycle", "metadata"), "never change under a store"),
    **dict.fromkeys(
        ("text", "words", "regulations", "impossible"), "words for people, and checks of the profile"
    ),
    **dict.fromkeys(
        ("by", "target", "limit", "whole", "overlap"), "how texts are split, each piece with the same label"
    ),
}
"""How a change to each field of a vocabulary is judged; a test fails for a field that is not listed."""


def widenings(old: PolicyTable, new: PolicyTable) -> tuple[str, ...]:
    """Describe what a new profile lets be used that the old one did not, cells apart: a sentence per change."""
    was, now = old.vocabulary, new.vocabulary
    found = [*_by_rules(old, new), *_by_groups(was, now), *_by_kinds(was, now), *_by_intents(was, now)]
    if was.reader != now.reader:
        found.append(f"documents are read by {now.reader}, not {was.reader}, and may be labelled differently")
    if was.audience_required and not now.audience_required:
        found.append(
            "documents that do not state who may see them are for everybody, and no longer quarantined"
        )
    if was.two_persons_erase and not now.two_persons_erase:
        found.append("documents may be erased by one person, without a second who approves it")
    if was.zone.key != now.zone.key:
        found.append(f"days begin and end in {now.zone.key}, not {was.zone.key}")
    shown = ((part, [*{*getattr(now, part)} - {*getattr(was, part)}]) for part in ("heading", "citation"))
    found += [f"a {part} shows {', '.join(sorted(more))}" for part, more in shown if more]
    return tuple(found)


def opened_documents(
    old: PolicyTable, new: PolicyTable, documents: Iterable[tuple[str, Mapping[str, Any]]]
) -> tuple[int, list[str]]:
    """Count the documents (id and facts) that the new profile labels differently, and list those that it opens."""
    closing, changed = _closing(old, new), [*relabelled(old, new, documents)]
    return len(changed), [name for name, was, now in changed if _opens(was, now, closing)]


def relabelled(
    old: PolicyTable, new: PolicyTable, documents: Iterable[tuple[str, Mapping[str, Any]]]
) -> Iterator[tuple[str, int, int]]:
    """Yield the documents (id and facts) that the new profile labels differently: the id and both words."""
    for name, facts in documents:
        was, now = (label_facts(facts, table.vocabulary).word for table in (old, new))
        if was != now:
            yield name, was, now


def _by_rules(old: PolicyTable, new: PolicyTable) -> Iterator[str]:
    was, now, closing = old.vocabulary, new.vocabulary, _closing(old, new)
    for field in sorted(_read(was) | _read(now)):
        before, after = (_of_field(side, field) for side in (was, now))
        words = (
            (name, label_facts(facts, before).word, label_facts(facts, after).word)
            for name, facts in _cases(field, (before, after))
        )
        opened = (
            f"{name} {_change(one, other, now)}" for name, one, other in words if _opens(one, other, closing)
        )
        yield from islice(dict.fromkeys(opened), _MOST)


def _read(vocabulary: Vocabulary) -> set[str]:
    return {one.field for one in vocabulary.required} | {one.field for one in vocabulary.rules}


def _change(was: int, now: int, vocabulary: Vocabulary) -> str:
    if was & QUARANTINE:
        return "is no longer quarantined"
    names = [", ".join(bit_names(bits & POLICY_BITS, vocabulary.flags)) for bits in (was & ~now, now & ~was)]
    return " and ".join(
        f"{verb} {bits}" for verb, bits in zip(("no longer sets", "sets"), names, strict=True) if bits
    )


def _opens(was: int, now: int, closing: tuple[int, int]) -> bool:
    forbidden, required = closing
    if now & QUARANTINE:
        return False
    return bool(was & QUARANTINE or was & ~now & forbidden or now & ~was & required)


def _closing(old: PolicyTable, new: PolicyTable) -> tuple[int, int]:
    """Return the bits that anything in either profile forbids, and the bits that anything requires."""
    masks: list[Mask] = []
    groups = 0
    for table in (old, new):
        for cell in table.cells:
            masks += (*cell.policy.masks, *(cell.reopened.masks if cell.reopened else ()))
        masks += [rule.mask for rule in table.vocabulary.intents.rules]
        groups |= reduce(or_, _group_vectors(table.vocabulary).values())
    return reduce(or_, (one.forbidden for one in masks), groups), reduce(
        or_, (one.required for one in masks), 0
    )


def _of_field(vocabulary: Vocabulary, field: str) -> Vocabulary:
    return replace(
        vocabulary,
        required=tuple(one for one in vocabulary.required if one.field == field),
        rules=tuple(one for one in vocabulary.rules if one.field == field),
    )


def _cases(field: str, sides: Iterable[Vocabulary]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield facts that distinguish two sets of rules about a field: every way in which a rule reads a value."""
    named: dict[tuple[type, Any], Any] = {(type(one), one): one for one in _ANYWHERE}
    for side in sides:
        values: list[Any] = [value for one in side.required for value in one.one_of]
        for rule in side.rules:
            values += rule.value if isinstance(rule.value, list) else [rule.value]
        for value in values:
            near = [nextafter(float(value), -inf), nextafter(float(value), inf)] if _is_number(value) else []
            named |= {(type(one), one): one for one in (value, str(value), *near)}
    yield f"a document without {field}", {}
    yield f"a document with {field} misspelt", {f"{field}{field[-1]}": "x"}
    for value in named.values():
        yield f"{field} = {quoted(value)}", {field: value}
    for value in named.values():
        yield f"{field} = {quoted([value, _OTHER])}", {field: [value, _OTHER]}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _group_vectors(vocabulary: Vocabulary) -> dict[str, int]:
    return {one.name: getattr(vocabulary.groups, one.name) for one in fields(vocabulary.groups)}


def _by_groups(was: Vocabulary, now: Vocabulary) -> Iterator[str]:
    after = _group_vectors(now)
    for name, before in _group_vectors(was).items():
        if lost := bit_names(before & ~after[name], was.flags):
            yield f"the group {name} no longer has {', '.join(lost)}"
        if name in _BY_ABSENCE and after[name] and not before:
            yield f"the group {name} is defined, so sessions without a basis for transfers are no longer refused"


def _by_kinds(was: Vocabulary, now: Vocabulary) -> Iterator[str]:
    for one in fields(was.kinds):
        before, after = getattr(was.kinds, one.name), getattr(now.kinds, one.name)
        if one.name in _RESTRICTING and (lost := sorted(before - after)):
            yield f"{', '.join(lost)} is no longer restricted as {one.name}"
        if one.name not in _RESTRICTING and (more := sorted(after - before)):
            yield f"{', '.join(more)} counts as {one.name}"


def _by_intents(was: Vocabulary, now: Vocabulary) -> Iterator[str]:
    after = {rule.name: rule for rule in now.intents.rules}
    for rule in was.intents.rules:
        if rule.name not in after:
            yield f"the words of {rule.name} no longer tighten a question"
        elif not _tightens_as_much(rule, after[rule.name]):
            yield f"the words of {rule.name} tighten fewer questions, or tighten them less"
    if {*now.intents.not_meant} - {*was.intents.not_meant}:
        yield "more phrases are removed from a question before its intents are looked for"


def _tightens_as_much(was: IntentRule, now: IntentRule) -> bool:
    return (
        set(was.phrases) <= set(now.phrases)
        and not was.mask.required & ~now.mask.required
        and not was.mask.forbidden & ~now.mask.forbidden
        and now.unless in (None, was.unless)
    )
