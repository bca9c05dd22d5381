"""Simulate power cuts at any moment: what a disk may hold then, and whether the log is still complete.

A process writes to the log while ``disk.c`` notes every change and every sync. For a moment of that history the
files are built again from what a sync had made durable, and of the rest nothing, a beginning, a random half, or
a random half torn into sectors: a disk owes no more to writes that nobody waited for, and not their order
either. Then the log is opened and asked for every record that had been acknowledged by that moment.

Names are journalled, as on ext4 and XFS: a file that was made, removed or renamed is so after a power cut once the
directory was synced, and before that in the order in which it happened, up to some point. A drive that says it has
flushed and has not is beyond this, and beyond any log.
"""

from __future__ import annotations

import hashlib
import random
import struct
import subprocess
import sys
import tempfile
from collections import defaultdict, deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.audit import AuditLog
from carag.errors import CaragError
from tests.audit.log.disk import ROOT, environment

if TYPE_CHECKING:
    from collections.abc import Iterator


_SECTOR: Final = 512
_KINDS: Final = ("nothing", "a beginning", "a half", "torn")


class Event(NamedTuple):
    """One entry of a trace."""

    op: str
    path: str
    offset: int
    data: bytes


@dataclass(frozen=True)
class History:
    """What a process did to a directory, and what the directory held before."""

    before: dict[str, bytes]
    events: list[Event]


@dataclass
class Losses:
    """What was found after so many power cuts."""

    cuts: int = 0
    acknowledged: int = 0
    """Acknowledged records looked for, over all cuts."""
    lost: int = 0
    """Of those, records that were not there or altered."""
    unopened: int = 0
    """Of those, records whose commitments could no longer be opened."""
    corrupt: int = 0
    """Cuts after which the log did not open or did not verify."""
    reasons: dict[str, int] = field(default_factory=dict)


def record(
    directory: Path, *, clients: int = 8, each: int = 12, pages: int = 100, broken: str = ""
) -> History:
    """Found a log, have it written to by a process of its own, and keep the history."""
    home = directory / "log"
    AuditLog.open(home).close()
    options = [
        "--clients",
        str(clients),
        "--each",
        str(each),
        "--pages",
        str(pages),
        "--acks",
        str(home / "acks"),
    ]
    options += ["--break", broken] if broken else []
    return traced(
        home, directory / "trace", sys.executable, "-m", "tests.audit.log.writers", str(home), *options
    )


def traced(home: Path, trace: Path, *command: str) -> History:
    """Run a command that changes the files of a directory, and keep the history."""
    before = {path.name: path.read_bytes() for path in home.iterdir()}
    subprocess.run(command, check=True, cwd=ROOT, env=environment(home, trace=trace))
    events = [
        Event(op, Path(path).name if path != str(home) else "", offset, data)
        for op, path, offset, data in _entries(trace.read_bytes())
        if not path.endswith("-shm")  # shared memory: made anew by whoever opens the file
    ]
    return History(before, events)


def _entries(trace: bytes) -> Iterator[tuple[str, str, int, bytes]]:
    at = 0
    while at < len(trace):
        op, length = chr(trace[at]), struct.unpack_from("=I", trace, at + 1)[0]
        path = trace[at + 5 : at + 5 + length].decode()
        offset, size = struct.unpack_from("=QI", trace, at + 5 + length)
        at += 5 + length + 12
        yield op, path, offset, trace[at : at + size]
        at += size


class _File:
    """A file's durable bytes."""

    def __init__(self, content: bytes = b"") -> None:
        self.content = bytearray(content)

    def apply(self, event: Event) -> None:
        if event.op == "t":
            del self.content[event.offset :]
            self.content.extend(bytes(event.offset - len(self.content)))
        else:
            end = event.offset + len(event.data)
            self.content.extend(bytes(max(0, end - len(self.content))))
            self.content[event.offset : end] = event.data


class _Disk:
    """Files as a disk holds them while changes wait for a sync."""

    def __init__(self, before: dict[str, bytes]) -> None:
        self.durable = {name: _File(content) for name, content in before.items()}
        self.names = dict(self.durable)
        self.renaming: list[tuple[str, str, _File | None]] = []
        self.pending: list[tuple[_File, Event]] = []
        self.syncing: dict[str, deque[int]] = defaultdict(deque)
        self.issued = 0
        self.order: list[int] = []

    def step(self, event: Event) -> None:
        name = event.path
        if event.op == "c":
            self.names[name] = file = _File()
            self.renaming.append(("c", name, file))
        elif event.op == "u":
            self.names.pop(name, None)
            self.renaming.append(("u", name, None))
        elif event.op == "r":
            file = self.names.pop(name)
            target = Path(event.data.decode()).name
            self.names[target] = file
            self.renaming += [("u", name, None), ("c", target, file)]
        elif event.op == "b":
            self.syncing[name].append(self.issued)
        elif event.op == "s":
            self._synced(name, self.syncing[name].popleft())
        elif name in self.names:
            self.issued += 1
            self.order.append(self.issued)
            self.pending.append((self.names[name], event))

    def _synced(self, name: str, up_to: int) -> None:
        if name == "":
            for op, target, file in self.renaming:
                self._rename(self.durable, op, target, file)
            self.renaming.clear()
            return
        synced, keep = self.names.get(name), []
        for number, (file, event) in zip(self.order, self.pending, strict=True):
            if file is synced and number <= up_to:
                file.apply(event)
            else:
                keep.append((number, file, event))
        self.order = [number for number, _, _ in keep]
        self.pending = [(file, event) for _, file, event in keep]

    @staticmethod
    def _rename(names: dict[str, _File], op: str, target: str, file: _File | None) -> None:
        if op == "c" and file is not None:
            names[target] = file
        else:
            names.pop(target, None)

    def cut(self, kind: str, dice: random.Random) -> dict[str, bytes]:
        """Return what the disk holds if the power goes now."""
        names = dict(self.durable)
        some = 0 if kind == "nothing" else dice.randint(0, len(self.renaming))
        for op, target, file in self.renaming[:some]:
            self._rename(names, op, target, file)
        if kind == "a beginning":
            chosen = self.pending[: dice.randint(0, len(self.pending))]
        elif kind == "nothing":
            chosen = []
        else:
            chosen = [one for one in self.pending if dice.random() < 0.5]
            dice.shuffle(chosen)
        for file, event in chosen:
            for part in _torn(event, dice) if kind == "torn" else [event]:
                file.apply(part)
        return {name: bytes(file.content) for name, file in names.items()}


def _torn(event: Event, dice: random.Random) -> Iterator[Event]:
    if event.op == "t":
        yield event
    for start in range(0, len(event.data), _SECTOR):
        if dice.random() < 0.5:
            yield event._replace(offset=event.offset + start, data=event.data[start : start + _SECTOR])


def cut(history: History, moment: int, kind: str, dice: random.Random) -> tuple[dict[str, bytes], list[str]]:
    """Return the files after a power cut, and the acknowledgements made before it."""
    disk, acks = _Disk(history.before), b""
    for event in history.events[:moment]:
        if event.path == "acks":
            acks += event.data
        else:
            disk.step(event)
    return disk.cut(kind, dice), acks.decode().splitlines()


def play(history: History, cuts: int, *, seed: int = 7) -> Losses:
    """Cut the power so many times and add up what was lost.

    Half of the moments are right after an acknowledgement, where there is most to lose, the others anywhere.
    """
    dice, losses = random.Random(seed), Losses()  # noqa: S311 - when the power goes is no secret
    after = [at + 1 for at, event in enumerate(history.events) if event.path == "acks" and event.op == "w"]
    for number in range(cuts):
        moment = dice.choice(after) if number % 2 else dice.randint(0, len(history.events))
        files, acks = cut(history, moment, _KINDS[number // 2 % len(_KINDS)], dice)
        with tempfile.TemporaryDirectory(prefix="carag-cut-") as scratch:
            home = Path(scratch, "log")
            home.mkdir(mode=0o700)
            for name, content in files.items():
                Path(home, name).write_bytes(content)
            for key in Path(home).glob("*.key"):
                key.chmod(0o600)
            _look(home, acks, losses)
    return losses


def _look(home: Path, acks: list[str], losses: Losses) -> None:
    losses.cuts += 1
    losses.acknowledged += len(acks)
    try:
        with AuditLog.open(home) as log:
            for ack in acks:
                seq, digest = ack.split()
                if int(seq) >= log.size or _digest(log, int(seq)) != digest:
                    losses.lost += 1
                    continue
                committed, openings = log.record(int(seq)).commitments, log._private.openings(int(seq))
                if not all(
                    name in openings and openings[name].opens(name, value)
                    for name, value in committed.items()
                ):
                    losses.unopened += 1
            log.verify()
    except CaragError as error:
        losses.corrupt += 1
        reason = f"{type(error).__name__}: {str(error).replace(str(home), '')}"[:120]
        losses.reasons[reason] = losses.reasons.get(reason, 0) + 1


def _digest(log: AuditLog, seq: int) -> str:
    return hashlib.sha256(log.record(seq).to_bytes()).hexdigest()
