"""Erase documents from a store: on record first, then from the answers that cite them, the tables and the files.

A process that is killed after the record was written finishes the erasure at the next opening. One that is killed
before has at most withdrawn the documents, which is on record too.
"""

from __future__ import annotations

import getpass
import secrets
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.audit import Basis
from carag.audit.operations.persons import two_persons
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
from carag.engine.erasing.answers import citing, erase_answers
from carag.errors import CorruptFile, InvalidArgument
from carag.limits import check_id, quoted
from carag.store.erasures import UNFINISHED, ErasedLabel, ErasedPassage, Remnant
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from carag.audit import AuditLog, Receipt
    from carag.engine.collection import Collection
    from carag.engine.configuration import InForce
    from carag.engine.contents import Contents
    from carag.engine.directory import Lifetime
    from carag.engine.erasing.answers import Answers
    from carag.engine.writer import Kind

_logger = logger(__name__)

_NAMED_ANSWERS: Final = 1000
"""Most records of answers that one erasure names."""


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

    def erase(
        self,
        ids: Iterable[str],
        *,
        basis: Basis | str,
        approver: str | None = None,
        by: str | None = None,
        dry_run: bool = False,
    ) -> ErasureReport:
        """See :meth:`carag.Engine.erase`."""
        self._lifetime.check()
        self._in_force.keep_up()
        actor, reason = by or getpass.getuser(), _fields.member(Basis, basis)
        two_persons(actor, approver or "")
        wanted = _checked_ids(ids)
        with self._store.turn(), self._collection.alone():
            if not dry_run:
                self._finish()  # otherwise what this one notes would take the place of what that one noted
            self._check_known(wanted)
            if dry_run:
                passages = self._digests(wanted)
                found = citing(self._log, {one.digest for one in passages}, reason)
                return self._report((), wanted, passages, found)
            done = [
                self._erase(wanted[at : at + MAX_ERASED_DOCUMENTS], reason, actor, approver or "")
                for at in range(0, len(wanted), MAX_ERASED_DOCUMENTS)
            ]
            self._collection.refresh_files()
        kept = {seq: why for one in done for seq, why in zip(one.kept, one.reasons, strict=True)}
        return ErasureReport(
            tuple(one.receipts[0] for one in done),
            len(wanted),
            sum(one.passages for one in done),
            tuple(seq for one in done for seq in one.answers),
            tuple(kept),
            done[0].beyond,
            tuple(kept.values()),
            tuple(said for one in done for said in one.statements),
        )

    def finish(self) -> None:
        """Carry out an erasure that is on record and was interrupted."""
        with self._store.turn(), self._collection.alone():
            self._finish()

    def _finish(self) -> None:
        if not (begun := self._store.meta_get(UNFINISHED)):
            return
        for seq in range(int(begun), self._log.size):
            event = self._log.record(seq).event
            if isinstance(event, DocumentErasure):
                self._finish_record(seq, event.basis)
                _logger.warning("finished the erasure of record %d, which was interrupted", seq)
        self._store.meta_set(UNFINISHED, "")
        self._collection.refresh_files()

    def _finish_record(self, seq: int, basis: Basis) -> None:
        opened = self._log.private.openings(seq)
        if "targets" not in opened:
            raise CorruptFile(
                f"record {seq} erases documents, and its sealed values, which name them, are lost; "
                "restore audit.db and private.key from a backup"
            )
        salts = read_salts(opened["targets"].value)
        actor, approver = (opened[one].value for one in ("actor", "approver"))
        if seq <= self._store.erasures.last():  # only answers that were put on record meanwhile may be left
            self._erase_answers(self._store.erasures.digests(seq), basis, actor, approver)
            return
        if left := self._still_found([*salts]):  # the folder of a nightly run may have given them again
            self._contents.withdraw(self._kind(), left, by=actor)
        self._carry_out(seq, basis, salts, actor, approver)

    def _erase(self, ids: Sequence[str], basis: Basis, actor: str, approver: str) -> ErasureReport:
        before = self._collection.state.root
        self._store.meta_set(UNFINISHED, str(self._log.size))
        self._contents.withdraw(self._kind(), self._still_found(ids), by=actor)
        passages = self._digests(ids)
        answers = citing(self._log, {one.digest for one in passages}, basis)
        salts = {one: secrets.token_bytes(ERASED_SALT_BYTES) for one in ids}
        event = DocumentErasure(
            basis=basis,
            ids=tuple(salted_id(one, salt) for one, salt in salts.items()),
            passages=len(passages),
            before=before,
            after=self._collection.state.root,
            answers=len(answers.erased),
            kept=tuple(answers.kept)[:_NAMED_ANSWERS],
            places=self._collection.places,
            beyond=self._collection.beyond,
        )
        said = {"actor": actor, "approver": approver, "targets": write_salts(salts)}
        receipt = self._log.append(event, secrets=said)
        self._carry_out(receipt.seq, basis, salts, actor, approver)
        self._store.meta_set(UNFINISHED, "")
        statements = tuple(ErasureStatement(receipt.seq, id_, salt) for id_, salt in salts.items())
        return self._report((receipt,), ids, passages, answers, statements)

    def _report(
        self,
        receipts: tuple[Receipt, ...],
        ids: Sequence[str],
        passages: Sequence[ErasedPassage],
        answers: Answers,
        statements: tuple[ErasureStatement, ...] = (),
    ) -> ErasureReport:
        kept, why = tuple(answers.kept), tuple(answers.kept.values())
        counts = len(ids), len(passages)
        return ErasureReport(
            receipts, *counts, answers.erased, kept, self._collection.beyond, why, statements
        )

    def _carry_out(
        self, seq: int, basis: Basis, salts: Mapping[str, bytes], actor: str, approver: str
    ) -> None:
        """Erase what a record says: answers first, because they are found by what the tables then no longer hold."""
        passages, kind = self._digests([*salts]), self._kind()
        digests, size = {one.digest for one in passages}, self._log.size
        self._erase_answers(digests, basis, actor, approver)
        labels = [
            ErasedLabel(label, *self._collection.state.kept_of(stated))
            for label, stated in self._store.erasures.labels([*salts])
        ]
        remnants = {id_: self._remnant(kind, id_, salt) for id_, salt in salts.items()}
        with self._collection.still():
            self._store.erasures.erase(remnants, passages, labels, record=seq, basis=basis.value)
        # Some may have been put on record meanwhile; none is from now on.
        self._erase_answers(digests, basis, actor, approver, since=size)

    def _erase_answers(
        self, digests: AbstractSet[bytes], basis: Basis, actor: str, approver: str, *, since: int = 0
    ) -> None:
        with self._log.settling():  # so that no hold is placed in between
            found = citing(self._log, digests, basis, since=since)
            erase_answers(self._log, found.erased, basis, actor=actor, approver=approver)

    def _remnant(self, kind: Kind, id_: str, salt: bytes) -> Remnant:
        stored = self._store.documents.document(id_)
        return Remnant(
            salted_id(id_, salt), lambda name: kind.remnant(stored, name)[0], kind.remnant(stored, "")[1]
        )

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

    def _kind(self) -> Kind:
        return self._contents.kind()


def _checked_ids(ids: Iterable[str]) -> list[str]:
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        raise InvalidArgument(f"ids is {quoted(ids)}; want a list of document ids")
    named = list(ids)
    for one in named:
        check_id("id of a document", one)
    wanted = list(dict.fromkeys(named))
    if not wanted:
        raise InvalidArgument("no document is named; name the documents to erase")
    return wanted
