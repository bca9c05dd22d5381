"""Serve two worlds from one process: a store, and the same without what a citizen may not see.

One process and one event loop, so that nothing but the worlds differs: the header ``Host`` says which one answers.

    python -m bench.timing.worlds HOME --slots on --planted 1

It prints its port, and ends with its standard input. A line ``write`` makes it relabel hidden passages, again and again
until a line ``rest``. What ``--planted`` adds to requests with a token of ``planted.txt`` is added here, to a service
that knows of nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import socket
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

from carag import Engine, Session
from carag.evaluation.cases.reference_policy import reference_session
from carag.evaluation.safety.noninterference import without_inadmissible
from carag.labelling.labelled import LabelledDocument
from carag.policy import NO_LISTS, Audience, as_of_minutes
from carag.service import app
from carag.service.http import plain_server
from carag.service.release import ExactLoop, Schedule
from carag.service.service import Service
from carag.service.settings import ServiceSettings
from carag.store.store import CorpusStore

if TYPE_CHECKING:
    from collections.abc import Callable


CORPUS: Final = Path(__file__).parents[2] / "data" / "corpus"
CITIZEN: Final = Session(role="public", purpose="public_qa")
HOSTS: Final = ("w1", "w0")
"""The world with what is hidden, and the one without."""
HOARD: Final = 2_000
"""Hidden filings about one topic, in the first world."""
_HOARD: Final = "000998"
"""How their accession numbers begin."""
_SHARED: Final = "shared"
"""A file in the home of worlds whose hidden filings are hidden by who may see them."""
_ISSUER, _AUDIENCE = "https://login.example", "carag"
_GRANTS: Final = 'schema = 1\n\n[[grant]]\ngroup = "citizens"\ncells = ["public/public_qa"]\n'
_CORE: Final = 0
_PAUSE: Final = 0.25
"""Seconds between two relabels."""


class Issuer:
    """Signs tokens of citizens.

    Parameters
    ----------
    home : Path, optional
        Where the service finds the public key; None: nowhere, so that no token is accepted.
    """

    def __init__(self, home: Path | None) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        if home is not None:
            public = jwt.algorithms.ECAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
            keys = [{**public, "kid": "bench", "alg": "ES256", "use": "sig"}]
            (home / "jwks.json").write_text(json.dumps({"keys": keys}))
            (home / "grants.toml").write_text(_GRANTS)

    def token(self, subject: str = "ana@city.example", *, number: int = 0, seconds: int = 86_000) -> str:
        """Sign a token; those of other numbers differ in nothing that is looked at."""
        now = int(time.time())
        said = {
            "iss": _ISSUER,
            "aud": _AUDIENCE,
            "sub": subject,
            "groups": ["citizens"],
            "jti": f"{number:04d}",
        }
        return jwt.encode(
            {**said, "iat": now + min(0, seconds) - 60, "exp": now + seconds},
            self._key,
            algorithm="ES256",
            headers={"kid": "bench"},
        )


def hoard(path: Path, numbers: range, edition: int) -> Path:
    """Write filings about a topic that no other filing mentions, which are hidden from citizens.

    Insiders filed them, so that a word hides them; after :func:`share_hoard` they are reports, shared with a group.
    """
    form = "10-Q" if _is_shared(path.parent) else "4"
    rows = (
        {
            "accession": f"{_HOARD}{n:04d}-24-{n:06d}",
            "cik": 9_980_000 + n,
            "company": f"Example {n} plc",
            "form": form,
            "filed": "2024-03-01",
            "accepted": "2024-03-01T09:00:00-05:00",
            "business_state": "NY",
            "text": f"Item 1. Insiders.\n\nOrchard {n} kept {edition + 3} hives of bees and sold their honey and wax.",
        }
        for n in numbers
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def share_hoard(home: Path) -> None:
    """Have what is hidden hidden by who may see it, not by its words: sources of filings state no lists."""
    (home / _SHARED).touch()

    def audience(filing: LabelledDocument) -> Audience:
        return Audience(["group:insiders"]) if filing.document_id.startswith(_HOARD) else NO_LISTS

    setattr(LabelledDocument, "audience", property(audience))  # noqa: B010 - a type checker forbids it


def _is_shared(home: Path) -> bool:
    return (home / _SHARED).exists()


def build(home: Path) -> list[str]:
    """Make both worlds, and return the ids of passages that are hidden in the first."""
    with Engine.open(home / "w1", embedder="wordllama") as engine:
        engine.ingest(CORPUS)
        engine.ingest(hoard(home / "hoard.jsonl", range(HOARD), 0))
        shown = {one.chunk_id for one in engine.retrieve("What was reported?", CITIZEN, 400).passages}
        assert len(shown) < 400, "some passages shown are taken for hidden"
        hidden = [chunk for chunk, *_ in engine._collection.store.labels.snapshot() if chunk not in shown]  # noqa: SLF001 - the attacker is told which ids are real: his best case
    if _is_shared(home):
        with Engine.open(home / "w0", embedder="wordllama") as engine:
            engine.ingest(CORPUS)
        return [chunk for chunk in hidden if chunk.startswith(_HOARD)]
    now = as_of_minutes(engine.requests.recorder.clock())
    with CorpusStore.open(home / "w1" / "corpus.db", create=False) as corpus:
        said = reference_session(CITIZEN.role, CITIZEN.purpose)
        assert without_inadmissible(home / "w1", home / "w0", said, now=now, corpus=corpus) >= len(hidden)
    return hidden


class Planted(Service):
    """A service that is slow for some tokens."""

    marked: frozenset[str] = frozenset()
    seconds: float = 0.0

    def _outcome(self, work: Callable[[], Any]) -> Any:
        if self.seconds and work.args[0].token in self.marked:  # type: ignore[attr-defined] # a partial, as the routes make it
            end = time.perf_counter() + self.seconds
            while time.perf_counter() < end:
                pass
        return super()._outcome(work)


def _settings(home: Path, *, slots: bool) -> ServiceSettings:
    said: dict[str, Any] = {
        "issuer": _ISSUER,
        "audience": _AUDIENCE,
        "jwks": "jwks.json",
        "algorithms": ["ES256"],
        "grants": "grants.toml",
        "principals": {"groups": "group"},
        "rate": 10_000,
        "burst": 10_000,
        "refused_rate": 10_000,
    }
    return ServiceSettings.model_validate({**said, "slots": {} if slots else "off"}).at(home)


async def _serve(apps: dict[bytes, Any], read: Callable[[Callable[[], None]], None]) -> None:
    async def either(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await apps[dict(scope["headers"])[b"host"]](scope, receive, send)

    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as the service has it
    server = plain_server(either)

    def stop() -> None:
        server.should_exit = True

    threading.Thread(target=read, args=(stop,), daemon=True).start()
    print(listener.getsockname()[1], flush=True)
    await server.serve([listener])


def main() -> None:
    """Serve until the input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("home", type=Path)
    parser.add_argument("--slots", choices=("on", "off"), required=True)
    parser.add_argument("--planted", type=float, default=0.0, metavar="MS")
    given = parser.parse_args()
    home: Path = given.home
    os.sched_setaffinity(0, {_CORE})
    if _is_shared(home):
        share_hoard(home)
    Planted.seconds = given.planted / 1000
    Planted.marked = frozenset((home / "planted.txt").read_text().split())
    with ExitStack() as stack:
        engines = [stack.enter_context(Engine.open(home / one, accept={"labels"})) for one in HOSTS]
        settings = _settings(home, slots=given.slots == "on")
        services = [Planted(engine, home / one, settings) for engine, one in zip(engines, HOSTS, strict=True)]
        for service in services:
            stack.callback(service.close)
        gc.collect()
        gc.freeze()  # as `carag serve` does
        writing, edition = threading.Event(), 0

        def write() -> None:
            nonlocal edition
            while True:
                writing.wait()
                edition += 1
                engines[0].ingest(hoard(home / "change.jsonl", range(5), edition))
                time.sleep(_PAUSE)

        def read(stop: Callable[[], None]) -> None:
            for line in sys.stdin:
                (writing.set if line.strip() == "write" else writing.clear)()
            writing.clear()
            stop()

        threading.Thread(target=write, daemon=True).start()
        # One schedule: which world the machine happened to disturb would else mark all that follows in it.
        shared = None if services[0].slots is None else Schedule(services[0].slots, services[0].metrics)
        setattr(app, "Schedule", lambda *_: shared)  # noqa: B010 - not among what the module exports
        with asyncio.Runner(loop_factory=ExactLoop) as runner:
            runner.run(
                _serve(
                    {
                        one.encode(): app.application(service)
                        for one, service in zip(HOSTS, services, strict=True)
                    },
                    read,
                )
            )


if __name__ == "__main__":
    main()
