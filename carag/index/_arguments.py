"""The caller's arguments as the core wants them: converted once, refused with what came and what was wanted."""

from __future__ import annotations

import os
from datetime import date
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from carag.errors import InvalidArgument
from carag.index._core import ffi, lib
from carag.index.results import Plan
from carag.policy.mask import Mask, Policy
from carag.policy.time import as_of_minutes

if TYPE_CHECKING:
    from datetime import datetime

    from numpy.typing import ArrayLike, NDArray

    from carag.index._core import CData

__all__ = [
    "beam_width",
    "distinct",
    "floats",
    "integer",
    "integers",
    "key_array",
    "minutes",
    "path_bytes",
    "plan_named",
    "predicate",
]

MAX_KEY: Final = 2**63 - 1

_Word = TypeVar("_Word", np.uint32, np.int64)


def integer(name: str, value: object, low: int, high: int) -> int:
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        raise InvalidArgument(f"{name} is {value!r}; want an integer from {low} to {high}")
    number = int(value.__index__())
    if not low <= number <= high:
        raise InvalidArgument(f"{name} is {number}; want an integer from {low} to {high}")
    return number


def floats(name: str, values: ArrayLike, dim: int, *, allow_one: bool = False) -> NDArray[np.float32]:
    """Convert to a C-contiguous (n, dim) float32 array; overflow becomes inf, which the core refuses."""
    array = _array(name, values)
    if array.dtype.kind not in "fiu":
        raise InvalidArgument(f"{name} are {array.dtype}; want real numbers")
    if allow_one and array.ndim == 1:
        array = array[np.newaxis]
    if array.ndim != 2 or array.shape[1] != dim:
        raise InvalidArgument(f"{name} have shape {array.shape}; want (n, {dim})")
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return np.ascontiguousarray(array, dtype=np.float32)


def integers(
    name: str, values: ArrayLike, count: int | None, dtype: type[_Word], high: int
) -> NDArray[_Word]:
    """Convert to a C-contiguous 1-d array of integers that fit; a scalar counts as one."""
    array = np.atleast_1d(_array(name, values))
    if array.dtype.kind not in "iu" and array.size:
        raise InvalidArgument(f"{name} are {array.dtype}; want integers")
    if array.ndim != 1 or (count is not None and array.size != count):
        wanted = "(n,)" if count is None else f"({count},)"
        raise InvalidArgument(f"{name} have shape {array.shape}; want {wanted}")
    low = -high - 1 if np.dtype(dtype).kind == "i" else 0
    if array.size and not (low <= int(array.min()) and int(array.max()) <= high):
        raise InvalidArgument(f"{name} range over [{array.min()}, {array.max()}]; want 0 to {high}")
    return np.ascontiguousarray(array, dtype=dtype)


def _array(name: str, values: ArrayLike) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidArgument(f"{name} make no array: {error}; want rows of equal length") from error


def key_array(keys: ArrayLike, count: int | None = None) -> NDArray[np.int64]:
    return integers("keys", keys, count, np.int64, MAX_KEY)


def distinct(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    ordered = np.sort(keys)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if twice.size:
        raise InvalidArgument(f"key {twice[0]} is named twice; name each row once")
    return keys


def minutes(public_at: ArrayLike, count: int) -> NDArray[np.uint32]:
    array = _array("public_at", public_at)
    if array.ndim == 0:
        array = np.full(count, array)
    return integers("public_at", array, count, np.uint32, lib.CARAG_NEVER_PUBLIC)


def predicate(policy: object, as_of: datetime | date | int | None) -> CData:
    """Compile a policy and an instant into the core's test."""
    if isinstance(policy, Mask):
        policy = Policy(policy)
    if not isinstance(policy, Policy):
        raise InvalidArgument(
            f"policy is {policy!r}; want a carag.Policy or carag.Mask: nothing is searched without one"
        )
    if as_of is None:
        minutes = 0
    elif isinstance(as_of, date):
        minutes = as_of_minutes(as_of)
    else:
        minutes = integer("as_of", as_of, 0, lib.CARAG_NEVER_PUBLIC - 1)
    pairs = [{"mask": mask.mask, "value": mask.value} for mask in policy.masks]
    return ffi.new("carag_predicate *", {"pairs": pairs, "pair_count": len(pairs), "as_of": minutes})


def plan_named(plan: object) -> Plan:
    try:
        return Plan(plan)  # type: ignore[arg-type] # any object: what is no plan raises
    except ValueError:
        raise InvalidArgument(
            f"plan is {plan!r}; want one of {', '.join(repr(p.value) for p in Plan)}"
        ) from None


def beam_width(ef_search: int | None) -> int:
    if ef_search is None:
        return lib.CARAG_DEFAULT_EF_SEARCH
    return integer("ef_search", ef_search, 1, lib.CARAG_MAX_EF)


def path_bytes(path: str | os.PathLike[str]) -> bytes:
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        raise InvalidArgument(f"path {path!r} holds a NUL byte; no file has such a name")
    return encoded
