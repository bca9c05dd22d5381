"""What another profile opens: no change of a rule, group or phrase allows more use unnoticed."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from carag.labelling.declared import label_facts
from carag.labelling.widening import JUDGED, opened_documents, widenings
from carag.policy import Profile, Vocabulary
from carag.policy.diff import Direction, compare
from carag.policy.shipped import shipped_text
from tests.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.policy import PolicyTable

POLICY, ROLES = (shipped_text("generic", name) for name in ("profile.toml", "roles.toml"))
INTENT = """
[[intent]]
name = "RELEASED"
forbidden = ["DRAFT"]
phrases = ["\\\\breleased\\\\b", "\\\\bfinal\\\\b"]
"""
FULL = POLICY.replace('"generic"', '"office"') + INTENT
"""The generic profile, under a name of its own and with an intent."""


BOARD = '[[rule]]\nbit = "SECRET"\nfield = "board"\noperator = "is_true"'


def table(policy: str = FULL, roles: str = ROLES) -> PolicyTable:
    return Profile.from_texts(policy, roles).table


def edited(old: str, new: str, policy: str = FULL) -> PolicyTable:
    assert old in policy
    return table(policy.replace(old, new, 1))


def rules(policy: str) -> list[str]:
    return re.findall(r"\[\[(?:rule|required)\]\](?:\n[^\[\n].*)+\n", policy)


def is_wider(old: PolicyTable, new: PolicyTable) -> bool:
    """Tell what ``carag policy apply`` decides: whether a cell or anything else widens."""
    cells = (one.direction for one in compare(old, new))
    return bool(widenings(old, new)) or any(one in (Direction.WIDENS, Direction.BOTH) for one in cells)


def test_each_part_of_a_profile_is_judged() -> None:
    """A new field of a vocabulary must state how a change to it is judged."""
    assert {one.name for one in fields(Vocabulary)} == set(JUDGED)


def test_the_same_profile_widens_nothing() -> None:
    """Neither do other words for people, or other lengths of passages."""
    assert () == widenings(table(), table())
    for old, new in (
        ('entity = "entity"', 'entity = "firm"'),
        ("GDPR Art. 4(1)", "GDPR Article 4"),
        ("[words]", "[chunking]\ntarget = 500\n\n[words]"),
    ):
        assert () == widenings(table(), edited(old, new))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        *((rule, "", "") for rule in rules(FULL)),
        ('value = "secret"', 'value = "top secret"', "classification = 'secret' no longer sets SECRET"),
        ('value = ["confidential", "secret"]', 'value = ["confidential"]', "no longer sets CONFIDENTIAL"),
        (
            'one_of = ["public",',
            'one_of = ["public", "open",',
            "classification = 'open' is no longer quarantined",
        ),
        ('field = "classification"\none_of', 'field = "class"\none_of', "without classification"),
        ('operator = "is_true"', 'operator = "at_least"\nvalue = 2', "no longer sets PERSONAL"),
        ('personal = ["PERSONAL"]', "personal = []", "the group personal no longer has PERSONAL"),
        ('time_zone = "UTC"', 'time_zone = "Asia/Kolkata"', "days begin and end in Asia/Kolkata, not UTC"),
        ("[words]", '[purposes]\nobliged = ["work"]\n\n[words]', "work counts as obliged"),
        ("[words]", "[erasure]\ntwo_persons = false\n\n[words]", "erased by one person"),
        ("schema = 1\n", 'schema = 1\nreader = "circulars"\n', "read by circulars"),
        ("schema = 1\n", 'schema = 1\ncitation = ["{title}", "{author}"]\n', "a citation shows {author}"),
        ('name = "RELEASED"', 'name = "FINISHED"', "the words of RELEASED no longer tighten a question"),
        (r', "\\bfinal\\b"', "", "the words of RELEASED tighten fewer questions"),
        ('forbidden = ["DRAFT"]', 'forbidden = ["LEGAL"]', "the words of RELEASED tighten fewer questions"),
        ("[[intent]]", '[intents]\nnot_meant = ["final"]\n\n[[intent]]', "more phrases are removed"),
    ],
)
def test_what_opens_something_is_said(old: str, new: str, said: str) -> None:
    """A removed rule or required fact, an accepted value, a smaller group, phrases that tighten less."""
    found = widenings(table(), edited(old, new))
    assert any(said in one for one in found), found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('one_of = ["public",', "one_of = ["),
        ('value = "secret"', 'value = "secret"\nregulation = "x"\n' + BOARD),
        ('value = ["confidential", "secret"]', 'value = ["internal", "confidential", "secret"]'),
        ('personal = ["PERSONAL"]', 'personal = ["PERSONAL", "LEGAL"]'),
        ("[words]", '[purposes]\nadvice = ["work"]\n\n[words]'),
        (r'"\\bfinal\\b"', r'"\\bfinal\\b", "\\bsigned\\b"'),
    ],
)  # fmt: skip
def test_what_only_closes_needs_no_word(old: str, new: str) -> None:
    """A tightening is not reported."""
    assert not is_wider(table(), edited(old, new))


def drawn(policy: str, roles: str) -> Iterator[str]:
    """Yield the profile without each rule that closes anything, required fact, value and bit of a group."""
    closing = {bit for cell in table(policy, roles).cells for pair in cell.masks for bit in pair.forbidden}
    for rule in rules(policy):
        bit = re.search(r'bit = "(\w+)"', rule)
        if bit is not None and bit[1] not in closing:
            continue
        yield policy.replace(rule, "", 1)
        for value in re.findall(r"(?:value|one_of) = .*", rule):
            for one in re.findall('"[^"]+"', value):
                yield policy.replace(rule, rule.replace(one, '"something else"', 1), 1)
    groups = re.search(r"\[groups\]\n((?:\w.*\n)+)", policy)
    for line in groups[1].splitlines() if groups else ():
        name, bits = line.split(" = ")
        for bit in json.loads(bits):
            yield policy.replace(
                line, f"{name} = {json.dumps([one for one in json.loads(bits) if one != bit])}", 1
            )


def test_every_widening_of_the_shipped_profiles_is_seen() -> None:
    """Whichever one to three rules, required facts, values or bits of groups are removed."""
    chosen, seen, more = Random(7), [], examples(25)  # noqa: S311 - not secret
    for name in ("generic", "clinical", "circulars"):
        policy, roles = (shipped_text(name, file) for file in ("profile.toml", "roles.toml"))
        policy = policy.replace(f'name = "{name}"', 'name = "office"', 1)
        single = [*drawn(policy, roles)]
        double = [chosen.choice([*drawn(chosen.choice(single), roles)]) for _ in range(more)]
        triple = [chosen.choice([*drawn(chosen.choice(double), roles)]) for _ in range(more)]
        seen += [
            bool(widenings(table(policy, roles), table(one, roles))) for one in (*single, *double, *triple)
        ]
    assert (len(seen), True) == (51 + 3 * 2 * more, all(seen))


FIELDS = ("alpha", "beta")
VALUES = ("a", "b", 1, 2, True)
VALUE = st.sampled_from(VALUES)
RULE = st.tuples(
    st.sampled_from(["INTERNAL", "SECRET", "DRAFT"]),
    st.sampled_from(FIELDS),
    st.one_of(
        st.tuples(st.sampled_from(["equals", "contains"]), VALUE),
        st.tuples(st.just("one_of"), st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=2)),
        st.tuples(st.sampled_from(["at_least", "at_most"]), st.sampled_from([0, 1, 2.5])),
        st.just(("is_true", None)),
    ),
)
REQUIRED = st.dictionaries(
    st.sampled_from(FIELDS), st.lists(st.sampled_from(["a", "b", "yes"]), min_size=1, max_size=2), max_size=1
)
STATED = st.one_of(VALUE, st.sampled_from(["c", "yes", "no", 0, 3, "2", 2.5, ""]))
FACTS = st.dictionaries(
    st.sampled_from([*FIELDS, "alpa", "gamma"]), st.one_of(STATED, st.lists(STATED, max_size=3)), max_size=3
)


def toml(value: object) -> str:
    return json.dumps(value)  # of texts, numbers, truth values and lists of these, TOML is the same


def written(rules: list[Any], required: dict[str, list[str]], roles: str) -> PolicyTable:
    parts = [POLICY.split("# A document that does not state")[0].replace('"generic"', '"office"')]
    for field, values in required.items():
        parts.append(f'[[required]]\nfield = "{field}"\none_of = {toml(values)}\n')
    for bit, field, (operator, value) in rules:
        stated = "" if value is None else f"value = {toml(value)}\n"
        parts.append(
            f'[[rule]]\nbit = "{bit}"\nfield = "{field}"\noperator = "{operator}"\n{stated}regulation = "x"\n'
        )
    return table("\n".join(parts), roles)


def admitted(said: PolicyTable, word: int) -> set[tuple[str, str]]:
    return {(cell.role, cell.purpose) for cell in said.cells if cell.policy.admits(word)}


@settings(max_examples=examples(150))
@given(
    st.lists(RULE, max_size=4),
    REQUIRED,
    st.lists(RULE, max_size=4),
    REQUIRED,
    st.lists(FACTS, min_size=1, max_size=8),
)
@example(
    [("SECRET", "alpha", ("equals", "a"))],
    {},
    [("SECRET", "alpha", ("contains", "a"))],
    {},
    [{"alpha": ["a", "b"]}],
)
def test_nothing_opens_that_was_not_said(
    before: list[Any],
    needed: dict[str, list[str]],
    after: list[Any],
    need: dict[str, list[str]],
    facts: list[Any],
) -> None:
    """If any cell may use some document under the new rules and not under the old, the change is reported to widen."""
    roles = ROLES.replace('forbidden = ["SECRET"', 'required = ["DRAFT"], forbidden = ["SECRET"', 1)
    old, new = written(before, needed, ROLES), written(after, need, roles)
    opened = [
        stated
        for stated in facts
        if admitted(new, label_facts(stated, new.vocabulary).word)
        - admitted(old, label_facts(stated, old.vocabulary).word)
    ]
    assert not opened or is_wider(old, new)
    assert [] == opened_documents(old, new, [("x", one) for one in facts])[1] or widenings(old, new)
