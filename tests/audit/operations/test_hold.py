"""Legal holds: placed by one, released by two, and until then nothing they cover can be erased."""

from __future__ import annotations

import contextlib

import pytest

from carag.audit import Basis, Hold, HoldAction, erase, place_hold, release_hold
from carag.errors import InvalidArgument, Refused

PEOPLE = {"actor": "Dora Privacy", "approver": "Carl Compliance"}
BY_LAW = {**PEOPLE, "basis": Basis.LEGAL_OBLIGATION}
ANA, BO = "ana@bank.example", "bo@bank.example"


def ask(log, build, subject):
    return log.append(
        build.access(), secrets={**build.SECRETS, "subject": subject}, passages=build.passages()
    )


def bytes_of(directory):
    return {path.name: path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


HOLDS = {
    "everything": {},
    "the person": {"subject": ANA},
    "the records": {"records": (0, 0)},
    "a range around": {"records": (0, 100)},
}


@pytest.mark.parametrize("scope", HOLDS)
@pytest.mark.parametrize("reopened", [False, True])
def test_a_hold_goes_before_an_erasure(tmp_path, build, scope, reopened):
    """Whatever the basis; and released by two people it no longer does."""
    with build.open_log(tmp_path) as log:
        ask(log, build, ANA)
        placed = place_hold(log, "MATTER-1", actor="counsel", **HOLDS[scope]).seq
        ask(log, build, BO)
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(build.open_log(tmp_path))
        if reopened:  # as after the private half was put back to before the hold
            log.close()
            edit = "UPDATE state SET settled = 0"
            build.edit(tmp_path / "audit.db", "DELETE FROM hold", edit)
            log = stack.enter_context(build.open_log(tmp_path))
        for request in ({"subject": ANA}, {"records": [0]}, {"records": [0], "fields": ["query"]}):
            for basis in Basis:
                with pytest.raises(Refused, match=f"placed by record {placed}") as refused:
                    erase(log, **{**BY_LAW, **request, "basis": basis})
                assert refused.value.code == "LEGAL_HOLD"
        if scope == "everything":
            with pytest.raises(Refused, match="hold"):
                erase(log, subject=BO, **BY_LAW)
        else:
            ask(log, build, BO)
        release_hold(log, placed, **PEOPLE)
        erase(log, subject=ANA, **BY_LAW)
        assert log.private.openings(0) == {}


def test_a_hold_on_a_person_covers_what_is_yet_to_come(tmp_path, build):
    """Also on a person who is not recorded yet."""
    with build.open_log(tmp_path) as log:
        place_hold(log, "MATTER-1", actor="counsel", subject=ANA)
        ask(log, build, ANA)
        with pytest.raises(Refused):
            erase(log, subject=ANA, **BY_LAW)
        assert ANA.encode() not in b"".join(bytes_of(tmp_path).values())


def test_a_hold_whose_person_is_lost_holds_everything(tmp_path, build):
    """With private.key destroyed its subject is unknown: everything is held until it is released."""
    with build.open_log(tmp_path) as log:
        placed = place_hold(log, "MATTER-1", actor="counsel", subject=ANA).seq
    (tmp_path / "private.key").unlink()
    with build.open_log(tmp_path, accept_lost_values=True) as log:
        ask(log, build, BO)
        with pytest.raises(Refused):
            erase(log, subject=BO, **BY_LAW)
        release_hold(log, placed, **PEOPLE)
        erase(log, subject=BO, **BY_LAW)


def test_a_hold_is_released_once_by_two(tmp_path, build):
    """Not by one person, not twice, and not by a number that placed nothing."""
    with build.open_log(tmp_path) as log:
        ask(log, build, ANA)
        placed = place_hold(log, "MATTER-1", actor="counsel").seq
        size = log.size
        for wrong in ({"placed": placed, "actor": "x", "approver": "X "}, {"placed": 0, **PEOPLE}):
            with pytest.raises(InvalidArgument):
                release_hold(log, **wrong)
        assert log.size == size
        receipt = release_hold(log, placed, **PEOPLE)
        event = log.record(receipt.seq).event
        assert (event.action, event.matter, event.placed) == (HoldAction.RELEASED, "MATTER-1", placed)
        with pytest.raises(InvalidArgument, match="did not place a hold"):
            release_hold(log, placed, **PEOPLE)


@pytest.mark.parametrize(
    "changes",
    [
        {"matter": "a name"},
        {"scope": "records"},
        {"scope": "records", "first": 2, "last": 1},
        {"scope": "records", "first": -1, "last": 1},
        {"first": 1, "last": 2},
        {"placed": 4},
        {"action": "released"},
        {"action": "paused"},
        {"scope": "some"},
    ],
    ids=str,
)
def test_a_hold_event_is_in_order_or_refused(changes):
    """A range has both ends, a release names what it ends, a placement does not."""
    values = {"action": "placed", "matter": "M-1", "scope": "all"}
    for whole in (
        values,
        {**values, "scope": "records", "first": 0, "last": 0},
        {**values, "action": "released", "placed": 0},
    ):
        assert Hold.from_json(Hold(**whole).to_json()) == Hold(**whole)
    with pytest.raises(InvalidArgument):
        Hold(**{**values, **changes})


def test_a_hold_is_on_one_thing(tmp_path, build):
    """Both a subject and records are two holds."""
    with build.open_log(tmp_path) as log:
        with pytest.raises(InvalidArgument, match="two holds"):
            place_hold(log, "M-1", actor="lea", subject=ANA, records=(0, 1))
        assert log.size == 0
