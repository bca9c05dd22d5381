"""A response leaves a power of two of slots after its request, in one of a few sizes."""

from __future__ import annotations

import asyncio
import json
import selectors
from functools import partial
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from carag.service import release
from carag.service.metrics import Metrics
from carag.service.release import (
    EPOCH_REQUESTS,
    EPOCH_SECONDS,
    MOST_DOUBLINGS,
    OPERATIONS,
    RATION,
    WINDOW,
    Asker,
    ExactLoop,
    Released,
    Schedule,
    level_of,
    operation_of,
    padded,
)

SLOT = 0.025
SLOTS = dict.fromkeys(OPERATIONS, SLOT)
TOOK = st.floats(0, 60)
ARRIVAL = st.floats(0, 1e6)
CLASSES = (1 << 10, 4 << 10, 16 << 10, 64 << 10)


def ana(role: str = "analyst", name: str = "ana") -> Asker:
    return Asker("t", ("https://login.example", name), role)


def slots_waited(schedule: Schedule, took: float, asker: Asker | None = None, *, at: float = 0.0) -> int:
    """Return how many slots after its arrival a response of ``ask`` leaves."""
    return round((schedule.release("ask", at, at + took, asker) - at) / SLOT)


# --- the schedule ---


@given(ARRIVAL, TOOK, st.floats(0.001, 2))
def test_a_response_leaves_at_the_first_power_of_two_of_slots_at_which_it_is_ready(
    arrival: float, took: float, slot: float
) -> None:
    """Not before it is ready, and no slot later than it must."""
    took = (arrival + took) - arrival
    level = level_of(took, slot)
    at = Schedule(dict.fromkeys(OPERATIONS, slot)).release("ask", arrival, arrival + took)
    assert at == pytest.approx(arrival + slot * 2**level, abs=1e-6)
    assert took <= slot * 2**level
    assert level == 0 or took > slot * 2 ** (level - 1)


@given(ARRIVAL, st.floats(0, SLOT), st.floats(0, SLOT), st.integers(0, 9))
def test_the_instant_depends_only_on_the_number_of_slots(
    arrival: float, one: float, other: float, level: int
) -> None:
    """Not a bit of the duration of the work is in it."""
    assume(arrival < 1e5)
    longer = SLOT * (2**level - 1) if level else 0.0
    took = [longer / 2 + one / 2 if level else one, longer / 2 + other / 2 if level else other]
    assume(level_of(took[0], SLOT) == level_of(took[1], SLOT))
    first, second = (arrival + one for one in took)
    assume(level_of(first - arrival, SLOT) == level_of(second - arrival, SLOT))
    schedule = partial(Schedule(SLOTS).release, "ask", arrival)
    assert schedule(first) == schedule(second)


@given(st.floats(SLOT * 1.01, 60), st.lists(st.floats(0, 60), max_size=30))
def test_after_an_overrun_a_person_stays_on_the_longer_schedule(took: float, later: list[float]) -> None:
    """Or on a longer one after a worse overrun, never on a shorter one within the epoch."""
    schedule, longest = Schedule(SLOTS), slots_waited(Schedule(SLOTS), took)
    assert longest == slots_waited(schedule, took, ana())
    for one in later:
        waited = slots_waited(schedule, one, ana())
        assert waited == max(longest, slots_waited(Schedule(SLOTS), one))
        longest = waited


def test_an_epoch_ends_after_its_requests_and_after_its_hour() -> None:
    """Whichever comes first."""
    schedule = Schedule(SLOTS)
    assert 4 == slots_waited(schedule, 0.09, ana())
    assert {4} == {slots_waited(schedule, 0.001, ana()) for _ in range(EPOCH_REQUESTS)}
    assert 1 == slots_waited(schedule, 0.001, ana())
    assert 2 == slots_waited(schedule, 0.03, ana())
    assert 2 == slots_waited(schedule, 0.001, ana(), at=EPOCH_SECONDS - 1)
    assert 1 == slots_waited(schedule, 0.001, ana(), at=EPOCH_SECONDS)


def test_an_epoch_is_of_one_person_and_one_operation() -> None:
    """Others do not wait for it; unknown people have none."""
    schedule = Schedule(SLOTS)
    assert 2 == slots_waited(schedule, 0.03, ana())
    assert (2, 1) == (slots_waited(schedule, 0, ana()), slots_waited(schedule, 0, ana(name="ben")))
    assert SLOT == schedule.release("retrieve", 0, 0.001, ana())
    assert (2, 1) == (slots_waited(schedule, 0.03), slots_waited(schedule, 0.001))


def test_the_longest_unused_epochs_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that names cannot fill the memory."""
    monkeypatch.setattr(release, "_MAX_EPOCHS", 2)
    schedule = Schedule(SLOTS)
    for name in ("ana", "ben", "cem"):
        assert 2 == slots_waited(schedule, 0.03, ana(name=name))
    assert [1, 2, 2] == [slots_waited(schedule, 0, ana(name=name)) for name in ("ana", "ben", "cem")]


def test_more_overruns_of_a_role_than_its_ration_double_its_slot(caplog: pytest.LogCaptureFixture) -> None:
    """It is counted, and logged by its code without a person; other roles keep theirs; the limit is 16 times."""
    metrics = Metrics()
    schedule = Schedule(SLOTS, metrics)
    people = iter(range(10_000))

    def asked(took: float, role: str = "analyst") -> int:
        return slots_waited(schedule, took, ana(role, f"p{next(people)}"))

    for _ in range(RATION):
        assert (2, 1) == (asked(0.03), asked(0.001))
    with caplog.at_level("WARNING"):
        assert (2, 2) == (asked(0.03), asked(0.001))
    assert ["SLOT_TOO_SHORT: ask, for one role now 50 ms"] == caplog.messages
    assert 1 == asked(0.001, "other")
    assert f'carag_slot_overruns_total{{slot="ask"}} {RATION + 1}' in metrics.text()
    assert 'carag_slot_too_short_total{slot="ask"} 1' in metrics.text()
    for _ in range(20 * (RATION + 1)):
        asked(50)
    assert 2**MOST_DOUBLINGS == asked(0.001)


def test_a_ration_of_overruns_in_each_window_has_no_effect() -> None:
    """1 % of requests may miss a slot; counts do not add up over windows."""
    schedule = Schedule(SLOTS)
    for window in range(20):
        for request in range(WINDOW):
            took = 0.03 if request < RATION else 0.001
            waited = slots_waited(schedule, took, ana(name=f"{window}/{request}"))
            assert waited == (2 if request < RATION else 1)


@given(st.integers(1, 60_000))
def test_within_the_time_limit_few_instants_are_possible(slot: int) -> None:
    """An overrun reveals the logarithm of their number: 3.7 bits for 25 ms and 60 s."""
    seconds = slot / 1000
    outcomes = {level_of(took / 100, seconds) for took in range(1, 6001)}
    assert len(outcomes) <= level_of(60, seconds) + 1
    assert level_of(60, 0.025) == 12


@given(st.text(alphabet="/abc?%", max_size=20))
def test_a_path_without_an_operation_has_a_slot_too(path: str) -> None:
    """It waits like any other."""
    assert "other" == operation_of(path)
    for name in OPERATIONS[:-1]:
        assert name == operation_of(f"{path}/{name}/{path}")


# --- sizes ---


@given(st.dictionaries(st.text(), st.text()), st.integers(0, 200_000))
def test_json_keeps_its_value_and_takes_the_size_of_its_class(value: dict[str, str], more: int) -> None:
    """The smallest class that holds it."""
    body = json.dumps({**value, "more": "x" * more}).encode()
    found = padded(body, "application/problem+json")
    assert json.loads(found) == json.loads(body)
    wanted = next((size for size in CLASSES if len(body) <= size), -(-len(body) // (64 << 10)) * (64 << 10))
    assert wanted == len(found)


@given(st.integers(0, 140_000))
def test_a_stream_is_padded_by_a_comment(length: int) -> None:
    """A single event, which readers of streams skip."""
    body = b"data: " + b"x" * length + b"\n\n"
    found = padded(body, "text/event-stream; charset=utf-8")
    assert len(found) in CLASSES or not len(found) % (64 << 10)
    rest = found.removeprefix(body)
    assert (b":", b"\n\n", b"") == (rest[:1], rest[-2:], rest[1:-2].strip(b" "))


def test_a_media_type_without_padding_is_refused() -> None:
    """An image at such a path is a mistake, and noticed at once."""
    with pytest.raises(ValueError, match="image/png; serve it at a public path"):
        padded(b"", "image/png")


# --- the layer ---


class FakeSelector(selectors.DefaultSelector):
    """Do not wait, but advance a clock."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        self.now += max(timeout or 0.0, 1e-9)  # even a poll takes time, and sums of floats can be too small
        return super().select(0)


class FakeLoop(ExactLoop):
    """A loop whose time is the sum of its waits."""

    def __init__(self) -> None:
        self.clock = FakeSelector()
        asyncio.SelectorEventLoop.__init__(self, self.clock)

    def time(self) -> float:
        return self.clock.now


def seen(
    took: float,
    body: bytes = b"{}",
    *,
    slots: bool = True,
    sent: float = 0.0,
    asker: Asker | None = None,
    path: str = "/v1/ask",
) -> list[tuple[float, str, int]]:
    """Return what an observer sees of one response: when each message left, and its length."""
    found: list[tuple[float, str, int]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await receive()
        if asker is not None:
            scope["state"]["asker"] = asker
        await asyncio.sleep(took)
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))],
            }
        )
        await asyncio.sleep(took)
        for piece in (body[:1], body[1:]):
            await send({"type": "http.response.body", "body": piece, "more_body": piece == body[:1]})

    async def observed() -> None:
        pieces = iter([False, True])

        async def receive() -> Any:
            if next(pieces):
                await asyncio.sleep(sent)
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            length = len(message.get("body", b"")) or int(dict(message.get("headers", ()))[b"content-length"])
            found.append((asyncio.get_running_loop().time(), message["type"], length))

        schedule = Schedule(SLOTS) if slots else None
        await Released(app, schedule, ["/log/"])({"type": "http", "path": path}, receive, send)

    with asyncio.Runner(loop_factory=FakeLoop) as runner:
        runner.run(observed())
    return found


@given(
    st.floats(0, SLOT / 2 - 1e-4), st.binary(min_size=2, max_size=1000).map(lambda one: one.hex().encode())
)
def test_all_that_is_ready_in_the_first_slot_looks_the_same(took: float, body: bytes) -> None:
    """Head and body leave together, at the slot, whatever the duration of the work and the length within the class."""
    shown = seen(took, body[:1024])
    assert [
        (pytest.approx(SLOT), "http.response.start", 1024),
        (shown[0][0], "http.response.body", 1024),
    ] == shown


def test_without_slots_the_same_observer_sees_the_work() -> None:
    """So that the test above can fail."""
    assert [0.01, 0.02, 0.02] == [pytest.approx(at) for at, *_ in seen(0.01, slots=False)]


@given(st.floats(0, 100), st.floats(0, SLOT / 2 - 1e-4))
def test_a_late_last_byte_does_not_shorten_the_slot(sent: float, took: float) -> None:
    """Time counts from the end of the request."""
    (at,) = {at for at, *_ in seen(took, sent=sent)}
    assert at == pytest.approx(sent + SLOT)


def test_sessions_that_may_know_and_public_paths_do_not_wait() -> None:
    """Nor is their body padded."""
    free = [
        (0.01, "http.response.start", 2),
        (0.02, "http.response.body", 1),
        (0.02, "http.response.body", 1),
    ]
    for shown in (seen(0.01, asker=Asker("t", may_know=True)), seen(0.01, path="/log/checkpoint")):
        assert free == [(pytest.approx(at), *more) for at, *more in shown]
    assert 1 == len({at for at, *_ in seen(0.01, asker=ana())})


def test_an_ordinary_loop_is_polled_at_the_end() -> None:
    """The rounding of its timers would reveal how long the work took."""

    class Coarse(asyncio.SelectorEventLoop):
        now = 0.0

        def time(self) -> float:
            Coarse.now += 1e-5
            return Coarse.now

        def call_at(self, when: float, *more: Any, **others: Any) -> Any:
            Coarse.now = max(
                Coarse.now, -(-when * 1000 // 1) / 1000
            )  # a timer is late by up to a millisecond
            return super().call_at(0, *more, **others)

    async def until(instant: float) -> float:
        await release._until(asyncio.get_running_loop(), instant)
        return Coarse.now

    for began in (0.0, 0.0003, 0.0007):
        Coarse.now = 5 + began
        with asyncio.Runner(loop_factory=Coarse) as runner:
            assert 0 <= runner.run(until(5.0251)) - 5.0251 < 1e-4
