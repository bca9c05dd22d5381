"""Index the words of chunks, and find chunks that a policy admits by BM25, as if no other chunks existed.

A chunk has one label for each window of time, and a label's key is the key of its row in the vector index. Any number
of threads may search while one changes the index, and a search sees all of a change or nothing of it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Self

import numpy as np

from carag.errors import InvalidArgument
from carag.index._arguments import (
    distinct,
    key_array,
    path_bytes,
    predicates,
    uints,
    warn_of_unlabelled,
    word_array,
)
from carag.index._buffers import lent, room
from carag.index._core import ffi, lib
from carag.index._handle import Handle
from carag.index._status import new_fault, raise_for, text
from carag.index._texts import TextBatch, text_batch, text_query
from carag.index.text_results import AdmissibleChunks, TermCounts, TextResult, copied, found_result

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import date, datetime

    from numpy.typing import ArrayLike, NDArray

    from carag.index._core import CData
    from carag.policy.decision import Search
    from carag.policy.mask import Mask, Policy


class TextIndex(Handle):
    """An index of words, searched by BM25 under a policy.

    A chunk is admissible if one of its labels is: the policy admits the label's word and entity, and the instant is in
    its window. Where several policies are given, each with its own instants, any of them may admit a label, and a chunk
    counts once. For a search, only admissible chunks exist. With ``N`` of them, ``L`` the mean of their lengths in
    tokens, ``n`` the number that contain a term, ``f`` how often a chunk contains it, and ``q`` how often the query
    names it, the score of a chunk is the sum, over the query's terms in the order of their UTF-8 bytes, of ::

        q * log(1 + (N - n + 0.5) / (n + 0.5)) * (f * (k1 + 1) / (f + k1 * (1 - b + b * length / L)))

    in float64. A term that no admissible chunk contains adds nothing. The heading of a document counts as if it stood
    at the beginning of each of its chunks: in ``f``, ``length``, ``n`` and ``L``.

    Examples
    --------
    >>> from carag import Mask, TextIndex, policy_word
    >>> index = TextIndex()
    >>> index.add([1, 2, 3], [7, 7, 8], [["net", "sales"], ["cost", "of", "sales"], ["sales", "sales"]])
    >>> index.label([10, 20, 30], [1, 2, 3], [policy_word(bits) for bits in (1, 1, 2)])
    >>> result = index.search(["sales"], 5, Mask(required=1))
    >>> result.keys.tolist(), result.chunks.tolist(), result.stats.admissible
    ([10, 20], [1, 2], 2)
    """

    __slots__ = ()

    def __init__(self) -> None:
        out, fault = ffi.new("carag_text **"), new_fault()
        raise_for(lib.carag_text_new(out, fault), fault)
        self._hold(out[0], lib.carag_text_free, "")

    def _info(self) -> CData:
        info = ffi.new("carag_text_info *")
        lib.carag_text_get_info(self._core, info)
        return info

    # ------------------------------------------------------------ properties

    def __len__(self) -> int:
        """Count the chunks: added and not deleted."""
        return int(self._info().chunks)

    @property
    def label_count(self) -> int:
        """Number of live labels: opened and not closed."""
        return int(self._info().labels)

    @property
    def term_count(self) -> int:
        """Number of terms stored, counted in each segment; :meth:`compact` leaves one segment without deleted terms."""
        return int(self._info().terms)

    @property
    def nbytes(self) -> int:
        """Bytes of terms and postings."""
        return int(self._info().bytes)

    def __repr__(self) -> str:
        if self._handle is None:
            return "<TextIndex: closed>"
        return f"<TextIndex: {len(self)} chunks, {self.label_count} labels>"

    def chunks(self) -> NDArray[np.int64]:
        """List the keys of the chunks, ascending."""
        handle, keys = self._core, np.empty(len(self), np.int64)
        return keys[: lib.carag_text_chunks(handle, room(keys), keys.size)]

    def labels(self) -> NDArray[np.int64]:
        """List the keys of the live labels, ascending."""
        handle, keys = self._core, np.empty(self.label_count, np.int64)
        return keys[: lib.carag_text_label_keys(handle, room(keys), keys.size)]

    # ------------------------------------------------------------ change

    def add(
        self,
        chunks: ArrayLike,
        documents: ArrayLike,
        tokens: Sequence[Iterable[str]],
        *,
        headings: Mapping[int, Iterable[str]] | None = None,
    ) -> None:
        """Add chunks; on any error none is added. A chunk is not admissible before it has a label.

        ``tokens`` are the terms of each chunk, as :func:`carag.index.tokenize` gives them. ``headings``, by document,
        are terms that count as if they stood at the beginning of each of its chunks in this call.
        """
        batch: TextBatch = text_batch(chunks, documents, tokens, {} if headings is None else headings)
        fault = new_fault()
        raise_for(lib.carag_text_add(self._core, batch.struct, fault), fault, keys=batch.keys)

    def label(
        self,
        keys: ArrayLike,
        chunks: ArrayLike,
        words: ArrayLike,
        *,
        public_at: ArrayLike | None = None,
        expires_at: ArrayLike | None = None,
        entities: ArrayLike | None = None,
        audiences: ArrayLike | None = None,
        closes: ArrayLike = (),
        allow_quarantine: bool = False,
    ) -> None:
        """Open labels and close other labels in one step, in O(1) per label; on any error nothing is changed.

        Words, times, entities and audiences are as for :meth:`carag.Index.add`. ``closes`` are keys of labels to close
        in the same step: a search sees either the old labels or the new ones. Raises InvalidArgument if a key is in
        use, a chunk or label is unknown, a word has control bits set, or the window of a label overlaps that of another
        live label of its chunk.
        """
        named, on = key_array(keys), key_array(chunks)
        opened, closed = word_array(words, named.size), distinct(key_array(closes))
        if on.size != named.size:
            raise InvalidArgument(
                f"{on.size} chunks were given for {named.size} labels; name one chunk for each label"
            )
        terms = {
            "public_at": public_at,
            "expires_at": expires_at,
            "entities": entities,
            "audiences": audiences,
        }
        columns = {name: uints(name, value, named.size) for name, value in terms.items() if value is not None}
        struct = ffi.new(
            "carag_text_labels *",
            {
                "keys": lent(named),
                "chunks": lent(on),
                "words": lent(opened),
                **{name: lent(column) for name, column in columns.items()},
                "count": named.size,
                "closes": lent(closed),
                "close_count": closed.size,
                "allow_quarantine": bool(allow_quarantine),
            },
        )
        fault = new_fault()
        status = lib.carag_text_label(self._core, struct, fault)
        culprits = {"chunks": on, "closes": closed}.get(text(fault.where) if status else "", named)
        raise_for(status, fault, keys=culprits, words=opened)
        warn_of_unlabelled(opened)

    def close_labels(self, keys: ArrayLike) -> None:
        """Close labels and free their keys; on any error none is closed."""
        self.label((), (), (), closes=keys)

    def delete(self, chunks: ArrayLike) -> None:
        """Delete chunks and their labels, and free their keys; on any error none is deleted.

        No later search finds them. Their words stay in memory until :meth:`compact` or :meth:`save`.
        """
        wanted = distinct(key_array(chunks))
        fault = new_fault()
        raise_for(lib.carag_text_delete(self._core, lent(wanted), wanted.size, fault), fault, keys=wanted)

    def compact(self) -> None:
        """Rewrite postings and terms without those of deleted chunks, and overwrite the old memory.

        Afterwards, this index holds no word in memory that occurred only in deleted chunks. A file that it was mapped
        from is released unchanged: save over it. Searches may run at the same time, and answers stay the same.
        """
        fault = new_fault()
        raise_for(lib.carag_text_compact(self._core, fault), fault, path=self._path)

    # ------------------------------------------------------------ search

    def search(
        self,
        terms: Iterable[str],
        k: int | None,
        policy: Policy | Mask | Sequence[Search],
        *,
        as_of: datetime | date | int | None = None,
        alive_at: datetime | date | int | None = None,
        k1: float = 0.9,
        b: float = 0.4,
        floor: float = 0.0,
        count_matched: bool = False,
        documents: ArrayLike | None = None,
        others: bool = False,
    ) -> TextResult:
        """Find the ``k`` highest-scoring chunks among those that the policy admits, or all those that contain a term.

        There are at most 4,096 ``terms``, and a term named twice counts twice; None as ``k`` means all chunks. If
        ``policy`` is a sequence of 1 to 8 searches, such as those of a :class:`carag.policy.Decision`, any of them may
        admit a chunk, each at its own instants. ``k1``, 0 to 1000, says how soon a repeated term stops adding; ``b``, 0
        to 1, how much a chunk's length counts; ``floor`` is the lowest score wanted.

        ``count_matched`` counts how many chunks contain a term, which means scoring even chunks that cannot be among
        the ``k``. With ``documents``, only their chunks are found; scores still use the statistics of all admissible
        chunks. With ``others`` as well, all chunks of ``documents`` are found, and the ``k`` best chunks of other
        documents.
        """
        named = None if documents is None else key_array(documents, name="documents")
        if others and named is None:
            raise InvalidArgument(
                "others is given without documents; name the documents that the others come in addition to"
            )
        query = text_query(
            terms, k, k1, b, floor, count_matched=count_matched, documents=named, others=others
        )
        tests = predicates(policy, as_of, alive_at)
        out, fault = ffi.new("carag_text_found **"), new_fault()
        status = lib.carag_text_search(self._core, query.struct, tests.predicates, tests.size, out, fault)
        raise_for(status, fault, path=self._path, keys=named)
        try:
            return found_result(out[0], query.terms, is_counted=query.is_counted)
        finally:
            lib.carag_text_found_free(out[0])

    def count(
        self,
        terms: Iterable[str],
        policy: Policy | Mask | Sequence[Search],
        *,
        as_of: datetime | date | int | None = None,
        alive_at: datetime | date | int | None = None,
    ) -> TermCounts:
        """Count the admissible chunks, their tokens, and how many contain each term, as for :meth:`search`.

        Examples
        --------
        >>> from carag import Mask, TextIndex, policy_word
        >>> index = TextIndex()
        >>> index.add([1, 2], [7, 7], [["net", "sales"], ["cost"]], headings={7: ["acme"]})
        >>> index.label([1, 2], [1, 2], [policy_word(1)] * 2)
        >>> index.count(["acme", "cost", "profit"], Mask())
        TermCounts(chunks=2, length=5, frequencies=(2, 1, 0))
        """
        query = text_query(terms, None, 0.0, 0.0, 0.0, count_matched=False)
        tests = predicates(policy, as_of, alive_at)
        frequencies = np.zeros(query.terms, np.uint64)
        stats, fault = ffi.new("carag_text_stats *"), new_fault()
        status = lib.carag_text_count(
            self._core, query.struct, tests.predicates, tests.size, room(frequencies), stats, fault
        )
        raise_for(status, fault, path=self._path)
        return TermCounts(stats.admissible, stats.length, tuple(frequencies.tolist()))

    def documents(
        self,
        policy: Policy | Mask | Sequence[Search],
        *,
        as_of: datetime | date | int | None = None,
        alive_at: datetime | date | int | None = None,
    ) -> NDArray[np.int64]:
        """List the documents with an admissible chunk, ascending; arguments as for :meth:`search`.

        Examples
        --------
        >>> from carag import Mask, TextIndex, policy_word
        >>> index = TextIndex()
        >>> index.add([1, 2, 3], [7, 7, 8], [["net"], ["cost"], ["sales"]])
        >>> index.label([10, 20, 30], [1, 2, 3], [policy_word(bits) for bits in (1, 2, 2)])
        >>> index.documents(Mask(required=2)).tolist(), index.documents(Mask(required=1)).tolist()
        ([7, 8], [7])
        """
        tests = predicates(policy, as_of, alive_at)
        out, fault = ffi.new("carag_text_found **"), new_fault()
        raise_for(lib.carag_text_documents(self._core, tests.predicates, tests.size, out, fault), fault)
        try:
            return copied(out[0].documents, out[0].count)
        finally:
            lib.carag_text_found_free(out[0])

    def admissible(
        self,
        policy: Policy | Mask | Sequence[Search],
        documents: ArrayLike,
        *,
        as_of: datetime | date | int | None = None,
        alive_at: datetime | date | int | None = None,
    ) -> AdmissibleChunks:
        """List every admissible chunk of some documents, ascending by the key of the label that admits it.

        A document that is not in the index has no chunks; for a document named twice, each chunk is listed once. Other
        arguments are as for :meth:`search`.

        Examples
        --------
        >>> from carag import Mask, TextIndex, policy_word
        >>> index = TextIndex()
        >>> index.add([1, 2, 3], [7, 7, 8], [["net"], ["cost"], ["sales"]])
        >>> index.label([30, 20, 10], [1, 2, 3], [policy_word(1)] * 3)
        >>> keys, chunks, documents = index.admissible(Mask(required=1), [7, 99])
        >>> keys.tolist(), chunks.tolist(), documents.tolist()
        ([20, 30], [2, 1], [7, 7])
        """
        tests, asked = predicates(policy, as_of, alive_at), key_array(documents, name="documents")
        out, fault = ffi.new("carag_text_found **"), new_fault()
        status = lib.carag_text_admissible(
            self._core, tests.predicates, tests.size, lent(asked), asked.size, out, fault
        )
        raise_for(status, fault, keys=asked)
        found = out[0]
        try:
            return AdmissibleChunks(
                copied(found.keys, found.count),
                copied(found.chunks, found.count),
                copied(found.documents, found.count),
            )
        finally:
            lib.carag_text_found_free(found)

    # ------------------------------------------------------------ files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Compact, and write the index to one file, replacing it atomically and durably.

        The new file holds no word that occurred only in deleted chunks. The previous file is unlinked, not overwritten:
        disk blocks, copies and backups are beyond this library's reach.
        """
        fault = new_fault()
        status = lib.carag_text_save(self._core, path_bytes(path), fault)
        raise_for(status, fault, path=os.fspath(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, mmap: bool = False) -> Self:
        """Read an index from a file that :meth:`save` wrote.

        With ``mmap``, terms and postings stay in the file, whose pages processes share. Every checksum is verified;
        other checks are left to :meth:`verify`, and a search that meets damage raises.
        """
        out, fault = ffi.new("carag_text **"), new_fault()
        status = lib.carag_text_load(path_bytes(path), bool(mmap), out, fault)
        raise_for(status, fault, path=os.fspath(path))
        index = cls.__new__(cls)
        index._hold(out[0], lib.carag_text_free, os.fspath(path))  # noqa: SLF001 - its own class
        return index

    def verify(self) -> None:
        """Check the order of the terms, the postings against the lengths, and the labels against the windows."""
        fault = new_fault()
        raise_for(lib.carag_text_verify(self._core, fault), fault, path=self._path)
