"""Record what the rows of a run do not carry: corpus, machine, randomised trials and rebuilt stores (``run.json``)."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final, Self

from carag.errors import CorruptFile, InvalidArgument

OWN_STORE: Final = "own"
"""Name in ``run.json`` of a store of your own."""
CORPORA: Final = ("builtin", "part", "paper", "full", OWN_STORE)
"""Names of corpora in ``run.json``; ``builtin`` is the one that ships."""
PAPER_CHUNKS: Final = 26_595
"""Chunks in the paper's corpus."""


@dataclass(frozen=True, slots=True)
class Trials:
    """Randomised (query, policy) pairs asked of a system's retrieval alone."""

    system: str
    pairs: int
    violating: int  # pairs that retrieved an inadmissible chunk
    chunks: int  # chunks retrieved
    seed: int

    def __post_init__(self) -> None:
        numbers = (self.pairs, self.violating, self.chunks, self.seed)
        if (
            not isinstance(self.system, str)
            or any(type(n) is not int or n < 0 for n in numbers)
            or self.violating > self.pairs
        ):
            raise InvalidArgument(
                f"{self!r}: want a system and counts >= 0, with no more violating than pairs"
            )


@dataclass(frozen=True, slots=True)
class Worlds:
    """Result of asking two stores pairs through `Engine.ask`; one is rebuilt without what the session may not see."""

    asked: int
    differing: int  # pairs whose outcome, ids, similarities (to the last bit), text or citations differed
    worlds: int  # stores rebuilt
    rows_deleted: int  # labels deleted from all of them

    def __post_init__(self) -> None:
        numbers = (self.asked, self.differing, self.worlds, self.rows_deleted)
        if any(type(n) is not int or n < 0 for n in numbers) or self.differing > self.asked:
            raise InvalidArgument(f"{self!r}: want counts >= 0, with no more differing than asked")


@dataclass(frozen=True, slots=True)
class RunMetadata:
    """What a run consisted of; for a store of your own, its passages, its documents and 0 filers."""

    corpus: str  # one of `CORPORA`
    chunks: int
    filings: int
    filers: int
    window: str = ""  # filing dates, first to last, as ``2024-07-01/2026-03-31``; empty if unknown
    machine: str = ""  # processor and cores, for a person to read
    version: str = ""
    rows_sha256: str = ""  # of the file of rows, unpacked; empty if not to be checked
    manifest_sha256: str = ""  # of the file of filings, unpacked; empty if the filings are not named
    trials: tuple[Trials, ...] = ()
    worlds: Worlds | None = None  # None if no store was rebuilt
    notes: tuple[str, ...] = ()  # what else a reader must know, such as what a run left out and why

    def __post_init__(self) -> None:
        if self.corpus not in CORPORA:
            raise InvalidArgument(f"corpus is {self.corpus!r}; want one of {', '.join(CORPORA)}")
        for name in ("chunks", "filings", "filers"):
            if type(getattr(self, name)) is not int or getattr(self, name) < 0:
                raise InvalidArgument(f"{name} is {getattr(self, name)!r}; want a count")
        for name in ("window", "machine", "version", "rows_sha256", "manifest_sha256"):
            if not isinstance(getattr(self, name), str):
                raise InvalidArgument(f"{name} is {getattr(self, name)!r}; want a string")
        if not all(isinstance(one, Trials) for one in self.trials) or not all(
            isinstance(note, str) for note in self.notes
        ):
            raise InvalidArgument("trials or notes have the wrong type; want tuples of Trials and of strings")
        if self.worlds is not None and not isinstance(self.worlds, Worlds):
            raise InvalidArgument(f"worlds is {self.worlds!r}; want Worlds or None")

    def is_of_size(self, size: str) -> bool:
        """Tell whether the corpus has this name; ``paper`` must also have exactly the paper's number of chunks."""
        return self.corpus == size and (size != "paper" or self.chunks == PAPER_CHUNKS)

    @property
    def own(self) -> bool:
        """Whether a store of your own was measured, for which no goals were set."""
        return self.corpus == OWN_STORE

    @property
    def small(self) -> bool:
        """Whether the corpus is one for trying out, on which some goals cannot be reached."""
        return self.corpus in ("builtin", "part")

    def to_json(self) -> str:
        """Write ``run.json``."""
        return json.dumps(asdict(self), sort_keys=True, indent=1, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read ``run.json``; CorruptFile if it is not one."""
        try:
            got: dict[str, Any] = json.loads(text)
            if not isinstance(got, dict) or (odd := sorted(set(got) - {field.name for field in fields(cls)})):
                raise InvalidArgument(
                    f"unknown members: {', '.join(odd)}" if isinstance(got, dict) else "not a JSON object"
                )
            trials = tuple(Trials(**one) for one in got.pop("trials", ()))
            notes = tuple(got.pop("notes", ()))
            worlds = got.pop("worlds", None)
            return cls(**got, trials=trials, notes=notes, worlds=worlds and Worlds(**worlds))
        except (ValueError, TypeError, AttributeError) as error:
            raise CorruptFile(f"run.json is not valid: {error}; run the benchmark again") from error


def machine_name() -> str:
    """Name the processor, the number of processors, and the version of Python."""
    return f"{processor_name()}, {os.cpu_count()} processors, Python {platform.python_version()}"


def processor_name() -> str:
    """Name the processor, for the record of a measurement."""
    described = Path("/proc/cpuinfo")
    lines = described.read_text(encoding="utf-8").splitlines() if described.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())
