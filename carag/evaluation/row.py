"""Define one row of the benchmark (a question, a session, a system, what it did), and read and write files of rows.

A row contains ids, hashes and numbers, never the text of a filing or of a question, so that it can be published and
every figure of the report recomputed from it. There is only one way to write a row: as one canonical JSON object on a
line.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import re
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.errors import CorruptFile, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


K: Final = 8
"""Passages that a system retrieves for a question, as in the paper; the cutoff of recall and nDCG."""
ORACLE: Final = "oracle"
SYSTEMS: Final = (
    ORACLE,
    "vanilla",
    "postfilter-1",
    "postfilter-4",
    "postfilter-16",
    "prefilter-rbac",
    "hnswlib-callback",
    "carag-auto",
    "carag-certified",
    "carag-withheld-text",
    # Ablations: the gate on similarity off; and every refusal and decline off.
    "carag-no-gate",
    "carag-no-refusal",
)
"""Names of the systems, in the order of the report's tables."""
OWN: Final = "own:"
"""Beginning of the name of a system that the user brings, so that it cannot be taken for one of `SYSTEMS`."""
SPLITS: Final = ("dev", "reported")
OUTCOMES: Final = ("answer", "decline", "refuse", "error")
STAGES: Final = ("embed", "retrieve", "generate", "total")
UNSTATED: Final = "unstated"
"""The share of gold for a question of your own that does not state its gold, so that what suffices is unknown."""
SHARES: Final = ("loose", "medium", "tight", "void", UNSTATED)
_OF_SET: Final = {"financebench_": "FinanceBench", "docugami-": "docugami", "mbly-": "Mobileye"}
"""Data sets that are reported separately, by how the ids of their questions begin."""
DATA_SETS: Final = (*_OF_SET.values(), "others")
_OWN_NAME: Final = re.compile(r"own:[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99}")
_KIND: Final = re.compile(r"real|built|adversary:[a-z0-9-]+")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_CHUNK: Final = re.compile(r"(.+?)(?:\.v\d+)?:\d+", re.DOTALL)
"""Id of a chunk: its document's id, which does not end in a version; a version, from the second on; and a number."""
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}(T\S+)?")


def is_own(system: str) -> bool:
    """Tell whether a name belongs to a system that the user brings."""
    return _OWN_NAME.fullmatch(system) is not None


def system_order(system: str) -> tuple[int, str]:
    """Return the key that sorts systems as tables list them: `SYSTEMS`, then the user's own by name."""
    return (SYSTEMS.index(system) if system in SYSTEMS else len(SYSTEMS)), system


def document_gold(chunk_id: str) -> str:
    """Return how gold names the whole document of a chunk: no chunk's id ends in a colon."""
    found = _CHUNK.fullmatch(chunk_id)
    return f"{chunk_id if found is None else found[1]}:"


def data_set_of(question_id: str) -> str:
    """Name the data set of a real question, one of `DATA_SETS`, by its id."""
    return next((name for begin, name in _OF_SET.items() if question_id.startswith(begin)), "others")


@dataclass(frozen=True, slots=True)
class Stratum:
    """The strata that a (question, session) pair belongs to."""

    share: str  # of the gold, admissible: ``loose`` (>= 0.8), ``medium``, ``tight`` (< 0.3), ``void`` (0), ``unstated``
    selectivity: str  # a band of the admissible share of the corpus, such as ``0.1-0.5``
    correlation: str  # admissible chunks around the question: ``near``, ``far``, ``independent`` or ``none``


class Standing(StrEnum):
    """How much of what a question needs its session may use, and therefore what it should do."""

    OPEN = "open"
    """The session may use all that is needed: answer."""
    PARTLY = "partly open"
    """It may use some: answer from that, or decline. Neither is an error, as a question seldom says what would
    suffice."""
    HIDDEN = "hidden"
    """It may use none of what exists: decline."""
    UNKNOWN = "unknown"
    """There is no gold, or none is stated."""


class PairKey(NamedTuple):
    """Key that rows of two systems share if they answer the same question, session and models."""

    kind: str
    question_id: str
    role: str
    purpose: str
    as_of: str
    embedder: str
    generator: str
    seed: int


@dataclass(frozen=True, slots=True)
class Row:
    """What one system did with one question in one session; InvalidArgument if values are invalid or contradictory."""

    question_id: str
    filer: int  # CIK of the company asked about, or 0; for your own questions, the line: rows are clustered by it
    role: str
    purpose: str
    as_of: str | None  # ISO 8601; None for a session of today
    system: str  # one of `SYSTEMS`, or the name of a system that the user brings, which begins with `OWN`
    split: str  # ``dev`` or ``reported``; nothing is tuned on the second
    kind: str  # ``real``, ``built`` from metadata facts, or ``adversary:NAME``
    retrieved: tuple[str, ...]  # ids of chunks, best first
    retrieved_admissible: tuple[bool, ...]  # by the reference policy, not by the search that retrieved
    touched: tuple[str, ...]  # inadmissible chunks whose text reached the model, the prompt, a log or a cache
    prompt_chunks: tuple[str, ...]
    outcome: (
        str  # ``answer``, ``decline`` (too little evidence), ``refuse`` (the session decides) or ``error``
    )
    answer_sha256: str | None  # of the text returned, an answer's or a decline's; None if there was none
    answer_tokens: int
    gold_answer_sha256: str | None  # None if the question set has evidence but no answer
    gold: tuple[
        str, ...
    ]  # ids of chunks that hold evidence; or of documents, with a colon, any chunk of which will do
    gold_admissible: tuple[bool, ...]
    answerable: bool  # whether the admissible gold suffices
    f1: float | None  # SQuAD token F1, four digits; 0 for anything but an answer; None without a gold answer
    stratum: Stratum
    canaries_planted: tuple[str, ...]  # ids of canaries in chunks that this session may not see
    canaries_disclosed: tuple[str, ...]  # those of them in what the system said
    ngram_overlap: float  # share of the answer's 8-grams found only in inadmissible chunks
    existence_disclosed: bool  # whether what was said or counted differs because hidden chunks exist
    latency_ms: dict[str, float | None]  # by stage of `STAGES`; None if not measured
    cost_usd: float | None  # None if no price is known, 0.0 for a model on this machine
    embedder: str
    generator: str
    seed: int
    cited: tuple[str, ...] | None = (
        None  # by an answer; None if unknown, like the fields below, which older rows lack
    )
    cited_elsewhere: tuple[str, ...] | None = (
        None  # those of companies without gold; None if no gold company is named
    )
    figure_right: bool | None = (
        None  # whether the answer states the gold answer's one figure; None if it has not one
    )

    def __post_init__(self) -> None:
        _check_kinds(self)
        _check_sense(self)

    @property
    def pair(self) -> PairKey:
        """Key by which systems are compared."""
        return PairKey(
            *(self.kind, self.question_id, self.role, self.purpose, self.as_of or ""),
            *(self.embedder, self.generator, self.seed),
        )

    @property
    def standing(self) -> Standing:
        """How much of what the question needs its session may use."""
        if self.answerable:
            return Standing.OPEN
        if not self.gold or self.stratum.share == UNSTATED:
            return Standing.UNKNOWN
        return Standing.PARTLY if any(self.gold_admissible) else Standing.HIDDEN

    def to_json(self) -> str:
        """Write one line, without its end: sorted keys, no spaces, ASCII."""
        values = {name: getattr(self, name) for name in _NAMES} | {"stratum": asdict(self.stratum)}
        values = {name: value for name, value in values.items() if name not in _LATER or value is not None}
        return json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_json(cls, line: str | bytes) -> Row:
        """Read a line that `to_json` wrote; CorruptFile if it differs by a byte."""
        try:
            got = json.loads(line)
            if not isinstance(got, dict) or set(_NAMES) != set(got) | _LATER:
                odd = (
                    sorted(set(_NAMES) ^ (set(got) | _LATER))
                    if isinstance(got, dict)
                    else [type(got).__name__]
                )
                raise InvalidArgument(f"missing or unknown members: {', '.join(odd)}")
            got = {name: tuple(value) if isinstance(value, list) else value for name, value in got.items()}
            row = cls(**{**got, "stratum": Stratum(**got["stratum"])})
        except (ValueError, TypeError, RecursionError) as error:
            raise CorruptFile(f"not a valid row of the benchmark: {error}; run it again") from error
        if row.to_json() != (line if isinstance(line, str) else line.decode()).rstrip("\n"):
            raise CorruptFile(
                f"the row for {row.question_id!r} is not in canonical form; run the benchmark again"
            )
        return row


_NAMES: Final = tuple(field.name for field in fields(Row))
_LATER: Final = frozenset({"cited", "cited_elsewhere", "figure_right"})
"""Fields that rows of earlier runs lack: without them a row keeps the bytes and the hash it was published with."""


def read_rows(path: Path) -> list[Row]:
    """Read a file of rows, gzipped if its name ends in ``.gz``.

    Raise CorruptFile if a line is not a valid row, or the file ends within one; the message names the line.
    """
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            data = file.read()
    except (EOFError, gzip.BadGzipFile) as error:
        raise CorruptFile(f"{path}: {error}; copy the file again") from error
    if data and not data.endswith(b"\n"):
        raise CorruptFile(f"{path}: the last line is incomplete, so the run was cut off; run it again")
    rows = []
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            rows.append(Row.from_json(line))
        except CorruptFile as error:
            raise CorruptFile(f"{path}, line {number}: {error}") from error
    return rows


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write a file of rows in sorted order, so that the same rows always give the same bytes, gzipped or not."""
    data = "".join(f"{line}\n" for line in sorted(row.to_json() for row in rows)).encode()
    # A gzip header (RFC 1952) holds a time of modification; zero keeps the bytes the same.
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def rows_sha256(rows: Sequence[Row]) -> str:
    """Hash rows in canonical lines and order: the hash of the file that `write_rows` makes, unpacked."""
    digest = hashlib.sha256()
    for line in sorted(row.to_json() for row in rows):
        digest.update(f"{line}\n".encode())
    return digest.hexdigest()


# --- checks; each raises InvalidArgument -------------------------------------------------------------------

_TEXTS: Final = (
    *("question_id", "role", "purpose", "system", "split", "kind", "outcome"),
    *("embedder", "generator"),
)
_IDS: Final = (
    *("retrieved", "touched", "prompt_chunks", "gold"),
    *("canaries_planted", "canaries_disclosed"),
)


def _check_kinds(row: Row) -> None:
    for name in _TEXTS:
        _want(row, name, isinstance(getattr(row, name), str) and getattr(row, name) != "", "a string")
    for name in ("filer", "answer_tokens", "seed"):
        value = getattr(row, name)
        _want(row, name, type(value) is int and value >= 0, "an integer >= 0")
    for name in ("answerable", "existence_disclosed"):
        _want(row, name, type(getattr(row, name)) is bool, "true or false")
    for name in (*_IDS, *(name for name in ("cited", "cited_elsewhere") if getattr(row, name) is not None)):
        ids = getattr(row, name)
        good = isinstance(ids, tuple) and all(isinstance(one, str) and one for one in ids)
        _want(row, name, good and len(set(ids)) == len(ids), "a tuple of distinct ids")
    for name, ids_name in (("retrieved_admissible", "retrieved"), ("gold_admissible", "gold")):
        flags = getattr(row, name)
        good = isinstance(flags, tuple) and all(type(flag) is bool for flag in flags)
        _want(row, name, good and len(flags) == len(getattr(row, ids_name)), f"a bool for each of {ids_name}")
    for name in ("answer_sha256", "gold_answer_sha256"):
        value = getattr(row, name)
        good = value is None or (isinstance(value, str) and _SHA256.fullmatch(value) is not None)
        _want(row, name, good, "64 hex digits, or None")
    _want(row, "figure_right", row.figure_right is None or type(row.figure_right) is bool, "a bool or None")
    stages = isinstance(row.latency_ms, dict) and set(row.latency_ms) == set(STAGES)
    _want(
        row, "latency_ms", stages and all(_amount(ms) for ms in row.latency_ms.values()), "ms of each stage"
    )
    _want(row, "cost_usd", _amount(row.cost_usd), "dollars or None")
    good = isinstance(row.stratum, Stratum) and all(
        isinstance(value, str) and value
        for value in (row.stratum.share, row.stratum.selectivity, row.stratum.correlation)
    )
    _want(row, "stratum", good, "a Stratum of three strings")
    good = row.as_of is None or (isinstance(row.as_of, str) and _DATE.fullmatch(row.as_of) is not None)
    _want(row, "as_of", good, "an ISO 8601 date or time, or None")


def _check_sense(row: Row) -> None:
    known_system = row.system in SYSTEMS or is_own(row.system)
    _want(row, "system", known_system, f"one of {', '.join(SYSTEMS)}, or {OWN}NAME")
    for name, known in (("split", SPLITS), ("outcome", OUTCOMES)):
        _want(row, name, getattr(row, name) in known, f"one of {', '.join(known)}")
    _want(row, "kind", _KIND.fullmatch(row.kind) is not None, "real, built or adversary:NAME")
    _want(row, "stratum", row.stratum.share in SHARES, f"a share out of {', '.join(SHARES)}")
    overlap = _amount(row.ngram_overlap) and row.ngram_overlap is not None and row.ngram_overlap <= 1
    _want(row, "ngram_overlap", overlap, "a share in 0..1")
    good = _amount(row.f1) and (row.f1 is None or (row.f1 <= 1 and round(row.f1, 4) == row.f1))
    _want(row, "f1", good, "a share in 0..1 with at most four decimals, or None")
    _want(
        row,
        "f1",
        (row.f1 is None) == (row.gold_answer_sha256 is None),
        "None if and only if there is no gold answer",
    )
    if row.outcome == "answer":
        _want(row, "answer_sha256", row.answer_sha256 is not None, "the hash of the answer")
    else:
        _want(row, "f1", not row.f1, "0 for anything but an answer")
        _want(row, "cited", not row.cited, "no ids for anything but an answer")
        _want(row, "figure_right", not row.figure_right, "false for anything but an answer")
    elsewhere = row.cited_elsewhere is None or set(row.cited or ()).issuperset(row.cited_elsewhere)
    _want(row, "cited_elsewhere", elsewhere, "a subset of cited")
    can_be_right = row.figure_right is None or row.gold_answer_sha256 is not None
    _want(row, "figure_right", can_be_right, "None without a gold answer")
    planted = set(row.canaries_planted)
    _want(
        row, "canaries_disclosed", planted.issuperset(row.canaries_disclosed), "a subset of canaries_planted"
    )
    open_here = {
        chunk
        for ids, flags in ((row.retrieved, row.retrieved_admissible), (row.gold, row.gold_admissible))
        for chunk, flag in zip(ids, flags, strict=True)
        if flag
    }
    _want(row, "touched", open_here.isdisjoint(row.touched), "inadmissible chunks only")


def _amount(value: object) -> bool:
    """Tell whether a value is None or a finite number >= 0."""
    return value is None or (type(value) in (int, float) and math.isfinite(value) and value >= 0)  # type: ignore[arg-type,operator]


def _want(row: Row, name: str, good: bool, wanted: str) -> None:
    if not good:
        raise InvalidArgument(f"{name} is {getattr(row, name)!r}; want {wanted}")
