"""A profile is data that is fully checked, and a bit of one profile is never taken for another's."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument, Refused
from carag.policy import (
    Mask,
    Policy,
    PolicyBit,
    Profile,
    Session,
    Vocabulary,
    bits_of,
    infer,
    meaning,
    policy_word,
    vocabulary,
    vocabulary_of,
)
from carag.policy.explain import Rule
from carag.policy.lint import lint
from carag.policy.restrictions import Basis
from carag.policy.shipped import SHIPPED, shipped_bits, shipped_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NOW = datetime(2026, 1, 2, 15, 0, tzinfo=UTC)
GENERIC = Profile.open("generic")
OFFICE = GENERIC.vocabulary.flags
TEXTS = shipped_text("generic", "profile.toml"), shipped_text("generic", "roles.toml")
PLANNING = (
    'schema = 1\nname = "planning"\ntime_zone = "Europe/Vienna"\n'
    '[[bit]]\nname = "SEALED"\ndocument = "sealed files"\nregulation = "x"\n'
    '[[bit]]\nname = "OBJECTION"\ndocument = "objections of neighbours"\nregulation = "y"\n',
    'schema = 1\n[[cell]]\nrole = "clerk"\npurpose = "decide"\nregulation = "z"\nmay_know_existence = false\n'
    'past = "as_of"\nmasks = [{ forbidden = ["SEALED"] }]\n',
)


# -- what ships


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_profile_has_no_likely_mistake_and_is_found_by_its_hash(name: str) -> None:
    """An auditor without extra libraries can name its bits."""
    profile = Profile.open(name)
    assert () == lint(profile.table)
    assert profile.is_shipped
    assert list(profile.vocabulary.flags.__members__) == list(shipped_bits(profile.table.sha256) or ())
    assert [bit.value for bit in profile.vocabulary.flags] == [
        1 << n for n in range(len(profile.vocabulary.flags))
    ]


def test_the_names_in_code_are_those_of_the_edgar_profile() -> None:
    """So `PolicyBit.J_EU` is the bit in a filing's label."""
    assert Profile.open().vocabulary.flags is PolicyBit
    assert vocabulary_of(PolicyBit) is Vocabulary.shipped("edgar")


@pytest.mark.parametrize(
    ("role", "purpose", "hidden"),
    [
        ("public", "read", {"INTERNAL", "CONFIDENTIAL", "SECRET", "PERSONAL", "DRAFT", "LEGAL"}),
        ("employee", "work", {"SECRET", "PERSONAL", "LEGAL"}),
        ("counsel", "advise", {"PERSONAL"}),
        ("compliance", "review", set()),
    ],
)
def test_the_generic_cells_hide_what_they_say(role: str, purpose: str, hidden: set[str]) -> None:
    """Bit by bit; reviewers may also know of hidden passages."""
    decision = infer(Session(role=role, purpose=purpose), GENERIC.table, now=NOW)
    for bit in OFFICE:
        assert decision.admits(policy_word(bit), 0) == (bit.name not in hidden)
    assert decision.admits(policy_word(0), 0)
    assert decision.may_know_existence == (role == "compliance")


# -- bits of one profile


MIXED: dict[str, Callable[[], object]] = {
    "joined": lambda: OFFICE.SECRET | PolicyBit.J_US,  # type: ignore[attr-defined]
    "found": lambda: PolicyBit.J_US & OFFICE.SECRET,  # type: ignore[attr-defined]
    "listed": lambda: bits_of([PolicyBit.J_US, OFFICE["SECRET"]]),
    "in one mask": lambda: Mask(OFFICE["SECRET"], PolicyBit.J_US),
    "in one policy": lambda: Policy(Mask(OFFICE["SECRET"]), Mask(PolicyBit.J_US)),
    "by name": lambda: Mask("SECRET"),
    "by a name of the other": lambda: bits_of("J_US", flags=OFFICE),
    "by number": lambda: bits_of(1 << 6, flags=OFFICE),
    "inverted": lambda: ~OFFICE["SECRET"],
    "shifted": lambda: 1 << OFFICE["SECRET"],
}


@pytest.mark.parametrize("mixed", MIXED.values(), ids=MIXED)
def test_bits_of_two_profiles_never_meet(mixed: Callable[[], object]) -> None:
    """A number means something else in each, and a bit without a name means nothing."""
    with pytest.raises(InvalidArgument):
        mixed()


@given(st.sets(st.sampled_from(list(OFFICE))), st.sets(st.sampled_from(list(OFFICE))))
def test_a_mask_of_members_names_its_own_bits(required: set[PolicyBit], forbidden: set[PolicyBit]) -> None:
    """In its repr, and in what it admits."""
    mask = Mask(required - forbidden, forbidden)
    for bit in OFFICE:
        assert (bit.name in re.findall(r"[A-Z]+", repr(mask))) == (bit in required | forbidden)
    assert mask.admits(policy_word(required - forbidden))
    assert mask.required == sum(bit.value for bit in required - forbidden)


def test_places_of_another_profile_refuse_a_session() -> None:
    """They are never taken for places of this profile."""
    with pytest.raises(Refused) as refused:
        infer(Session(role="employee", purpose="work", residency=PolicyBit.J_EU), GENERIC.table, now=NOW)
    assert refused.value.code == "FOREIGN_RESIDENCY"


def test_an_intent_that_a_profile_lacks_refuses_a_session() -> None:
    """A requested tightening that is unknown must not be ignored."""
    with pytest.raises(Refused) as refused:
        infer(Session(role="employee", purpose="work"), GENERIC.table, now=NOW, intents=["LATEST"])
    assert refused.value.code == "UNKNOWN_INTENT"


# -- a custom profile


def test_two_short_files_are_a_profile(tmp_path: Path) -> None:
    """With its own bits, cells and time zone."""
    for name, text in zip(("profile.toml", "roles.toml"), PLANNING, strict=True):
        (tmp_path / name).write_text(text)
    profile = Profile.open(tmp_path)
    decision = infer(Session(role="clerk", purpose="decide", as_of=date(2026, 1, 1)), profile.table, now=NOW)
    sealed = profile.vocabulary.flags["SEALED"]
    (reason,) = decision.reasons(policy_word(sealed), 0)
    assert (reason.code, reason.text, meaning(sealed).document) == (
        "FORBIDDEN:SEALED",
        "sealed files (x)",
        "sealed files",
    )
    assert decision.as_of == int(datetime(2026, 1, 1, 22, 59, tzinfo=UTC).timestamp()) // 60
    assert "planning" == profile.name


@pytest.mark.parametrize("name", ["genric", "EDGAR", "", "planning"])
def test_a_name_that_does_not_ship_is_refused(name: str) -> None:
    """The error lists the names that do."""
    with pytest.raises(InvalidArgument, match="edgar, generic"):
        Profile.open(name)


def test_a_shipped_name_has_the_shipped_bits() -> None:
    """Roles may be changed under a shipped name, bits may not."""
    own = Profile.from_texts(TEXTS[0], TEXTS[1].replace('"DRAFT", ', ""))
    assert own.bits_sha256 == GENERIC.bits_sha256
    assert own.table.sha256 != GENERIC.table.sha256
    with pytest.raises(InvalidArgument, match="give your profile another name"):
        Profile.from_texts(TEXTS[0].replace('"DRAFT"', '"SKETCH"'), TEXTS[1].replace('"DRAFT"', '"SKETCH"'))


MALFORMED = {
    "no TOML": (TEXTS[0].replace("[[bit]]", "[[bit]", 1), "line"),
    "no schema": (TEXTS[0].replace("schema = 1", ""), "schema"),
    "another schema": (TEXTS[0].replace("schema = 1", "schema = 2"), "schema"),
    "a key misspelt": (TEXTS[0].replace("time_zone", "timezone"), "timezone"),
    "no such zone": (TEXTS[0].replace('"UTC"', '"Mars/Olympus"'), "Mars/Olympus"),
    "a group of an unknown bit": (TEXTS[0].replace('["PERSONAL"]', '["PERSONEL"]'), "PERSONEL"),
    "an unknown group": (TEXTS[0].replace("personal = [", "personel = ["), "personel"),
    "a bit twice": (TEXTS[0].replace('name = "LEGAL"', 'name = "DRAFT"'), "DRAFT"),
    "a bit in small letters": (TEXTS[0].replace('name = "LEGAL"', 'name = "legal"'), "bit 6 name"),
    "a bit without a meaning": (TEXTS[0].replace('document = "confidential documents"\n', ""), "document"),
    "a 28th bit": (
        TEXTS[0] + "".join(f'[[bit]]\nname = "B{n}"\ndocument = "d"\nregulation = "r"\n' for n in range(22)),
        "bit",
    ),
    "no regular expression": (
        TEXTS[0] + '[[intent]]\nname = "FINAL"\nforbidden = ["DRAFT"]\nphrases = ["final("]\n',
        "regular expression",
    ),
    "an intent of nothing": (TEXTS[0] + '[[intent]]\nname = "FINAL"\nphrases = ["final"]\n', "names no bit"),
}


@pytest.mark.parametrize(("text", "named"), MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_profile_is_refused_by_name(text: str, named: str) -> None:
    """The error names what is wrong and where."""
    assert text != TEXTS[0]
    with pytest.raises(InvalidArgument, match=named):
        Vocabulary.from_toml(text)


def test_a_profile_may_name_the_rules_and_lists_that_explanations_show() -> None:
    """And no others, because a misspelt code would never be shown."""
    assert {*get_args(vocabulary._Code)} == {*Rule, *Basis}


@given(st.data())
def test_a_profile_with_a_line_removed_or_repeated_is_the_same_or_refused(data: st.DataObject) -> None:
    """No such mistake silently changes bits or cells."""
    lines = TEXTS[0].splitlines(keepends=True)
    at = data.draw(st.integers(0, len(lines) - 1))
    twice = data.draw(st.booleans())
    text = "".join([*lines[:at], *([lines[at]] * 2 if twice else []), *lines[at + 1 :]])
    try:
        read = Profile.from_texts(text, TEXTS[1])
    except InvalidArgument:
        return
    assert read.bits_sha256 == GENERIC.bits_sha256
    for cell in GENERIC.table.cells:
        other = read.table.get(cell.role, cell.purpose)
        assert other is not None
        assert other.policy == cell.policy


def test_a_record_of_0_2_0_names_the_roles_alone() -> None:
    """The table that has them replays it."""
    table = GENERIC.table
    assert {table.sha256, sha256(TEXTS[1].encode()).hexdigest()} == table.hashes
