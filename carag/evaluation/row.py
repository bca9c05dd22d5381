"""Define one row of the benchmark (a question, a session, a system, what it did), and read and write files of rows.

A row carries ids, hashes and numbers, never the text of a filing or of a question, so that it can be published
and every figure of the report made again from it. It is written in one way only: one canonical JSON object a line.
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

__all__ = [
    "DATA_SETS",
    "ORACLE",
    "OUTCOMES",
    "OWN",
    "SHARES",
    "SPLITS",
    "STAGES",
    "SYSTEMS",
    "UNSTATED",
    "K",
    "PairKey",
    "Row",
    "Standing",
    "Stratum",
    "data_set_of",
    "document_gold",
    "is_own",
    "read_rows",
    "rows_sha256",
    "system_order",
    "write_rows",
]

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
"""Beginning of the name of a system that the user brings; so none can be taken for one of `SYSTEMS`."""
SPLITS: Final = ("dev", "reported")
OUTCOMES: Final = ("answer", "decline", "refuse", "error")
STAGES: Final = ("embed", "retrieve", "generate", "total")
UNSTATED: Final = "unstated"
"""Share of the gold of a question of the user's own that states none, so that nobody knows what suffices."""
SHARES: Final = ("loose", "medium", "tight", "void", UNSTATED)
_OF_SET: Final = {"financebench_": "FinanceBench", "docugami-": "docugami", "mbly-": "Mobileye"}
"""Data sets that are reported apart, by how the ids of their questions begin."""
DATA_SETS: Final = (*_OF_SET.values(), "others")
_OWN_NAME: Final = re.compile(r"own:[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99}")
_KIND: Final = re.compile(r"real|built|adversary:[a-z0-9-]+")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_CHUNK: Final = re.compile(r"(.+?)(?:\.v\d+)?:\d+", re.DOTALL)
"""Id of a chunk: that of its document, which ends in no version, a version from the second on, and a number."""
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}(T\S+)?")


def is_own(system: str) -> bool:
    """Tell whether a name is that of a system that the user brings.

    Examples
    --------
    >>> is_own("own:my_rag:factory"), is_own("oracle"), is_own("own:|")
    (True, False, False)
    """
    return _OWN_NAME.fullmatch(system) is not None


def system_order(system: str) -> tuple[int, str]:
    """Return the key that sorts systems as tables list them: `SYSTEMS`, then the user's own by name."""
    return (SYSTEMS.index(system) if system in SYSTEMS else len(SYSTEMS)), system


def document_gold(chunk_id: str) -> str:
    """Return how gold names the whole document of a chunk: no chunk's id ends in a colon.

    Examples
    --------
    >>> document_gold("memo/7:00003"), document_gold("memo/7.v2:00000")
    ('memo/7:', 'memo/7:')
    """
    found = _CHUNK.fullmatch(chunk_id)
    return f"{chunk_id if found is None else found[1]}:"


def data_set_of(question_id: str) -> str:
    """Name the data set of a real question, one of `DATA_SETS`, by its id.

    Examples
    --------
    >>> data_set_of("mbly-C2Q05"), data_set_of("live-ko-10k-dilutedeps")
    ('Mobileye', 'others')
    """
    return next((name for begin, name in _OF_SET.items() if question_id.startswith(begin)), "others")


@dataclass(frozen=True, slots=True)
class Stratum:
    """The strata that a (question, session) pair belongs to.

    Attributes
    ----------
    share : str
        The admissible share of the gold: ``loose`` (>= 0.8), ``medium``, ``tight`` (< 0.3), ``void`` (0) or
        ``unstated``.
    selectivity : str
        A band of the admissible share of the corpus, such as ``0.1-0.5``.
    correlation : str
        Whether admissible chunks are denser around the question than elsewhere: ``near``, ``far``, ``independent`` or
        ``none``.
    """

    share: str
    selectivity: str
    correlation: str


class Standing(StrEnum):
    """How much of what a question needs its session may use, and so what it is right to do."""

    OPEN = "open"
    """All that is needed: answer."""
    PARTLY = "partly open"
    """Some: answer from that, or decline; neither is an error, for a question seldom says what would suffice."""
    HIDDEN = "hidden"
    """Nothing of what there is: decline."""
    UNKNOWN = "unknown"
    """No gold, or none stated."""


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
    """What one system did with one question of one session.

    Attributes
    ----------
    question_id : str
    filer : int
        CIK of the company asked about, by which rows are clustered; 0 for none. Of a store of the user's own, the line
        in which the question stands first: there each question is a cluster.
    role, purpose : str
    as_of : str or None
        ISO 8601; None for a session of today.
    system : str
        One of `SYSTEMS`, or the name of a system that the user brings, which begins with `OWN`.
    split : str
        ``dev`` or ``reported``; nothing is tuned on the second.
    kind : str
        ``real``, ``built`` from metadata facts, or ``adversary:NAME``.
    retrieved : tuple of str
        Ids of chunks, best first.
    retrieved_admissible : tuple of bool
        By the reference policy over the labels of the corpus, not by the search that retrieved.
    touched : tuple of str
        Ids of inadmissible chunks whose text reached the model, the prompt, a log or a cache.
    prompt_chunks : tuple of str
    outcome : str
        ``answer``, ``decline`` (no evidence good enough), ``refuse`` (the session alone decides) or ``error``.
    answer_sha256 : str or None
        Of the text returned, an answer's or a decline's; None if no text was returned.
    answer_tokens : int
    gold_answer_sha256 : str or None
        None where the question set has evidence and no answer.
    gold : tuple of str
        Ids of chunks that hold evidence; or ids of documents and a colon, of which any chunk will do.
    gold_admissible : tuple of bool
    answerable : bool
        Whether the admissible gold suffices.
    f1 : float or None
        SQuAD token F1 against the gold answer, four digits; 0 for anything but an answer, right or wrong to refuse;
        None exactly where there is no gold answer.
    stratum : Stratum
    canaries_planted, canaries_disclosed : tuple of str
        Ids of canaries in chunks this session may not see, and those of them in what the system said.
    ngram_overlap : float
        Share of the answer's 8-grams found in inadmissible chunks, and not in admissible ones, nor in what the model
        says with an empty context.
    existence_disclosed : bool
        Whether what was said or counted differs because hidden chunks exist.
    latency_ms : mapping of str to float or None
        By stage of `STAGES`, in milliseconds; None where not measured.
    cost_usd : float or None
        US dollars; None where no price is known, 0.0 for a model on this machine.
    embedder, generator : str
    seed : int
    cited : tuple of str or None
        Ids of the chunks that an answer cites; None where a system does not tell, as of each field below that is not
        known. Rows written before a field was added have none, and are read and written without it.
    cited_elsewhere : tuple of str or None
        Those of another company than any that the gold is of; None if the question names no company, or has no gold.
    figure_right : bool or None
        Whether an answer states the figure that the gold answer consists of; None where that is no single figure.

    Raises
    ------
    InvalidArgument
        If a value has the wrong type or range, or two contradict each other.
    """

    question_id: str
    filer: int
    role: str
    purpose: str
    as_of: str | None
    system: str
    split: str
    kind: str
    retrieved: tuple[str, ...]
    retrieved_admissible: tuple[bool, ...]
    touched: tuple[str, ...]
    prompt_chunks: tuple[str, ...]
    outcome: str
    answer_sha256: str | None
    answer_tokens: int
    gold_answer_sha256: str | None
    gold: tuple[str, ...]
    gold_admissible: tuple[bool, ...]
    answerable: bool
    f1: float | None
    stratum: Stratum
    canaries_planted: tuple[str, ...]
    canaries_disclosed: tuple[str, ...]
    ngram_overlap: float
    existence_disclosed: bool
    latency_ms: dict[str, float | None]
    cost_usd: float | None
    embedder: str
    generator: str
    seed: int
    cited: tuple[str, ...] | None = None
    cited_elsewhere: tuple[str, ...] | None = None
    figure_right: bool | None = None

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
        """Read a line as `to_json` writes it; CorruptFile if it is not that, to the last byte."""
        try:
            got = json.loads(line)
            if not isinstance(got, dict) or set(_NAMES) != set(got) | _LATER:
                odd = (
                    sorted(set(_NAMES) ^ (set(got) | _LATER))
                    if isinstance(got, dict)
                    else [type(got).__name__]
                )
                raise InvalidArgument(f"missing or unknown: {', '.join(odd)}")
            got = {name: tuple(value) if isinstance(value, list) else value for name, value in got.items()}
            row = cls(**{**got, "stratum": Stratum(**got["stratum"])})
        except (ValueError, TypeError, RecursionError) as error:
            raise CorruptFile(f"no row of the benchmark: {error}; run it again") from error
        if row.to_json() != (line if isinstance(line, str) else line.decode()).rstrip("\n"):
            raise CorruptFile(
                f"the row of {row.question_id!r} is not in its canonical spelling; run it again"
            )
        return row


_NAMES: Final = tuple(field.name for field in fields(Row))
_LATER: Final = frozenset({"cited", "cited_elsewhere", "figure_right"})
"""Fields that rows of earlier runs lack: without them a row keeps the bytes and the hash it was published with."""


def read_rows(path: Path) -> list[Row]:
    """Read a file of rows, gzipped if its name ends in ``.gz``.

    Raises
    ------
    CorruptFile
        If a line is no row, or the file ends within one; the message names the line.
    """
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            data = file.read()
    except (EOFError, gzip.BadGzipFile) as error:
        raise CorruptFile(f"{path}: {error}; copy the file again") from error
    if data and not data.endswith(b"\n"):
        raise CorruptFile(f"{path}: the last line has no end; the run was cut off: run it again")
    rows = []
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            rows.append(Row.from_json(line))
        except CorruptFile as error:
            raise CorruptFile(f"{path}, line {number}: {error}") from error
    return rows


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write a file of rows in sorted order, so that the same rows always make the same bytes, gzipped or not."""
    data = "".join(f"{line}\n" for line in sorted(row.to_json() for row in rows)).encode()
    # A gzip header (RFC 1952) holds a time of modification; zero keeps the bytes the same.
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def rows_sha256(rows: Sequence[Row]) -> str:
    """Hash rows in their canonical lines and order: the hash of the file that `write_rows` makes, unpacked."""
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
        _want(row, name, isinstance(getattr(row, name), str) and getattr(row, name) != "", "a text")
    for name in ("filer", "answer_tokens", "seed"):
        value = getattr(row, name)
        _want(row, name, type(value) is int and value >= 0, "an integer >= 0")
    for name in ("answerable", "existence_disclosed"):
        _want(row, name, type(getattr(row, name)) is bool, "true or false")
    for name in (*_IDS, *(name for name in ("cited", "cited_elsewhere") if getattr(row, name) is not None)):
        ids = getattr(row, name)
        good = isinstance(ids, tuple) and all(isinstance(one, str) and one for one in ids)
        _want(row, name, good and len(set(ids)) == len(ids), "a tuple of ids, none twice")
    for name, ids_name in (("retrieved_admissible", "retrieved"), ("gold_admissible", "gold")):
        flags = getattr(row, name)
        good = isinstance(flags, tuple) and all(type(flag) is bool for flag in flags)
        _want(row, name, good and len(flags) == len(getattr(row, ids_name)), f"a bool for each of {ids_name}")
    for name in ("answer_sha256", "gold_answer_sha256"):
        value = getattr(row, name)
        good = value is None or (isinstance(value, str) and _SHA256.fullmatch(value) is not None)
        _want(row, name, good, "64 hex digits or None")
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
    _want(row, "stratum", good, "a Stratum of three texts")
    good = row.as_of is None or (isinstance(row.as_of, str) and _DATE.fullmatch(row.as_of) is not None)
    _want(row, "as_of", good, "an ISO 8601 date or time, or None")


def _check_sense(row: Row) -> None:
    known_system = row.system in SYSTEMS or is_own(row.system)
    _want(row, "system", known_system, f"one of {', '.join(SYSTEMS)}, or {OWN}NAME")
    for name, known in (("split", SPLITS), ("outcome", OUTCOMES)):
        _want(row, name, getattr(row, name) in known, f"one of {', '.join(known)}")
    _want(row, "kind", _KIND.fullmatch(row.kind) is not None, "real, built or adversary:NAME")
    _want(row, "stratum", row.stratum.share in SHARES, f"a share of {', '.join(SHARES)}")
    overlap = _amount(row.ngram_overlap) and row.ngram_overlap is not None and row.ngram_overlap <= 1
    _want(row, "ngram_overlap", overlap, "a share in 0..1")
    good = _amount(row.f1) and (row.f1 is None or (row.f1 <= 1 and round(row.f1, 4) == row.f1))
    _want(row, "f1", good, "a share in 0..1 of four digits, or None")
    _want(row, "f1", (row.f1 is None) == (row.gold_answer_sha256 is None), "None without a gold answer only")
    if row.outcome == "answer":
        _want(row, "answer_sha256", row.answer_sha256 is not None, "the hash of the answer")
    else:
        _want(row, "f1", not row.f1, "0 for what is no answer")
        _want(row, "cited", not row.cited, "none for what is no answer")
        _want(row, "figure_right", not row.figure_right, "false for what is no answer")
    elsewhere = row.cited_elsewhere is None or set(row.cited or ()).issuperset(row.cited_elsewhere)
    _want(row, "cited_elsewhere", elsewhere, "some of cited")
    can_be_right = row.figure_right is None or row.gold_answer_sha256 is not None
    _want(row, "figure_right", can_be_right, "None without a gold answer")
    planted = set(row.canaries_planted)
    _want(row, "canaries_disclosed", planted.issuperset(row.canaries_disclosed), "some of canaries_planted")
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
