"""What a change would open and close: what sessions find before and after it, in plain sets; and nothing is written."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carag import Engine, Session
from carag.audit import AuditLog
from carag.engine.contents import read_stated
from carag.engine.corpus import open_corpus
from carag.engine.what_if.answers import past_effects
from carag.engine.what_if.documents import Effect, policy_effects, this_minute
from carag.engine.what_if.groups import group_effects
from carag.engine.what_if.questions import question_effects, read_asked
from carag.errors import InvalidArgument
from carag.policy import Profile
from carag.policy.shipped import shipped_text
from carag.retrieval import ConfidenceGate
from tests.engine.documents import QUESTION, Counting, document, ids
from tests.sizes import examples

if TYPE_CHECKING:
    from pathlib import Path

    from carag.engine.what_if.answers import PastEffect
    from carag.engine.what_if.documents import CellEffect
    from carag.engine.what_if.groups import GroupsEffect
    from carag.engine.what_if.questions import Asked
    from carag.policy.groups.statements import GroupImport

POLICY = shipped_text("generic", "profile.toml").replace('"generic"', '"office"')
BITS = ("INTERNAL", "SECRET", "DRAFT")
PAIRS = [(role, purpose) for role in ("clerk", "judge") for purpose in ("read", "work")]
SETS = st.sets(st.sampled_from(BITS), max_size=2)
OF_SEVEN = frozenset({7})
"""An allow list that names the entity of every document."""


def cell(pair: tuple[str, str], masks: list[Any], **more: str) -> str:
    shown = ", ".join(
        f"{{ required = {required!r}, forbidden = {forbidden!r} }}" for required, forbidden in masks
    )
    extra = "".join(f"{name} = {value}\n" for name, value in more.items())
    return (
        f'[[cell]]\nrole = "{pair[0]}"\npurpose = "{pair[1]}"\nregulation = "House rules"\npast = "none"\n'
        f"may_know_existence = false\n{extra}masks = [{shown}]\n"
    )


def profile(*cells: str, policy: str = POLICY) -> Profile:
    head = 'schema = 1\nroles = ["clerk", "judge"]\npurposes = ["read", "work", "review"]\n'
    # One cell is in every table, so that a table may lose all others.
    return Profile.from_texts(policy, head + cell(("judge", "review"), [([], [])]) + "".join(cells))


@st.composite
def tables(draw: st.DrawFn) -> Profile:
    found = []
    for pair in PAIRS:
        if draw(st.booleans()):
            forbidden = draw(SETS)
            required = draw(SETS) - forbidden
            more = {"allow_list": '"mandatory"'} if draw(st.booleans()) else {}
            masks = [(sorted(required), sorted(forbidden)), *([(["DRAFT"], [])] * draw(st.integers(0, 1)))]
            found.append(cell(pair, masks, **more))
    return profile(*found)


def opened(store: Path, given: Profile, **more: Any) -> Engine:
    return Engine.open(store, profile=given, embedder=Counting(), gate=ConfidenceGate(-1), **more)


def found(engine: Engine, session: Session) -> set[str]:
    """The documents that a session finds; none if it is refused."""
    return {one.document_id for one in engine.retrieve(QUESTION, session, 400).passages}


def all_found(engine: Engine) -> dict[tuple[str, str], list[set[str]]]:
    """By cell: what a session finds without an allow list, and with one that names everything."""
    sessions = {pair: Session(role=pair[0], purpose=pair[1]) for pair in PAIRS}
    return {
        pair: [found(engine, one), found(engine, replace(one, allow_entities=OF_SEVEN))]
        for pair, one in sessions.items()
    }


def difference(before: list[set[str]], after: list[set[str]]) -> Effect:
    pairs = [*zip(before, after, strict=True)]
    return Effect.of(set().union(*(b - a for a, b in pairs)), set().union(*(a - b for a, b in pairs)))


def effects(store: Path, old: Profile, new: Profile) -> dict[tuple[str, str], CellEffect]:
    with open_corpus(store) as corpus:
        told = policy_effects(corpus, old.table, new.table, this_minute())
    return {(one.role, one.purpose): one for one in told}


@pytest.fixture(scope="module")
def every_word(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one document for each set of bits."""
    store = tmp_path_factory.mktemp("words") / "store"
    sets = [[bit for at, bit in enumerate(BITS) if number >> at & 1] for number in range(1 << len(BITS))]
    with opened(store, profile()) as engine:
        engine.add(document(at, bits=bits, entities=(7,)) for at, bits in enumerate(sets))
    return store


@given(tables(), tables())
@settings(max_examples=examples(60), deadline=None)
def test_documents_open_and_close_as_sessions_then_find(every_word: Path, old: Profile, new: Profile) -> None:
    """For every cell and both kinds of session, by asking before and after the table is put in force."""
    with opened(every_word, old, accept={"policy"}) as engine:
        before = all_found(engine)
    told = effects(every_word, old, new)
    with opened(every_word, new, accept={"policy"}) as engine:
        after = all_found(engine)
    expected = {pair: difference(before[pair], after[pair]) for pair in PAIRS}
    assert {pair: one for pair, one in expected.items() if any(one)} == {
        pair: one.at_once for pair, one in told.items()
    }
    assert all(one.at_once == one.added_again for one in told.values())


def test_what_new_rules_open_is_told_before_documents_are_added_again(tmp_path: Path) -> None:
    """Nothing opens at once; what then opens is what sessions find after the documents are added again."""
    store, clerk = tmp_path / "store", Session(role="clerk", purpose="read")
    cells = cell(("clerk", "read"), [([], ["INTERNAL", "SECRET"])])
    looser = POLICY.replace('value = ["internal", "confidential", "secret"]', 'value = ["confidential"]', 1)
    old, new = profile(cells), profile(cells, policy=looser)
    several = [
        document(at, bits=None, facts={"classification": one})
        for at, one in enumerate(("internal", "secret"))
    ]
    with opened(store, old) as engine:
        engine.add(several)
        assert ids(engine, clerk) == set()
    told = effects(store, old, new)
    assert told[clerk.role, clerk.purpose] == (
        *told[clerk.role, clerk.purpose][:2],
        Effect(),
        Effect(("d/0",)),
    )
    with opened(store, new, accept={"policy"}) as engine:
        assert ids(engine, clerk) == set()
        engine.add(several)
        assert ids(engine, clerk) == {"d/0"}


@pytest.mark.parametrize("asks", [{"break_glass": "true"}, {"allow_list": '"mandatory"'}])
def test_a_cell_that_no_longer_asks_for_something_opens(every_word: Path, asks: dict[str, str]) -> None:
    """Its masks are the same, but sessions without a list, or that did not break the glass, find more."""
    free, bound = (profile(cell(PAIRS[0], [([], ["SECRET"])], **more)) for more in ({}, asks))
    assert effects(every_word, bound, free)[PAIRS[0]].at_once.opened == ("d/0", "d/1", "d/4", "d/5")
    assert effects(every_word, free, bound)[PAIRS[0]].at_once.closed == ("d/0", "d/1", "d/4", "d/5")


def test_only_labels_that_hold_now_count(tmp_path: Path) -> None:
    """Not those of documents that are not yet public, have expired, were removed or are quarantined."""
    store = tmp_path / "store"
    old, new = profile(), profile(cell(PAIRS[0], [([], [])]))
    past, future = (datetime(year, 1, 1, tzinfo=UTC) for year in (2000, 2200))
    with opened(store, old) as engine:
        engine.add(
            [
                document("open", public_at=past, expires_at=future),
                document("coming", public_at=future),
                document("gone", expires_at=past),
                document("removed"),
                document("unclear", bits=None, facts={}),
            ]
        )
        engine.remove(["d/removed"])
    assert effects(store, old, new)[PAIRS[0]].at_once == Effect(("d/open",))


def test_nothing_is_written(every_word: Path) -> None:
    """Neither in the store nor in the log, whose files stay as they are."""

    def files() -> dict[str, bytes]:
        # The file with the suffix -shm holds locks only.
        return {one.name: one.read_bytes() for one in every_word.iterdir() if not one.name.endswith("-shm")}

    before = files()
    assert effects(every_word, profile(), profile(cell(PAIRS[0], [([], [])])))
    assert before == files()


# --- groups ---

USERS = ("user:ana", "user:bo", "user:cy")
GROUPS = ("group:a", "group:b", "group:c", "group:d")
NAMES = st.sets(st.sampled_from(USERS + GROUPS), max_size=2)
READER = Session(role="judge", purpose="review")


@st.composite
def imports(draw: st.DrawFn) -> str:
    """Some groups, each of persons and of later groups only, so that there is no cycle; the last is only named."""
    lines = []
    for at, group in enumerate(GROUPS[:-1]):
        if draw(st.booleans()):
            members = draw(st.sets(st.sampled_from(USERS + GROUPS[at + 1 :]), max_size=3))
            # A member has been one for long, will be one, or is one no more.
            window = draw(st.sampled_from([{}, {}, {"from": "2200-01-01"}, {"until": "2000-01-01"}]))
            lines.append(json.dumps({"group": group, "members": sorted(members), **window}))
    return "\n".join(lines)


def stated(folder: Path, text: str) -> GroupImport:
    (folder / "groups.jsonl").write_text(text)
    return read_stated(folder / "groups.jsonl", profile())


def by_group(store: Path, text: str) -> GroupsEffect:
    with open_corpus(store) as corpus:
        return group_effects(corpus, stated(store.parent, text), this_minute())


@given(imports(), imports(), st.lists(st.tuples(st.none() | NAMES, NAMES), max_size=6))
@settings(max_examples=examples(60), deadline=None)
def test_an_import_opens_and_closes_as_each_principal_then_finds(
    tmp_path_factory: pytest.TempPathFactory,
    first: str,
    second: str,
    lists: list[tuple[set[str] | None, set[str]]],
) -> None:
    """By asking for every principal, and for one that no list names, before and after the import."""
    store = tmp_path_factory.mktemp("groups") / "store"
    names = [*USERS, *GROUPS, "user:other"]
    with opened(store, profile()) as engine:
        engine.add(document(at, allow=allow, deny=deny) for at, (allow, deny) in enumerate(lists))
        if first:
            engine.contents.import_groups(stated(store.parent, first))
        before = [found(engine, replace(READER, principals=frozenset({one}))) for one in names]
    if not second:
        return
    told, again = by_group(store, second), by_group(store, second)
    with opened(store, profile()) as engine:
        done = engine.contents.import_groups(stated(store.parent, second))
        after = [found(engine, replace(READER, principals=frozenset({one}))) for one in names]
    expected = {name: difference([b], [a]) for name, b, a in zip(names, before, after, strict=True)}
    assert told == again
    assert told.report == done._replace(known_at=None)
    released = dict(zip(names, ({*told.released} & one for one in after), strict=True))
    assert expected == {name: told.principals.get(name, Effect.of(released[name], ())) for name in names}
    assert not {*told.released} & set().union(*before)
    assert not told.not_judged


def test_a_trial_writes_nothing_and_knows_persons_below(tmp_path: Path) -> None:
    """Those in groups inside a changed one are concerned; in their own groups they stay what they are."""
    store = tmp_path / "store"
    with opened(store, profile()) as engine:
        engine.add(
            [document("desk", allow=["group:desk"]), document("secret", bits=["SECRET"], allow=["group:all"])]
        )
        engine.contents.import_groups(stated(tmp_path, '{"group": "group:desk", "members": ["user:ana"]}'))
        before = engine.log.size, engine.contents.counts()
    lines = '{"group": "group:all", "members": ["group:desk", "user:bo"]}'
    told = by_group(store, lines)
    assert told.all == Effect(("d/secret",))
    assert set(told.principals) == {"user:ana", "user:bo", "group:desk"}
    with opened(store, profile()) as engine:
        assert before == (engine.log.size, engine.contents.counts())
    with open_corpus(store) as corpus:
        assert corpus.groups.listed() == [("group:desk", 1)]
        assert corpus.groups.held_by(["user:bo"], this_minute()) == {"user:bo"}


def test_a_group_stated_for_the_first_time_opens_what_was_denied_to_it(tmp_path: Path) -> None:
    """Nobody could find the document while it was not known who is in the group; a person of its list now can."""
    with opened(tmp_path / "store", profile()) as engine:
        engine.add([document("shut", allow=["user:bo"], deny=["group:d"])])
    told = by_group(tmp_path / "store", '{"group": "group:d", "members": ["user:ana"]}')
    assert (told.released, dict(told.principals)) == (("d/shut",), {})


def test_more_principals_than_are_judged_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("carag.engine.what_if.groups.MOST", 1)
    with opened(tmp_path / "store", profile()) as engine:
        engine.add([document("one", allow=["group:d"])])
    told = by_group(tmp_path / "store", '{"group": "group:d", "members": ["user:ana", "user:bo", "user:cy"]}')
    assert (set(told.principals), told.not_judged) == ({"user:ana"}, 2)


def test_an_import_that_is_refused_is_refused_here(tmp_path: Path) -> None:
    with opened(tmp_path / "store", profile()) as engine:
        engine.contents.import_groups(stated(tmp_path, '{"group": "group:d", "members": ["group:c"]}'))
    with pytest.raises(InvalidArgument, match="hold each other"):
        by_group(tmp_path / "store", '{"group": "group:c", "members": ["group:d"]}')


# --- past answers ---


def past(store: Path, new: Profile, last: int) -> tuple[PastEffect, ...]:
    return past_effects(store, new.table, last)


@given(tables(), tables())
@settings(max_examples=examples(30), deadline=None)
def test_past_answers_lose_what_the_new_table_hides(every_word: Path, old: Profile, new: Profile) -> None:
    """Of what each session found, they keep what it finds when it asks again; newest first."""
    with opened(every_word, old, accept={"policy"}) as engine:
        before = all_found(engine)
    told = past(every_word, new, sum(bool(one) for several in before.values() for one in several))
    with opened(every_word, new, accept={"policy"}) as engine:
        after = all_found(engine)
    expected = [
        (*pair, len(b), {f"{one}:00000" for one in b - a})
        for pair in PAIRS
        for b, a in zip(before[pair], after[pair], strict=True)
        if b - a
    ]
    assert expected == [(one.role, one.purpose, one.hits, {*one.lost}) for one in reversed(told)]
    assert [one.record for one in told] == sorted((one.record for one in told), reverse=True)


def test_a_passage_that_the_store_has_replaced_is_still_named(tmp_path: Path) -> None:
    """Its version is kept; a request that was refused, or found nothing, is not among the last ones."""
    store, cells = tmp_path / "store", cell(PAIRS[0], [([], [])])
    clerk = Session(role="clerk", purpose="read")
    with opened(store, profile(cells)) as engine:
        engine.add([document("plan", bits=["SECRET"])])
        found(engine, clerk)
        engine.add([document("plan", text="Branches report less.")])
        found(engine, replace(clerk, purpose="work"))
    told = past(store, profile(cell(PAIRS[0], [([], ["SECRET"])])), 1)
    assert [(one.hits, one.lost) for one in told] == [(1, ("d/plan:00000",))]
    assert past(store, profile(cells), 1) == ()


def test_an_answer_under_a_broken_glass_is_judged_as_such(tmp_path: Path) -> None:
    store = tmp_path / "store"
    shut, open_ = (
        profile(cell(PAIRS[1], [([], forbidden)], break_glass="true"), cell(PAIRS[0], [([], [])]))
        for forbidden in (["SECRET"], [])
    )
    with opened(store, open_, on_break_glass=lambda _: None) as engine:
        engine.add([document("plan", bits=["SECRET"])])
        clerk = Session(role="clerk", purpose="read", subject="ana")
        found(engine, engine.break_glass(clerk, purpose="work", reason="fire"))
    assert past(store, open_, 5) == ()
    assert [one.lost for one in past(store, shut, 5)] == [("d/plan:00000",)]


# --- questions ---


def asked(folder: Path, *rows: Any) -> list[Asked]:
    file = folder / "questions.jsonl"
    file.write_text("".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in rows))
    return read_asked(file)


@given(tables(), tables())
@settings(max_examples=examples(30), deadline=None)
def test_questions_find_what_they_find_once_the_table_is_in_force(
    every_word: Path, old: Profile, new: Profile
) -> None:
    """Of the eight passages that the store has; asking adds no record."""
    rows = [{"question": QUESTION, "role": role, "purpose": purpose} for role, purpose in PAIRS]
    several = [
        one
        for one, pair in zip(asked(every_word.parent, *rows), PAIRS, strict=True)
        if any(side.table.get(*pair) and side.table.get(*pair).allow_list == "none" for side in (old, new))
    ]
    with opened(every_word, old, accept={"policy"}) as engine:
        before = [found(engine, one.session) for one in several]
        size = engine.log.size
    told = question_effects(every_word, several, new, embedder=Counting())
    with AuditLog.open(every_word) as log:
        assert size == log.size
    with opened(every_word, new, accept={"policy"}) as engine:
        after = [found(engine, one.session) for one in several]
    expected = {one.line: (b - a, a - b) for one, a, b in zip(several, before, after, strict=True) if a != b}
    assert expected == {
        one.line: tuple({name.partition(":")[0] for name in side} for side in (one.entered, one.left))
        for one in told
    }


def test_a_question_is_asked_as_its_principals(tmp_path: Path) -> None:
    store, ana = tmp_path / "store", {"question": QUESTION, "role": "clerk", "purpose": "read"}
    with opened(store, profile()) as engine:
        engine.add([document("desk", allow=["user:ana"])])
        several = asked(tmp_path, ana, ana | {"principals": ["user:ana"]})
    told = question_effects(store, several, profile(cell(PAIRS[0], [([], [])])), embedder=Counting())
    assert [(one.line, one.entered) for one in told] == [(2, ("d/desk:00000",))]


def test_a_question_that_nobody_may_ask_is_refused(every_word: Path) -> None:
    several = asked(every_word.parent, {"question": QUESTION, "role": "clerk", "purpose": "review"})
    opened(every_word, profile(), accept={"policy"}).close()
    with pytest.raises(InvalidArgument, match="line 1 is refused under both"):
        question_effects(every_word, several, profile(), embedder=Counting())


def test_nothing_is_asked_of_a_remote_embedder(tmp_path: Path) -> None:
    """The question would leave the machine without a record."""
    embedder = Counting()
    embedder.remote = True  # type: ignore[attr-defined]
    several = asked(tmp_path, {"question": QUESTION, "role": "judge", "purpose": "review"})
    Engine.open(tmp_path / "store", profile=profile(), embedder=embedder).close()
    with pytest.raises(InvalidArgument, match="without a record"):
        question_effects(tmp_path / "store", several, profile(), embedder=embedder)
    assert embedder.texts == []


GOOD = {"question": QUESTION, "role": "judge", "purpose": "review"}


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("{", "line 2: the line is not JSON"),
        (GOOD | {"group": "x"}, "line 2: the key 'group' is unknown"),
        ({"question": QUESTION}, "line 2: the key role is missing"),
        (GOOD | {"question": " "}, "line 2: question is empty"),
        (GOOD | {"principals": ["ana"]}, "line 2: principals holds 'ana'"),
        (GOOD | {"role": 7}, "line 2: session role is 7"),
    ],
)
def test_a_line_that_is_not_a_question_is_refused(tmp_path: Path, row: object, why: str) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(why)):
        asked(tmp_path, GOOD, row)


def test_a_file_without_questions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="has no questions"):
        asked(tmp_path)


def test_a_profile_with_other_bits_is_refused(every_word: Path) -> None:
    with pytest.raises(InvalidArgument, match="whose bits differ"):
        effects(every_word, profile(), Profile.open("edgar"))
