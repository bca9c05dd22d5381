"""Randomness for many uses in one request to the kernel.

Each request lets the interpreter's lock go, and beside busy threads getting it back costs more than the request.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from secrets import token_bytes

__all__ = ["random_parts"]


def random_parts(*sizes: int) -> list[bytes]:
    """Return random bytes, one string for each size.

    Examples
    --------
    >>> [len(part) for part in random_parts(16, 32, 32)]
    [16, 32, 32]
    """
    whole = token_bytes(sum(sizes))
    return [whole[start:end] for start, end in pairwise(accumulate(sizes, initial=0))]
