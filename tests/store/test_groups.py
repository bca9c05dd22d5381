"""Groups: what holds whom at any minute, as known at any instant, is what plain sets say; imports write differences."""

from __future__ import annotations

import hashlib
import itertools
import json
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carag.errors import CaragError, InvalidArgument
from carag.policy import NEVER, Session
from carag.policy.groups.statements import ALWAYS, GroupImport, GroupStatement, Window
from carag.store import _group_import as importing
from carag.store import groups as resolving
from carag.store.store import CorpusStore
from tests.sizes import SIZE, examples
from tests.store.filings import contents

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    State: TypeAlias = dict[str, dict[str, Window]]
    """The members of each group."""

MINUTES = 12
USERS = [f"user:{name}" for name in "abc"]
LEVELS = [[f"group:{level}{twin}" for twin in "xy"] for level in range(6)]
"""A group holds users and groups of lower levels, so that groups nest to depth 6 without a cycle."""
GROUPS = list(itertools.chain(*LEVELS))
WINDOWS = (
    st.tuples(st.integers(0, MINUTES), st.integers(0, MINUTES))
    .filter(lambda pair: pair[0] != pair[1])
    .map(lambda pair: Window(*sorted(pair)))
) | st.just(ALWAYS)


@st.composite
def statements(draw: st.DrawFn, group: str, is_whole: bool | None = None) -> GroupStatement:
    below = st.sampled_from(USERS + list(itertools.chain(*LEVELS[: int(group[6])])))
    members = draw(st.dictionaries(below, WINDOWS, max_size=4))
    if draw(st.booleans()) if is_whole is None else is_whole:
        return GroupStatement(group, members)
    return GroupStatement(group, members, draw(st.sets(below, max_size=3)) - members.keys())


@st.composite
def imports(draw: st.DrawFn, *, is_whole: bool | None = None) -> GroupImport:
    groups = draw(st.lists(st.sampled_from(GROUPS), unique=True, min_size=1, max_size=8))
    return GroupImport([draw(statements(group, is_whole)) for group in groups])


def after(state: State, stated: GroupImport) -> State:
    """What the groups are after an import, by the definition."""
    new = {group: dict(members) for group, members in state.items()}
    for one in stated.statements:
        old = {} if one.removed is None else new.get(one.group, {})
        new[one.group] = {**{who: old[who] for who in old.keys() - (one.removed or ())}, **one.members}
    return new


def closure(
    state: State, principals: Collection[str], minute: int
) -> tuple[set[str], list[tuple[str, str, int, int]]]:
    """What holds some principals, and by which memberships, by the definition."""
    edges = [
        (who, group, *window)
        for group, members in state.items()
        for who, window in members.items()
        if window.since <= minute < window.until
    ]
    held = set(principals)
    while more := {group for who, group, *_ in edges if who in held} - held:
        held |= more
    return held, sorted(edge for edge in edges if edge[0] in held)


def a_state(store: CorpusStore) -> State:
    return {group: dict(store.groups.members(group)) for group in store.groups.known()}


def whole(state: Mapping[str, Mapping[str, Window]]) -> GroupImport:
    return GroupImport([GroupStatement(group, members) for group, members in state.items()])


def nested(*chain: str) -> GroupImport:
    """Each is the one member of the next."""
    return GroupImport(
        [GroupStatement(group, {member: ALWAYS}) for member, group in itertools.pairwise(chain)]
    )


def a_session(*principals: str) -> Session:
    return Session(role="public", purpose="read", principals=frozenset(principals))


@settings(max_examples=examples(150), deadline=None)
@given(st.data(), st.lists(imports(), min_size=1, max_size=4))
def test_what_holds_whom_is_what_plain_sets_say(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, stated: list[GroupImport]
) -> None:
    """At any minute, as known now and at any earlier instant; the hash is that of the memberships that led there."""
    clock = itertools.count(1000, 10)
    with CorpusStore.open(tmp_path_factory.mktemp("law") / "corpus.db", clock=lambda: next(clock)) as store:
        states: dict[int, State] = {-1: {}}
        for one in stated:
            state = after(states[max(states)], one)
            known_at = store.groups.import_(one).known_at
            if known_at is None:
                assert state == states[max(states)]
            else:
                states[known_at] = state
            assert a_state(store) == state
        instants = [*sorted(states), 9999]
        for _ in range(6):
            n = data.draw(st.integers(0, len(states) - 1))
            asked = data.draw(st.integers(max(instants[n], 0), instants[n + 1] - 1))
            if n == len(states) - 1:
                asked = data.draw(st.sampled_from([asked, None]))
            minute = data.draw(st.integers(0, MINUTES))
            own = data.draw(st.sets(st.sampled_from(USERS + GROUPS), max_size=3))
            state = states[instants[n]]
            held, used = closure(state, own, minute)
            assert store.groups.held_by(own, minute, asked) == held
            digest = hashlib.sha256(json.dumps(used, separators=(",", ":")).encode()).hexdigest()
            assert store.groups.memberships_hash(own, minute, asked) == digest
            window = store.groups.resolved(own, minute, asked).window
            assert window.since <= minute < window.until
            for edge in (window.since, min(window.until, MINUTES + 5) - 1):
                assert closure(state, own, edge) == (held, used)


@settings(max_examples=examples(60), deadline=None)
@given(imports(), imports())
def test_an_import_twice_is_the_same_as_once(
    tmp_path_factory: pytest.TempPathFactory, before: GroupImport, one: GroupImport
) -> None:
    """The second writes nothing, also after a restart; and so does a dry run, which reports the same."""
    path = tmp_path_factory.mktemp("law") / "corpus.db"
    with CorpusStore.open(path) as store:
        store.groups.import_(before)
        was = contents(store)
        tried = store.groups.import_(one, dry_run=True)
        assert contents(store) == was
        done = store.groups.import_(one)
        assert tried == done._replace(known_at=None)
        assert (done.known_at is None) == (contents(store) == was)
    with CorpusStore.open(path) as store:
        was = contents(store)
        assert store.groups.import_(one) == done._replace(opened=0, closed=0, added=0, known_at=None)
        assert contents(store) == was


@settings(max_examples=examples(60), deadline=None)
@given(imports(), imports(), st.integers(0, MINUTES))
def test_a_trial_tells_what_an_import_does_and_writes_nothing(
    tmp_path_factory: pytest.TempPathFactory, before: GroupImport, one: GroupImport, minute: int
) -> None:
    """For every principal whose groups differ afterwards, and none whose groups the import does not reach."""
    names = [*USERS, *GROUPS]
    with CorpusStore.open(tmp_path_factory.mktemp("law") / "corpus.db") as store:
        store.groups.import_(before)
        was, known = contents(store), store.groups.known()
        trial = store.groups.tried(one, minute, most=len(names))
        assert contents(store) == was
        held = {name: store.groups.held_by([name], minute) for name in names}
        assert store.groups.import_(one)._replace(known_at=None) == trial.report
        now = {name: store.groups.held_by([name], minute) for name in names}
        assert trial.known == (known, store.groups.known())
    assert {
        name: (held[name], now[name]) for name in names if held[name] != now[name]
    }.items() <= trial.held.items()
    assert all(trial.held[name] == (held[name], now[name]) for name in trial.held)
    assert trial.concerned == len(trial.held)
    assert trial.report[:3] != (0, 0, 0) or not trial.held


@settings(max_examples=examples(60), deadline=None)
@given(imports(is_whole=True), imports(is_whole=True))
def test_the_difference_leads_where_the_whole_does(
    tmp_path_factory: pytest.TempPathFactory, before: GroupImport, one: GroupImport
) -> None:
    """Stated as changes, or by the groups alone that differ; and the same memberships are opened and closed."""
    start = after({}, before)
    goal = after(start, one)
    changes = [
        GroupStatement(
            group,
            {who: window for who, window in members.items() if start.get(group, {}).get(who) != window},
            start.get(group, {}).keys() - members.keys(),
        )
        for group, members in goal.items()
    ]
    differing = {group: members for group, members in goal.items() if members != start.get(group)}
    found = []
    for ways in (whole(goal), GroupImport(changes), whole(differing) if differing else None):
        with CorpusStore.open(tmp_path_factory.mktemp("law") / "corpus.db") as store:
            store.groups.import_(before)
            report = (0, 0, 0) if ways is None else store.groups.import_(ways)[:3]
            found.append((a_state(store), report))
    assert found == [(goal, found[0][1])] * 3


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd")), min_size=1, max_size=10))
def test_a_cycle_with_what_is_stored_is_refused_and_nothing_is_written(
    tmp_path_factory: pytest.TempPathFactory, edges: list[tuple[str, str]]
) -> None:
    """Each membership by itself, whichever closes the circle."""
    below = {name: {name} for name in "abcd"}
    with CorpusStore.open(tmp_path_factory.mktemp("law") / "corpus.db") as store:
        for member, group in edges:
            if group in below[member]:
                was = contents(store)
                with pytest.raises(InvalidArgument, match="the groups hold each other"):
                    store.groups.import_(joined(member, group))
                assert contents(store) == was
            else:
                store.groups.import_(joined(member, group))
                for name in [name for name in "abcd" if group in below[name]]:
                    below[name] |= below[member]


def joined(member: str, group: str) -> GroupImport:
    # A group inside itself is refused even before it reaches the store.
    return GroupImport([GroupStatement(f"group:{group}", {f"group:{member}": ALWAYS}, ())])


@pytest.mark.parametrize("statement", ["_CLOSE", "_OPEN"])
def test_an_import_that_fails_leaves_the_store_as_it_was(
    store: CorpusStore, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    """Wherever it fails: the next one starts from what was there, and succeeds."""
    store.groups.import_(nested("user:ana", "group:a", "group:b"))
    was, change = contents(store), nested("user:bo", "group:b", "group:c")
    with monkeypatch.context() as broken:
        broken.setattr(importing, statement, "UPDATE no_such_table SET a = ?")
        with pytest.raises(CaragError, match="nothing was stored"):
            store.groups.import_(change)
    assert contents(store) == was
    assert store.groups.import_(change)[:3] == (2, 1, 1)


def test_a_group_in_two_spellings_is_refused(store: CorpusStore) -> None:
    """Also where it was only ever named as a member; by its place, with the spelling to use."""
    store.groups.import_(nested("group:desk", "group:Treasury"))
    was = contents(store)
    for stated in (nested("user:ana", "group:treasury"), nested("group:DESK", "group:b")):
        with pytest.raises(InvalidArgument, match=r"statement 1: .* is another spelling of .*, as the store"):
            store.groups.import_(stated)
    assert contents(store) == was


@pytest.mark.parametrize(
    "stated",
    [
        GroupStatement("group:b", {"user:Ana": ALWAYS}),
        GroupStatement("group:desk", {}, ["user:ANA"]),
        GroupStatement("group:desk", {}, ["group:HEADS"]),
    ],
)
def test_a_member_in_two_spellings_is_refused(store: CorpusStore, stated: GroupStatement) -> None:
    """A removal under another spelling would leave the member in the group."""
    store.groups.import_(nested("user:ana", "group:desk"))
    store.groups.import_(nested("group:heads", "group:desk"))
    was = contents(store)
    for dry_run in (True, False):
        with pytest.raises(InvalidArgument, match=r"statement 1: .* is another spelling of .*, as the store"):
            store.groups.import_(GroupImport([stated]), dry_run=dry_run)
    assert contents(store) == was


def test_one_import_spells_a_member_in_one_way() -> None:
    with pytest.raises(InvalidArgument, match="statement 2: 'user:ana' is another spelling of 'user:Ana'"):
        GroupImport(
            [GroupStatement("group:a", {"user:Ana": ALWAYS}), GroupStatement("group:b", {"user:ana": ALWAYS})]
        )


def test_another_spelling_of_a_member_denies_what_its_groups_are_denied(store: CorpusStore) -> None:
    store.groups.import_(nested("user:ana", "group:desk", "group:bank"))
    found = store.groups.identity(
        a_session("user:Ana", "group:DESK", "user:bo").narrow(principals=["user:bo"]), 0
    )
    assert (found.allowed, found.denied) == ({"user:bo"}, {"user:Ana", "group:DESK", "user:bo"})
    assert found.respelt == {"user:ana", "group:desk", "group:bank"}
    assert store.groups.identity(a_session("user:bo"), 0).respelt == set()


def test_an_identity_is_that_of_one_import(store: CorpusStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that ends in between makes a group known, and puts the person into a group on either list."""
    store.groups.import_(nested("group:x", "group:open"))
    asked = a_session("user:ana", "user:bo").narrow(principals=["user:ana"])

    def late(sql: Any, *given: Any, real: Any = resolving._resolve) -> Any:
        found = real(sql, *given)
        for group in ("group:deny", "group:allow"):
            store.groups.import_(nested("user:ana", group))
        return found

    with monkeypatch.context() as between:
        between.setattr(resolving, "_resolve", late)
        found = store.groups.identity(asked, 0)
    assert (found.allowed, found.denied) == ({"user:ana"}, {"user:ana", "user:bo"})
    assert found.groups == {"group:open"}
    assert store.groups.identity(asked, 0).allowed == {"user:ana", "group:deny", "group:allow"}


def test_a_group_that_was_never_stated_is_reported_until_it_is(store: CorpusStore) -> None:
    """It holds whom it is said to hold, and it is not known."""
    assert store.groups.import_(nested("group:desk", "group:bank")).undefined == ("group:desk",)
    assert store.groups.known() == {"group:bank"}
    assert store.groups.held_by(["group:desk"], 0) == {"group:desk", "group:bank"}
    assert store.groups.import_(nested("user:ana", "group:desk")).undefined == ()
    assert store.groups.import_(nested("group:desk", "group:bank")).undefined == ()
    assert store.groups.known() == {"group:bank", "group:desk"}
    assert store.groups.known(0) == set()
    assert store.groups.listed() == [("group:bank", 1), ("group:desk", 1)]
    with pytest.raises(InvalidArgument, match="there is no group 'group:none'"):
        store.groups.members("group:none")


def test_news_counts_at_once_for_every_minute_and_never_for_what_was_known(store: CorpusStore) -> None:
    """A group moved under another, and a membership that ended."""
    first = store.groups.import_(nested("user:ana", "group:desk", "group:a")).known_at
    assert store.groups.held_by(["user:ana"], 7) == {"user:ana", "group:desk", "group:a"}
    store.groups.import_(
        GroupImport([*nested("group:desk", "group:b").statements, GroupStatement("group:a", {})])
    )
    assert store.groups.held_by(["user:ana"], 7) == {"user:ana", "group:desk", "group:b"}
    store.groups.import_(GroupImport([GroupStatement("group:desk", {}, ["user:ana"])]))
    assert store.groups.held_by(["user:ana"], 7) == {"user:ana"}
    assert store.groups.held_by(["user:ana"], 7, first) == {"user:ana", "group:desk", "group:a"}


def test_what_was_known_stays_however_often_a_membership_comes_and_goes(store: CorpusStore) -> None:
    """Each time it is a row of its own."""
    empty = GroupImport([GroupStatement("group:a", {})])
    known = [store.groups.import_(one).known_at for one in [nested("user:ana", "group:a"), empty] * 3]
    found = [store.groups.held_by(["user:ana"], 0, at) for at in known]
    assert found == [{"user:ana", "group:a"}, {"user:ana"}] * 3


def test_two_groups_may_change_places_in_one_import(store: CorpusStore) -> None:
    """What ends with an import closes no circle."""
    store.groups.import_(nested("group:a", "group:b"))
    store.groups.import_(
        GroupImport([GroupStatement("group:b", {}), *nested("group:b", "group:a").statements])
    )
    assert store.groups.held_by(["group:b"], 0) == {"group:b", "group:a"}


def test_groups_are_looked_up_once_until_a_membership_begins_or_ends(
    store: CorpusStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And again after an import."""
    asked: list[int] = []

    def counted(sql: Any, own: frozenset[str], at: int, epoch: int, real: Any = resolving._resolve) -> Any:
        asked.append(at)
        return real(sql, own, at, epoch)

    monkeypatch.setattr(resolving, "_resolve", counted)
    store.groups.import_(GroupImport([GroupStatement("group:a", {"user:ana": Window(10, 20)})]))
    for minute in (9, 0, 10, 19, 15, 20, 30):
        held = store.groups.held_by(["user:ana"], minute)
        assert ("group:a" in held) == (10 <= minute < 20)
    assert asked == [9, 10, 20]
    store.groups.import_(nested("user:ana", "group:a"))
    assert store.groups.held_by(["user:ana"], 30) == {"user:ana", "group:a"}


def test_no_two_imports_are_known_at_one_instant(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Even where the clock stands still, or runs back."""
    readings = iter([50, 50, 40])
    path = tmp_path_factory.mktemp("clock") / "corpus.db"
    with CorpusStore.open(path, clock=lambda: next(readings)) as store:
        known = [store.groups.import_(nested(f"user:{n}", "group:a")).known_at for n in range(3)]
    assert known == [50, 51, 52]


def test_a_chain_of_two_thousand_groups_is_followed(store: CorpusStore) -> None:
    """To its end, and a membership that would close it is refused."""
    depth = 2000 if SIZE != "quick" else 300
    chain = [f"group:{n}" for n in range(depth)]
    store.groups.import_(nested("user:ana", *chain))
    assert store.groups.held_by(["user:ana"], 0) == {"user:ana", *chain}
    with pytest.raises(InvalidArgument, match=rf"\({depth} groups\)"):
        store.groups.import_(GroupImport([GroupStatement("group:0", {chain[-1]: ALWAYS}, ())]))


def test_a_large_group_costs_what_changes(store: CorpusStore) -> None:
    """One of its members more, and one less, are two rows."""
    count = 100_000 if SIZE == "full" else 10_000
    members = {f"user:{n}": ALWAYS for n in range(count)}
    assert store.groups.import_(GroupImport([GroupStatement("group:all", members)]))[:3] == (count, 0, 1)
    changed = {**members, "user:new": ALWAYS}
    del changed["user:7"]
    assert store.groups.import_(GroupImport([GroupStatement("group:all", changed)]))[:3] == (1, 1, 0)
    assert store.groups.listed() == [("group:all", count)]


def test_no_table_is_read_whole(store: CorpusStore) -> None:
    """Groups are found by lookups upward from the principals, and the last change by its key."""
    with store._reading() as sql:
        query = f"EXPLAIN QUERY PLAN {resolving._ABOVE}"
        plan = [row[3] for row in sql.execute(query, {"members": '["user:ana"]', "u": 1}).fetchall()]
        plan += [row[3] for row in sql.execute(f"EXPLAIN QUERY PLAN {importing._MEMBERS}", (1,)).fetchall()]
    assert len([step for step in plan if step.startswith("SEARCH memberships")]) == 2
    assert [] == [step for step in plan if step.startswith("SCAN") and "json_each" not in step]


@pytest.mark.parametrize(
    ("principals", "minute"),
    [(["ana"], 0), ("user:ana", 0), (["user:ana", "user:Ana"], 0), ([], -1), ([], NEVER), ([], True)],
)
def test_what_cannot_be_asked_is_refused(store: CorpusStore, principals: Iterable[str], minute: int) -> None:
    """A principal without a kind, one in two spellings, a minute outside 32 bits."""
    with pytest.raises(InvalidArgument):
        store.groups.held_by(principals, minute)
