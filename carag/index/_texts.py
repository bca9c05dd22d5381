"""Convert chunks, headings and queries in words for the native core."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from carag.errors import InvalidArgument
from carag.index._arguments import integer, key_array
from carag.index._buffers import lent
from carag.index._core import ffi
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray

    from carag.index._core import CData


_BYTES: Final = ffi.typeof("uint8_t[]")


class TextBatch(NamedTuple):
    """Converted chunks to add; keep a reference during the call."""

    struct: CData
    keys: NDArray[np.int64]
    memory: tuple[Any, ...]


class TextQuery(NamedTuple):
    """A converted query; keep a reference during the call."""

    struct: CData
    terms: int
    is_counted: bool
    memory: tuple[Any, ...]


def _encoded(name: str, terms: Iterable[str]) -> list[bytes]:
    if isinstance(terms, str):
        raise InvalidArgument(
            f"{name} are {quoted(terms)}; want a list of terms, as carag.index.tokenize() makes from text"
        )
    try:
        encoded = [str.encode(term) for term in terms]
    except (TypeError, UnicodeEncodeError) as error:
        raise InvalidArgument(f"{name} contain a value that is not text: {error}; want strings") from error
    if b"" in encoded:
        raise InvalidArgument(f"{name} contain an empty string; leave it out")
    return encoded


def _ends(sizes: Iterable[int]) -> NDArray[np.uint64]:
    return np.cumsum(np.fromiter(sizes, np.uint64), dtype=np.uint64)


def _numbers(texts: list[list[bytes]], numbers: dict[bytes, int]) -> NDArray[np.uint32]:
    return np.fromiter(map(numbers.__getitem__, chain.from_iterable(texts)), np.uint32)


def text_batch(
    chunks: ArrayLike,
    documents: ArrayLike,
    tokens: Sequence[Iterable[str]],
    headings: Mapping[int, Iterable[str]],
) -> TextBatch:
    """Convert chunks, with those of a document together, in the order in which documents first occur."""
    keys = key_array(chunks)
    numbers = key_array(documents, keys.size)
    if not isinstance(tokens, Sequence) or not isinstance(headings, Mapping):
        raise InvalidArgument(
            f"tokens is a {type(tokens).__name__} and headings is a {type(headings).__name__}; want a list that "
            "holds the terms of each chunk, and a mapping from documents to terms"
        )
    if len(tokens) != keys.size:
        raise InvalidArgument(
            f"{len(tokens)} lists of tokens were given for {keys.size} chunks; want one for each"
        )
    names, firsts, inverse, sizes = np.unique(
        numbers, return_index=True, return_inverse=True, return_counts=True
    )
    if unknown := set(headings) - set(names.tolist()):
        raise InvalidArgument(
            f"headings name document {quoted(min(unknown, key=str))}, but no chunk of it is added; leave it out"
        )
    order = np.argsort(firsts[inverse], kind="stable")
    parts = np.argsort(firsts, kind="stable")
    texts = [_encoded(f"tokens[{at}]", tokens[at]) for at in order.tolist()]
    tops = [_encoded(f"headings[{name}]", headings.get(name, ())) for name in names[parts].tolist()]
    terms = sorted(set(chain.from_iterable(chain(texts, tops))))
    by_term = {term: number for number, term in enumerate(terms)}
    keys = np.ascontiguousarray(keys[order])
    memory: dict[str, NDArray[Any]] = {
        "documents": np.ascontiguousarray(names[parts]),
        "sizes": sizes[parts].astype(np.uint32),
        "words": np.frombuffer(b"".join(terms), np.uint8),
        "word_ends": _ends(map(len, terms)),
        "tokens": _numbers(texts, by_term),
        "token_ends": _ends(map(len, texts)),
        "headings": _numbers(tops, by_term),
        "heading_ends": _ends(map(len, tops)),
    }
    fields = {name: lent(array) for name, array in memory.items()}
    struct = ffi.new(
        "carag_text_batch *",
        {**fields, "keys": lent(keys), "chunks": keys.size, "parts": parts.size, "terms": len(terms)},
    )
    return TextBatch(struct, keys, tuple(memory.values()))


def text_query(
    terms: Iterable[str],
    k: int | None,
    k1: float,
    b: float,
    floor: float,
    *,
    count_matched: bool,
    documents: NDArray[np.int64] | None = None,
    others: bool = False,
) -> TextQuery:
    """Convert a query; the core checks ranges."""
    words = _encoded("terms", terms)
    memory: tuple[Any, ...] = (
        ffi.from_buffer(_BYTES, b"".join(words)),
        ffi.new("uint64_t[]", list(accumulate(map(len, words)))),
    )
    wanted = 0 if k is None else integer("k", k, 1, 2**31 - 1)
    numbers = _real("k1", k1), _real("b", b), wanted, _real("floor", floor)
    struct = ffi.new("carag_text_query *", (*memory, len(words), *numbers, bool(count_matched)))
    if documents is not None:
        # An empty list of documents finds nothing; a NULL pointer would mean all of them.
        named = np.append(documents, 0)
        struct.documents, struct.document_count, struct.others = lent(named), documents.size, others
        memory = (*memory, named)
    return TextQuery(struct, len(words), struct.count_matched or (k is None and struct.floor == 0.0), memory)


def _real(name: str, value: float) -> float:
    try:
        number = float(value) if isinstance(value, (int, float, np.floating, np.integer)) else math.nan
    except OverflowError:  # an integer of more than 308 digits
        number = math.nan
    if math.isnan(number) or isinstance(value, bool):
        raise InvalidArgument(f"{name} is {quoted(value)}; want a number")
    return number
