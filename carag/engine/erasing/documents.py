"""Erase documents from a store: on record first, then from the answers that cite them, the tables and the files.

A process that is killed after the record was written finishes the erasure at the next opening. One that is killed
before has at most withdrawn the documents, which is on record too.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, NamedTuple, Self

from carag.audit import Basis
from carag.audit.operations.erasure import MAX_NAMED_RECORDS
from carag.audit.operations.persons import acting
from carag.audit.receipts.erased import ErasureStatement
from carag.audit.records import _fields
from carag.audit.records.custody import (
    ERASED_SALT_BYTES,
    MAX_ERASED_DOCUMENTS,
    DocumentErasure,
    read_salts,
    salted_id,
    write_salts,
)
from carag.audit.records.hits import hit_digest
from carag.engine.erasing.answers import Answers, citing, erase_answers
from carag.engine.erasing.holds import DocumentHolds
from carag.engine.erasing.mentions import Mentions
from carag.engine.erasing.retention import check_free, due, refused
from carag.engine.erasing.subject import report
from carag.engine.writer import listed_ids
from carag.errors import CorruptFile, InvalidArgument, Refused
from carag.limits import quoted
from carag.store.erasures import UNFINISHED, ErasedLabel, ErasedPassage, Remnant
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from carag.audit import AuditLog, Receipt
    from carag.engine.collection import Collection
    from carag.engine.configuration import InForce
    from carag.engine.contents import Contents
    from carag.engine.directory import Lifetime
    from carag.engine.erasing.retention import Due
    from carag.engine.erasing.subject import SubjectReport

_logger = logger(__name__)


class ErasureReport(NamedTuple):
    """What an erasure did, or would do."""

    receipts: tuple[Receipt, ...]
    """One for each 500 documents; none if the erasure was only tried."""
    documents: int
    passages: int
    answers: tuple[int, ...]
    """Records whose answers were erased, because they cite a passage."""
    kept: tuple[int, ...]
    """Records whose answers cite a passage, and stay because of a hold or a duty to keep them."""
    beyond: tuple[str, ...]
    """Places that may still hold something, and that CARAG cannot reach."""
    reasons: tuple[str, ...]
    """Which hold or duty it is, for each of ``kept``."""
    statements: tuple[ErasureStatement, ...] = ()
    """For each document, what shows that its receipt is about it. A statement names the document."""


class DueReport(NamedTuple):
    """What erasing what is due did, or would do."""

    erased: tuple[str, ...]
    stayed: tuple[Due, ...]
    """Documents that are due, and stay because of a hold or a duty to keep them."""
    report: ErasureReport | None
    """None if nothing was erased."""

    @classmethod
    def of(cls, found: Iterable[Due], report: ErasureReport | None = None) -> Self:
        """Return the report on what was due; by default, on what erasing it would do."""
        several = list(found)
        free = tuple(one.document for one in several if not one.refusal)
        return cls(free, tuple(one for one in several if one.refusal), report)


class _Order(NamedTuple):
    """An erasure that is on record."""

    seq: int
    basis: Basis
    salts: Mapping[str, bytes]
    """By the id of each document."""
    actor: str
    approver: str
    """Empty where one person may erase."""

    @property
    def statements(self) -> tuple[ErasureStatement, ...]:
        """For each document, what shows that the record is about it."""
        return tuple(ErasureStatement(self.seq, id_, salt) for id_, salt in self.salts.items())


class DocumentErasures:
    """The erasures of a store's documents."""

    def __init__(
        self, collection: Collection, log: AuditLog, contents: Contents, in_force: InForce, lifetime: Lifetime
    ) -> None:
        self._collection = collection
        self._store = collection.store
        self._log = log
        self._contents = contents
        self._in_force = in_force
        self._lifetime = lifetime
        self.holds = DocumentHolds(collection, log)

    def erase(
        self,
        ids: Iterable[str],
        *,
        basis: Basis | str,
        approver: str | None = None,
        by: str | None = None,
        dry_run: bool = False,
        admin: str | None = None,
    ) -> ErasureReport:
        """See :meth:`carag.Engine.erase`."""
        self._lifetime.check()
        self._in_force.keep_up()
        actor, reason = self._actor(by, approver), _fields.member(Basis, basis)
        wanted = listed_ids(ids)
        if not wanted:
            raise InvalidArgument("no document is named; name the documents to erase")
        if dry_run:
            return self._foretold(wanted, reason)
        with self._store.turn(), self._collection.alone():
            with self._store.administered(admin), self._collection.erasing():
                finished = self._finish()
                left = [one for one in wanted if not any(one in ids for ids, _ in finished)]
                self._check_known(left)
                try:
                    self._check_free(left, reason)
                except Refused as refusal:
                    refused(self._log, refusal.code)
                    raise
                done = [report for _, report in finished] + [
                    self._erase(left[at : at + MAX_ERASED_DOCUMENTS], reason, actor, approver or "")
                    for at in range(0, len(left), MAX_ERASED_DOCUMENTS)
                ]
            self._store.meta_set(UNFINISHED, "")
        kept = {seq: why for one in done for seq, why in zip(one.kept, one.reasons, strict=True)}
        return ErasureReport(
            tuple(receipt for one in done for receipt in one.receipts),
            sum(one.documents for one in done),
            sum(one.passages for one in done),
            tuple(seq for one in done for seq in one.answers),
            tuple(kept),
            done[-1].beyond,
            tuple(kept.values()),
            tuple(said for one in done for said in one.statements),
        )

    def due(self) -> list[Due]:
        """Return the documents whose ``erase_after`` has passed, those included that a hold or a duty keeps."""
        self._lifetime.check()
        self._in_force.keep_up()
        return due(self._store, self._log, self.holds)

    def erase_due(self, *, approver: str | None = None, by: str | None = None) -> DueReport:
        """Erase the documents that are due, except those that a hold or a duty keeps, which is on record once each.

        The basis is ``GDPR_5_1_E``. Persons and errors are as in :meth:`carag.Engine.erase`.

        Examples
        --------
        >>> import tempfile, carag
        >>> from datetime import date
        >>> memo = carag.Document(id="memo/7", text="The code is 1234.", bits=(), erase_after=date(2020, 1, 1))
        >>> with carag.Engine.open(tempfile.mkdtemp(), embedder="wordllama") as engine:
        ...     _ = engine.add([memo])
        ...     engine.erasures.erase_due(by="dpo", approver="cco").erased
        ('memo/7',)
        """
        self._actor(by, approver)
        with self._store.turn():
            found = self.due()
            free = [one.document for one in found if not one.refusal]
            done = self.erase(free, basis=Basis.STORAGE_LIMIT, approver=approver, by=by) if free else None
            for code in sorted({one.refusal for one in found if one.refusal}):
                refused(self._log, code)
        return DueReport.of(found, done)

    def report(self, names: Iterable[str], *, role: str, actor: str, why: str) -> SubjectReport:
        """Find where a person stands: in documents, lists, groups, records and answers; on record.

        Raises Refused, ``ROLE_MAY_NOT_OPEN``, for another role, before anything is read; the attempt is on record.

        Parameters
        ----------
        names : iterable of str
            The person's names and ids, such as ``"Ana Ruiz"`` and ``"user:ana"``; found in any case, width and
            composition, in texts as whole words.
        role, actor, why
            As for :func:`carag.audit.disclose`.

        Examples
        --------
        >>> import tempfile, carag
        >>> memo = carag.Document(id="memo/7", text="Ana Ruiz asked for a loan.", bits=())
        >>> with carag.Engine.open(tempfile.mkdtemp(), embedder="wordllama") as engine:
        ...     _ = engine.add([memo])
        ...     engine.erasures.report(["ana ruiz"], role="auditor", actor="eve", why="REQUEST-3").documents
        (MentioningDocument(id='memo/7', where=('text',)),)
        """
        self._lifetime.check()
        self._in_force.keep_up()
        return report(self._store, self._log, Mentions(names), role=role, actor=actor, why=why)

    def _foretold(self, ids: Sequence[str], basis: Basis) -> ErasureReport:
        """Report what an erasure would do."""
        self._check_known(ids)
        self._check_free(ids, basis)
        passages = self._digests(ids)
        found = citing(self._log, {one.digest for one in passages}, basis, range(self._log.size))
        return self._report((), ids, len(passages), found)

    def finish(self) -> None:
        """Carry out an erasure that is on record and was interrupted, unless that needs an administrator."""
        if not self._store.meta_get(UNFINISHED):
            return
        with (
            self._store.turn(),
            self._collection.alone(),
        ):  # another process that is erasing right now has the turn
            if self._store.is_shared and (begun := self._begun()):
                _logger.warning(
                    "the erasure of record %d was interrupted; erase one of its documents again, with the "
                    "administrator's address, which finishes it",
                    begun[0],
                )
                return
            with self._collection.erasing():
                self._finish()
            self._store.meta_set(UNFINISHED, "")

    def _begun(self) -> list[int]:
        """Return the records of erasures of which it is not certain that they were carried out everywhere."""
        first = int(self._store.meta_get(UNFINISHED) or self._log.size)
        return [
            seq
            for seq in range(first, self._log.size)
            if isinstance(self._log.record(seq).event, DocumentErasure)
        ]

    def _finish(self) -> list[tuple[frozenset[str], ErasureReport]]:
        """Carry out what is on record; return the documents of each interrupted erasure, and what it did."""
        done, last = [], self._store.erasures.last()
        for seq in self._begun():
            event = self._log.record(seq).event
            assert isinstance(event, DocumentErasure)  # noqa: S101 - these alone are begun
            opened = self._log.private.openings(seq)
            if "targets" not in opened:
                raise CorruptFile(
                    f"record {seq} erases documents, and its sealed values, which name them, are lost; "
                    "restore audit.db and private.key from a backup"
                )
            actor, approver = (opened[one].value if one in opened else "" for one in ("actor", "approver"))
            order = _Order(seq, event.basis, read_salts(opened["targets"].value), actor, approver)
            ids = [*order.salts]
            if seq > last:
                if left := self._still_found(ids):  # the folder of a nightly run may have given them again
                    self._contents.withdraw(left, by=actor)
                found = self._carry_out(order, self._digests(ids))
            else:  # only answers that were put on record meanwhile may be left
                digests = self._store.erasures.digests(seq)
                found = self._erase_answers(order, digests, range(self._log.size))
            _logger.warning("finished the erasure of record %d, which was interrupted", seq)
            receipt = self._log.receipt(seq)
            done.append(
                (frozenset(ids), self._report((receipt,), ids, event.passages, found, order.statements))
            )
        return done

    def _erase(self, ids: Sequence[str], basis: Basis, actor: str, approver: str) -> ErasureReport:
        before = self._collection.state.root
        if not self._store.meta_get(UNFINISHED):
            self._store.meta_set(UNFINISHED, str(self._log.size))
        self._contents.withdraw(self._still_found(ids), by=actor)
        passages, size = self._digests(ids), self._log.size
        answers = citing(self._log, {one.digest for one in passages}, basis, range(size))
        salts = {one: secrets.token_bytes(ERASED_SALT_BYTES) for one in ids}
        event = DocumentErasure(
            basis=basis,
            ids=tuple(salted_id(one, salt) for one, salt in salts.items()),
            passages=len(passages),
            before=before,
            after=self._collection.state.root,
            answers=len(answers.erased),
            kept=tuple(answers.kept)[:MAX_NAMED_RECORDS],
            places=self._collection.places,
            beyond=self._collection.beyond,
        )
        said = {"actor": actor, "approver": approver or None, "targets": write_salts(salts)}
        receipt = self._log.append(event, secrets=said)
        order = _Order(receipt.seq, basis, salts, actor, approver)
        self._carry_out(order, passages, (*answers.erased, *answers.kept), since=size)
        return self._report((receipt,), ids, len(passages), answers, order.statements)

    def _report(
        self,
        receipts: tuple[Receipt, ...],
        ids: Sequence[str],
        passages: int,
        answers: Answers,
        statements: tuple[ErasureStatement, ...] = (),
    ) -> ErasureReport:
        kept, why = tuple(answers.kept), tuple(answers.kept.values())
        return ErasureReport(
            receipts, len(ids), passages, answers.erased, kept, self._collection.beyond, why, statements
        )

    def _carry_out(
        self, order: _Order, passages: Sequence[ErasedPassage], cited: Iterable[int] = (), *, since: int = 0
    ) -> Answers:
        """Erase what a record says: answers first, because they are found by what the tables then no longer hold.

        Of the records before ``since``, only those in ``cited`` have answers that cite a passage.
        """
        digests, size = {one.digest for one in passages}, self._log.size
        found = self._erase_answers(order, digests, (*cited, *range(since, size)))
        labels = [
            ErasedLabel(label, *self._collection.state.kept_of(stated))
            for label, stated in self._store.erasures.labels([*order.salts])
        ]
        remnants = {id_: self._remnant(id_, salt) for id_, salt in order.salts.items()}
        with self._collection.still():
            self._store.erasures.erase(remnants, passages, labels, record=order.seq, basis=order.basis.value)
        # Some may have been put on record meanwhile; none is from now on.
        self._erase_answers(order, digests, range(size, self._log.size))
        return found

    def _erase_answers(self, order: _Order, digests: AbstractSet[bytes], among: Iterable[int]) -> Answers:
        with self._log.settling():  # so that no hold is placed in between
            found = citing(self._log, digests, order.basis, among)
            erase_answers(self._log, found.erased, order.basis, actor=order.actor, approver=order.approver)
        return found

    def _remnant(self, id_: str, salt: bytes) -> Remnant:
        kind, stored = self._contents.kind(), self._store.documents.document(id_)
        return Remnant(salted_id(id_, salt), lambda name: kind.remnant(stored, name))

    def _digests(self, ids: Sequence[str]) -> list[ErasedPassage]:
        return [
            ErasedPassage(key, hit_digest(chunk, text_sha256))
            for key, chunk, text_sha256 in self._store.erasures.passages(ids)
        ]

    def _still_found(self, ids: Sequence[str]) -> list[str]:
        return [one for one in ids if self._store.labels.of_document(one).size]

    def _check_known(self, ids: Sequence[str]) -> None:
        known = self._store.documents.content_hashes(ids)
        if unknown := [one for one in ids if one not in known]:
            raise InvalidArgument(
                f"document {quoted(unknown[0])} is not in the store, or was erased before, as with {len(unknown)} of "
                f"the {len(ids)} ids; nothing was erased: leave these ids out"
            )

    def _check_free(self, ids: Sequence[str], basis: Basis) -> None:
        check_free(self._store, self._log, self.holds.on(ids), ids, basis)

    def _actor(self, by: str | None, approver: str | None) -> str:
        return acting(by, approver, two=self._collection.profile.vocabulary.two_persons_erase)
