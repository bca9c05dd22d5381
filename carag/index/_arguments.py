"""Convert and check the caller's arguments for the native core; messages state what was given and what is wanted."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import numpy as np

from carag.errors import InvalidArgument, UnlabelledWarning
from carag.index._buffers import lent
from carag.index._core import ffi, lib
from carag.index.results import DTYPE_CODES, PLAN_CODES, Plan
from carag.limits import quoted
from carag.policy.bits import whole_number
from carag.policy.mask import MAX_ENTITY, Mask, Policy, check_policy
from carag.policy.time import instants
from carag.policy.word import QUARANTINE, VERSION_WORD

if TYPE_CHECKING:
    from collections.abc import Sized
    from datetime import date, datetime

    from numpy.typing import ArrayLike, NDArray

    from carag.index._core import CData
    from carag.index.results import DType


MAX_KEY: Final = 2**63 - 1
"""The greatest key of a row."""

_MAX_K: Final = 1 << 20
"""Greatest ``k`` for an index with fewer rows: a result takes 12 bytes for each row wanted."""

_MAX_BIT: Final = (1 << 26) - 1
"""The greatest audience in a policy: the bits of all audiences up to it take 8 MB."""

_FLOAT32: Final = np.dtype(np.float32)
_NAMES: Final = (Plan, str)
"""Types that name a plan."""
_Number = TypeVar("_Number", np.uint32, np.int64)


# ---------------------------------------------------------------- numbers and arrays


def integer(name: str, value: object, low: int, high: int) -> int:
    try:
        number = whole_number(value)
    except TypeError:
        raise InvalidArgument(f"{name} is {quoted(value)}; want an integer from {low} to {high}") from None
    if not low <= number <= high:
        raise InvalidArgument(f"{name} is {quoted(number)}; want an integer from {low} to {high}")
    return number


def floats(name: str, values: ArrayLike, dim: int, *, allow_one: bool = False) -> NDArray[np.float32]:
    """Convert to a C-contiguous (n, dim) float32 array; overflow becomes infinity, which the core refuses."""
    array = _array(name, values)
    if array.dtype.kind not in "fiu":
        raise InvalidArgument(f"{name} are {array.dtype}; want real numbers")
    if allow_one and array.ndim == 1:
        array = array[np.newaxis]
    if array.ndim != 2 or array.shape[1] != dim:
        raise InvalidArgument(f"{name} have shape {array.shape}; want (n, {dim})")
    flags = array.flags
    if array.dtype is _FLOAT32 and flags.c_contiguous and flags.aligned:
        return array
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return np.array(array, np.float32, order="C")


def one_query(values: ArrayLike, dim: int) -> NDArray[np.float32]:
    rows, count = queries_of(values, dim)
    if count != 1:
        raise InvalidArgument(f"{count} queries were given; want one")
    return rows


def queries_of(values: ArrayLike, dim: int) -> tuple[NDArray[np.float32], int]:
    """Convert one or many queries, and return them with their number; a float32 array is not copied."""
    if type(values) is np.ndarray and values.dtype is _FLOAT32 and values.shape == (dim,):
        flags = values.flags
        if flags.c_contiguous and flags.aligned:
            return values, 1
    rows = floats("queries", values, dim, allow_one=True)
    return rows, rows.shape[0]


def integers(
    name: str, values: ArrayLike, count: int | None, dtype: type[_Number], high: int
) -> NDArray[_Number]:
    """Convert to a C-contiguous 1-d array of integers within bounds; a scalar becomes an array of one."""
    array = np.atleast_1d(_array(name, values))
    if array.dtype.kind not in ("iu" if array.size else "iuf"):  # an empty list makes an array of float64
        raise InvalidArgument(f"{name} are {array.dtype}; want integers")
    if array.ndim != 1 or (count is not None and array.size != count):
        wanted = "(n,)" if count is None else f"({count},)"
        raise InvalidArgument(f"{name} have shape {array.shape}; want {wanted}")
    low = -high - 1 if np.dtype(dtype).kind == "i" else 0
    if array.size and not (low <= int(array.min()) and int(array.max()) <= high):
        raise InvalidArgument(f"{name} range over [{array.min()}, {array.max()}]; want 0 to {high}")
    return np.require(array, dtype, ["C", "ALIGNED"])


def _array(name: str, values: ArrayLike) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidArgument(
            f"{name} cannot be converted to an array: {error}; want rows of equal length"
        ) from error


def uints(name: str, values: ArrayLike, count: int) -> NDArray[np.uint32]:
    """Convert 32-bit numbers: one for each row, or one for all rows."""
    array = _array(name, values)
    if array.ndim == 0:
        array = np.full(count, array)
    return integers(name, array, count, np.uint32, 2**32 - 1)


def word_array(words: ArrayLike, count: int) -> NDArray[np.uint32]:
    return integers("words", words, count, np.uint32, 2**32 - 1)


def warn_of_unlabelled(words: NDArray[np.uint32]) -> None:
    """Warn about stored words without the schema version: no policy admits their rows, which is seldom intended."""
    if closed := int(np.count_nonzero(words & ~np.uint32(QUARANTINE) < VERSION_WORD)):
        warnings.warn(
            f"{closed} of {words.size} words have no schema version, so no policy admits their rows; make words of "
            "bits with carag.policy_word()",
            UnlabelledWarning,
            stacklevel=3,
        )


def key_array(keys: ArrayLike, count: int | None = None, *, name: str = "keys") -> NDArray[np.int64]:
    return integers(name, keys, count, np.int64, MAX_KEY)


def distinct(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    if keys.size and not _are_marked_apart(keys):
        ordered = np.sort(keys)
        is_twice = ordered[1:] == ordered[:-1]
        if is_twice.any():
            raise InvalidArgument(f"key {ordered[1:][is_twice][0]} is named twice; name each row once")
    return keys


def _are_marked_apart(keys: NDArray[np.int64]) -> bool:
    """Tell whether keys are distinct, by marking each in their range; for dense keys, 20 times faster than a sort."""
    low, high = int(keys.min()), int(keys.max())
    if high - low > 16 * keys.size:
        return False
    marks = np.zeros(high - low + 1, dtype=bool)
    marks[keys - low] = True
    return int(np.count_nonzero(marks)) == keys.size


# ---------------------------------------------------------------- names and choices


def dtype_code(dtype: object) -> int:
    return _code("dtype", dtype, DTYPE_CODES)


def plan_code(plan: object) -> int:
    return _code("plan", plan, PLAN_CODES)


def _code(name: str, choice: object, codes: dict[Any, int]) -> int:
    try:
        return codes[choice]
    except (KeyError, TypeError):
        raise InvalidArgument(
            f"{name} is {quoted(choice)}; want one of {', '.join(repr(known.value) for known in codes)}"
        ) from None


def beam_width(ef_search: int | None) -> int:
    return 0 if ef_search is None else integer("ef_search", ef_search, 1, lib.CARAG_MAX_EF)


def threads_or_all(threads: int | None) -> int:
    """Check a number of threads; by default all cores that this process may use."""
    if threads is not None:
        return integer("threads", threads, 1, lib.CARAG_MAX_THREADS)
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return min(cores, lib.CARAG_MAX_THREADS)


def path_bytes(path: str | os.PathLike[str]) -> bytes:
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        raise InvalidArgument(f"path {quoted(path)} holds a NUL byte; no file has such a name")
    return encoded


# ---------------------------------------------------------------- parameters of calls


def index_params(dim: int, M: int, ef_construction: int, seed: int, dtype: DType | str) -> CData:  # noqa: N803
    params = {
        "dim": integer("dim", dim, 1, lib.CARAG_MAX_DIM),
        "M": integer("M", M, lib.CARAG_MIN_M, lib.CARAG_MAX_M),
        "ef_construction": integer("ef_construction", ef_construction, 1, lib.CARAG_MAX_EF),
        "seed": integer("seed", seed, 0, 2**64 - 1),
        "dtype": dtype_code(dtype),
    }
    return ffi.new("carag_params *", params)


class RowBatch(NamedTuple):
    """Converted rows to add; keep a reference during the call."""

    rows: CData
    keys: NDArray[np.int64] | None
    words: NDArray[np.uint32]
    memory: tuple[NDArray[Any], ...]
    """The other arrays that ``rows`` points to."""


def batch_of(
    dim: int,
    vectors: ArrayLike,
    words: ArrayLike,
    keys: ArrayLike | None,
    terms: dict[str, ArrayLike | None],
    *,
    allow_quarantine: bool,
    threads: int | None,
) -> RowBatch:
    """Convert rows to add; None leaves a column at the core's default."""
    array = floats("vectors", vectors, dim)
    count = array.shape[0]
    labels = word_array(words, count)
    named = None if keys is None else key_array(keys, count)
    columns = {name: uints(name, value, count) for name, value in terms.items() if value is not None}
    rows = {
        "vectors": lent(array),
        "words": lent(labels),
        "keys": ffi.NULL if named is None else lent(named),
        **{name: lent(column) for name, column in columns.items()},
        "count": count,
        "allow_quarantine": bool(allow_quarantine),
        "threads": threads_or_all(threads),
    }
    return RowBatch(ffi.new("carag_rows *", rows), named, labels, (array, *columns.values()))


def search_params(
    k: int,
    index: Sized,
    queries: int,
    ef_search: int | None,
    plan: Plan | str,
    threads: int | None,
    fallback: bool,
    exact_limit: int,
) -> tuple[int, CData]:
    """Check a search's arguments; return the rows wanted and the core's parameters. Only immutable types are cached."""
    workers = 1 if threads is None and queries == 1 else threads_or_all(threads)
    is_fixed = (
        type(k) is int
        and (ef_search is None or type(ef_search) is int)
        and type(plan) in _NAMES
        and type(exact_limit) is int
    )
    checked = _checked if is_fixed else _checked.__wrapped__
    wanted, params = checked(k, ef_search, plan, workers, bool(fallback), exact_limit)
    if wanted > _MAX_K:
        _check_room("k", wanted, index)
    return wanted, params


def rows_wanted(name: str, value: object, index: Sized, low: int = 1) -> int:
    wanted = integer(name, value, low, 2**31 - 1)
    _check_room(name, wanted, index)
    return wanted


def _check_room(name: str, wanted: int, index: Sized) -> None:
    if wanted > _MAX_K and wanted > (live := len(index)):
        raise InvalidArgument(
            f"{name} is {wanted:,}; want at most {_MAX_K:,}, or the {live:,} rows of the index if that is more"
        )


@lru_cache(maxsize=256)
def _checked(
    k: int, ef_search: int | None, plan: Plan | str, workers: int, fallback: bool, exact_limit: int
) -> tuple[int, CData]:
    wanted = integer("k", k, 1, 2**31 - 1)
    limit = integer("exact_limit", exact_limit, 0, 2**64 - 1)
    params = (wanted, beam_width(ef_search), plan_code(plan), workers, not fallback, limit)
    return wanted, ffi.new("carag_search_params *", params)


# ---------------------------------------------------------------- policies


class CompiledPolicy(NamedTuple):
    """A policy and its instants, compiled for the core, which only reads it. Keep a reference during the call."""

    predicate: CData
    memory: tuple[NDArray[Any], ...]
    """The arrays that the predicate points to."""


class CompiledPolicies(NamedTuple):
    """Policies any one of which may admit a label, compiled for the core. Keep a reference."""

    predicates: CData
    size: int
    memory: tuple[CompiledPolicy, ...]


def predicate(
    policy: object, as_of: datetime | date | int | None, alive_at: datetime | date | int | None
) -> CompiledPolicy:
    """Compile a policy with the instants at which a row must be public (``as_of``) and not expired (``alive_at``)."""
    check_policy(policy)
    return _compiled(policy, *instants(as_of, alive_at))


def predicates(
    policy: object, as_of: datetime | date | int | None, alive_at: datetime | date | int | None
) -> CompiledPolicies:
    """Compile a policy and its instants, or several searches that have their own."""
    if not isinstance(policy, Sequence):
        one = predicate(policy, as_of, alive_at)
        return CompiledPolicies(one.predicate, 1, (one,))
    if as_of is not None or alive_at is not None:
        raise InvalidArgument(
            "as_of or alive_at was given with a list of searches, which have their own; set that instant in each search"
        )
    if not 1 <= len(policy) <= lib.CARAG_MAX_PREDICATES:
        raise InvalidArgument(
            f"policy is a list of {len(policy)} searches; want 1 to {lib.CARAG_MAX_PREDICATES} "
            "(to admit nothing, pass Policy())"
        )
    tests = tuple(searched(f"policy[{at}]", one) for at, one in enumerate(policy))
    return CompiledPolicies(
        ffi.new("carag_predicate[]", [one.predicate[0] for one in tests]), len(tests), tests
    )


def searched(name: str, search: Any) -> CompiledPolicy:
    try:
        policy, as_of, alive_at = search.policy, search.as_of, search.alive_at
    except AttributeError:
        raise InvalidArgument(
            f"{name} is {quoted(search)}; want a carag.policy.Search, with policy, as_of and alive_at"
        ) from None
    return predicate(policy, as_of, alive_at)


@lru_cache(maxsize=1024)
def _compiled(policy: Policy | Mask, as_of: int, alive_at: int) -> CompiledPolicy:
    """Compile and cache: a session asks thousands of questions under one policy with up to a thousand entities."""
    whole = Policy(policy) if isinstance(policy, Mask) else policy
    allowed, denied = whole.packed_entities
    rule = lib.CARAG_NOT_ENTITIES if denied else lib.CARAG_ANY_ENTITY
    if allowed is not None:
        rule = lib.CARAG_ONLY_ENTITIES
    listed = np.frombuffer(denied if allowed is None else allowed, np.uint64)
    if listed.size and listed[-1] > MAX_ENTITY:
        raise InvalidArgument(
            f"the policy lists entity {listed[-1]}; the rows of an index have entities 0 to {MAX_ENTITY}, "
            "so list the numbers that its rows use"
        )
    entities, audiences = (
        listed.astype(np.uint32),
        _bitmap(b"" if whole.any_audience else whole.audience_list.packed),
    )
    fields = {
        "pairs": [(mask.mask, mask.value) for mask in whole.masks],
        "pair_count": len(whole.masks),
        "as_of": as_of,
        "alive_at": alive_at,
        "entities": lent(entities),
        "entity_count": entities.size,
        "entity_rule": rule,
        "audiences": lent(audiences),
        "audience_count": 64 * audiences.size,
        "audience_rule": lib.CARAG_ANY_AUDIENCE if whole.any_audience else lib.CARAG_LISTED_AUDIENCES,
    }
    return CompiledPolicy(ffi.new("carag_predicate *", fields), (entities, audiences))


@lru_cache(maxsize=16)
def _bitmap(packed: bytes) -> NDArray[np.uint64]:
    """Set bit a % 64 of word a // 64 for each audience a of an ascending list."""
    audiences = np.frombuffer(packed, np.uint64)
    last = int(audiences[-1]) if audiences.size else 0
    if last > _MAX_BIT:
        raise InvalidArgument(
            f"the policy lists audience {last}; the rows of an index have audiences 0 to {_MAX_BIT}, so list "
            "the numbers that its rows use"
        )
    listed = np.zeros((last // 64 + 1) * 64, bool)
    listed[audiences.astype(np.int64)] = True
    return np.packbits(listed, bitorder="little").view(np.uint64)
