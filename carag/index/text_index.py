"""Index the words of chunks, and find those that a policy admits by BM25, as if no others existed.

Beside :class:`carag.Index` and not inside of it: text is immutable and belongs to a chunk, while the rows of an index
are labels. A chunk has several, one a window, and a relabel makes a new one under a new key; its words stay what they
were. And an index of vectors must not depend on words. The two meet in keys: a result names the label that admitted the
chunk, and a label's key is that of its row in the index of vectors.

Calls release the GIL: any threads may search and count while one changes the index, and a search sees all of a change
or nothing of it.
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

__all__ = ["TextIndex"]


class TextIndex(Handle):
    """An index of words, searched by BM25 under a policy.

    A chunk is admissible if one of its labels is: the policy admits the label's word and entity, and the instant is in
    its window. Where several policies ask, each with instants of its own, any of them may admit a label, and a chunk
    counts once. For a search only admissible chunks exist. With ``N`` of them, ``L`` the mean of their lengths in
    tokens, ``n`` the number of them that hold a term, ``f`` how often a chunk holds it, and ``q`` how often the query
    names it, the score of a chunk is the sum, over the query's terms in the order of their UTF-8 bytes, of ::

        q * log(1 + (N - n + 0.5) / (n + 0.5)) * (f * (k1 + 1) / (f + k1 * (1 - b + b * length / L)))

    in float64. A term that no admissible chunk holds adds nothing. The heading of a document counts as if it stood at
    the beginning of each of its chunks: in ``f``, in ``length``, in ``n`` and in ``L``.

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
        """Number of terms kept, counted in each segment; :meth:`compact` leaves one, without those deleted."""
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
        """Add chunks: all of them, or none on any error. None is admissible before it has a label.

        Parameters
        ----------
        chunks : (n,) integer
            Keys, each 0 or more and in use once.
        documents : (n,) integer
            The document of each chunk, 0 or more.
        tokens : sequence of n iterables of str
            The terms of each chunk, as :func:`carag.index.tokenize` gives them; any string but an empty one.
        headings : mapping of int to iterable of str, optional
            By document, terms that count as if they stood at the beginning of each of its chunks of this call.

        Raises
        ------
        InvalidArgument
            On a key that is negative, named twice or in use, a wrong number of anything, a token that is no string.
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
        closes: ArrayLike = (),
        allow_quarantine: bool = False,
    ) -> None:
        """Open labels and close others, in one step: all of it, or nothing on any error. O(1) per label.

        Parameters
        ----------
        keys : (n,) integer
            Keys of the new labels, each 0 or more and of no live label.
        chunks : (n,) integer
            The chunk of each.
        words : (n,) integer
            Policy words, see :func:`carag.policy.policy_word`. A word of version 0 is stored and never admissible, with
            an :class:`~carag.errors.UnlabelledWarning`.
        public_at, expires_at : (n,) or scalar integer, optional
            Minutes since 1970-01-01T00:00Z from which the label holds, and from which it no longer does; as for
            :meth:`carag.Index.add`.
        entities : (n,) or scalar integer, optional
            The entity it is about; 0, the default, is none.
        closes : (m,) integer, optional
            Keys of labels to close in the same step: a search sees the old ones or the new ones.
        allow_quarantine : bool
            Accept words with the quarantine bit, which no policy admits.

        Raises
        ------
        InvalidArgument
            If a key is in use or a chunk or label unknown, a word has control bits set, or the window of a label
            overlaps that of another live label of its chunk: at each instant, one at most may admit it.
        """
        named, on = key_array(keys), key_array(chunks)
        opened, closed = word_array(words, named.size), distinct(key_array(closes))
        if on.size != named.size:
            raise InvalidArgument(f"{on.size} chunks for {named.size} labels; name the chunk of each label")
        terms = {"public_at": public_at, "expires_at": expires_at, "entities": entities}
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
        """Close labels: all of them, or none on any error. Their keys become free.

        Raises
        ------
        InvalidArgument
            If a key is unknown or named twice.
        """
        self.label((), (), (), closes=keys)

    def delete(self, chunks: ArrayLike) -> None:
        """Delete chunks and their labels: all of them, or none on any error. Their keys become free.

        No search finds them from then on. Their words are in memory until :meth:`compact` or :meth:`save`.

        Raises
        ------
        InvalidArgument
            If a key is unknown or named twice.
        """
        wanted = distinct(key_array(chunks))
        fault = new_fault()
        raise_for(lib.carag_text_delete(self._core, lent(wanted), wanted.size, fault), fault, keys=wanted)

    def compact(self) -> None:
        """Write postings and terms again without those of deleted chunks, and overwrite the memory of before.

        When it returns, no word that stood in deleted chunks alone is in the memory of this index. A file it was mapped
        from is let go, not changed: save over it. Searches may run meanwhile; no answer changes.
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
    ) -> TextResult:
        """Find the ``k`` chunks of the highest score among those the policy admits, or all that hold a term.

        Parameters
        ----------
        terms : iterable of str
            In any order; one named twice counts twice. At most 4,096.
        k : int or None
            Chunks wanted; None for all.
        policy : Policy, Mask, or sequence of Search
            Admits labels. A ``Mask`` is a policy of one mask; ``Policy()`` admits nothing. Of 1 to 8 searches, as those
            of a :class:`carag.policy.Decision`, each with a policy and its instants, any may admit.
        as_of, alive_at : datetime, date or int, optional
            As for :meth:`carag.Index.search`; not beside searches, which have their own.
        k1, b : float
            How soon a term that is repeated stops adding, 0 to 1000; how much a chunk's length counts, 0 to 1.
        floor : float
            Least score of a chunk that is wanted.
        count_matched : bool
            Count how many chunks hold a term, which takes scoring those that cannot be among the ``k``; all are
            counted where all are wanted.
        documents : (n,) integer, optional
            Find only chunks of these, each 0 or more. Scores stay what they are: statistics are of all admissible
            chunks.

        Returns
        -------
        TextResult
            Highest score first, ties by smaller key of the label.

        Raises
        ------
        InvalidArgument
            On a term that is no string or empty, a parameter out of range, or no policy.
        CorruptFile
            If the postings of a mapped file were damaged after it was opened.
        """
        named = None if documents is None else key_array(documents, name="documents")
        query = text_query(terms, k, k1, b, floor, count_matched=count_matched, documents=named)
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
        """Count the chunks that a policy admits, their tokens, and how many of them hold each term.

        Parameters
        ----------
        terms : iterable of str
        policy, as_of, alive_at
            As for :meth:`search`.

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

        Documents whose chunks have labels alike take one step each, others a step a chunk until one is admissible.

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

        Parameters
        ----------
        policy, as_of, alive_at
            As for :meth:`search`.
        documents : (n,) integer
            One that is not in the index has no chunk; one named twice has each chunk once.

        Raises
        ------
        InvalidArgument
            On a negative document, or no policy.

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

        The file holds no word that stands in deleted chunks alone. That of before is unlinked, not overwritten: what a
        disk does with its blocks, and copies and backups of it, are beyond this library.

        Raises
        ------
        OSError
            If the file cannot be written; the previous file is untouched.
        """
        fault = new_fault()
        status = lib.carag_text_save(self._core, path_bytes(path), fault)
        raise_for(status, fault, path=os.fspath(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, mmap: bool = False) -> Self:
        """Read an index from a file that :meth:`save` wrote.

        Parameters
        ----------
        path : str or PathLike
        mmap : bool
            Leave terms and postings in the file, whose pages processes share. Every checksum is verified; the rest of
            what can be wrong waits for :meth:`verify`, and a search that meets it raises.

        Raises
        ------
        CorruptFile
            If a check of the file fails; the message names the section.
        OSError
            If the file cannot be read.
        """
        out, fault = ffi.new("carag_text **"), new_fault()
        status = lib.carag_text_load(path_bytes(path), bool(mmap), out, fault)
        raise_for(status, fault, path=os.fspath(path))
        index = cls.__new__(cls)
        index._hold(out[0], lib.carag_text_free, os.fspath(path))  # noqa: SLF001 - its own class
        return index

    def verify(self) -> None:
        """Verify everything that the index rests on: order of terms, postings against lengths, labels against windows.

        Raises
        ------
        CorruptFile
            If something is wrong; the message names the section.
        """
        fault = new_fault()
        raise_for(lib.carag_text_verify(self._core, fault), fault, path=self._path)
