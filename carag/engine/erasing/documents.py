"""Erase documents from a store: on record first, then from the answers that cite them, the tables and the files.

A process that is killed after the record was written finishes the erasure at the next opening. One that is killed
before has at most withdrawn the documents, which is on record too.
"""

from __future__ import annotations

import getpass
import json
import secrets
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.audit import Basis
from carag.audit.operations.persons import two_persons
from carag.audit.records import _fields
from carag.audit.records.custody import MAX_ERASED_DOCUMENTS, DocumentErasure, salted_id
from carag.audit.records.hits import hit_digest
from carag.engine.erasing.answers import citing, erase_answers
from carag.engine.erasing.holds import DocumentHolds
from carag.engine.erasing.retention import check_free
from carag.errors import CorruptFile, InvalidArgument
from carag.limits import check_id, quoted
from carag.store.erasures import UNFINISHED, ErasedLabel, ErasedPassage, Remnant
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from carag.audit import AuditLog, Receipt
    from carag.engine.collection import Collection
    from carag.engine.configuration import InForce
    from carag.engine.contents import Contents
    from carag.engine.directory import Lifetime
    from carag.engine.writer import Kind

_logger = logger(__name__)

_SALT_BYTES: Final = 16
_NAMED_ANSWERS: Final = 1000
"""Most records of answers that one erasure names."""


class ErasureReport(NamedTuple):
    """What an erasure did."""

    receipts: tuple[Receipt, ...]
    """One for each 500 documents."""
    documents: int
    passages: int
    answers: tuple[int, ...]
    """Records whose answers were erased, because they cite a passage."""
    kept: tuple[int, ...]
    """Records whose answers cite a passage, and stay because of a hold or a duty to keep them."""
    beyond: tuple[str, ...]
    """Places that may still hold something, and that CARAG cannot reach."""


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
        self, ids: Iterable[str], *, basis: Basis | str, approver: str | None = None, by: str | None = None
    ) -> ErasureReport:
        """See :meth:`carag.Engine.erase`."""
        self._lifetime.check()
        self._in_force.keep_up()
        actor, reason = by or getpass.getuser(), _fields.member(Basis, basis)
        if approver is not None or self._collection.profile.vocabulary.two_persons_erase:
            two_persons(actor, approver or "")
        wanted = _checked_ids(ids)
        with self._store.turn():
            self._check_known(wanted)
            check_free(self._store, self._log, self.holds.on(wanted), wanted, reason)
            done = [
                self._erase(wanted[at : at + MAX_ERASED_DOCUMENTS], reason, actor, approver or "")
                for at in range(0, len(wanted), MAX_ERASED_DOCUMENTS)
            ]
            self._collection.refresh_files()
        return ErasureReport(
            tuple(one.receipts[0] for one in done),
            len(wanted),
            sum(one.passages for one in done),
            tuple(seq for one in done for seq in one.answers),
            tuple(seq for one in done for seq in one.kept),
            done[0].beyond,
        )

    def finish(self) -> None:
        """Carry out an erasure that is on record and was interrupted."""
        if not (begun := self._store.meta_get(UNFINISHED)):
            return
        with self._store.turn():
            for seq in range(max(int(begun), self._store.erasures.last() + 1), self._log.size):
                event = self._log.record(seq).event
                if isinstance(event, DocumentErasure):
                    opened = self._log.private.openings(seq)
                    if "targets" not in opened:
                        raise CorruptFile(
                            f"record {seq} erases documents, and its sealed values, which name them, are lost; "
                            "restore audit.db and private.key from a backup"
                        )
                    salts = {id_: bytes.fromhex(salt) for id_, salt in json.loads(opened["targets"].value)}
                    actor, approver = (
                        opened[one].value if one in opened else "" for one in ("actor", "approver")
                    )
                    self._carry_out(seq, event.basis, salts, actor, approver)
                    _logger.warning("finished the erasure of record %d, which was interrupted", seq)
            self._store.meta_set(UNFINISHED, "")
            self._collection.refresh_files()

    def _erase(self, ids: Sequence[str], basis: Basis, actor: str, approver: str) -> ErasureReport:
        before = self._collection.state.root
        self._store.meta_set(UNFINISHED, str(self._log.size))
        self._contents.withdraw(self._kind(), self._still_found(ids), by=actor)
        passages = self._digests(ids)
        answers = citing(self._log, {one.digest for one in passages}, basis)
        salts = {one: secrets.token_bytes(_SALT_BYTES) for one in ids}
        beyond = self._collection.beyond
        event = DocumentErasure(
            basis=basis,
            ids=tuple(salted_id(one, salt) for one, salt in salts.items()),
            passages=len(passages),
            before=before,
            after=self._collection.state.root,
            answers=len(answers.erased),
            kept=answers.kept[:_NAMED_ANSWERS],
            places=self._collection.places,
            beyond=beyond,
        )
        targets = json.dumps([[one, salt.hex()] for one, salt in salts.items()], ensure_ascii=False)
        receipt = self._log.append(
            event, secrets={"actor": actor, "approver": approver or None, "targets": targets}
        )
        self._carry_out(receipt.seq, basis, salts, actor, approver)
        self._store.meta_set(UNFINISHED, "")
        return ErasureReport((receipt,), len(ids), len(passages), answers.erased, answers.kept, beyond)

    def _carry_out(
        self, seq: int, basis: Basis, salts: Mapping[str, bytes], actor: str, approver: str
    ) -> None:
        """Erase what a record says: answers first, because they are found by what the tables then no longer hold."""
        passages, kind = self._digests([*salts]), self._kind()
        found = citing(self._log, {one.digest for one in passages}, basis)
        erase_answers(self._log, found.erased, basis, actor=actor, approver=approver)
        labels = [
            ErasedLabel(label, *self._collection.state.kept_of(stated))
            for label, stated in self._store.erasures.labels([*salts])
        ]
        remnants = {id_: self._remnant(kind, id_, salt) for id_, salt in salts.items()}
        with self._collection.still():
            self._store.erasures.erase(remnants, passages, labels, record=seq, basis=basis.value)

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
    if isinstance(ids, (str, bytes)):
        raise InvalidArgument(f"ids is {quoted(ids)}; want a list of document ids")
    wanted = list(dict.fromkeys(ids))
    for one in wanted:
        check_id("id of a document", one)
    if not wanted:
        raise InvalidArgument("no document is named; name the documents to erase")
    return wanted
