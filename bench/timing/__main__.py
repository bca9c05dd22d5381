"""Attack a served store by time: two kinds of requests, of which the attacker wants to tell the one from the other.

Pairs of both kinds, in random order, over loopback HTTP on connections that are kept, client and service each on a core
of its own. Judged is how well the time to the first byte tells them apart, of one response and of the lower quartile of
100, and how well a logistic model of first byte, last byte and size does that was fitted to the other half. A coin has
0.5. Each attack runs with slots and without; a planted difference shows that the bench sees.

    python -m bench.timing --pairs 10000 --out bench/timing/RESULTS.md
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.harness import commit, parser
from bench.timing.clocked import Connections
from bench.timing.worlds import HOARD, HOSTS, Issuer, build, share_hoard
from carag.evaluation.run_metadata import processor_name
from tests.auc import Area, area_under_curve

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable

    from bench.timing.clocked import Clocked

REPEATS: Final = 100
"""Responses whose lower quartile an attacker takes."""
_SLOT: Final = {"explain": 0.025, "retrieve": 0.025, "receipts": 0.025, "ask": 0.050}
_STEP: Final = 0.0086
"""Seconds between two requests. No slot is a multiple of it, so that no response leaves while another is worked on."""
_LONG_STEPS: Final = {"retrieve": 0.0135, "ask": 0.0265}
"""Of attacks whose requests are longer at work."""
_ROUNDS: Final = 5
"""Into which each attack is cut, all attacks in turn, so that a drift of the machine is in all of them."""
_WARM_UP: Final = 20
"""Requests of each turn that are not judged."""
_PEOPLE: Final = 20
"""Who ask in turn, so that what one of them overruns does not lengthen all that follows."""
_LONG: Final = " " + "x" * 2_600
"""What makes the question of ``ask`` so long that a refusal and a decline fall into one class of size."""
_DRAWS: Final = 2_000
"""Of the bootstrap."""
_TOPIC: Final = (
    "How many hives of bees did the orchard keep?",
    "Who sold honey and wax of the orchard?",
    "What did the orchard of bees earn by its honey?",
)


@dataclass(frozen=True, slots=True)
class Attack:
    """Two kinds of requests: ``draw(True)`` is what an attacker looks for."""

    name: str
    what: str
    operation: str
    draw: Callable[[bool], bytes]
    writes: bool = False


def request(
    method: str, path: str, token: str, body: dict[str, Any] | None = None, host: str = HOSTS[0]
) -> bytes:
    """Write one request."""
    data = b"" if body is None else json.dumps(body).encode()
    kind = "" if body is None else f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
    return (
        f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n{kind}\r\n".encode()
        + data
    )


def attacks(
    issuer: Issuer, hidden: list[str], foreign: list[int], tokens: dict[bool, list[str]], seed: int
) -> list[Attack]:
    """Return all; each kind of request carries one of its own tokens."""
    draw = random.Random(seed)  # noqa: S311
    expired, unknown = issuer.token(seconds=-86_400), Issuer(None).token()

    def post(kind: bool, operation: str, body: dict[str, Any], host: str = HOSTS[0]) -> bytes:
        return request("POST", f"/v1/{operation}", draw.choice(tokens[kind]), body, host)

    def explain(kind: bool) -> bytes:
        chunk = draw.choice(hidden)
        named = chunk if kind else f"{chunk[:-5]}{int(chunk[-5:]) + 70_000:05d}"
        return post(kind, "explain", {"chunk_id": named})

    def retrieve(kind: bool) -> bytes:
        return post(kind, "retrieve", {"question": draw.choice(_TOPIC), "k": 1}, HOSTS[0 if kind else 1])

    def receipt(kind: bool) -> bytes:
        seq = draw.choice(foreign) + (0 if kind else 10**9)
        return request("GET", f"/v1/receipts/{seq}", draw.choice(tokens[kind]))

    def ask(kind: bool) -> bytes:
        narrow: dict[str, Any] = {"intents": ["NO_SUCH"]} if kind else {"allow_entities": [1]}
        return post(kind, "ask", {"question": draw.choice(_TOPIC) + _LONG, "narrow": narrow})

    def refused(kind: bool) -> bytes:
        return request(
            "POST", "/v1/retrieve", expired if kind else unknown, {"question": draw.choice(_TOPIC), "k": 1}
        )

    return [
        Attack("explain", "a hidden passage, or none", "explain", explain),
        Attack("relabel", "the same while hidden passages are relabelled", "explain", explain, writes=True),
        Attack("retrieve", f"a topic of {HOARD:,} hidden filings, or of none", "retrieve", retrieve),
        Attack("receipt", "another person's receipt, or none", "receipts", receipt),
        Attack("ask", "a refusal by the policy, or a decline, of one class of size", "ask", ask),
        Attack("token", "an expired token, or one of an unknown key", "retrieve", refused),
    ]


class Served:
    """The worlds, in a process of their own."""

    def __init__(self, home: Path, *, slots: bool, planted: float) -> None:
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "bench.timing.worlds", str(home)),
                *("--slots", "on" if slots else "off", "--planted", str(planted)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def writes(self, *, is_on: bool) -> None:
        """Relabel from now on, or no more."""
        assert self._process.stdin is not None
        print("write" if is_on else "rest", file=self._process.stdin, flush=True)

    def close(self) -> None:
        """End it, and see that it ended well."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        if self._process.wait(60):
            raise RuntimeError("the served worlds failed")


@dataclass(slots=True)
class Measured:
    """Responses to both kinds of requests of one attack."""

    attack: Attack
    times: dict[bool, list[Clocked]]
    late: int = 0

    def columns(self, kind: bool) -> np.ndarray:
        """First byte, last byte in seconds, and size."""
        return np.array([(one.first / 1e9, one.last / 1e9, one.size) for one in self.times[kind]])

    def single(self) -> Area:
        """By the first byte of one response."""
        return area_under_curve(self.columns(True)[:, 0], self.columns(False)[:, 0])

    def repeated(self, seed: int) -> Area | None:
        """By the lower quartile of the first bytes of 100, with a bootstrap's interval; None of too few."""
        quartiles = [_quartiles(self.columns(kind)[:, 0]) for kind in (True, False)]
        if min(map(len, quartiles)) < 5:
            return None
        rng = np.random.default_rng(seed)
        drawn = [
            area_under_curve(*(rng.choice(one, len(one)) for one in quartiles)).value for _ in range(_DRAWS)
        ]
        low, high = np.quantile(drawn, (0.025, 0.975))
        return Area(area_under_curve(*quartiles).value, float(low), float(high))

    def modelled(self) -> Area:
        """By a logistic model of all three that never saw the response that it judges."""
        scores: dict[bool, list[np.ndarray]] = {True: [], False: []}
        both = {kind: self.columns(kind) for kind in (True, False)}
        for half in (0, 1):
            weights = _fitted(both[True][half::2], both[False][half::2])
            for kind, rows in both.items():
                scores[kind].append(weights(rows[1 - half :: 2]))
        return area_under_curve(np.concatenate(scores[True]), np.concatenate(scores[False]))

    def overruns(self, kind: bool) -> float:
        """Return the share of one kind's responses that took more than a slot and a half."""
        slot = _SLOT[self.attack.operation]
        return float(np.mean([one.first / 1e9 > 1.5 * slot for one in self.times[kind]]))

    def median(self) -> float:
        """Milliseconds to the first byte."""
        return float(np.median([one.first / 1e6 for all_of in self.times.values() for one in all_of]))


def _quartiles(column: np.ndarray) -> np.ndarray:
    whole = len(column) // REPEATS * REPEATS
    return np.asarray(np.quantile(column[:whole].reshape(-1, REPEATS), 0.25, axis=1))


def _fitted(positive: np.ndarray, negative: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Fit logistic regression by Newton's steps, with a little ridge; return what scores rows."""
    rows = np.concatenate([positive, negative])
    # A few late responses would else decide the slope: what is beyond the middle 98 % counts as its end.
    low, high = np.quantile(rows, (0.01, 0.99), axis=0)
    middle, spread = np.median(rows, axis=0), np.maximum(high - low, 1e-12)

    def scaled(some: np.ndarray) -> np.ndarray:
        plain = (np.clip(some, low, high) - middle) / spread
        return np.hstack([np.ones((len(some), 1)), plain, plain**2])

    x, y = scaled(rows), np.r_[np.ones(len(positive)), np.zeros(len(negative))]
    weights = np.zeros(x.shape[1])
    for _ in range(30):
        p = 1 / (1 + np.exp(-x @ weights))
        hessian = (x * (p * (1 - p))[:, None]).T @ x + 1e-3 * np.eye(len(weights))
        weights += np.linalg.solve(hessian, x.T @ (y - p) - 1e-3 * weights)
    return lambda some: scaled(some) @ weights


def measure(
    home: Path,
    issuer: Issuer,
    hidden: list[str],
    *,
    pairs: int,
    slots: bool,
    planted: float,
    names: tuple[str, ...],
    seed: int,
) -> list[Measured]:
    """Run attacks in turn, and return what each saw."""
    tokens = {
        kind: [issuer.token(f"p{n:02d}@city.example", number=kind and bool(planted)) for n in range(_PEOPLE)]
        for kind in (False, True)
    }
    (home / "planted.txt").write_text("\n".join(tokens[True]) if planted else "")
    served = Served(home, slots=slots, planted=planted)
    try:
        other = issuer.token("ben@city.example")
        foreign = _records(served.port, other)
        chosen = [one for one in attacks(issuer, hidden, foreign, tokens, seed) if one.name in names]
        found = [Measured(one, {True: [], False: []}) for one in chosen]
        order = random.Random(seed)  # noqa: S311
        for turn in range(_ROUNDS):
            share = pairs * (turn + 1) // _ROUNDS - pairs * turn // _ROUNDS
            for one in found:
                served.writes(is_on=one.attack.writes)
                _run(one, served.port, share, order)
        served.writes(is_on=False)
    finally:
        served.close()
    return found


def _run(one: Measured, port: int, pairs: int, order: random.Random) -> None:
    step = _LONG_STEPS.get(one.attack.name, _STEP)
    # As many as wait at once, if some of the people are on the schedule of two slots.
    connections = Connections(port, int(2 * _SLOT[one.attack.operation] / step) + 1, step)
    # Shuffled whole, not in pairs: there the request before one of a kind is oftener of the other, and its work, where
    # it is longer than a step, would delay this one and tell what this one is.
    kinds = _WARM_UP // 2 * [True, False] + order.sample((True, False), 2 * pairs, counts=(pairs, pairs))
    responses = connections.send([one.attack.draw(kind) for kind in kinds])
    connections.close()
    for kind, response in list(zip(kinds, responses, strict=True))[_WARM_UP:]:
        one.times[kind].append(response)
    one.late += connections.late


def _records(port: int, token: str) -> list[int]:
    """Ask as another person, and return the numbers of the records."""
    import http.client

    found = []
    for _ in range(50):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        body = json.dumps({"question": _TOPIC[0], "k": 1})
        headers = {"Host": HOSTS[0], "Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection.request("POST", "/v1/retrieve", body, headers)
        found.append(json.loads(connection.getresponse().read())["record"])
        connection.close()
    return found


def _most(area: Area | None) -> str:
    if area is None:
        return "too few"
    if area.value < 0.5:
        area = Area(1 - area.value, 1 - area.high, 1 - area.low)
    return f"{area.value:.3f} ({area.low:.3f} .. {area.high:.3f})"


def _rows(found: list[Measured], seed: int) -> list[str]:
    return [
        f"| {one.attack.name} | {one.attack.what} | {len(one.times[True]):,} | {one.median():.2f} | "
        f"{one.overruns(True):.2%}, {one.overruns(False):.2%} | "
        f"{_most(one.single())} | {_most(one.repeated(seed))} | {_most(one.modelled())} |"
        for one in found
    ]


def is_met(one: Measured, seed: int) -> bool:
    """Tell whether slots hide what an attack looks for, as the page states it."""
    single, repeated, modelled = one.single(), one.repeated(seed), one.modelled()
    return (
        max(abs(area.value - 0.5) for area in (single, modelled)) <= 0.02
        and repeated is not None
        and abs(repeated.value - 0.5) <= 0.05
        and repeated.at_most < 0.60
    )


_HEAD: Final = """\
| attack | told apart | pairs | p50 to first byte, ms | later | one response | quartile of 100 | model of one |
|---|---|---|---|---|---|---|---|"""
_PAGE: Final = """\
# What time tells

Written by `{command}`; do not edit.

The area under the ROC curve by which an attacker tells two kinds of requests apart, taken the better way round, with
its 95 % interval (DeLong's; a bootstrap's for the quartile). 0.5 is a coin. *Later*: than the first slot, of either
kind. *One response*: by the time to its first byte. *Quartile of 100*: by the lower quartile of 100 such times. *Model
of one*: logistic, of first byte, last byte and size, judged on what it was not fitted to. Wanted with slots: at most
0.52, 0.55 with an interval below 0.60, and 0.52. Seed {seed}; commit {commit}; {cpu}, service and client each on a
core of its own; {minutes:.0f} minutes.

Requests of {people} people leave every 8.6 ms, for `retrieve` 13.5 and for `ask` 26.5, over several connections of
loopback HTTP, so that no response leaves while another request is being worked on, if that takes less than 7, 11 and
20 ms;
{late:,} of {all:,} waited for the response before them. Both worlds of `retrieve` are served by one process, and an
overrun in either lengthens the schedule of both.

## With slots

{head}
{on}

## Without slots

{head}
{off}

## With {planted:g} ms planted

{head}
{seen}

The first line is with slots, the second without; more than 0.7 there shows that the attack can see a difference.
{verdict}
"""


def _arguments() -> ArgumentParser:
    arguments = parser("bench.timing", __doc__)
    arguments.add_argument("--pairs", type=int, default=10_000, help="of each attack with slots")
    arguments.add_argument(
        "--pairs-off", type=int, default=1_000, help="of each attack without, and with a planted one"
    )
    arguments.add_argument("--planted", type=float, default=1.0, metavar="MS")
    arguments.add_argument("--seed", type=int, default=7)
    arguments.add_argument(
        "--attacks", nargs="+", metavar="NAME", help="with slots and without; default: all"
    )
    arguments.add_argument(
        "--by-audience", action="store_true", help="hide the topic by who may see it, not by its words"
    )
    arguments.add_argument("--out", type=Path)
    return arguments


def main() -> None:
    """Measure, write the page, and exit 1 where it states what is not so."""
    arguments = _arguments()
    given = arguments.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        issuer = Issuer(home)
        if given.by_audience:
            share_hoard(home)
        hidden = build(home)
        every = tuple(one.name for one in attacks(issuer, hidden, [1], {}, 0))
        if unknown := set(given.attacks or ()) - set(every):
            arguments.error(f"no attack is named {', '.join(sorted(unknown))}; there are {', '.join(every)}")
        named = tuple(given.attacks or every)

        def run(
            pairs: int, *, slots: bool, planted: float = 0.0, names: tuple[str, ...] = named
        ) -> list[Measured]:
            return measure(
                *(home, issuer, hidden),
                pairs=pairs,
                slots=slots,
                planted=planted,
                names=names,
                seed=given.seed,
            )

        on, off = run(given.pairs, slots=True), run(given.pairs_off, slots=False)
        seen = [
            one
            for slots in (True, False)
            for one in run(given.pairs_off, slots=slots, planted=given.planted, names=("explain",))
        ]
    failed = [one.attack.name for one in on if not is_met(one, given.seed)]
    sees = seen[1].single().low > 0.7
    told = (
        f"Missed by: {', '.join(failed)}." if failed else "With slots every attack stays within the limits."
    )
    page = _PAGE.format(
        command=f"python -m bench.timing --pairs {given.pairs} --pairs-off {given.pairs_off}"
        + (f" --attacks {' '.join(named)}" if given.attacks else "")
        + (" --by-audience" if given.by_audience else ""),
        seed=given.seed,
        commit=commit(),
        cpu=processor_name(),
        minutes=(time.monotonic() - began) / 60,
        people=_PEOPLE,
        late=sum(one.late for one in (*on, *off, *seen)),
        all=sum(2 * len(one.times[True]) + _ROUNDS * _WARM_UP for one in (*on, *off, *seen)),
        head=_HEAD,
        planted=given.planted,
        on="\n".join(_rows(on, given.seed)),
        off="\n".join(_rows(off, given.seed)),
        seen="\n".join(_rows(seen, given.seed)),
        verdict=told + ("" if sees else " **The attack does not see what was planted.**"),
    )
    print(page)
    if given.out is not None:
        given.out.write_text(page, "utf-8")
    raise SystemExit(bool(failed) or not sees)


if __name__ == "__main__":
    main()
